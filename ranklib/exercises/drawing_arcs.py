"""The exercises of ``drawing-arcs``: their checks, and answers that the tests give."""

import math

from ranklib.exercises.answers import UNKNOWN, call, close, exercise, number, pair_of


def quotient(u):
    """q(u) = 4u / sinh 2u, what a head adds to the radial factor."""
    return 4 * u / math.sinh(2 * u)


@exercise(
    right=[1.293, 1 + 8 / math.sinh(4)],
    wrong=[(0.293, "forgot the 1"), (0.964, "tanh alone"), (3, "small logits"), (2, "")],
    malformed="three",
)
def circle_factor(answer):
    if close(answer, 1 + quotient(2)):
        return None
    if close(answer, quotient(2)):
        return "forgot the 1: even with fixed attention the error is carried along."
    if close(answer, math.tanh(2)) or close(answer, 1 / math.tanh(2)):
        return "used tanh alone: the factor is a derivative, and the logit moves with the radius."
    if close(answer, 3):
        return "that is the factor at small logits, where tanh is linear."
    return UNKNOWN


@exercise(
    right=[1.313, 1 / math.tanh(1)],
    wrong=[(1, "averaging shortens"), (0.762, "leaves of the pair"), (2, "")],
    malformed=(1, 2),
)
def larger_turn(answer):
    if close(answer, 1 / math.tanh(1)):
        return None
    if close(answer, 1):
        return "forgot that averaging shortens the pair: W_V has to make up for it."
    if close(answer, math.tanh(1)):
        return "that is how much attention leaves of the pair; W_V has to undo it."
    return UNKNOWN


def q(u):
    return 4 * u / math.sinh(2 * u)


@exercise(
    right=[lambda u, delta: 1 + q(u) * (1 - math.cos(delta))],
    wrong=[
        (lambda u, delta: 2 + q(u), "added 1"),
        (lambda u, delta: 1 - q(u) * (1 - math.cos(delta)), "old direction"),
        (lambda u, delta: 1, ""),
    ],
    malformed=1,
)
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


@exercise(
    right=[0.524],
    wrong=[(1, "zero error"), (0.4755, "may stay"), (0.7, "")],
    malformed="most",
)
def pull(answer):
    q = quotient(1)
    if close(answer, q / (1 + q)):
        return None
    if close(answer, 1):
        return "asked for zero error: it is enough that the error does not grow."
    if close(answer, 1 / (1 + q)):
        return "that is the part that may stay; the pull takes away the rest."
    return UNKNOWN


@exercise(
    right=[(-0.1842, 1.1842)],
    wrong=[
        ((-0.3, 0.3), "add up to 1"),
        ((1.1842, -0.1842), "changed places"),
        ((0.5, 0.5), "above 1"),
        ((-0.3, 1.3), ""),
    ],
    malformed=1,
)
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
