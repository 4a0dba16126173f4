"""The exercises of ``one-head``: their checks, and answers that the tests give."""

import math

from ranklib.exercises.answers import UNKNOWN, call, close, exercise, pair_of


@exercise(
    right=[math.sqrt(math.log(3)), 1.048],
    wrong=[(math.log(3), "reported"), (0.5, "")],
    malformed="x",
)
def edge(answer):
    u = math.atanh(4 / 5)
    if close(answer, math.sqrt(u)):
        return None
    return "solved for u = a squared and reported it as a." if close(answer, u) else UNKNOWN


def _function_of(answer, cases, truth):
    return all(close(call(answer, *case), truth(*case)) for case in cases)


@exercise(
    right=[lambda k, n: 4 * k * (n - k) / n**2],
    wrong=[(lambda k, n: n, "in the bound"), (lambda k, n: k / n, "")],
    malformed=3,
)
def groups(answer):
    cases = ((1, 2), (3, 7), (8, 16), (1, 16))
    if _function_of(answer, cases, lambda k, n: 4 * k * (n - k) / n**2):
        return None
    if close(call(answer, 8, 16), 16) or close(call(answer, 8, 16), 32):
        return "put n into the truth because it is in the bound: equal groups behave like one pair."
    return UNKNOWN


@exercise(
    right=[lambda n: math.log(n - 1) / 2],
    wrong=[(lambda n: math.log(n - 1), "2u"), (lambda n: 1.0, "not enough"), (lambda n: n, "")],
    malformed="log n",
)
def alone(answer):
    cases = ((16,), (128,), (1024,))
    if _function_of(answer, cases, lambda n: math.log(n - 1) / 2):
        return None
    if _function_of(answer, cases, lambda n: math.log(n - 1)):
        return "the scores are +u and -u: their difference is 2u."
    if close(call(answer, 16), float(call(answer, 1024))):
        return "a constant scale is not enough: the many others together weigh n - 1."
    return UNKNOWN


@exercise(
    right=[lambda s: 1 / math.cosh(s) ** 2, lambda s: 1 - math.tanh(s) ** 2],
    wrong=[(lambda s: math.cosh(s), "speed"), (lambda s: 1 / math.cosh(s), "")],
    malformed=2,
)
def offset(answer):
    cases = ((0.0,), (0.5,), (1.0,), (2.0,))
    if _function_of(answer, cases, lambda s: 1 / math.cosh(s) ** 2):
        return None
    if float(call(answer, 2.0)) > float(call(answer, 0.0)):
        return "peaked rows do not slow the mixing, they speed it: the factor falls with s."
    return UNKNOWN


@exercise(
    right=[(0, 0.633)],
    wrong=[((0, 0.482), "divide"), ((1, 0.5), "over s"), ((0, 0.5), "")],
    malformed=0.633,
)
def tanh(answer):
    best, value = pair_of(answer, "(best s, value)")
    truth = math.sinh(2) / (2 * math.cosh(2)) / math.tanh(1)
    if close(best, 0) and close(value, truth):
        return None
    if close(value, truth * math.tanh(1)):
        return "that is phi itself; divide by tanh e."
    if not close(best, 0):
        return "maximise over s, not over e: where is the denominator smallest?"
    return UNKNOWN
