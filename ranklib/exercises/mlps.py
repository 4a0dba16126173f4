"""The exercises of ``mlps``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.theory.sizes import diameter


@exercise(
    right=[0.5, 1 / 2],
    wrong=[
        (1, "at most"),
        (0, "negative one"),
        (2, "upside down"),
        (-0.5, "distance"),
        (0.25, "square"),
        (0.707, "half-gap itself"),
        (3, "this is not it"),
    ],
    malformed="half",
)
def relu_gap(answer):
    pair = torch.tensor([[1.0], [-1.0]], dtype=F64)
    truth = float(diameter(pair.relu()) / diameter(pair))
    if close(answer, truth):
        return None
    slips = {
        1: "took Lipschitz constant 1 for keeping distances: it says at most.",
        0: "both tokens at the same place? ReLU sends only the negative one to 0.",
        1 / truth: "turned the quotient upside down: it is after over before.",
        -truth: "a diameter is a distance, never negative.",
        truth**2: "took the square: the diameter is a length, not a variance.",
        math.sqrt(truth): "took a root: follow the half-gap itself, from a and -a to a and 0.",
    }
    return _slip(answer, slips)


@exercise(
    right=[12.5, 12.53, 1 / math.tanh(0.08)],
    wrong=[
        (25.0, "forgot w"),
        (0.0798, "upside down"),
        (5, "1/a"),
        (2.63, "square inside"),
        (62.6, "twice"),
        (125, "cube"),
        (1, "this is not it"),
    ],
    malformed="steep",
)
def holding_steepness(answer):
    a, w = 0.2, 2
    truth = 1 / math.tanh(w * a**2)
    if math.isclose(number(answer), truth, rel_tol=4e-3):
        return None
    slips = {
        1 / math.tanh(a**2): "forgot w: the score of this pair is w a².",
        1 / truth: "turned it upside down: attention multiplies by tanh(w a²), and the MLP has to undo that.",
        1 / a: "took 1/a: attention takes away a factor of about w a², not a.",
        1 / math.tanh(w * a): "forgot the square inside of tanh.",
        truth / a: "divided by a twice: the half-gap a stands on both sides and cancels.",
        1 / a**3: "took the whole cube: the map is λ a tanh(w a²), and one a is what it has to return.",
    }
    return _slip(answer, slips)


@exercise(
    right=[(7, 4), [7.0, 4.0]],
    wrong=[
        ((6, 3), "skip"),
        ((4, 7), "order"),
        ((7, 7), "attained"),
        ((7, 6), "one feature"),
        ((5, 4), "smaller norms"),
        ((6, 4), "skip in the first"),
        ((7, 3), "skip in the second"),
        ((1, 2), "this is not it"),
    ],
    malformed=7,
)
def bound_and_truth(answer):
    promised, true = (number(value) for value in pair_of(answer, "(promised, true)"))
    first, second = (torch.diag(torch.tensor(w, dtype=F64)) for w in ((3.0, 1.0), (1.0, 2.0)))
    norm = torch.linalg.matrix_norm
    wanted = (
        1 + float(norm(first, 2) * norm(second, 2)),
        float(norm(torch.eye(2, dtype=F64) + first @ second, 2)),
    )
    if close(promised, wanted[0]) and close(true, wanted[1]):
        return None
    slips = {
        (6, 3): "forgot the skip, which adds 1 to both.",
        (4, 7): "the order is (promised, true), and what is promised is the larger.",
        (7, 7): "took the product for attained: W_1 stretches feature 1 most, and W_2 feature 2.",
        (7, 6): "follow one feature: it meets 3 and then 1, or 1 and then 2, never 3 and 2.",
        (5, 4): "took the smaller norms: the norm of a diagonal matrix is its largest entry.",
        (6, 4): "forgot the skip in the first number.",
        (7, 3): "forgot the skip in the second number.",
    }
    for pair, text in slips.items():
        if close(promised, pair[0]) and close(true, pair[1]):
            return text
    return UNKNOWN


@exercise(
    right=[(0, 0, 0.5, 1.5), [0.0, 0, 0.5, 1.5]],
    wrong=[
        ((0.5, 1.5, 0.5, 1.5), "cube"),
        ((0, 1, 0.5, 1.5), "only what is left"),
        ((0, 1.5, 0.5, 1.5), "only what is left"),
        ((0, 0, 1, 1.5), "behind the skip"),
        ((0, 0, 0.5, 1), "own skip"),
        ((0, 0, 0.5, 2), "add the slopes"),
        ((0, 0, 1.5, 0.5), "order"),
        ((0, 0, 3, 4), "this is not it"),
    ],
    malformed=0.5,
)
def four_slopes(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 4:
        raise Form("four numbers")
    given = [number(value) for value in answer]
    f, tiny = 0.5, 1e-6

    def slope(outer, inner):
        after = outer * tiny + tiny * math.tanh(tiny**2)
        return (inner * after + f * after) / tiny

    wanted = [slope(0, 0), slope(0, 1), slope(1, 0), slope(1, 1)]
    if all(math.isclose(a, b, rel_tol=2e-3, abs_tol=1e-6) for a, b in zip(given, wanted)):
        return None
    if abs(given[0]) > 1e-6:
        return "without a skip attention leaves the cube, of slope 0, and the MLP can only multiply it."
    if abs(given[1]) > 1e-6:
        return "the skip round the MLP carries only what is left after attention, and that has slope 0."
    if close(given[2], 1):
        return "in the third case the MLP stands behind the skip and has none of its own: it multiplies all by 0.5."
    if close(given[3], 1):
        return "in the last case the MLP has its own skip, too: it multiplies by 1 + 0.5."
    if close(given[3], 2):
        return "do not add the slopes of attention and MLP: one acts after the other, so they multiply."
    if close(given[2], wanted[3]) and close(given[3], wanted[2]):
        return "the order is: none, MLP only, attention only, both."
    return UNKNOWN


@exercise(
    right=[1 / math.tanh(1), 1.31, 1.313],
    wrong=[
        (2.39, "of tanh"),
        (1, "slope at 0"),
        (0.762, "upside down"),
        (0.85, "where"),
        (1.31 * 1.31, "square"),
        (2.163, "square inside"),
        (7, "this is not it"),
    ],
    malformed="edge",
)
def hard_edge(answer):
    truth = 1 / math.tanh(1)
    if math.isclose(number(answer), truth, rel_tol=5e-3):
        return None
    slips = {
        2.39: "that is the edge of tanh, which bends before it reaches 1; the clamp does not.",
        1: "looked at the slope at 0 only: there attention cubes, and no steepness makes up for it.",
        1 / truth: "turned it upside down: λ has to make up for the factor tanh 1.",
        0.85: "that is where tanh has its edge, a half-gap; asked is λ.",
        truth**2: "took the square: the pair passes attention once in a layer.",
        1
        / math.tanh(
            0.5
        ): "no square inside: the factor at the half-gap a is tanh a², and a may be as large as 1.",
    }
    return _slip(answer, slips, 5e-3)


@exercise(
    right=[lambda x: math.tanh(5 * x), lambda x: max(-1, min(1, 4.2 * x)), lambda x: -math.tanh(5.5 * x)],
    wrong=[
        (lambda x: 5 * x, "between -1 and 1"),
        (lambda x: math.tanh(7 * x), "too steep"),
        (lambda x: min(1, 5 * abs(x)), "even"),
        (lambda x: math.tanh(3 * x), "4.08"),
        (lambda x: max(0, min(1, 5 * x)), "half of the gap"),
        (lambda x: 0, "constant"),
    ],
    malformed=5,
)
def hold_the_pair(answer):
    grid = torch.linspace(-2, 2, 2001, dtype=F64)
    values = torch.tensor([number(call(answer, x)) for x in grid.tolist()], dtype=F64)
    if not (values.abs() <= 1 + 1e-9).all():
        return "its values have to stay between -1 and 1 on [-2, 2]."
    steepness = float((values.diff() / grid.diff()).abs().max())
    if not steepness <= 6 + 1e-6:
        return f"too steep: its Lipschitz constant is at least {steepness:.3g}, allowed is 6."
    if steepness < 1e-9:
        return "a constant function merges all tokens."
    x = torch.tensor([0.5, -0.5], dtype=F64)
    for _ in range(50):
        mixed = (x[:, None] * x).softmax(-1) @ x
        x = torch.tensor([number(call(answer, value)) for value in mixed.tolist()], dtype=F64)
    if float((x[0] - x[1]).abs()) >= 1 - 1e-9:
        return None
    if torch.allclose(values, values.flip(0), atol=1e-9):
        return "an even function gives both tokens the same number: the pair merges in one layer."
    if values.min() >= -1e-9 or values.max() <= 1e-9:
        return "it cuts off one sign: then half of the gap is lost, and the pair is not opposite any more."
    return (
        "the pair comes closer: at a = 0.5 the function has to give back a factor of 1/tanh 0.25, about 4.08."
    )


def _slip(answer, slips: dict, rel: float = 2e-3) -> str:
    """The sentence for a known wrong number, or the common one."""
    value = number(answer)
    found = (text for wrong, text in slips.items() if math.isclose(value, wrong, rel_tol=rel, abs_tol=1e-9))
    return next(found, UNKNOWN)
