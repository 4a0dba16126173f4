"""The exercises of ``path-decomposition``: their checks, and answers that the tests give."""

import cmath
import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.theory.paths import count_paths


@exercise(
    right=[13, 13.0],
    wrong=[
        (7, "heads"),
        (12, "length 0"),
        (729, "all paths"),
        (64, "no choice among heads"),
        (73, "up to length two"),
        (36, "multiplied"),
        (3, ""),
    ],
    malformed="13",
)
def short_paths(answer):
    heads, depth = 2, 6
    counts = [count_paths(heads, depth, k) for k in range(depth + 1)]
    slips = {
        1
        + depth: "counted the layers, not the heads: in the one layer with a head there are two to choose from.",
        counts[1]: "forgot the path of length 0, which takes the skip everywhere.",
        sum(counts): "counted all paths; asked are those with at most one head.",
        2**depth: "counted skip or head in each layer, with no choice among heads, and all lengths.",
        sum(counts[:3]): "counted up to length two; stop at one.",
        depth**2: "multiplied where paths are added: one without a head, and those with a single head.",
    }
    return None if close(answer, sum(counts[:2])) else said(slips, answer)


def said(slips: dict, answer) -> str:
    """The sentence about the first number that the answer is close to."""
    return next((text for value, text in slips.items() if close(answer, value)), UNKNOWN)


def courses():
    """Half-gaps of the whole network before each of three layers, and their factors."""
    a, factors = 0.5, []
    for _ in range(3):
        factors.append(math.tanh(a * a))
        a *= 1 + factors[-1]
    return factors


@exercise(
    right=[(0.0760, 0.00184), (0.07602, 0.001836)],
    wrong=[
        ((0.00184, 0.0760), "other way round"),
        ((0.0452, 0.00184), "layer 2"),
        ((0.0300, 0.00184), "sees the input"),
        ((0.104, 0.00184), "skip of layer 2"),
        ((0.0760, 0.0760), "computes its recipes"),
        ((0.152, 0.00367), "start"),
        ((0.0760, 0.0300), "sees the input"),
        ((1, 2), ""),
    ],
    malformed=0.076,
)
def path_alone(answer):
    frozen, single = (number(value) for value in pair_of(answer, "of half-gaps (frozen, alone)"))
    t1, t2, t3 = courses()
    once = 0.5 * t1
    truth = 0.5 * t1 * t3, once * math.tanh(once**2)
    if close(frozen, truth[0]) and close(single, truth[1]):
        return None
    if close(frozen, truth[1]) and close(single, truth[0]):
        return "the right numbers, the other way round: frozen comes first."
    if close(frozen, 2 * truth[0]) or close(single, 2 * truth[1]):
        return "left out the start, a = 1/2."
    if close(frozen, single):
        return (
            "a path that is run alone computes its recipes from what it has, not from what the network had."
        )
    if close(frozen, 0.5 * t1 * t2):
        return "took the factor of layer 2; the second head of this path stands in layer 3."
    if close(frozen, 0.5 * t1 * t1) or close(single, 0.5 * t1 * t1):
        return "gave both heads the same factor, as if each sees the input."
    if close(frozen, 0.5 * t1 * t3 * (1 + t2)):
        return "added the head of layer 2: the path takes the skip of layer 2, which multiplies by 1."
    if close(frozen, truth[0]):
        return "frozen is right; alone, the second head sees what the first one left."
    if close(single, truth[1]):
        return "alone is right; frozen, the factors are those of the whole network."
    return UNKNOWN


@exercise(
    right=[
        lambda b1, b2, b3, w2, w3: w3.T @ (w2.T @ b1 + b2) + b3,
        lambda *a: (a[0] @ a[3] + a[1]) @ a[4] + a[2],
    ],
    wrong=[
        (lambda b1, b2, b3, w2, w3: b1 + b2 + b3, "without the weights"),
        (lambda b1, b2, b3, w2, w3: w3 @ (w2 @ b1 + b2) + b3, "rows multiply"),
        (lambda b1, b2, b3, w2, w3: torch.stack([b1, b2]), "one row"),
        (lambda b1, b2, b3, w2, w3: b3, "only the last"),
        (lambda b1, b2, b3, w2, w3: w2.T @ (w3.T @ b1 + b2) + b3, "other order"),
        (lambda b1, b2, b3, w2, w3: w3.T @ w2.T @ (b1 + b2) + b3, "its own layer"),
        (lambda b1, b2, b3, w2, w3: w3.T @ (w2.T @ b1 + b2), "forgot"),
        (lambda b1, b2, b3, w2, w3: b1, ""),
    ],
    malformed=3,
)
def bias_three(answer):
    g = torch.Generator().manual_seed(0)
    b1, b2, b3 = torch.randn(3, 5, generator=g, dtype=F64)
    w2, w3 = torch.randn(2, 5, 5, generator=g, dtype=F64)
    got = call(answer, b1, b2, b3, w2, w3)
    if not isinstance(got, torch.Tensor) or got.shape != b1.shape or got.dtype != F64:
        return "the bias of the network is one row of width dim: P 1 = 1 turns all copies into one."
    below = w3.T @ (w2.T @ b1 + b2)
    slips = (
        (b1 + b2 + b3, "let the biases pass without the weights: a layer multiplies the row below by its W."),
        (w3 @ (w2 @ b1 + b2) + b3, "rows multiply from the left: c W is Wᵀ c as a column."),
        (b3, "that is only the last layer's bias; those below pass through W2 and W3."),
        (w2.T @ (w3.T @ b1 + b2) + b3, "took W2 and W3 in the other order: b1 meets W2 first."),
        (w3.T @ w2.T @ (b1 + b2) + b3, "sent b2 through its own layer: it meets only W3."),
        (below, "forgot that b3 is added at the very end."),
    )
    if torch.allclose(got, below + b3):
        return None
    return next((text for value, text in slips if torch.allclose(got, value)), UNKNOWN)


