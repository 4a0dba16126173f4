"""The exercises of ``attention-and-residual``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, call, close, exercise, matrix, pair_of
from ranklib.measures.tokens import composite_residual
from ranklib.model.attention import SelfAttention
from ranklib.paper.centres import composite_about, mean_centre, mean_residual, median_centre, midrange_centre
from ranklib.paper.least import residual_size_exact


@exercise(
    right=[("midrange", 4.03), ("midrange", math.sqrt(16.25))],
    wrong=[
        (("mean", math.sqrt(18)), "by reflex"),
        (("midrange", 16.25), "root"),
        (("median", 4.47), ""),
    ],
    malformed="mean",
)
def three_tokens(answer):
    name, size = pair_of(answer, "of a name and a number")
    name = str(name).strip().lower()
    x = torch.tensor([[0.0], [1.0], [5.0]], dtype=F64)
    centres = {"mean": mean_centre(x), "median": median_centre(x), "midrange": midrange_centre(x)}
    sizes = {centre: float(composite_about(x, c)) for centre, c in centres.items()}
    best = min(sizes, key=sizes.get)
    if name == best:
        if close(size, sizes[best]):
            return None
        if close(size, sizes[best] ** 2):
            return "the centre is right; the composite is the root of f times g."
        return UNKNOWN
    if name == "mean":
        return "averaged by reflex: the mean minimises squares; the composite uses absolute values."
    return UNKNOWN


@exercise(
    right=[6, 6.0, torch.tensor(6.0)],
    wrong=[(math.sqrt(28), "Frobenius"), (3, "")],
    malformed="six",
)
def midpoint(answer):
    a = torch.tensor([3.0, -1.0, 2.0], dtype=F64)
    if close(answer, float(residual_size_exact(torch.stack([a, -a])).upper)):
        return None
    if close(answer, math.sqrt(2) * float(a.norm())):
        return "measured with squares: that is the Frobenius norm; nothing is differentiated here."
    return UNKNOWN


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
    right=[torch.eye(20).double(), torch.eye(20).tolist()],
    wrong=[
        (torch.eye(20)[:, :1], "one feature gives 1.34"),
        (torch.randn(20, 30, generator=torch.Generator().manual_seed(0)), "ratio"),
        (torch.ones(20, 2), "equal"),
    ],
    malformed=[[1, 2]],
)
def worst_mean(answer):
    x = matrix(answer, rows=20)
    best = residual_size_exact(x, tol=1e-6)
    if best.upper == 0:
        return "all rows are equal, so there is nothing to compare."
    ratio = float(mean_residual(x) / best.upper)
    if ratio >= 1.89:
        return None
    if x.shape[1] == 1:
        return (
            f"one feature gives {ratio:.2f} here: let one column make f large and many columns make g large."
        )
    return f"the ratio is {ratio:.3f}."
