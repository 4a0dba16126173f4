"""The exercises of ``masks-and-positions``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, close, exercise, matrix, number
from ranklib.model.positions import relative_bias
from ranklib.model.softmax import attention_matrix, causal_mask, window_mask
from ranklib.theory.block import position_range
from ranklib.theory.masks import asymptotic_rate, difference_map


def uniform(mask):
    return attention_matrix(torch.zeros(mask.shape, dtype=F64), mask)


def told(value, slips):
    """The sentence of the first slip that a number is; the table maps numbers to sentences."""
    return next((sentence for slip, sentence in slips.items() if close(value, slip)), UNKNOWN)


@exercise(
    right=[(1, 3 / 4, 3 / 5, 1 / 2), [0.5, 1, 0.6, 0.75]],
    wrong=[
        ((1, 1, 1, 1), "row sums"),
        ((1, 1 / 2, 1 / 3, 1 / 4), "bonus"),
        ((1, 1 / 4, 1 / 7, 1 / 10), "others"),
        ((1, 1 / 3, 1 / 3, 1 / 3), "mask"),
        ((1, 0, 0, 0), "equal rows"),
        ((1, 0.523, 0.354, 0.268), "ln 3"),
        ((1, 0.9, 0.8, 0.7), ""),
    ],
    malformed=(1, 0.75, 0.6),
)
def mask_eigenvalues(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 4:
        raise Form("four numbers")
    found = sorted(number(value) for value in answer)
    bonus = math.log(3) * torch.eye(4, dtype=F64)
    slips = {
        "these are the row sums; a row sum 1 gives one eigenvalue 1, the others stand on the diagonal.": (1,)
        * 4,
        "these belong to the mask without the bonus.": (1, 1 / 2, 1 / 3, 1 / 4),
        "here the others got the weight 3; the bonus is for oneself.": (1, 1 / 4, 1 / 7, 1 / 10),
        "these belong to the bonus without the mask; who sees how many keys?": (1, 1 / 3, 1 / 3, 1 / 3),
        "these belong to equal rows; the rows of these recipes differ.": (1, 0, 0, 0),
        "a bonus is added to the score: its weight is e to the power ln 3.": [
            math.log(3) / (math.log(3) + k) for k in range(4)
        ],
    }
    truth = torch.linalg.eigvals(attention_matrix(bonus, causal_mask(4))).real.sort().values.tolist()
    if all(map(close, found, truth)):
        return None
    return next((s for s, slip in slips.items() if all(map(close, found, sorted(slip)))), UNKNOWN)


@exercise(
    right=[1 / 3, 0.333],
    wrong=[
        (0.5, "see each other"),
        (0, "prompt alone"),
        (0.25, "slowest"),
        (2 / 3, "others"),
        (1, "itself"),
        (0.9, ""),
    ],
    malformed="1/3",
)
def prefix_mask(answer):
    mask = causal_mask(6)
    mask[0, 1] = True
    slips = {
        1 / 2: "this is the causal pair; here the first two tokens see each other.",
        0: "this is the prompt alone, which is cubic; the tokens after it are slower.",
        1 / 4: "this is an eigenvalue, but not the slowest.",
        2 / 3: "this is the weight of the third token on the others; its difference keeps the rest.",
        1: "this is the eigenvalue of the common row itself; it is left out.",
    }
    value = number(answer)
    return None if close(value, asymptotic_rate(uniform(mask))) else told(value, slips)


@exercise(
    right=[0.762, math.tanh(1)],
    wrong=[
        (math.tanh(0.5), "one row"),
        (math.tanh(2), "quarter"),
        (4, "slope"),
        (1, "mask"),
        (0.5, "penalty"),
        (0.9, ""),
    ],
    malformed="tanh(1)",
)
def penalty_promise(answer):
    place = torch.arange(-4, 5, dtype=F64).abs()
    truth = math.tanh(float(position_range(relative_bias(-place / 2))) / 4)
    slips = {
        math.tanh(0.5): "this takes the range of one row, 2; b is the range of the difference of two rows.",
        math.tanh(
            2
        ): "a quarter, not a half: the half belongs to the bonus of a pair, where b is twice the bonus.",
        4: "this is b; the slope is the tangent of a quarter of it.",
        1: "nothing is masked: b is finite, and the slope is below one.",
        1 / 2: "this is the penalty for one place; look at the two rows that differ most.",
    }
    value = number(answer)
    return None if close(value, truth) else told(value, slips)


@exercise(
    right=[1.67, math.acos(1 - math.log(3)), 1.6696],
    wrong=[
        (math.acos(1 - math.atanh(0.5)), "half of the bonus"),
        (math.acos(math.log(3) - 1), "minus"),
        (math.degrees(math.acos(1 - math.log(3))), "radians"),
        (math.pi / 3, "cosine"),
        (math.pi, "largest"),
        (0.3, ""),
    ],
    malformed="95.7°",
)
def rotary_half(answer):
    value = number(answer)
    truth = math.acos(1 - 2 * math.atanh(0.5))
    slips = {
        math.acos(
            1 - math.atanh(0.5)
        ): "the tangent is of half of the bonus: is 1 - cos φ equal to artanh ½?",
        math.acos(2 * math.atanh(0.5) - 1): "the turning makes the mixed score smaller: 1 minus the cosine.",
        math.degrees(truth): "right in degrees; the answer is wanted in radians.",
        math.pi / 3: "this angle has the cosine one half; it is the slope that is to be one half.",
        math.pi: "this is the largest bonus, 2, and the slope tanh 1.",
    }
    return None if abs(value - truth) < 6e-3 else told(value, slips)


@exercise(
    right=[19, 19.0],
    wrong=[
        (18, "990"),
        (20, "pairs"),
        (2000 / 110, "whole"),
        (10, "narrow"),
        (100, "wide"),
        (55, "mean reach"),
        (9, "pairs"),
        (7, ""),
    ],
    malformed="19 layers",
)
def alternating_windows(answer):
    n, layers, seen = 1001, 0, torch.zeros(1001, dtype=F64)
    seen[-1] = 1
    while not seen[0]:
        reach = 100 if layers % 2 else 10
        seen = (seen @ window_mask(n, reach, causal=True).double() > 0).double()
        layers += 1
    slips = {
        18: "after nine pairs of layers the edge is 990 places back; 1000 are needed.",
        20: "whole pairs are not needed: look at what the first layer of the tenth one does.",
        2000 / 110: "layers are whole.",
        10: "this is for wide layers alone; every other one is narrow.",
        100: "this is for narrow layers alone; every other one is wide.",
        55: "this divides 1000 by the mean reach, 55, wrongly: two layers move the edge by 110 places.",
        9: "these are pairs of layers, not layers.",
    }
    value = number(answer)
    return None if close(value, layers) else told(value, slips)


@exercise(
    right=[
        [[0.4, 0.3, 0.3], [0.42, 0.32, 0.26], [0.41, 0.31, 0.28]],
        torch.tensor([[0.2, 0.4, 0.4], [0.2, 0.5, 0.3], [0.2, 0.5, 0.3]]),
    ],
    wrong=[
        ([[0.3, 0.4, 0.3], [0.1, 0.5, 0.4], [0.5, 0.3, 0.2]], "of the text"),
        ([[0.3, 0.4, 0.3]] * 3, "all rows are equal"),
        ([[0.5, 0.4, 0.3], [0.1, 0.5, 0.4], [0.5, 0.3, 0.2]], "sum to 1"),
        ([[1, 0, 0], [1, 0, 0], [0.5, 0.5, 0]], "positive"),
        ([[0.3, 0.4, 0.3], [0.2, 0.5, 0.3], [0.4, 0.3, 0.3]], "trace"),
        ([[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.4, 0.4, 0.2]], "determinant"),
    ],
    malformed=[[0.5, 0.5], [0.5, 0.5]],
)
def own_nilpotent(answer):
    p = matrix(answer, 3, 3)
    if not (p > 0).all():
        return "all weights are to be positive; a softmax without a mask gives no zeros."
    if ((p.sum(1) - 1).abs() > 1e-6).any():
        return "the weights of a recipe sum to 1; these do not."
    p = p / p.sum(1, keepdim=True)
    q = difference_map(p)
    if q.abs().max() < 1e-6:
        return "all rows are equal: cubic, but one layer is enough; find rows that differ."
    text = torch.tensor([[0.3, 0.4, 0.3], [0.1, 0.5, 0.4], [0.5, 0.3, 0.2]], dtype=F64)
    if (p - text).abs().max() < 1e-6:
        return "these are the recipes of the text; find others."
    if abs(q.trace()) > 1e-6:
        return (
            f"the trace of Q is {float(q.trace()):.2g}; it is the sum of the eigenvalues and has to vanish."
        )
    if (q @ q).abs().max() > 1e-6:
        return "the trace of Q vanishes, its determinant does not: the eigenvalues are a pair of opposite numbers."
    return None
