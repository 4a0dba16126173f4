"""The exercises of ``layernorm``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, close, exercise, matrix, number
from ranklib.theory.layernorm import affine_rank, circle_trace, layer_norm, peak, rms_norm, row_std


@exercise(
    right=[[2, 4], (4, 2), [1, 2, 4]],
    wrong=[([4], "RMSNorm"), ([2, 3, 4], "another order"), ([], "columns"), ([2], "this is not it")],
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
    if got == same_as_first(rms_norm(x)):
        return "forgot the shift: LayerNorm subtracts the mean of the row first; this is RMSNorm."
    if 3 in got:
        return "took the sorted row: the same numbers in another order are another token."
    if not got:
        return "divided columns: LayerNorm looks at one row at a time."
    return UNKNOWN


@exercise(
    right=[1 / math.tanh(2), 1.037],
    wrong=[(1, "stable"), (math.tanh(2), "tangent"), (1.313, "w = 1"), (2, "this is not it")],
    malformed="2",
)
def offset_growth(answer):
    trace = circle_trace(1e-9, 2.0, 1)
    truth = math.exp(float(trace[0] - trace[1]))
    if close(answer, truth):
        return None
    if close(answer, 1):
        return "thought that the pair is stable: the opposite pair is fixed, and its neighbours leave it."
    if close(answer, 1 / truth):
        return "took the tangent: it shrinks by tanh w, and the offset is its inverse."
    if close(answer, 1 / math.tanh(1)):
        return "that is w = 1."
    return UNKNOWN


@exercise(
    right=[1e-4 / 0.33981, 2.943e-4],
    wrong=[(0, "epsilon"), (1e-4, "0.34"), (2.943e-8, "root"), (1, "this is not it")],
    malformed="small",
)
def least_value(answer):
    eps = 1e-8
    if close(answer, math.sqrt(eps) / peak()[1]):
        return None
    if number(answer) == 0:
        return "set epsilon to 0: only then does every value hold the pair."
    if close(answer, math.sqrt(eps)):
        return "took the best factor for 1: tanh(a²)√(1 − a²) is at most 0.34."
    if close(answer, eps / peak()[1]):
        return "forgot the root: the equation has the root of epsilon."
    return UNKNOWN


@exercise(
    right=[[[1, 0, 0], [1, 1, 0], [1, 3, 0]], [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]]],
    wrong=[
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], "not on a line"),
        ([[1, 0, 0], [2, 0, 0], [3, 0, 0]], "affine rank after is 0"),
        ([[1, 0, 0], [1, 1, 1], [1, 2, 2]], "constant"),
    ],
    malformed=[[1, 2]],
)
def bent_line(answer):
    x = matrix(answer, 3, 3)
    if affine_rank(x, 1e-6) != 1:
        return "these tokens are not on a line, or all equal: their affine rank must be 1 before."
    if not (row_std(x) > 1e-9).all():
        return "one of the rows is constant: LayerNorm with eps = 0 does not take it."
    after = int(affine_rank(layer_norm(x), 1e-6))
    if after == 2:
        return None
    return (
        f"the affine rank after is {after}: tokens that differ from one row by shifts and factors only "
        "stay on a line or merge, so shift in a direction that is not one of these."
    )


@exercise(
    right=[0.8],
    wrong=[
        (1, "triangular"),
        (0.5, "equal weights"),
        (0.2, "exchanged"),
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
    if close(answer, 1):
        return "generalised from the triangular value matrix: an orthogonal one only keeps angles."
    if close(answer, 0.5):
        return "kept the equal weights of the proposition."
    if close(answer, 0.2):
        return "exchanged the weights: token 2 keeps the share that it gives to itself."
    return UNKNOWN
