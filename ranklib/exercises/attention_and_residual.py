"""The exercises of ``attention-and-residual``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import UNKNOWN, call, close, exercise, matrix, number
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


@exercise(
    right=[0.881, 1 / (1 + math.exp(-2))],
    wrong=[
        (1 / (1 + math.exp(-1)), "differ by 2"),
        (math.tanh(1), "lands"),
        (0.119, "other token"),
        (0.5, "equal scores"),
        (math.e, "sum to one"),
        (0.3, ""),
    ],
    malformed="most",
)
def own_weight(answer):
    pair = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    p = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one).attention(pair).detach()[0]
    slips = {
        math.tanh(1): "this is where the first token lands, its weight minus the other's.",
        1 / (1 + math.exp(-1)): "the scores are 1 and -1: they differ by 2, not by 1.",
        float(p[0, 1]): "this is the weight of the other token.",
        0.5: "weights of one half belong to equal scores; these are 1 and -1.",
    }
    if close(answer, float(p[0, 0])):
        return None
    if not 0 <= number(answer) <= 1:
        return "weights lie between 0 and 1 and sum to one: divide by the sum of the exponentials."
    return next((said for slip, said in slips.items() if close(answer, slip)), UNKNOWN)


@exercise(
    right=[torch.eye(3), [[5, 0, 0], [0, 5, 0], [0, 0, 5]]],
    wrong=[
        ([[1, 2], [1, 2], [1, 2]], "equal"),
        ([[1], [-1], [0]], "mean is zero"),
        ([[1], [0], [0]], "one feature"),
        ([[1, 0], [0, 1], [0, 0]], "ratio is"),
        ([[9, 1], [9, 2], [9, 4]], "far from zero"),
    ],
    malformed=[[1, 2]],
)
def more_than_whole(answer):
    x = matrix(answer, rows=3)
    if not (x - x[0]).any():
        return "all rows are equal, so the residual is 0."
    ratio = float(composite_residual(x))
    if ratio >= 1.3:
        return None
    if x.mean(0).abs().max() < 1e-9:
        return "the mean is zero, so subtracting it changes nothing: the ratio is 1."
    if x.shape[1] == 1:
        return f"one feature gives {ratio:.2f} here: let every feature belong to a token of its own."
    if ratio < 0.6:
        return f"the ratio is {ratio:.2f}: the tokens share a row far from zero, so the whole is much larger."
    return f"the ratio is {ratio:.2f}."
