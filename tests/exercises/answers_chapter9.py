"""Right, wrong and malformed answers to the exercises of Chapter 9; wrong ones with a word of the message."""

import math

RIGHT = {
    "merged-rows": [[2, 4], (4, 2), [1, 2, 4]],
    "offset-growth": [1 / math.tanh(2), 1.037],
    "least-value": [1e-4 / 0.33981, 2.943e-4],
    "bent-line": [[[1, 0, 0], [1, 1, 0], [1, 3, 0]], [[1, 0, 0], [0, 1, 0], [0.5, 0.5, 0]]],
    "unequal-average": [0.8],
}
WRONG = {
    "merged-rows": [([4], "RMSNorm"), ([2, 3, 4], "another order"), ([], "columns"), ([2], "this is not it")],
    "offset-growth": [(1, "stable"), (math.tanh(2), "tangent"), (1.313, "w = 1"), (2, "this is not it")],
    "least-value": [(0, "epsilon"), (1e-4, "0.34"), (2.943e-8, "root"), (1, "this is not it")],
    "bent-line": [
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], "not on a line"),
        ([[1, 0, 0], [2, 0, 0], [3, 0, 0]], "affine rank after is 0"),
        ([[1, 0, 0], [1, 1, 1], [1, 2, 2]], "constant"),
    ],
    "unequal-average": [
        (1, "triangular"),
        (0.5, "equal weights"),
        (0.2, "exchanged"),
        (0.64, "this is not it"),
    ],
}
MALFORMED = {
    "merged-rows": 2,
    "offset-growth": "2",
    "least-value": "small",
    "bent-line": [[1, 2]],
    "unequal-average": [0.8],
}
