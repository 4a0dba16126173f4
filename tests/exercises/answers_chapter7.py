"""Right, wrong and malformed answers to the exercises of Chapter 7; a wrong one with a word of its message."""


def cancelling(m, a):
    return a * a / m - a, a * a / m + a


RIGHT = {
    "slow-rate": [5000, 4990],
    "orthogonal-columns": [cancelling],
    "lowered": [(0, 2)],
    "second-crush": [2.03e-4, 2.0e-4],
    "branch-scales": [(1, 0.5)],
}
WRONG = {
    "slow-rate": [(14, "rate per layer"), (10_000, "factor 2"), (1000, "")],
    "orthogonal-columns": [
        (lambda m, a: (-a, a), "common part"),
        (lambda m, a: (a - m, m + a), "leaves a residual"),
        (lambda m, a: (1, 1), ""),
    ],
    "lowered": [((0, 10), "instead of its residual"), ((0, 1), "changed places"), ((2, 3), "")],
    "second-crush": [(1.4e-20, "second crush"), (9.08e-5, "first half-gap"), (1.0, "")],
    "branch-scales": [((0.5, 0.5), "copied"), ((1, 1), "too careful"), ((2, 2), "")],
}
MALFORMED = {
    "slow-rate": "many",
    "orthogonal-columns": (1, 2),
    "lowered": 2,
    "second-crush": "small",
    "branch-scales": 1,
}
