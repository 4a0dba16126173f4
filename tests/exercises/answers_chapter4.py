"""Right, wrong and malformed answers to the exercises of Chapter 4; a wrong one with a word of its message."""

import math

RIGHT = {
    "edge": [math.sqrt(math.log(3)), 1.048],
    "groups": [lambda k, n: 4 * k * (n - k) / n**2],
    "alone": [lambda n: math.log(n - 1) / 2],
    "offset": [lambda s: 1 / math.cosh(s) ** 2, lambda s: 1 - math.tanh(s) ** 2],
    "tanh": [(0, 0.633)],
}
WRONG = {
    "edge": [(math.log(3), "reported"), (0.5, "")],
    "groups": [(lambda k, n: n, "in the bound"), (lambda k, n: k / n, "")],
    "alone": [(lambda n: math.log(n - 1), "2u"), (lambda n: 1.0, "not enough"), (lambda n: n, "")],
    "offset": [(lambda s: math.cosh(s), "speed"), (lambda s: 1 / math.cosh(s), "")],
    "tanh": [((0, 0.482), "divide"), ((1, 0.5), "over s"), ((0, 0.5), "")],
}
MALFORMED = {"edge": "x", "groups": 3, "alone": "log n", "offset": 2, "tanh": 0.633}
