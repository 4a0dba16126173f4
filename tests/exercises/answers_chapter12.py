"""Right, wrong and malformed answers to the exercises of Chapter 12; a wrong one with a word of its message."""

RIGHT = {
    "three-measures": [
        ("relative_residual", "mean_cosine", "effective_rank"),
        ["composite_residual", "mean_average_distance", "stable_rank"],
    ],
    "fool-cosine": [3, -3.0],
    "copies": [3, 3.0],
    "softmax-rank": [1.79, 1.7896],
    "rel-to-cosine": [0.55, 11 / 20],
    "entropy-certificate": [0.381, 0.38103],
}
WRONG = {
    "three-measures": [
        (("mu", "mu", "mu"), "one number"),
        (("mean_cosine", "relative_residual", "effective_rank"), "lengths"),
        (("stable_rank", "mean_cosine", "effective_rank"), "u and -u"),
        (("relative_residual", "mu", "effective_rank"), "second"),
        (("relative_residual", "mean_cosine", "participation_ratio"), "noise"),
        (("relative_residual", "mean_cosine", "mu"), "third"),
    ],
    "fool-cosine": [(9, "squared"), (0.9, "itself"), (0.9487, "longer"), (1, ""), (float("inf"), "")],
    "copies": [(1, "depth"), (6, "apart"), (2, "")],
    "softmax-rank": [(1, "name"), (0.582, "exponential"), (2, "equal"), (1.5, "")],
    "rel-to-cosine": [(0.64, "itself"), (0.4, "squared"), (0.25, "squared"), (0.712, "n/"), (0.6, "")],
    "entropy-certificate": [
        (0.1905, "opposite"),
        (0.9738, "missing"),
        (0.0726, "square"),
        (0.1452, "square"),
        (0.619, "left"),
        (0.5, ""),
    ],
}
MALFORMED = {
    "three-measures": ("rank", "cosine", "residual"),
    "fool-cosine": "three",
    "copies": "three",
    "softmax-rank": "1.79",
    "rel-to-cosine": (0.55,),
    "entropy-certificate": "0.381",
}
