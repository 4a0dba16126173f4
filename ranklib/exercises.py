"""Checks of the readers' answers: a wrong one is told which misconception it looks like, where one is known.

Each check is a function of the answer that returns None if it is right, and otherwise a sentence. It
computes the truth; none is stored.
"""

import math
from collections.abc import Callable
from numbers import Real

import torch

from ranklib.attention import SelfAttention
from ranklib.centres import (
    composite_about,
    mean_centre,
    mean_residual,
    median_centre,
    midrange_centre,
)
from ranklib.measures import composite_residual
from ranklib.residual import residual_size_exact
from ranklib.softmax import attention_matrix

F64 = torch.float64
UNKNOWN = "this is not it. Try the smallest case by hand, or open the solution."


class Form(Exception):
    """The answer has another form than the exercise asks for; the message says which is wanted."""


def check(exercise: str, answer=None) -> None:
    """Print whether ``answer`` solves an exercise of the book; a known misconception is named.

    Parameters
    ----------
    exercise
        A key of ``CHECKS``, for example ``"midpoint"``.
    answer
        In the form that the exercise asks for; None prints an invitation.

    Raises
    ------
    ValueError
        There is no such exercise.

    Example
    -------
    >>> check("midpoint", 6)
    midpoint: right.
    >>> check("midpoint")
    midpoint: no answer yet. Write it where the cell says None.
    """
    if exercise not in CHECKS:
        raise ValueError(
            f"check: expected one of {', '.join(CHECKS)}, got {exercise!r}; copy the name from the exercise"
        )
    if answer is None:
        print(f"{exercise}: no answer yet. Write it where the cell says None.")
        return
    try:
        trouble = CHECKS[exercise](answer)
    except Form as form:
        trouble = f"expected {form}, got {answer!r}."
    print(f"{exercise}: right." if trouble is None else f"{exercise}: not yet; {trouble}")


def _number(value) -> float:
    if not isinstance(value, Real | torch.Tensor):
        raise Form("a number")
    return float(value)


def _close(value, truth: float) -> bool:
    """Equal to three digits, as a reader would write it."""
    return math.isclose(_number(value), truth, rel_tol=2e-3, abs_tol=1e-9)


def _pair(answer, what: str) -> tuple:
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Form(f"a pair {what}")
    return tuple(answer)


def _matrix(answer, rows: int | None = None, columns: int | None = None) -> torch.Tensor:
    try:
        x = torch.as_tensor(answer, dtype=F64)
    except (TypeError, ValueError, RuntimeError):
        raise Form("a matrix, as a list of rows or a tensor") from None
    if (
        x.ndim != 2
        or (rows and len(x) != rows)
        or (columns and x.shape[1] != columns)
        or not x.isfinite().all()
    ):
        raise Form(f"a finite matrix with {rows or 'some'} rows and {columns or 'some'} columns")
    return x


def _call(function, *arguments):
    if not callable(function):
        raise Form("a function")
    try:
        return function(*arguments)
    except Exception as error:
        raise Form(f"a function that runs (it raised {type(error).__name__}: {error})") from None


def three_tokens(answer):
    name, size = _pair(answer, "of a name and a number")
    x = torch.tensor([[0.0], [1.0], [5.0]], dtype=F64)
    centres = {"mean": mean_centre(x), "median": median_centre(x), "midrange": midrange_centre(x)}
    sizes = {centre: float(composite_about(x, c)) for centre, c in centres.items()}
    best = min(sizes, key=sizes.get)
    if name == best:
        if _close(size, sizes[best]):
            return None
        if _close(size, sizes[best] ** 2):
            return "the centre is right; the composite is the root of f times g."
        return UNKNOWN
    if name == "mean":
        return "averaged by reflex: the mean minimises squares; the composite uses absolute values."
    return UNKNOWN


def midpoint(answer):
    a = torch.tensor([3.0, -1.0, 2.0], dtype=F64)
    if _close(answer, float(residual_size_exact(torch.stack([a, -a])).upper)):
        return None
    if _close(answer, math.sqrt(2) * float(a.norm())):
        return "measured with squares: that is the Frobenius norm; nothing is differentiated here."
    return UNKNOWN


def rank_one(answer):
    x = _matrix(answer, columns=3)
    if torch.linalg.matrix_rank(x) != 1:
        return "the rank is not one: every row must be a multiple of one and the same row."
    ratio = float(composite_residual(x))
    if ratio < 1e-9:
        return "rank 1 does not mean equal rows: these rows are equal, so the residual is 0."
    if math.isclose(ratio, 1, rel_tol=1e-9):
        return None
    return f"the rank is one, but the relative residual is {ratio:.3f}."


