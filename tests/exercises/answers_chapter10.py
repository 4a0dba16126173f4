"""Right, wrong and malformed answers to Chapter 10; a wrong one with a word of its message."""

import math

RIGHT = {
    "mask-eigenvalues": [(1, 1 / 2, 1 / 3), [0.3333, 1, 0.5]],
    "causal-limit": [3, 3.0],
    "equal-first": [1 / 3, 0.333],
    "negative-bias": [-0.462, math.tanh(-0.5)],
    "rotary-opposite": [lambda phi: (1 + math.cos(phi)) / 2, lambda phi: math.cos(phi / 2) ** 2],
    "first-arrival": [lambda n, b: math.ceil((n - 1) / b), lambda n, b: -(-(n - 1) // b)],
}
WRONG = {
    "mask-eigenvalues": [((1, 1, 1), "row sums"), ((1.2215, 0.5226, 0.2611), "singular"), ((1, 0, 0), "")],
    "causal-limit": [(2, "mean"), (6, "largest"), (-2, "")],
    "equal-first": [(0.5, "one half"), (0.25, "")],
    "negative-bias": [(0.462, "side"), (0, "stop"), (math.tanh(-1), "sigma"), (1, "")],
    "rotary-opposite": [
        (lambda phi: (1 - math.cos(phi)) / 2, "equal rows"),
        (lambda phi: 1.0, "without rotation"),
        (lambda phi: 0.0, ""),
    ],
    "first-arrival": [
        (lambda n, b: (n - 1) // b, "whole"),
        (lambda n, b: (n - 1) / b, "whole"),
        (lambda n, b: 0.5, "spectrum"),
        (lambda n, b: n - 1, "width 1"),
        (lambda n, b: n, ""),
    ],
}
MALFORMED = {
    "mask-eigenvalues": 1,
    "causal-limit": "the first",
    "equal-first": "1/3",
    "negative-bias": "swaps",
    "rotary-opposite": 0.9,
    "first-arrival": 15,
}
