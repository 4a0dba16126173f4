"""Right, wrong and malformed answers to the exercises of Chapter 6; wrong ones with a word of the message."""

import torch

from ranklib.paper.counterexamples import four_tokens
from ranklib.paper.movers import best_movers

EYE = torch.eye(4, 2, dtype=torch.float64)
RIGHT = {
    "thousand": [(0.923, 138999, False)],
    "which": [("oscillation", 11.74), ("oscillation", 11.744)],
    "onemore": [lambda family: family._replace(stayers=family.stayers + 1)],
    "notquite": [0.1, -0.4, 0.496],
    "leader": [
        tuple(four_tokens(0.01)[:2]),
        tuple(four_tokens(0.01, tokens=3)[:2]),
        tuple(best_movers(61)._replace(eta=1e-9).instance()[:2]),
    ],
}
WRONG = {
    "thousand": [
        ((0.857, 138999, False), "14,000"),
        ((0.923, 139000, False), "twice"),
        ((0.923, 138999, True), ""),
    ],
    "which": [(("tokens", 6001), "blamed n"), (("oscillation", 1.256), ""), (("values", 11.74), "")],
    "onemore": [
        (lambda family: family._replace(movers=family.movers + 1), "added a mover"),
        (lambda family: family, "not one"),
    ],
    "notquite": [(1.0, "one size"), (0, "differ"), (0.5, "one size")],
    "leader": [
        ((EYE, four_tokens(3.0).attention), "95 percent"),
        ((EYE, four_tokens(0.5).attention), "about the mean"),
    ],
}
MALFORMED = {
    "thousand": 3,
    "which": 11.74,
    "onemore": 3,
    "notquite": "small",
    "leader": 3,
}
