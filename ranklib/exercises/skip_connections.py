"""The exercises of ``skip-connections``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, call, close, exercise, matrix, number, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer
from ranklib.paper.centres import deviations


@exercise(
    right=[1240, 1235, 1237.5],
    wrong=[
        (2, "without the skip"),
        (57, "rate per layer"),
        (2475, "factor 2"),
        (4950, "the factor 4"),
        (12.5, "rate per layer"),
        (310, "twice the factor"),
        (1600, ""),
    ],
    malformed="many",
)
def slow_rate(answer):
    a, truth = 0.1, 0
    while a > 0.01:
        a, truth = a - 4 * a**3, truth + 1
    layers = number(answer)

    def near(value):
        return math.isclose(layers, value, rel_tol=0.03)

    if math.isclose(layers, truth, rel_tol=0.02):
        return None
    if layers < 5:
        return "that is the course without the skip, which cubes."
    if layers < 100:
        return "assumed a rate per layer: the share that a layer takes away is 4a², and falls with a."
    if near(2 * truth):
        return "lost a factor 2: a² falls by twice the share that a loses."
    if near(4 * truth):
        return "left out the factor 4 of this map: 1/a² grows by 8, not by 2."
    if near(truth / 4):
        return "took twice the factor twice: 1/a² grows by 2 times 4."
    return UNKNOWN


@exercise(
    right=[66, 66.0],
    wrong=[
        (65, "not yet below"),
        (69, "for the logarithm"),
        (10, "of the first"),
        (33, "of the diameter"),
        (500000, "slope one"),
        (2, "slope zero"),
        (float("inf"), "every layer takes"),
        (200, ""),
    ],
    malformed="many",
)
def weaker_skip(answer):
    layers, rate = number(answer), -math.log(0.9)
    truth = math.ceil(math.log(1000) / rate)
    if layers == truth:
        return None
    if layers == math.inf:
        return "every layer takes a tenth of what is left: the diameter falls below any bound."
    if truth - 1 <= layers < truth:
        return "nearly: after 65 layers it is not yet below a thousandth; round up."
    if math.isclose(layers, math.log(1000) / 0.1, rel_tol=0.02):
        return "took 0.1 for the logarithm of 1/0.9, which is 0.105."
    if math.isclose(layers, 10, rel_tol=0.05):
        return "each layer takes a tenth of what is left, not of the first diameter."
    if math.isclose(layers, truth / 2, rel_tol=0.02):
        return "asked is the fall of the diameter, not of its square."
    if layers > 10_000:
        return "that is the slow law, for slope one; here the slope is 0.9."
    if layers < 5:
        return "that is the cube, for slope zero; here the slope is 0.9."
    return UNKNOWN


def cancelling(m, a):
    return a * a / m - a, a * a / m + a


@exercise(
    right=[cancelling, lambda m, a: [a * a / m - a, a * a / m + a]],
    wrong=[
        (lambda m, a: (-a, a), "common part"),
        (lambda m, a: (a - m, m + a), "leaves a difference"),
        (lambda m, a: (-m - a, a - m), "minus the input"),
        (lambda m, a: (a * a / m + a, a * a / m - a), "doubles"),
        (lambda m, a: (a * a - a, a * a + a), "divide"),
        (lambda m, a: (0, 0), "nothing at all"),
        (lambda m, a: (1, 2), ""),
    ],
    malformed=(1, 2),
)
def orthogonal_columns(answer):
    for m, a in ((2.0, 1.0), (5.0, 3.0), (-1.0, 4.0)):
        x = torch.tensor([[m + a], [m - a]], dtype=F64)
        c = matrix([[v] for v in pair_of(call(answer, m, a), "of numbers")], 2, 1)
        size = float(x.norm() * c.norm()) + 1
        orthogonal = abs(float((x * c).sum())) < 1e-6 * size
        cancels = float(deviations(x + c).norm()) < 1e-6 * size
        if orthogonal and cancels:
            continue
        if not c.any():
            return "this adds nothing at all: it is orthogonal, and the difference stays."
        if torch.allclose(c, -x):
            return (
                "this is minus the input: it makes the tokens equal, and is as far from orthogonal as can be."
            )
        if torch.allclose(c, torch.tensor([[a * a - a], [a * a + a]], dtype=F64)):
            return "the common part has the product 2mc with X: divide a² by m."
        if cancels:
            return "this makes the tokens equal, but it is not orthogonal to X: choose the common part."
        if orthogonal:
            return "took orthogonal for harmful: this is orthogonal, but leaves a difference."
        if torch.allclose(c[0] - c[1], torch.tensor([2 * a], dtype=F64)):
            return "this doubles the difference: C must be higher where X is lower."
        return UNKNOWN
    return None


@exercise(
    right=[(0, 6), [0.0, 6.0]],
    wrong=[
        ((0, 40 / 6), "instead of its difference"),
        ((0, 3), "changed places"),
        ((3, 6), "still apart"),
        ((-6, 0), "sign"),
        ((0, math.inf), "overshoots"),
        ((0, 12), "half-gap"),
        ((2, 3.5), ""),
    ],
    malformed=2,
)
def lowered(answer):
    low, high = (number(value) for value in pair_of(answer, "of ends"))
    if close(low, 0) and close(high, 6):
        return None
    if high == math.inf or low == -math.inf:
        return "a large C overshoots: the tokens change places and move apart again."
    if close(low, 0) and close(high, 40 / 6):
        return "used X instead of its difference: the common part does not matter."
    if close(low, 0) and close(high, 3):
        return "stopped where the tokens are equal: beyond that they have changed places, still closer."
    if close(low, 3) and close(high, 6):
        return "left out the contributions that leave the tokens still apart, but closer."
    if close(low, -6) and close(high, 0):
        return "mind the sign: for negative t, C is higher where X is higher."
    if close(low, 0) and close(high, 12):
        return "took the gap for the half-gap: it is 3 before, and 3 - t after."
    return UNKNOWN


@exercise(
    right=[1.34e-3, 0.00134],
    wrong=[
        (1.4e-20, "second crush"),
        (0, "second crush"),
        (6.71e-4, "first half-gap"),
        (2.68e-3, "whole gap"),
        (2 * (1 - math.tanh(2)), "a², not of a"),
        (2 * (1 + math.tanh(4)), "apart"),
        (1.0, ""),
    ],
    malformed="small",
)
def second_crush(answer):
    one, a = torch.ones(1, 1, 1, dtype=F64), torch.tensor([[2.0], [-2.0]], dtype=F64)
    layer = Layer(SelfAttention(w_q=-one, w_k=one, w_v=one, w_o=one))
    first = layer(a)[0, 0].item() / 2
    for _ in range(5):
        a = layer(a)
    truth, size = a[0, 0].item(), number(answer)
    if close(size, truth):
        return None
    if 0 <= size < 1e-6:
        return "counted on a second crush: after the first, w a² is tiny and tanh of it too."
    if close(size, first):
        return "that is the factor of the first layer; multiply it by the first half-gap."
    if close(size, 2 * truth):
        return "that is the whole gap; a is half of it."
    if close(size, 2 * (1 - math.tanh(2))):
        return "took tanh of a; the scores are products, so it is tanh of a², not of a."
    if size > 2:
        return "took the head for one that pulls apart: with w = -1 it pulls the pair together."
    return UNKNOWN


@exercise(
    right=[(1, 0.5)],
    wrong=[
        ((0.5, 0.5), "copied"),
        ((1, 1), "too careful"),
        ((0.5, 1), "other way round"),
        ((0, 0), "unscaled"),
        ((1, 0), "random signs"),
        ((2, 0.5), "equal signs"),
        ((3, 4), ""),
    ],
    malformed=1,
)
def branch_scales(answer):
    same, random = (number(value) for value in pair_of(answer, "of exponents"))
    if close(same, 1) and close(random, 0.5):
        return None
    if close(same, 0.5) and close(random, 1):
        return "the right exponents, the other way round: equal signs need the smaller branch."
    if close(same, 0.5) and close(random, 0.5):
        return "copied 1/√L: equal signs add up, and L steps of size 1/√L grow without bound."
    if same == 0 and random == 0:
        return "that is unscaled: with L layers the logarithm grows like L, or like √L."
    if close(same, 1) and close(random, 1):
        return "too careful: random signs add in quadrature, so with 1/L nothing happens in the limit."
    if close(same, 1):
        return "(i) is right; for random signs add the variances of L terms of size L^-p."
    if close(random, 0.5):
        return "(ii) is right; equal signs simply add up: L terms of size L^-p."
    return UNKNOWN
