"""Checks for the exercises of Chapter 13."""

import math

from ranklib.exercises.answers import UNKNOWN, call, close, number, pair_of


def quotient(u):
    """q(u) = 4u / sinh 2u, what a head adds to the radial factor."""
    return 4 * u / math.sinh(2 * u)


def radial_factor(answer):
    if close(answer, 1 + quotient(2)):
        return None
    if close(answer, quotient(2)):
        return "forgot the 1: even with fixed attention the error is carried along."
    if close(answer, math.tanh(2)) or close(answer, 1 / math.tanh(2)):
        return "used tanh alone: the factor is a derivative, and the logit moves with the radius."
    if close(answer, 3):
        return "that is the factor at small logits, where tanh is linear."
    return UNKNOWN


def larger_turn(answer):
    if close(answer, 1 / math.tanh(1)):
        return None
    if close(answer, 1):
        return "forgot that averaging shortens the pair: W_V has to make up for it."
    if close(answer, math.tanh(1)):
        return "that is how much attention leaves of the pair; W_V has to undo it."
    return UNKNOWN


def skip_factor(answer):
    cases = [(u, delta) for u in (0.1, 1.0, 3.0) for delta in (0.01, 0.5, 2.0)]
    found = [number(call(answer, *case)) for case in cases]
    truth = [1 + quotient(u) * (1 - math.cos(delta)) for u, delta in cases]

    def are(values):
        return all(math.isclose(f, t, rel_tol=1e-6) for f, t in zip(found, values))

    if are(truth):
        return None
    if are([2 + quotient(u) for u, _ in cases]):
        return "added 1 to the bare factor: with a skip the head adds only the difference of two points."
    if are([1 + quotient(u) * (math.cos(delta) - 1) for u, delta in cases]):
        return "took the share in the old direction; the radius is measured in the new one."
    return UNKNOWN


def pull(answer):
    q = quotient(1)
    if close(answer, q / (1 + q)):
        return None
    if close(answer, 1):
        return "asked for zero error: it is enough that the error does not grow."
    if close(answer, 1 / (1 + q)):
        return "that is the part that may stay; the pull takes away the rest."
    return UNKNOWN


def neutral_heads(answer):
    first, second = (number(part) for part in pair_of(answer, "(c1, c2)"))
    q1, q2 = quotient(0.3), quotient(2)
    truth = (-q2 / (q1 - q2), q1 / (q1 - q2))
    if close(first, truth[0]) and close(second, truth[1]):
        return None
    if not math.isclose(first + second, 1, abs_tol=5e-3):
        return "the shares do not add up to 1, so the step is wrong before any error."
    if close(second, truth[0]) and close(first, truth[1]):
        return "the heads changed places."
    if first > 0 and second > 0:
        return "with both shares positive the factor is above 1."
    return UNKNOWN


CHECKS = {
    "circle-factor": radial_factor,
    "larger-turn": larger_turn,
    "skip-factor": skip_factor,
    "pull": pull,
    "neutral-heads": neutral_heads,
}