@exercise(
    right=[(0.2, 0.3), (0.3, 0.2)],
    wrong=[
        ((0.5, 0.06), "themselves"),
        ((0.25, 0.25), "product"),
        ((0.06, 1), "sum"),
        ((-0.2, -0.3), "at least 0"),
        ((1.2, 1.3), "whole brackets"),
        ((3.33, 5), "reciprocals"),
        ((7, 8), ""),
    ],
    malformed=0.2,
)
def brackets(answer):
    low, high = sorted(number(value) for value in pair_of(answer, "of shares"))
    if close(low, 0.2) and close(high, 0.3):
        return None
    if close(low, 0.06) and close(high, 0.5):
        return "these are the coefficients themselves; the shares have them as product and sum."
    if close(low, 1.2) and close(high, 1.3):
        return "these are the whole brackets 1 + τ; asked is τ."
    if close(low, 10 / 3) and close(high, 5):
        return "took the reciprocals: (1 + τ1 z)(1 + τ2 z) vanishes at -1/τ, not at τ."
    if low < 0:
        return "a share is at least 0: mind the sign of the middle coefficient."
    if close(low + high, 0.5):
        return "the sum is right, the product is not: paths of length 2 take both heads."
    if close(low * high, 0.06):
        return "the product is right, the sum is not: paths of length 1 take one head or the other."
    return UNKNOWN


def inverse(v0, v1, v2):
    w = cmath.exp(2j * math.pi / 3)
    return tuple((v0 + v1 * w ** (-k) + v2 * w ** (-2 * k)) / 3 for k in range(3))


def mirrored(v0, v1, v2):
    return inverse(v0, v2, v1)


@exercise(
    right=[inverse, lambda *v: torch.fft.fft(torch.tensor(v)) / 3],
    wrong=[
        (lambda *v: tuple(3 * x for x in inverse(*v)), "divide"),
        (mirrored, "sign of the exponent"),
        (lambda *v: v, "outputs themselves"),
        (lambda v0, v1, v2: (v0, v1 - v0, v2 - v1), "differences"),
        (lambda *v: [sum(v) / 3] * 3, "only length 0"),
        (lambda *v: tuple(x.real for x in v), "real parts"),
        (lambda *v: (1, 2, 3), ""),
    ],
    malformed=lambda *v: 1.0,
)
def unity(answer):
    sums = torch.tensor([0.5, 0.3, 0.05], dtype=torch.complex128)
    z = torch.exp(2j * math.pi * torch.arange(3, dtype=F64) / 3)
    passes = [complex(sums @ z_k ** torch.arange(3)) for z_k in z]
    got = call(answer, *passes)
    try:
        got = torch.tensor([complex(value) for value in got], dtype=torch.complex128)
    except (TypeError, ValueError, RuntimeError):
        raise Form("a function that returns three numbers") from None
    if len(got) != 3:
        raise Form("a function that returns three numbers")
    v0, v1, v2 = passes
    slips = (
        (3 * sums, "forgot to divide by the number of passes."),
        (sums[[0, 2, 1]], "lengths 1 and 2 have changed places: mind the sign of the exponent."),
        (passes, "these are the outputs themselves; each mixes all three sums."),
        (
            (v0, v1 - v0, v2 - v1),
            "differences of outputs still mix the lengths: weigh them by roots of unity.",
        ),
        ([sums[0]] * 3, "the plain mean leaves only length 0; for length k weigh the outputs first."),
        ([v.real for v in passes], "real parts of the outputs still mix the lengths."),
    )
    if torch.allclose(got, sums, rtol=2e-3, atol=1e-9):
        return None
    same = (text for value, text in slips if torch.allclose(got, torch.as_tensor(value, dtype=got.dtype)))
    return next(same, UNKNOWN)


@exercise(
    right=[(1, 1, 1, -1), (2, 0.5, -2, 0.5)],
    wrong=[
        ((0, 1, 1, -1), "by itself"),
        ((1, 1, 1, 1), "add up"),
        ((1, 1, -1, -1), "cancel each other"),
        ((1, 1, 2, -0.5), "tangent"),
        ((1, 2, 2, -1), "tangent"),
        ((1, 1, 2, -1), "same score"),
        ((1, 1, 2, -3), "not zero"),
    ],
    malformed=(1, 1),
)
def vanishing(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 4:
        raise Form("four numbers (w1, v1, w2, v2)")
    w1, v1, w2, v2 = map(number, answer)
    if not all(map(math.isfinite, (w1, v1, w2, v2))):
        raise Form("four finite numbers (w1, v1, w2, v2)")
    first, second = (v * math.tanh(w * 0.25) for w, v in ((w1, v1), (w2, v2)))
    if 0 in (first, second):
        return "one path vanishes by itself: both heads must give something, and the sum nothing."
    if math.isclose(first, -second, rel_tol=2e-3):
        return None
    if math.isclose(w1, -w2) and math.isclose(v1, -v2):
        return "two changed signs cancel each other: the heads give the same."
    if math.isclose(first, second):
        return "these paths are equal, so they add up."
    if math.isclose(w1 * v1, -w2 * v2):
        return "took w for the tangent of w/4: products v w that cancel are not enough."
    if math.isclose(v1, -v2):
        return "opposite values cancel only with the same score on both heads."
    return f"the sum is {first + second:.3f} times the half-gap, not zero."
