"""The exercises of ``real-transformers``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, close, exercise, number, pair_of
from ranklib.experiments.record import load_record


@exercise(
    right=[-19.05 + 3 * 6.06, -0.87],
    wrong=[(11.2, "floor"), (3.14, "quotient"), (0.87, "sign"), (5, "this is not it")],
    malformed="-0.87",
)
def read_constant(answer):
    earlier, later, floor = -6.06, -19.05, -7.0
    if close(answer, later - 3 * earlier):
        return None
    if abs(number(answer) - (floor - 3 * earlier)) < 0.1:
        return "fitted the floor: -7.0 is where float32 stops, not where the network is."
    if close(answer, later / earlier):
        return "that is the quotient of the two logarithms; the slope is 3, and the constant is what is left."
    if close(answer, 3 * earlier - later):
        return "the sign: log a' = 3 log a + kappa."
    return UNKNOWN


@exercise(
    right=[(0, 1), [0, 1]],
    wrong=[((0, 0), "label"), ((1, 0), "other way"), ((1, 1), "nothing")],
    malformed=1,
)
def which_skip(answer):
    pair = pair_of(answer, "of zeros and ones")
    if not all(isinstance(s, int) and s in (0, 1) for s in pair):
        raise Form("a pair of zeros and ones")
    if pair == (0, 1):
        return None
    if pair == (0, 0):
        return "believed the label: the switch removes one of the two skips."
    if pair == (1, 0):
        return "the other way round: the switch belongs to the attention sub-layer."
    return "with both skips on nothing is switched off."


@exercise(
    right=[-60.0, -59.7, -59.6],
    wrong=[(-33.2, "linearly"), (-39.7, "doubled"), (60, "sign"), (-100, "this is not it")],
    malformed="minus sixty",
)
def next_layer(answer):
    logs = torch.tensor(load_record("deep-minilm")["runs"]["0"]["log10_relative"], dtype=F64).mean(1)
    given, truth = number(answer), float(logs[6])
    if abs(given - truth) <= 1:
        return None
    if abs(given - float(2 * logs[5] - logs[4])) <= 1:
        return "extrapolated linearly: the logarithm triples from layer to layer."
    if abs(given - float(2 * logs[5])) <= 1:
        return "doubled: scores are quadratic in the residual, and they average it once more."
    if given > 0:
        return "the sign: the ratio is below one, so its logarithm is negative."
    return UNKNOWN


@exercise(
    right=[0.0137 / 1.984375, 0.0069],
    wrong=[(0.02719, "other way"), (0.0137, "definitions"), (0, "never"), (0.5, "this is not it")],
    malformed=[0.0069],
)
def other_centre(answer):
    mean, most = 0.0137, 2 * (1 - 1 / 128)
    if close(answer, mean / most) or abs(number(answer) - mean / most) < 6e-5:
        return None
    if close(answer, mean * most):
        return "the other way round: the best centre gives less than the mean."
    if close(answer, mean):
        return "compared across definitions: the mean is best for the Frobenius norm only."
    if number(answer) == 0:
        return "the mean is never worse than a factor of about two, by Theorem (Mean centre)."
    return UNKNOWN


@exercise(
    right=[0, 0.0],
    wrong=[(1, "LayerNorm"), (-1, "multiply"), (3, "cube"), (2, "this is not it")],
    malformed=None.__class__,
)
def larger_values(answer):
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(5, generator=generator, dtype=F64), torch.randn(5, 5, generator=generator, dtype=F64)
    once, ten = ((x @ w * factor).std(correction=0) for factor in (1, 10))
    truth = 1 - math.log10(ten / once)  # the sum in T gains a power of ten, 1/sigma loses one
    if abs(number(answer) - truth) < 1e-3:
        return None
    if close(answer, 1):
        return "forgot LayerNorm: sigma grows with the values, and N is divided by it."
    if close(answer, -1):
        return "forgot the values in T: they multiply it by ten."
    if close(answer, 3):
        return "the values enter T once; the cube is in the residual."
    return UNKNOWN
