"""The exercises of ``attention-and-residual``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import UNKNOWN, call, exercise, matrix
from ranklib.measures.tokens import composite_residual
from ranklib.model.attention import SelfAttention


@exercise(
    right=[[[1, 2, 3], [-1, -2, -3]], torch.tensor([[0.0, 0.0, 7.0], [0.0, 0.0, -7.0]])],
    wrong=[
        ([[1, 2, 3], [1, 2, 3]], "equal rows"),
        ([[1, 2, 3], [2, 4, 6]], "ratio|residual is"),
        ([[1, 0, 0], [0, 1, 0]], "multiple"),
    ],
    malformed="u",
)
def rank_one(answer):
    x = matrix(answer, columns=3)
    if not x.any():
        return "the rank is zero: give rows that are not zero."
    if torch.linalg.matrix_rank(x) != 1:
        return "the rank is not one: every row must be a multiple of one and the same row."
    ratio = float(composite_residual(x))
    if ratio < 1e-9:
        return "rank 1 does not mean equal rows: these rows are equal, so the residual is 0."
    if math.isclose(ratio, 1, rel_tol=1e-9):
        return None
    return f"the rank is one, but the relative residual is {ratio:.3f}."


@exercise(
    right=[
        lambda b_o, w_o, b_v: b_o + (b_v[:, None] @ w_o).sum(0)[0],
        lambda b_o, w_o, b_v: b_o + torch.einsum("hv,hvd->d", b_v, w_o),
    ],
    wrong=[
        (lambda b_o, w_o, b_v: b_o, "value biases"),
        (lambda b_o, w_o, b_v: torch.cat([b_o, b_o]), "summed"),
        (lambda b_o, w_o, b_v: 2 * b_o, ""),
    ],
    malformed=3,
)
def bias(answer):
    g = torch.Generator().manual_seed(0)
    layer = SelfAttention.random(dim=5, heads=2, dim_qk=3, dim_v=7, generator=g, biases=True)
    given = [p.detach() for p in (layer.b_o, layer.w_o, layer.b_v)]
    got = call(answer, *given)
    truth = layer.bias.detach()
    if not isinstance(got, torch.Tensor) or got.numel() != truth.numel():
        return "concatenated what is summed: the heads' bias rows add up into one row of width dim."
    if torch.allclose(got.reshape(-1), given[0]):
        return (
            "the value biases vanished: P 1 = 1 keeps them, so each reaches the output through its own W_O."
        )
    return None if torch.allclose(got.reshape(-1), truth) else UNKNOWN
