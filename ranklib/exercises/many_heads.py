"""Checks for the exercises of Chapter 5."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, number, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.paper.centres import mean_residual


def two_residuals(answer):
    def pair(*gap):
        gap = torch.tensor(gap, dtype=F64)
        return float(mean_residual(torch.stack([gap, -gap])))  # of two tokens the midpoint is a best centre

    if close(answer, pair(2, 1)):
        return None
    if close(answer, pair(1, 1) + pair(1, 0)):
        return "trusted the name norm: residuals have no triangle inequality, the sum of sizes is no bound."
    return UNKNOWN


def no_overlap(answer):
    m = number(answer)
    truth = 255**2 + 1  # sqrt(1 + sqrt m) > 16
    if m == truth:
        return None
    if m == math.inf:
        return "blamed the overlap: a long row meets a tall column, in whichever columns they stand."
    if m == 64514:
        return "kept the overlap: that is the first m of the example, where the column is sqrt m + 1."
    if m == truth - 1:
        return "beaten means exceeded: at this m the quotient tends to exactly 1."
    return UNKNOWN


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


CHECKS = {
    "two-residuals": two_residuals,
    "no-overlap": no_overlap,
    "heads-pair": heads_pair,
    "order-eleven": order_eleven,
    "wider": wider,
}
