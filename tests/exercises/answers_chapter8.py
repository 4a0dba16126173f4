"""Right, wrong and malformed answers to the exercises of Chapter 8; wrong ones with a word of the message."""

import math

RIGHT = {
    "relu-gap": [0.5, 1 / 2],
    "both-constants": [(2, 2)],
    "edge-of-tanh": [(2.39, 0.85), (2.3896, 0.8503)],
    "first-copies": [18],
    "steeper-is-faster": [
        (lambda x: 0.9 * x, lambda x: 1000 * abs(x)),
        (lambda x: x / 2, lambda x: 2 * abs(x)),
    ],
}
WRONG = {
    "relu-gap": [(1, "at most"), (0, "negative one"), (2, "")],
    "both-constants": [((1.618, 1.618), "spectral"), ((1.62, 1.62), "spectral"), ((1, 2), "")],
    "edge-of-tanh": [((1, 0.85), "slope"), ((0.85, 2.39), "order"), ((3, 0.5), "")],
    "first-copies": [(17, "limit"), (16, "below"), (math.inf, "falls"), (30, "")],
    "steeper-is-faster": [
        ((lambda x: 1.5 * x, lambda x: 2 * abs(x)), "too steep"),
        ((lambda x: 0.9 * x, lambda x: 0.5 * x), "nowhere"),
        ((lambda x: 0.9 * x, lambda x: 2 * x), "closer after f"),
    ],
}
MALFORMED = {
    "relu-gap": "half",
    "both-constants": 2,
    "edge-of-tanh": 2.39,
    "first-copies": "seventeen",
    "steeper-is-faster": (0.9, 1000),
}
