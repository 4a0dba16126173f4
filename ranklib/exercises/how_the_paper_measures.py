"""The exercises of ``how-the-paper-measures``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, close, exercise, matrix, number, pair_of
from ranklib.measures.tokens import composite_residual
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


@exercise(
    right=[18, 18.0, torch.tensor(18.0)],
    wrong=[
        (6, "counts"),
        (54, "row sums"),
        (324, "root"),
        (108, "root"),
        (36, "column sums"),
        (2, "never smaller"),
        (7, ""),
    ],
    malformed="more",
)
def stored_copies(answer):
    a = torch.tensor([[3.0, -1.0, 2.0]], dtype=F64)
    few, many = (float(residual_size_exact(torch.cat([a, -a]).repeat(k, 1)).upper) for k in (1, 9))
    slips = {
        few: "the diameter does not change; the composite counts each copy in the column sums.",
        9 * few: "only the column sums are nine times as large; the row sums stay.",
        many**2: "this is f times g; take the root.",
        18 * few: "18 is the number of tokens; count how often each is stored, and take the root.",
        6 * few: "compare the column sums before and after: each is nine times as large.",
    }
    if close(answer, many):
        return None
    if number(answer) < 0.99 * few:
        return "with more tokens the column sums grow: the residual is never smaller than before."
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
def above_one(answer):
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
    return f"the ratio is {ratio:.2f}: which matrix attains the bound of the mean, and what is its own size?"


@exercise(
    right=[math.sqrt(12), 3.464, 3.46],
    wrong=[
        (2 + math.sqrt(2), "norm"),
        (12, "root"),
        (math.sqrt(6), "one token"),
        (math.sqrt(10), "turned the pair"),
        (math.sqrt(18), "fullest"),
        (1.0, ""),
    ],
    malformed="2",
)
def two_residuals(answer):
    gap = torch.tensor([[2.0, 1.0], [-2.0, -1.0]], dtype=F64)
    truth = float(mean_residual(gap))  # of two tokens the midpoint is a best centre
    if close(answer, truth):
        return None
    slips = {
        2
        + math.sqrt(
            2
        ): "trusted the name norm: residuals have no triangle inequality, the sum of sizes is no bound.",
        truth**2: "that is the product f g: take its root.",
        math.sqrt(6): "that is the size of one token's half-gap: f adds the columns of both tokens.",
        math.sqrt(10): "turned the pair: f is twice the larger entry, g the sum of the entries.",
        math.sqrt(18): "f is the fullest column, not the sum of both, and g is one row.",
    }
    return next((said for slip, said in slips.items() if close(answer, slip)), UNKNOWN)
