"""Right, wrong and malformed answers to the exercises of Chapter 2; a wrong one with a word of its message."""

import math

RIGHT = {
    "drop": [{"v1T", "11T"}, ["11T", "v1T"]],
    "between": [{3}, 3],
    "pair": [lambda m, a, w: (m + a * math.tanh(w * a * (m + a)), m + a * math.tanh(w * a * (m - a)))],
    "half": [(0.5, 0.5, 0.9526)],
    "axis": [("P1 = 1", 1.878)],
}
WRONG = {
    "drop": [({"1vT", "11T"}, "rows as columns"), ({"diag"}, "")],
    "between": [({-1, 3}, "negative weights"), ({0, 3, 5}, "limit"), ({5}, "")],
    "pair": [
        (lambda m, a, w: tuple(m + a * math.tanh(w * (m + a) * x) for x in (m + a, m - a)), "shares"),
        (lambda m, a, w: (m + a, m - a), ""),
    ],
    "half": [((0.5, 0.5, 0.4988), "linear"), ((1, 1, 0.9526), "")],
    "axis": [(("shape", 1.0), "sums"), (("P1 = 1", 1.0), "")],
}
MALFORMED = {
    "drop": 3,
    "between": "3",
    "pair": 3,
    "half": 0.5,
    "axis": 1.878,
}
