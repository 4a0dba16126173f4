"""The exercises of ``skip-connections``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, call, close, exercise, matrix, number, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer
from ranklib.paper.centres import deviations


@exercise(
    right=[5000, 4990],
    wrong=[(14, "rate per layer"), (10_000, "factor 2"), (1000, "")],
    malformed="many",
)
def slow_rate(answer):
    a, truth = 0.5, 0
    while a > 0.01:
        a, truth = a - a**3, truth + 1
    layers = number(answer)
    if math.isclose(layers, truth, rel_tol=0.02):
        return None
    if layers < 100:
        return "assumed a rate per layer: the share that a layer takes away is a², and falls with a."
    if math.isclose(layers, 2 * truth, rel_tol=0.03):
        return "lost a factor 2: 1/a² grows by 2, not by 1, in every layer."
    return UNKNOWN


def cancelling(m, a):
    return a * a / m - a, a * a / m + a


@exercise(
    right=[cancelling],
    wrong=[
        (lambda m, a: (-a, a), "common part"),
        (lambda m, a: (a - m, m + a), "leaves a residual"),
        (lambda m, a: (1, 1), ""),
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
        if cancels:
            return "this cancels the residual, but it is not orthogonal to X: choose the common part."
        if orthogonal:
            return "took orthogonal for harmful: this is orthogonal, but leaves a residual."
        return UNKNOWN
    return None


@exercise(
    right=[(0, 2)],
    wrong=[((0, 10), "instead of its residual"), ((0, 1), "changed places"), ((2, 3), "")],
    malformed=2,
)
def lowered(answer):
    low, high = (number(value) for value in pair_of(answer, "of ends"))
    x = torch.tensor([[3.0], [1.0]], dtype=F64)

    def falls(t):
        c = torch.tensor([[5.0 - t], [5.0 + t]], dtype=F64)
        return bool(deviations(x + c).norm() < deviations(x).norm() - 1e-12)

    inside = [low + (high - low) * s for s in (0.001, 0.5, 0.999)]
    outside = [low - 0.01, high + 0.01, low - 5, high + 5]
    if low < high and all(map(falls, inside)) and not any(map(falls, outside)):
        return None
    if close(high, 10):
        return "used X instead of its residual: the common part 5 does not matter."
    if close(low, 0) and close(high, 1):
        return "stopped where the tokens are equal: beyond that they have changed places, still closer."
    return UNKNOWN


@exercise(
    right=[2.03e-4, 2.0e-4],
    wrong=[(1.4e-20, "second crush"), (9.08e-5, "first half-gap"), (1.0, "")],
    malformed="small",
)
def second_crush(answer):
    one, a = torch.ones(1, 1, 1, dtype=F64), torch.tensor([[5**0.5], [-(5**0.5)]], dtype=F64)
    layer = Layer(SelfAttention(w_q=-one, w_k=one, w_v=one, w_o=one))
    first = layer(a)[0, 0].item() / 5**0.5
    for _ in range(5):
        a = layer(a)
    truth = a[0, 0].item()
    if math.isclose(number(answer), truth, rel_tol=0.02):
        return None
    if 0 <= number(answer) < 1e-6:
        return "counted on a second crush: after the first, w a² is tiny and tanh of it too."
    if math.isclose(number(answer), first, rel_tol=0.02):
        return "that is the factor of the first layer; multiply it by the first half-gap."
    return UNKNOWN


@exercise(
    right=[(1, 0.5)],
    wrong=[((0.5, 0.5), "copied"), ((1, 1), "too careful"), ((2, 2), "")],
    malformed=1,
)
def branch_scales(answer):
    same, random = (number(value) for value in pair_of(answer, "of exponents"))
    depths = 1e6, 1e8

    def steady(size):
        small, large = map(size, depths)
        return 0.1 < small < 10 and math.isclose(small, large, rel_tol=0.05)

    right = (
        steady(lambda depth: depth * math.log1p(depth**-same)),
        steady(lambda depth: math.sqrt(depth) * math.atanh(min(depth**-random, 0.999))),
    )
    if all(right):
        return None
    if close(same, 0.5) and right[1]:
        return "copied 1/√L: equal signs add up, and L steps of size 1/√L grow without bound."
    if right[0] and close(random, 1):
        return "too careful: random signs add in quadrature, so with 1/L nothing happens in the limit."
    return UNKNOWN
