"""The exercises of ``path-decomposition``: their checks, and answers that the tests give."""

import cmath
import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.theory.paths import count_paths


@exercise(
    right=[(("P3", "P2", "P1"), ("W1", "W2", "W3"))],
    wrong=[
        ((("P1", "P2", "P3"), ("W1", "W2", "W3")), "opposite"),
        ((("P3", "P2", "P1"), ("W3", "W2", "W1")), ""),
    ],
    malformed=3,
)
def order(answer):
    p, w = (tuple(side) for side in pair_of(answer, "of two triples of names"))
    if (p, w) == (("P3", "P2", "P1"), ("W1", "W2", "W3")):
        return None
    if p == ("P1", "P2", "P3"):
        return "P and W multiply from opposite sides: the last layer's P acts last, so it stands leftmost."
    return UNKNOWN


@exercise(
    right=[13],
    wrong=[(7, "heads"), (12, "")],
    malformed="13",
)
def short_paths(answer):
    if close(answer, sum(count_paths(heads=2, depth=6, length=k) for k in (0, 1))):
        return None
    if close(answer, 7):
        return "counted the layers, not the heads: in the one layer with a head there are two to choose from."
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
        (lambda b1, b2, b3, w2, w3: b3, ""),
    ],
    malformed=3,
)
def bias_three(answer):
    g = torch.Generator().manual_seed(0)
    b1, b2, b3 = torch.randn(3, 5, generator=g, dtype=F64)
    w2, w3 = torch.randn(2, 5, 5, generator=g, dtype=F64)
    got = call(answer, b1, b2, b3, w2, w3)
    if not isinstance(got, torch.Tensor) or got.shape != b1.shape:
        return "the bias of the network is one row of width dim: P 1 = 1 turns all copies into one."
    if torch.allclose(got, b1 + b2 + b3):
        return "let the biases pass without the weights: a layer multiplies the row below by its W."
    truth = w3.T @ (w2.T @ b1 + b2) + b3
    if torch.allclose(got, w3 @ (w2 @ b1 + b2) + b3):
        return "rows multiply from the left: c W is Wᵀ c as a column."
    return None if torch.allclose(got, truth) else UNKNOWN


def inverse(v0, v1, v2):
    w = cmath.exp(2j * math.pi / 3)
    return tuple((v0 + v1 * w ** (-k) + v2 * w ** (-2 * k)) / 3 for k in range(3))


@exercise(
    right=[inverse, lambda *v: torch.fft.fft(torch.tensor(v)) / 3],
    wrong=[(lambda *v: tuple(3 * x for x in inverse(*v)), "divide"), (lambda *v: v, "")],
    malformed=lambda *v: 1.0,
)
def unity(answer):
    sums = torch.tensor([0.5, 0.3, 0.05], dtype=torch.complex128)
    z = torch.exp(2j * math.pi * torch.arange(3, dtype=F64) / 3)
    passes = [complex(sums @ z_k ** torch.arange(3)) for z_k in z]
    got = call(answer, *passes)
    if not isinstance(got, tuple | list | torch.Tensor) or len(got) != 3:
        raise Form("a function that returns three numbers")
    got = torch.as_tensor([complex(v) for v in got], dtype=torch.complex128)
    if torch.allclose(got, 3 * sums):
        return "forgot to divide by the number of passes."
    return None if torch.allclose(got, sums) else UNKNOWN


@exercise(
    right=[(1, 1, 1, -1), (2, 0.5, -2, 0.5)],
    wrong=[((0, 1, 1, -1), "by itself"), ((1, 1, 2, -1), "not zero")],
    malformed=(1, 1),
)
def vanishing(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 4:
        raise Form("four numbers (w1, v1, w2, v2)")
    w1, v1, w2, v2 = map(number, answer)
    paths = [v * math.tanh(w * 0.25) for w, v in ((w1, v1), (w2, v2))]
    if 0 in paths:
        return "one path vanishes by itself: both heads must give something, and the sum nothing."
    return (
        None if math.isclose(paths[0], -paths[1], rel_tol=1e-9) else f"the sum is {sum(paths):.3f}, not zero."
    )
