"""Checks for the exercises of Chapter 11."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, close, number, pair_of
from ranklib.experiments.record import load_record


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


def other_centre(answer):
    mean, most = 0.0137, 2 * (1 - 1 / 128)
    if close(answer, mean / most) or abs(number(answer) - mean / most) < 6e-5:
        return None
    if close(answer, mean * most):
        return "the other way round: the best centre gives less than the mean."
    if close(answer, mean):
        return "compared across definitions: the mean is best for the Frobenius norm only."
    if number(answer) == 0:
        return "the mean is never worse than a factor of about two: Chapter 1, Theorem (Mean centre)."
    return UNKNOWN


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


CHECKS = {
    "read-constant": read_constant,
    "which-skip": which_skip,
    "next-layer": next_layer,
    "other-centre": other_centre,
    "larger-values": larger_values,
}
