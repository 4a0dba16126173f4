"""The exercises of ``whole-block``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, call, close, exercise, number, pair_of
from ranklib.model.softmax import attention_matrix


def told(value, slips):
    """The sentence of the first slip that a number is; the table maps numbers to sentences."""
    return next((sentence for slip, sentence in slips.items() if close(value, slip)), UNKNOWN)


@exercise(
    right=[(0.1875, 2.1875), [3 / 16, 35 / 16], (0.188, 2.19)],
    wrong=[
        ((2.1875, 0.1875), "order"),
        ((0, 2), "added"),
        ((0, 6), "norms"),
        ((0.125, 7 / 8 * 2.5), "norms are"),
        ((0, 2.1875), "negative"),
        ((0.1875, 0.1875), "upper"),
        ((1, 2), ""),
    ],
    malformed=2.1875,
)
def block_sides(answer):
    low, high = (number(value) for value in pair_of(answer, "(lower, upper)"))
    s_1, s_2, lam, tau = 2, 4, 3, 1 / 2
    truth = (1 - lam / s_2) * (1 - tau / s_1), (1 + lam / s_2) * (1 + tau / s_1)
    if close(low, truth[0]) and close(high, truth[1]):
        return None
    swapped = (1 - lam / s_1) * (1 - tau / s_2), (1 + lam / s_1) * (1 + tau / s_2)
    slips = [
        (truth[::-1], "the two sides are right, their order is not: the lower one first."),
        (
            (0, 1 + lam / s_2 + tau / s_1),
            "the shares were added; the second branch acts on what the first one left.",
        ),
        ((0, (1 + lam) * (1 + tau)), "the norms were left out: each branch sees the stream divided by s."),
        ((swapped[0], swapped[1]), "the norms are exchanged: s_1 belongs to attention."),
        (((1 / 2) * (1 / 4), 7 / 8 * 2.5), "the norms are exchanged: s_1 belongs to attention."),
    ]
    for slip, sentence in slips:
        if close(low, max(slip[0], 0)) and close(high, slip[1]):
            return sentence
    if close(high, truth[1]):
        return "the upper side is right; no factor below is negative here, so the lower one is not 0."
    if close(low, truth[0]):
        return "the lower side is right; the upper side has plus signs."
    return UNKNOWN


@exercise(
    right=[lambda tau, lam, s: 1 + (tau + lam) / s, lambda tau, lam, s: (s + tau + lam) / s],
    wrong=[
        (lambda tau, lam, s: (1 + tau / s) * (1 + lam / s), "one branch after the other"),
        (lambda tau, lam, s: (tau + lam) / s, "skip"),
        (lambda tau, lam, s: 1 + tau + lam, "norm"),
        (lambda tau, lam, s: 1 + tau * lam / s, "add"),
        (lambda tau, lam, s: 1 - (tau + lam) / s, "lower"),
        (lambda tau, lam, s: 1 + (tau + lam) * s, "divides"),
        (lambda tau, lam, s: 7.0, ""),
    ],
    malformed=1.5,
)
def parallel_block(answer):
    slips = {
        "this is the block with one branch after the other; here no branch sees what the other one adds.": lambda t, l, s: (
            (1 + t / s) * (1 + l / s)
        ),
        "the skip is missing: the old difference is there too.": lambda t, l, s: (t + l) / s,
        "the norm is missing: both branches see the tokens divided by s.": lambda t, l, s: 1 + t + l,
        "the branches add; neither is applied to the other.": lambda t, l, s: 1 + t * l / s,
        "this is the lower side.": lambda t, l, s: 1 - (t + l) / s,
        "a norm divides by s.": lambda t, l, s: 1 + (t + l) * s,
    }
    cases = [(0.5, 3.0, 2.0), (0.2, 0.7, 0.5), (1.5, 0.3, 4.0)]
    got = [number(call(answer, *case)) for case in cases]
    if all(close(g, 1 + (t + l) / s) for g, (t, l, s) in zip(got, cases)):
        return None
    for sentence, slip in slips.items():
        if all(close(g, slip(*case)) for g, case in zip(got, cases)):
            return sentence
    return UNKNOWN


@exercise(
    right=[22, 22.0],
    wrong=[
        (23, "safe side"),
        (math.log(0.5) / math.log(0.99 * 0.98), "whole"),
        (68, "attention alone"),
        (34, "MLP alone"),
        (16, "every block takes away three per cent of the first"),
        (11, "two factors"),
        (100, ""),
    ],
    malformed="22 blocks",
)
def halving_depth(answer):
    blocks, left = 0, 1.0
    while left * 0.99 * 0.98 >= 0.5:
        blocks, left = blocks + 1, left * 0.99 * 0.98
    value = number(answer)
    if abs(value - blocks) < 1e-6:
        return None
    if value % 1:
        return "blocks are whole."
    slips = {
        23: "after 23 blocks a little less than half is guaranteed; round to the safe side.",
        68: "this is for attention alone; the MLP's factor is missing.",
        34: "this is for the MLP alone; attention's factor is missing.",
        16: "it is not so that every block takes away three per cent of the first diameter: factors multiply.",
        17: "it is not so that every block takes away three per cent of the first diameter: factors multiply.",
        11: "a block has two factors, and both were counted twice.",
    }
    return told(value, slips)


@exercise(
    right=[5.14, math.log(171), 5.1417],
    wrong=[
        (171, "weight"),
        (math.log(9), "half"),
        (math.log(180), "ten"),
        (math.log(19), "nine others"),
        (math.log10(171), "natural"),
        (math.log(9 * 0.05 / 0.95), "beside"),
        (1.0, ""),
    ],
    malformed="ln 171",
)
def sink_bonus(answer):
    low, high = 0.0, 20.0
    for _ in range(80):  # the bonus at which the weight beside the sink is 5 %
        middle = (low + high) / 2
        s = torch.zeros(1, 10, dtype=F64)
        s[0, 0] = middle
        beside = 1 - float(attention_matrix(s)[0, 0])
        low, high = (middle, high) if beside > 0.05 else (low, middle)
    value = number(answer)
    if abs(value - low) < 6e-3:
        return None
    slips = {
        171: "this is the weight of the sink before normalising; the bonus is its logarithm.",
        math.log(9): "with this bonus the sink has one half of the weight.",
        math.log(180): "there are nine other tokens, not ten.",
        math.log(19): "this is for one other token; there are nine others.",
        math.log10(171): "softmax uses the natural exponential.",
        math.log(9 * 0.05 / 0.95): "here the sink has 5 %; that is to be the weight beside it.",
    }
    return told(value, slips)


@exercise(
    right=[-1.313, -1 / math.tanh(1), -1.31],
    wrong=[
        (1.313, "sign"),
        (-1, "tanh 1"),
        (-math.tanh(1), "inverse"),
        (-1 / math.tanh(2), "score"),
        (-1 / math.tanh(0.5), "score"),
        (0, "skip alone"),
        (3.0, ""),
    ],
    malformed="-1/tanh 1",
)
def cancelling_branch(answer):
    truth = -1 / math.tanh(1)
    value = number(answer)
    if abs(value - truth) < 6e-3:
        return None
    slips = {
        -truth: "the sign: this one doubles the pair.",
        -1: "the branch gives v tanh 1, not v.",
        -math.tanh(1): "the inverse is wanted: v tanh 1 has to be -1.",
        -1 / math.tanh(2): "the score of the pair ±1 is 1, and the tangent is of w a², not of twice that.",
        -1
        / math.tanh(0.5): "the score of the pair ±1 is 1, and the tangent is of w a², not of half of that.",
        0: "this is the skip alone: nothing is cancelled.",
    }
    return told(value, slips)


@exercise(
    right=[lambda s: 1 / s],
    wrong=[
        (lambda s: 1.0, "norm stands outside"),
        (lambda s: s, "divides"),
        (lambda s: 0.0, "skip"),
        (lambda s: 2 / s, "vanishes"),
        (lambda s: 1 / s**2, "one norm"),
        (lambda s: 1 + 1 / s, "pre-norm"),
        (lambda s: 9.0, ""),
    ],
    malformed=1,
)
def post_factor(answer):
    slips = {
        "the norm stands outside: it stretches the skip too.": lambda s: 1.0,
        "a norm divides by s.": lambda s: s,
        "this is attention alone; the skip is inside the norm.": lambda s: 0.0,
        "attention's share vanishes with the differences: the step before the norm has slope 1.": lambda s: (
            2 / s
        ),
        "there is one norm in this step.": lambda s: 1 / s**2,
        "this is how a pre-norm branch would enter.": lambda s: 1 + 1 / s,
    }
    cases = (0.5, 1.7, 4.0)
    got = [number(call(answer, s)) for s in cases]
    if all(close(g, 1 / s) for g, s in zip(got, cases)):
        return None
    for sentence, slip in slips.items():
        if all(close(g, slip(s)) for g, s in zip(got, cases)):
            return sentence
    return UNKNOWN
