"""Right, wrong and malformed answers to the exercises of Chapter 13; a wrong one with a word of its message."""

import math


def q(u):
    return 4 * u / math.sinh(2 * u)


RIGHT = {
    "circle-factor": [1.293, 1 + 8 / math.sinh(4)],
    "larger-turn": [1.313, 1 / math.tanh(1)],
    "skip-factor": [lambda u, delta: 1 + q(u) * (1 - math.cos(delta))],
    "pull": [0.524],
    "neutral-heads": [(-0.1842, 1.1842)],
}
WRONG = {
    "circle-factor": [(0.293, "forgot the 1"), (0.964, "tanh alone"), (3, "small logits"), (2, "")],
    "larger-turn": [(1, "averaging shortens"), (0.762, "leaves of the pair"), (2, "")],
    "skip-factor": [
        (lambda u, delta: 2 + q(u), "added 1"),
        (lambda u, delta: 1 - q(u) * (1 - math.cos(delta)), "old direction"),
        (lambda u, delta: 1, ""),
    ],
    "pull": [(1, "zero error"), (0.4755, "may stay"), (0.7, "")],
    "neutral-heads": [
        ((-0.3, 0.3), "add up to 1"),
        ((1.1842, -0.1842), "changed places"),
        ((0.5, 0.5), "above 1"),
        ((-0.3, 1.3), ""),
    ],
}
MALFORMED = {
    "circle-factor": "three",
    "larger-turn": (1, 2),
    "skip-factor": 1,
    "pull": "most",
    "neutral-heads": 1,
}