def bias(answer):
    g = torch.Generator().manual_seed(0)
    layer = SelfAttention.random(dim=5, heads=2, dim_qk=3, dim_v=7, generator=g, biases=True)
    given = [p.detach() for p in (layer.b_o, layer.w_o, layer.b_v)]
    got = _call(answer, *given)
    truth = layer.bias.detach()
    if not isinstance(got, torch.Tensor) or got.numel() != truth.numel():
        return "concatenated what is summed: the heads' bias rows add up into one row of width dim."
    if torch.allclose(got.reshape(-1), given[0]):
        return (
            "the value biases vanished: P 1 = 1 keeps them, so each reaches the output through its own W_O."
        )
    return None if torch.allclose(got.reshape(-1), truth) else UNKNOWN


def worst_mean(answer):
    x = _matrix(answer, rows=20)
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


def drop(answer):
    if not isinstance(answer, set | list | tuple | frozenset):
        raise Form('a set of names such as {"v1T", "diag"}')
    g = torch.Generator().manual_seed(0)
    s, v = torch.randn(5, 5, generator=g, dtype=F64), torch.randn(5, generator=g, dtype=F64)
    ones = torch.ones(5, dtype=F64)
    terms = {
        "v1T": v.outer(ones),
        "1vT": ones.outer(v),
        "11T": ones.outer(ones),
        "vvT": v.outer(v),
        "diag": v.diag(),
    }
    p = attention_matrix(s)
    truth = {name for name, term in terms.items() if torch.allclose(attention_matrix(s + term), p)}
    if set(answer) == truth:
        return None
    if "1vT" in answer:
        return "read rows as columns: in 1vᵀ every row is vᵀ, and that ranks the keys."
    return UNKNOWN


def between(answer):
    values = {answer} if isinstance(answer, Real) else answer
    if not isinstance(values, set | list | tuple | frozenset) or not all(isinstance(v, Real) for v in values):
        raise Form("a set of numbers")
    old = (0.0, 1.0, 5.0)
    truth = {v for v in (-1, 0, 3, 5, 6) if min(old) < v < max(old)}
    if set(values) == truth:
        return None
    if any(not min(old) <= v <= max(old) for v in values):
        return "allowed negative weights: softmax weights are positive and sum to one."
    if truth < set(values):
        return "the ends need a weight of exactly one: softmax reaches it only in the limit."
    return UNKNOWN


def pair(answer):
    one = torch.ones(1, 1, 1, dtype=F64)
    for m, a, w in ((0.7, 0.4, 1.3), (-1.1, 0.9, 0.5), (0.0, 0.6, -2.0)):
        x = torch.tensor([[m + a], [m - a]], dtype=F64)
        truth = SelfAttention(w_q=w * one, w_k=one, w_v=one, w_o=one)(x).flatten().tolist()
        got = [float(v) for v in _pair(_call(answer, m, a, w), "of new positions")]
        if not all(map(_close, got, truth)):
            kept = [m + a * math.tanh(w * (m + a) * xi) for xi in (m + a, m - a)]
            if all(map(_close, got, kept)):
                return "kept w x m, which the row shares: only the difference of a row's two scores matters."
            return UNKNOWN
    return None


def half(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise Form("three numbers")
    s = torch.tensor([[9.0, 3.0], [3.0, 1.0]], dtype=F64)
    before, after = (float(attention_matrix(t)[0, 0]) for t in (s, s / 2))
    if all(map(_close, answer, (0.5, 0.5, after))):
        return None
    if _close(answer[2], before / 2):
        return "thought that P is linear in the scores: its rows still sum to one."
    return UNKNOWN


def axis(answer):
    name, total = _pair(answer, "of a name and a number")
    wrong = attention_matrix(torch.tensor([[9.0, 3.0], [3.0, 1.0]], dtype=F64).T).T
    if name != "P1 = 1":
        return "checked the shape, not the sums: shape and signs survive, the row sums do not."
    return None if _close(total, float(wrong[0].sum())) else UNKNOWN


CHECKS: dict[str, Callable] = {
    "three-tokens": three_tokens,
    "midpoint": midpoint,
    "rank-one": rank_one,
    "bias": bias,
    "worst-mean": worst_mean,
    "drop": drop,
    "between": between,
    "pair": pair,
    "half": half,
    "axis": axis,
}
"""One check for each exercise; the key is the exercise's label without ``ex-``."""
