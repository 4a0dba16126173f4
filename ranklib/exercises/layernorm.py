"""The exercises of ``layernorm``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, close, exercise, matrix, number, pair_of
from ranklib.theory.layernorm import affine_rank, circle_trace, layer_norm, rms_norm, row_std
from ranklib.theory.sizes import diameter


@exercise(
    right=[[2, 4], (4, 2), [1, 2, 4], {2, 4}],
    wrong=[
        ([4], "RMSNorm"),
        ([2, 3, 4], "another order"),
        ([], "columns"),
        ([2], "factor"),
        ([3], "another order"),
        ([0, 1, 3], "from 1"),
        ([2, 5], "four tokens"),
    ],
    malformed=2,
)
def merged_rows(answer):
    x = torch.tensor([[1, 2, 4], [5, 7, 11], [4, 2, 1], [2, 4, 8]], dtype=F64)
    if not isinstance(answer, tuple | list | set) or not all(isinstance(i, int) for i in answer):
        raise Form("a list of row numbers")

    def same_as_first(z):
        return {i + 1 for i in range(1, 4) if torch.allclose(z[i], z[0])}

    got = set(answer) - {1}
    if got == same_as_first(layer_norm(x)):
        return None
    if 0 in got:
        return "tokens are counted from 1 here."
    if not got <= {2, 3, 4}:
        return "there are four tokens: name some of 2, 3 and 4."
    if got == same_as_first(rms_norm(x)):
        return "forgot the shift: LayerNorm subtracts the mean of the row first; this is RMSNorm."
    if 3 in got:
        return "took the sorted row: the same numbers in another order are another token."
    if not got:
        return "divided columns: LayerNorm looks at one row at a time."
    return "forgot a factor: a row and twice the row have the same direction, and LayerNorm keeps only that."


@exercise(
    right=[(14.4, 2.83), (14.42, 2.828), [2 * 52**0.5, 8**0.5]],
    wrong=[
        ((2.83, 14.4), "order"),
        ((7.21, 2.83), "forgot to divide"),
        ((3.61, 2.83), "least deviation"),
        ((2.4, 2.83), "least deviation"),
        ((7.21 / 0.707, 2.83), "root of 2"),
        ((8.25, 2.83), "far apart"),
        ((14.4, 2), "distance of"),
        ((14.4, 1.41), "length of one"),
        ((14.4, 14.4), "at most"),
        ((1, 1), "this is not it"),
    ],
    malformed=14.4,
)
def least_deviation(answer):
    x = torch.tensor([[4, 0], [5, 4], [0, 6]], dtype=F64)
    far, out = float(diameter(x)), float(diameter(layer_norm(x)))
    spread = row_std(x).tolist()
    bound, after = (number(value) for value in pair_of(answer, "(bound, diameter)"))
    truth = far / min(spread)
    if close(bound, truth) and close(after, out):
        return None
    if close(bound, out) and close(after, truth):
        return "the order is (bound, diameter), and the bound is the larger."
    if close(bound, truth):
        slips = {
            2: "one feature moves by 2 and so does the other: take the distance of both rows.",
            out / 2: "that is the length of one row; the diameter is the distance of two.",
            truth: "the bound says at most; work out the three rows.",
        }
        return next((text for wrong, text in slips.items() if close(after, wrong)), UNKNOWN)
    slips = {
        far: "forgot to divide by the least deviation.",
        far / spread[0]: "divided by another than the least deviation.",
        far / spread[2]: "divided by another than the least deviation.",
        far
        / (
            min(spread) * 2**0.5
        ): "divided by the length of the row; the deviation has the root of 2 below it.",
        17**0.5
        / min(spread): "took two tokens that are not far apart: the diameter is the largest distance.",
    }
    found = (text for wrong, text in slips.items() if math.isclose(bound, wrong, rel_tol=5e-3))
    return next(found, UNKNOWN)


@exercise(
    right=[189, 188.6, 3 * math.log(10) / -math.log(math.tanh(2))],
    wrong=[
        (25.4, "w = 1"),
        (62.9, "three"),
        (81.9, "base 10"),
        (8.45, "w = 1"),
        (50.7, "halved"),
        (12.7, "halved"),
        (0, "waits"),
        (7, "this is not it"),
    ],
    malformed="long",
)
def three_decades(answer):
    trace = circle_trace(1e-9, 2.0, 1)
    rate = float(trace[0] - trace[1])
    truth = math.log(1000) / rate
    value = number(answer)
    if math.isclose(value, truth, rel_tol=6e-3):
        return None
    first = math.log(1000) / -math.log(math.tanh(1))
    slips = {
        first: "that is w = 1: put the tangent of 2 in its place.",
        first / 3: "that is one decade, and w = 1.",
        truth / 3: "that is one decade; a thousand is three.",
        3 / rate: "took logarithms to base 10 above and natural ones below.",
        first * 2: "w does not double or halve the wait: it stands inside of a tangent; nor is it halved.",
        first / 2: "w does not double or halve the wait: it stands inside of a tangent; nor is it halved.",
        0: "the pair waits longer the closer it is to the edge.",
    }
    found = (text for wrong, text in slips.items() if math.isclose(value, wrong, rel_tol=5e-3, abs_tol=1e-9))
    return next(found, UNKNOWN)


@exercise(
    right=[3**0.5 / 2, 0.866],
    wrong=[
        (0.577, "tangent"),
        (0.5, "sine"),
        (1, "example"),
        (1.73, "factor 2"),
        (0.289, "upside down"),
        (30, "angle"),
        (0.52, "angle"),
        (4, "this is not it"),
    ],
    malformed="oblique",
)
def least_shear(answer):
    truth = 1 / (2 * math.tan(math.asin(0.5)))
    if close(answer, truth):
        return None
    slips = {
        1 / 3**0.5: "that is the largest tangent of the angle; asked is c.",
        0.5: "that is the largest sine of the angle; asked is c.",
        1: "that is the example of the text, and a smaller c does, too.",
        3**0.5: "a factor 2 is lost: the eigenvector is proportional to (2c, 1), not to (c, 1).",
        1 / 12**0.5: "turned the tangent upside down: it is 1/(2c).",
        30: "that is the largest angle, in degrees; asked is c.",
        math.pi / 6: "that is the largest angle, in radians; asked is c.",
    }
    value = number(answer)
    found = (text for wrong, text in slips.items() if math.isclose(value, wrong, rel_tol=8e-3))
    return next(found, UNKNOWN)


@exercise(
    right=[[[1, 0, 0], [1, 1, 0], [1, 3, 0]], [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]]],
    wrong=[
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], "not on a line"),
        ([[1, 0, 0], [1, 0, 0], [1, 0, 0]], "all equal"),
        ([[1, 0, 0], [2, 0, 0], [3, 0, 0]], "multiples"),
        ([[1, 0, 0], [2, 1, 1], [3, 2, 2]], "shifts"),
        ([[1, 0, 0], [1, 1, 1], [1, 2, 2]], "constant"),
        ([[1, 0, 0], [1, 1, 0], [1, 0, 0]], "two of them"),
        ([[1, 0, -1], [2, 0, -2], [-1, 0, 1]], "opposite"),
    ],
    malformed=[[1, 2]],
)
def bent_line(answer):
    x = matrix(answer, 3, 3)
    if affine_rank(x, 1e-6) == 0:
        return "these tokens are all equal; they have to be different points of a line."
    if affine_rank(x, 1e-6) != 1:
        return "these tokens are not on a line: their affine rank must be 1 before."
    if not (row_std(x) > 1e-9).all():
        return "one of the rows is constant: LayerNorm with eps = 0 does not take it."
    z = layer_norm(x)
    if affine_rank(z, 1e-6) == 2:
        return None
    if affine_rank(z, 1e-6) == 0:
        if torch.linalg.matrix_rank(x, tol=1e-6) == 1:
            return "these are multiples of one row, and LayerNorm forgets the factor: all three merge."
        return "these differ by shifts and factors, and LayerNorm forgets both: all three merge."
    if torch.allclose(x[0], x[1]) or torch.allclose(x[0], x[2]) or torch.allclose(x[1], x[2]):
        return "two of them are equal; it takes three different tokens."
    return "two of them merge and one is opposite or elsewhere: choose a line that does not pass through a constant row."


@exercise(
    right=[0.8],
    wrong=[
        (1, "eigenvectors"),
        (0.5, "equal weights"),
        (0.2, "exchanged"),
        (1.25, "upside down"),
        (0.4, "halved it again"),
        (0.6, "difference"),
        (0.64, "this is not it"),
    ],
    malformed=[0.8],
)
def unequal_average(answer):
    x = torch.tensor([[1.0, 0.0], [math.cos(1e-5), math.sin(1e-5)]], dtype=F64)
    row = 0.2 * x[0] + 0.8 * x[1]
    truth = math.atan2(row[1], row[0]) / 1e-5
    if close(answer, truth):
        return None
    slips = {
        1: "generalised from values whose eigenvectors are close together: an orthogonal one only keeps angles.",
        0.5: "kept the equal weights of the theorem.",
        0.2: "exchanged the weights: token 2 keeps the share that it gives to itself.",
        1 / truth: "turned it upside down: the angle gets smaller.",
        truth / 2: "halved it again: with these weights the average is not the bisector.",
        0.6: "took the difference of the weights: token 1 does not move, so only the share of token 2 counts.",
    }
    return next((text for wrong, text in slips.items() if close(answer, wrong)), UNKNOWN)
