"""Right, wrong and malformed answers to the exercises of Chapter 5; a wrong one with a word of its message."""

import math


def apart(lam, w_1, w_inf):
    t = [math.tanh(value / 2) for value in lam]
    columns, rows = (sum(s * w for s, w in zip(t, norms, strict=True)) for norms in (w_1, w_inf))
    return math.sqrt(columns * rows)


def head_by_head(lam, w_1, w_inf):
    return sum(math.tanh(s / 2) * math.sqrt(a * b) for s, a, b in zip(lam, w_1, w_inf, strict=True))


RIGHT = {
    "two-residuals": [math.sqrt(12), 3.464],
    "no-overlap": [65026],
    "heads-pair": [apart],
    "order-eleven": [(5, -4, 1), [-10, 8, -2]],
    "wider": [(0.7071, 1), (2**-0.5, 1.0)],
}
WRONG = {
    "two-residuals": [(2 + math.sqrt(2), "norm"), (12, "")],
    "no-overlap": [(math.inf, "overlap"), (64514, "kept the overlap"), (65025, "exceeded"), (65536, "")],
    "heads-pair": [(head_by_head, "head by head"), (lambda *a: apart(*a) ** 2, "root"), (lambda *a: 1.0, "")],
    "order-eleven": [((2, -1, 0), "order 7"), ((1, 1, 1), "order 3"), ((0, 0, 0), "nothing")],
    "wider": [((0.5, 1), "root"), ((0.7071, 0.7071), "two things"), ((2, 1), "")],
}
MALFORMED = {
    "two-residuals": "2",
    "no-overlap": "never",
    "heads-pair": 3,
    "order-eleven": 16,
    "wider": 1,
}
