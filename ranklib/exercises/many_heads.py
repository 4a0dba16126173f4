"""The exercises of ``many-heads``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.paper.centres import mean_residual


@exercise(
    right=[math.sqrt(12), 3.464],
    wrong=[(2 + math.sqrt(2), "norm"), (12, "")],
    malformed="2",
)
def two_residuals(answer):
    def pair(*gap):
        gap = torch.tensor(gap, dtype=F64)
        return float(mean_residual(torch.stack([gap, -gap])))  # of two tokens the midpoint is a best centre

    if close(answer, pair(2, 1)):
        return None
    if close(answer, pair(1, 1) + pair(1, 0)):
        return "trusted the name norm: residuals have no triangle inequality, the sum of sizes is no bound."
    return UNKNOWN


def apart(lam, w_1, w_inf):
    t = [math.tanh(value / 2) for value in lam]
    columns, rows = (sum(s * w for s, w in zip(t, norms, strict=True)) for norms in (w_1, w_inf))
    return math.sqrt(columns * rows)


def head_by_head(lam, w_1, w_inf):
    return sum(math.tanh(s / 2) * math.sqrt(a * b) for s, a, b in zip(lam, w_1, w_inf, strict=True))


@exercise(
    right=[apart],
    wrong=[(head_by_head, "head by head"), (lambda *a: apart(*a) ** 2, "root"), (lambda *a: 1.0, "")],
    malformed=3,
)
def heads_pair(answer):
    cases = (
        ([0.5, 2.0], [1.0, 7.0], [3.0, 0.5]),
        ([1.0, 0.2, 3.0], [2.0, 9.0, 1.0], [5.0, 0.1, 4.0]),
    )
    for lam, w_1, w_inf in cases:
        t = [math.tanh(value / 2) for value in lam]
        columns, rows = (sum(map(float.__mul__, t, w)) for w in (w_1, w_inf))
        got = number(call(answer, lam, w_1, w_inf))
        if close(got, math.sqrt(columns * rows)):
            continue
        if close(got, sum(s * math.sqrt(a * b) for s, a, b in zip(t, w_1, w_inf, strict=True))):
            return "took the roots head by head: add columns and rows apart, and take the root last."
        if close(got, columns * rows):
            return "forgot the root: the residual is the root of columns times rows."
        return UNKNOWN
    return None


@exercise(
    right=[(5, -4, 1), [-10, 8, -2]],
    wrong=[((2, -1, 0), "order 7"), ((1, 1, 1), "order 3"), ((0, 0, 0), "nothing")],
    malformed=16,
)
def order_eleven(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise Form("three numbers")
    v, w = [number(value) for value in answer], (1, 2, 3)
    moments = [sum(a * b**k for a, b in zip(v, w, strict=True)) for k in (1, 3, 5)]
    zero = 1e-6 * max(map(abs, v))
    if not any(v):
        return "values of zero make a head that does nothing; find others."
    if all(abs(m) <= zero for m in moments[:2]):
        return None
    if abs(moments[0]) <= zero:
        return "this has order 7: the sum of v w³ must vanish as well."
    return "this has order 3, as almost every choice has: the sum of v w must vanish, to begin with."


@exercise(
    right=[(0.7071, 1), (2**-0.5, 1.0)],
    wrong=[((0.5, 1), "root"), ((0.7071, 0.7071), "two things"), ((2, 1), "")],
    malformed=1,
)
def wider(answer):
    same_product, same_quotient = (number(value) for value in pair_of(answer, "of factors"))
    one = torch.ones(1, 1, 1, dtype=F64)
    x = torch.tensor([[1.0], [-1.0]], dtype=F64)

    def score(w_qk, dim_qk):
        w_k = torch.zeros(1, 1, dim_qk, dtype=F64)
        w_k[..., 0] = 1
        return SelfAttention(w_q=w_qk * w_k, w_k=w_k, w_v=one, w_o=one).scores(x)[0, 0, 0].item()

    before = score(1.0, 2)
    truth = score(1.0, 4) / before, score(2**0.5, 4) / before
    if close(same_product, truth[0]) and close(same_quotient, truth[1]):
        return None
    if close(same_product, truth[0] ** 2):
        return "forgot the root: scores are divided by the root of d_qk."
    if close(same_product, same_quotient):
        return "changed two things at once: (i) keeps W_QK, (ii) lets it grow with the root of d_qk."
    return UNKNOWN
