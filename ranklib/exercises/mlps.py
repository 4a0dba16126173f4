"""The exercises of ``mlps``: their checks, and answers that the tests give."""

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.paper.centres import mean_residual
from ranklib.paper.norms import max_col_sum, max_row_sum


@exercise(
    right=[0.5, 1 / 2],
    wrong=[(1, "at most"), (0, "negative one"), (2, "")],
    malformed="half",
)
def relu_gap(answer):
    pair = torch.tensor([[1.0], [-1.0]], dtype=F64)
    truth = float(mean_residual(pair.relu()) / mean_residual(pair))
    if close(answer, truth):
        return None
    if close(answer, 1):
        return "took Lipschitz constant 1 for keeping distances: it says at most."
    if close(answer, 0):
        return "both tokens at the same place? ReLU sends only the negative one to 0."
    return UNKNOWN


@exercise(
    right=[(2, 2)],
    wrong=[((1.618, 1.618), "spectral"), ((1.62, 1.62), "spectral"), ((1, 2), "")],
    malformed=2,
)
def both_constants(answer):
    one, inf = (number(value) for value in pair_of(answer, "of constants"))
    w = torch.tensor([[1.0, 1.0], [0.0, 1.0]], dtype=F64)
    truth = float(max_row_sum(w)), float(max_col_sum(w))
    if close(one, truth[0]) and close(inf, truth[1]):
        return None
    spectral = float(torch.linalg.matrix_norm(w, 2))
    if any(abs(value - spectral) < 0.01 for value in (one, inf)):
        return "used the spectral norm; the constants are sums of absolute weights."
    return UNKNOWN


@exercise(
    right=[(2.39, 0.85), (2.3896, 0.8503)],
    wrong=[((1, 0.85), "slope"), ((0.85, 2.39), "order"), ((3, 0.5), "")],
    malformed=2.39,
)
def edge_of_tanh(answer):
    a = torch.linspace(0.01, 0.999, 100_001, dtype=F64)
    needed = a.atanh() / (a * (a * a).tanh())
    at = int(needed.argmin())
    edge, where = (number(value) for value in pair_of(answer, "(the edge, where)"))
    if close(edge, float(needed[at])) and abs(where - float(a[at])) < 6e-3:
        return None
    if close(edge, 1):
        return "looked at the slope at 0 only: there attention cubes, and no steepness makes up for it."
    if close(edge, float(a[at])):
        return "the order is (the edge of lambda, the half-gap)."
    return UNKNOWN


@exercise(
    right=[
        (lambda x: 0.9 * x, lambda x: 1000 * abs(x)),
        (lambda x: x / 2, lambda x: 2 * abs(x)),
    ],
    wrong=[
        ((lambda x: 1.5 * x, lambda x: 2 * abs(x)), "too steep"),
        ((lambda x: 0.9 * x, lambda x: 0.5 * x), "nowhere"),
        ((lambda x: 0.9 * x, lambda x: 2 * x), "closer after f"),
    ],
    malformed=(0.9, 1000),
)
def steeper_is_faster(answer):
    f, g = pair_of(answer, "of functions (f, g)")
    if not (callable(f) and callable(g)):
        raise Form("a pair of functions (f, g)")
    grid = torch.linspace(-2, 2, 2001, dtype=F64).tolist()

    def steepness(h):
        values = torch.tensor([number(call(h, x)) for x in grid], dtype=F64)
        return float((values.diff() / (grid[1] - grid[0])).abs().max())

    def gap(h):
        x = torch.tensor([1.0, -1.0], dtype=F64)
        for _ in range(3):
            weights = (x[:, None] * x).softmax(-1)
            x = torch.tensor([number(call(h, value)) for value in (weights @ x).tolist()], dtype=F64)
        return float((x[0] - x[1]).abs())

    if not steepness(f) < 1:
        return "f is too steep somewhere on [-2, 2]: its constant has to be below 1."
    if not steepness(g) > 1:
        return "g is nowhere steep: its constant has to be above 1."
    if gap(g) < gap(f):
        return None
    return "with these the pair is closer after f; steepness bounds a gap and does not make one."
