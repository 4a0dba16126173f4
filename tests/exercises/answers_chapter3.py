"""Right, wrong and malformed answers to the exercises of Chapter 3; a wrong one with a word of its message."""

import cmath
import math

import torch


def inverse(v0, v1, v2):
    w = cmath.exp(2j * math.pi / 3)
    return tuple((v0 + v1 * w ** (-k) + v2 * w ** (-2 * k)) / 3 for k in range(3))


RIGHT = {
    "order": [(("P3", "P2", "P1"), ("W1", "W2", "W3"))],
    "short-paths": [13],
    "bias-three": [
        lambda b1, b2, b3, w2, w3: w3.T @ (w2.T @ b1 + b2) + b3,
        lambda *a: (a[0] @ a[3] + a[1]) @ a[4] + a[2],
    ],
    "unity": [inverse, lambda *v: torch.fft.fft(torch.tensor(v)) / 3],
    "vanishing": [(1, 1, 1, -1), (2, 0.5, -2, 0.5)],
}
WRONG = {
    "order": [
        ((("P1", "P2", "P3"), ("W1", "W2", "W3")), "opposite"),
        ((("P3", "P2", "P1"), ("W3", "W2", "W1")), ""),
    ],
    "short-paths": [(7, "heads"), (12, "")],
    "bias-three": [
        (lambda b1, b2, b3, w2, w3: b1 + b2 + b3, "without the weights"),
        (lambda b1, b2, b3, w2, w3: w3 @ (w2 @ b1 + b2) + b3, "rows multiply"),
        (lambda b1, b2, b3, w2, w3: torch.stack([b1, b2]), "one row"),
        (lambda b1, b2, b3, w2, w3: b3, ""),
    ],
    "unity": [(lambda *v: tuple(3 * x for x in inverse(*v)), "divide"), (lambda *v: v, "")],
    "vanishing": [((0, 1, 1, -1), "by itself"), ((1, 1, 2, -1), "not zero")],
}
MALFORMED = {"order": 3, "short-paths": "13", "bias-three": 3, "unity": lambda *v: 1.0, "vanishing": (1, 1)}
