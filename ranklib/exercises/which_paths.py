"""The exercises of ``which-paths``: their checks, and answers that the tests give."""

import math

from ranklib.exercises.answers import UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.experiments.path_accuracy import expected_distinct


@exercise(
    right=[lambda depth, eta: depth * eta / (1 + eta)],
    wrong=[(lambda depth, eta: depth * eta, "divide"), (lambda depth, eta: depth, "")],
    malformed=3,
)
def weighed_mean(answer):
    cases = [(12, 0.1), (6, 0.5), (7, 3.0)]
    got = [call(answer, depth, eta) for depth, eta in cases]
    if all(close(g, depth * eta / (1 + eta)) for g, (depth, eta) in zip(got, cases)):
        return None
    if all(close(g, depth * eta) for g, (depth, eta) in zip(got, cases)):
        return "forgot to divide by the total weight (1 + eta)^L: a share is a weight over their sum."
    return UNKNOWN


@exercise(
    right=[(0.3692, 0.0150), (0.369, 0.015)],
    wrong=[((0.3692, 0.3692), "cosmetic"), ((0.0150, 0.3692), "swapped"), ((0.1, 0.2), "")],
    malformed=0.3692,
)
def frozen_factor(answer):
    frozen, recomputed = map(number, pair_of(answer, "of two numbers (frozen, recomputed)"))
    first = math.tanh(0.25)
    truth = math.tanh((0.5 + 0.5 * first) ** 2), math.tanh((0.5 * first) ** 2)
    rounding = {"rel_tol": 5e-3}
    if all(math.isclose(*pair, **rounding) for pair in zip((frozen, recomputed), truth)):
        return None
    if math.isclose(frozen, recomputed, **rounding):
        return (
            "took the choice for cosmetic: the path alone arrives in layer 2 with a quarter of the half-gap."
        )
    if math.isclose(frozen, truth[1], **rounding) and math.isclose(recomputed, truth[0], **rounding):
        return "swapped them: frozen attention is that of the whole network, whose tokens are larger."
    return UNKNOWN


@exercise(
    right=[(4.47, 12.26), (4.474, 12.261)],
    wrong=[((5, 20), "coverage"), ((4.23, 9.89), "three heads"), ((1, 2), "")],
    malformed=4.47,
)
def seen_paths(answer):
    got = tuple(map(number, pair_of(answer, "of two numbers, for 5 and for 20 draws")))
    rounding = {"abs_tol": 0.03}
    if all(math.isclose(g, expected_distinct(18, n), **rounding) for g, n in zip(got, (5, 20))):
        return None
    if got in ((5, 20), (5, 18)):
        return "took draws for coverage: drawn with replacement, paths repeat themselves."
    if all(math.isclose(g, expected_distinct(12, n), **rounding) for g, n in zip(got, (5, 20))):
        return "that is for two heads: six layers of three heads have 18 paths of length one."
    return UNKNOWN


@exercise(
    right=[0.875, 7 / 8],
    wrong=[(1, "equal tokens"), (0.75, "coin flips"), (0.5, "")],
    malformed="0.875",
)
def ceiling(answer):
    if close(answer, 0.875):
        return None
    if close(answer, 1):
        return "a network without positions gives equal tokens one answer, and two coins may differ."
    if close(answer, 0.75):
        return "counted the pairs as coin flips: the common answer suits at least one of the two, always."
    return UNKNOWN


@exercise(
    right=[1 / 3, 0.333],
    wrong=[(0.9692, "six layers"), (0.5, "")],
    malformed=2,
)
def cancellation(answer):
    eta = number(answer)
    if not 0 < eta < 1:
        raise Form("a number between 0 and 1")
    if math.isclose(eta, 1 / 3, rel_tol=5e-3):
        return None
    if math.isclose(eta, 63 / 65, rel_tol=5e-3):
        return "a quotient of 64 is one of six layers together: each layer gives 2."
    return UNKNOWN
