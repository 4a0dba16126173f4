"""The exercises of ``measure-your-own-model``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, close, exercise, number
from ranklib.measures.spectrum import effective_rank
from ranklib.measures.table import MEASURES
from ranklib.measures.tokens import mean_cosine, relative_residual


def tokens_with(z):
    return torch.cat([torch.eye(4, dtype=F64), torch.full((4, 1), float(z), dtype=F64)], 1)


@exercise(
    right=[
        ("relative_residual", "mean_cosine", "effective_rank"),
        ["composite_residual", "mean_average_distance", "stable_rank"],
    ],
    wrong=[
        (("mu", "mu", "mu"), "one number"),
        (("mean_cosine", "relative_residual", "effective_rank"), "lengths"),
        (("stable_rank", "mean_cosine", "effective_rank"), "u and -u"),
        (("relative_residual", "mu", "effective_rank"), "second"),
        (("relative_residual", "mean_cosine", "participation_ratio"), "noise"),
        (("relative_residual", "mean_cosine", "mu"), "third"),
    ],
    malformed=("rank", "cosine", "residual"),
)
def three_measures(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3 or not all(n in MEASURES for n in answer):
        raise Form("three names in rl.MEASURES")
    equal, direction, few = answer
    if len(set(answer)) < 3:
        return "one number for two of the questions: take tokens u and -u, where the answers are no, no, yes."
    if equal in ("mean_cosine", "mean_average_distance"):
        return "the first one ignores lengths: (1, 1) and (3, 3) point one way and are not equal."
    if equal.endswith("rank") or equal in ("participation_ratio", "isometry_gap"):
        return "the first one counts directions: u and -u have one direction and are not equal."
    if direction not in ("mean_cosine", "mean_average_distance"):
        return "the second one should ignore the lengths of the tokens and nothing else."
    if few == "participation_ratio":
        return "the third one, centred, measures the noise about equal tokens."
    if few not in ("effective_rank", "stable_rank", "gram_stable_rank"):
        return "the third one should count directions; it is 1 for u and -u."
    return None


@exercise(
    right=[3, -3.0],
    wrong=[(9, "squared"), (0.9, "itself"), (0.9487, "longer"), (1, ""), (float("inf"), "")],
    malformed="three",
)
def fool_cosine(answer):
    value = number(answer)
    if math.isfinite(value) and close(mean_cosine(tokens_with(value)), 0.9):
        return None
    if close(value, 9):
        return "this is z squared."
    if close(value, 0.9):
        return "this is the cosine itself; what is the scalar product of two tokens, and what their length?"
    if close(value, 0.9**0.5):
        return "the tokens have become longer: their squared length is 1 + z^2, not 1."
    return UNKNOWN


@exercise(
    right=[3, 3.0],
    wrong=[(1, "depth"), (6, "apart"), (2, "")],
    malformed="three",
)
def copies(answer):
    value, words = number(answer), "abaacb"
    if value == len(set(words)):
        return None
    if value == 1:
        return "blamed depth: an encoder need not collapse; what must stay equal is what began equal."
    if value == len(words):
        return "without positions, what could tell two copies of a word apart?"
    return UNKNOWN


@exercise(
    right=[1.79, 1.7896],
    wrong=[(1, "name"), (0.582, "exponential"), (2, "equal"), (1.5, "")],
    malformed="1.79",
)
def softmax_rank(answer):
    singular = torch.tensor([1.0, 0.0], dtype=F64)
    share = singular.softmax(0)
    value = number(answer)
    if close(value, float(torch.special.entr(share).sum().exp())):
        return None
    if close(value, float(effective_rank(torch.diag(singular)))):
        return "this is the effective rank; the function in question does something else than its name says."
    if close(value, float(torch.special.entr(share).sum())):
        return "this is the entropy; the rank is its exponential."
    if close(value, 2):
        return "the two shares are not equal: softmax of 1 and 0."
    return UNKNOWN


@exercise(
    right=[0.55, 11 / 20],
    wrong=[(0.64, "itself"), (0.4, "squared"), (0.25, "squared"), (0.712, "n/"), (0.6, "")],
    malformed=(0.55,),
)
def rel_to_cosine(answer):
    rel, value = 0.6, number(answer)
    regular = torch.eye(5, dtype=F64)  # a shared feature z moves rel of these rows through all values
    low, high = 0.0, 10.0
    for _ in range(80):
        z = (low + high) / 2
        x = torch.cat([regular, torch.full((5, 1), z, dtype=F64)], 1)
        low, high = (z, high) if float(relative_residual(x)) > rel else (low, z)
    if close(value, float(mean_cosine(x))):
        return None
    if close(value, 1 - rel**2):
        return "this is the mean over all pairs, each token with itself included."
    if close(value, 1 - rel) or close(value, 1 - 5 / 4 * rel):
        return "rel enters squared."
    if close(value, 1 - 4 / 5 * rel**2):
        return "the factor is n/(n - 1), not (n - 1)/n."
    return UNKNOWN


@exercise(
    right=[0.381, 0.38103],
    wrong=[
        (0.1905, "opposite"),
        (0.9738, "missing"),
        (0.0726, "square"),
        (0.1452, "square"),
        (0.619, "left"),
        (0.5, ""),
    ],
    malformed="0.381",
)
def entropy_certificate(answer):
    deficit, value = math.log(16) - 2.7, number(answer)
    if close(value, math.sqrt(2 * deficit)):
        return None
    if close(value, math.sqrt(deficit / 2)):
        return "this is the distance of a row from the uniform one; two rows may lie on opposite sides of it."
    if close(value, 2.7 / math.log(16)):
        return "this is the share of the largest entropy; what counts is how much is missing."
    if close(value, deficit) or close(value, 2 * deficit):
        return "Pinsker's inequality bounds the square of the distance."
    if close(value, 1 - math.sqrt(2 * deficit)):
        return "this is the part that is lost; the factor is what is left at most."
    return UNKNOWN
