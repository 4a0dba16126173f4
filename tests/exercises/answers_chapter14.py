"""Right, wrong and malformed answers to the exercises of Chapter 14; a wrong one with a word of its message."""

RIGHT = {
    "weighed-mean": [lambda depth, eta: depth * eta / (1 + eta)],
    "frozen-factor": [(0.3692, 0.0150), (0.369, 0.015)],
    "seen-paths": [(4.47, 12.26), (4.474, 12.261)],
    "ceiling": [0.875, 7 / 8],
    "cancellation": [1 / 3, 0.333],
}
WRONG = {
    "weighed-mean": [(lambda depth, eta: depth * eta, "divide"), (lambda depth, eta: depth, "")],
    "frozen-factor": [((0.3692, 0.3692), "cosmetic"), ((0.0150, 0.3692), "swapped"), ((0.1, 0.2), "")],
    "seen-paths": [((5, 20), "coverage"), ((4.23, 9.89), "three heads"), ((1, 2), "")],
    "ceiling": [(1, "equal tokens"), (0.75, "coin flips"), (0.5, "")],
    "cancellation": [(0.9692, "six layers"), (0.5, "")],
}
MALFORMED = {
    "weighed-mean": 3,
    "frozen-factor": 0.3692,
    "seen-paths": 4.47,
    "ceiling": "0.875",
    "cancellation": 2,
}
