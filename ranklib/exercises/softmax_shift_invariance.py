"""The exercises of ``softmax-shift-invariance``: their checks, and answers that the tests give."""

import math
from numbers import Real

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.model.softmax import attention_matrix


@exercise(
    right=[{"v1T", "11T"}, ["11T", "v1T"]],
    wrong=[({"1vT", "11T"}, "rows as columns"), ({"diag"}, "")],
    malformed=3,
)
def drop(answer):
    if not isinstance(answer, set | list | tuple | frozenset):
        raise Form('a set of names such as {"v1T", "diag"}')
    if not all(isinstance(name, str) for name in answer):
        raise Form('a set of names such as {"v1T", "diag"}')
    g = torch.Generator().manual_seed(0)
    s, v = torch.randn(5, 5, generator=g, dtype=F64), torch.randn(5, generator=g, dtype=F64)
    ones = torch.ones(5, dtype=F64)
    terms = {
        "v1T": v.outer(ones),
        "1vT": ones.outer(v),
        "11T": ones.outer(ones),
        "vvT": v.outer(v),
        "diag": v.diag(),
    }
    p = attention_matrix(s)
    truth = {name for name, term in terms.items() if torch.allclose(attention_matrix(s + term), p)}
    if set(answer) == truth:
        return None
    if "1vT" in answer:
        return "read rows as columns: in 1vᵀ every row is vᵀ, and that ranks the keys."
    return UNKNOWN


@exercise(
    right=[{3}, 3],
    wrong=[({-1, 3}, "negative weights"), ({0, 3, 5}, "limit"), ({5}, "")],
    malformed="3",
)
def between(answer):
    values = {answer} if isinstance(answer, Real) else answer
    if not isinstance(values, set | list | tuple | frozenset) or not all(isinstance(v, Real) for v in values):
        raise Form("a set of numbers")
    old = (0.0, 1.0, 5.0)
    truth = {v for v in (-1, 0, 3, 5, 6) if min(old) < v < max(old)}
    if set(values) == truth:
        return None
    if any(not min(old) <= v <= max(old) for v in values):
        return "allowed negative weights: softmax weights are positive and sum to one."
    if truth < set(values):
        return "the ends need a weight of exactly one: softmax reaches it only in the limit."
    return UNKNOWN


@exercise(
    right=[lambda m, a, w: (m + a * math.tanh(w * a * (m + a)), m + a * math.tanh(w * a * (m - a)))],
    wrong=[
        (lambda m, a, w: tuple(m + a * math.tanh(w * (m + a) * x) for x in (m + a, m - a)), "shares"),
        (lambda m, a, w: (m + a, m - a), ""),
    ],
    malformed=3,
)
def pair(answer):
    one = torch.ones(1, 1, 1, dtype=F64)
    for m, a, w in ((0.7, 0.4, 1.3), (-1.1, 0.9, 0.5), (0.0, 0.6, -2.0)):
        x = torch.tensor([[m + a], [m - a]], dtype=F64)
        truth = SelfAttention(w_q=w * one, w_k=one, w_v=one, w_o=one)(x).flatten().tolist()
        got = [float(v) for v in pair_of(call(answer, m, a, w), "of new positions")]
        if not all(map(close, got, truth)):
            kept = [m + a * math.tanh(w * (m + a) * xi) for xi in (m + a, m - a)]
            if all(map(close, got, kept)):
                return "kept w x m, which the row shares: only the difference of a row's two scores matters."
            return UNKNOWN
    return None


@exercise(
    right=[(0.5, 0.5, 0.9526)],
    wrong=[((0.5, 0.5, 0.4988), "linear"), ((1, 1, 0.9526), "")],
    malformed=0.5,
)
def half(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise Form("three numbers")
    s = torch.tensor([[9.0, 3.0], [3.0, 1.0]], dtype=F64)
    before, after = (float(attention_matrix(t)[0, 0]) for t in (s, s / 2))
    if all(map(close, answer, (0.5, 0.5, after))):
        return None
    if close(answer[2], before / 2):
        return "thought that P is linear in the scores: its rows still sum to one."
    return UNKNOWN


@exercise(
    right=[("P1 = 1", 1.878)],
    wrong=[(("shape", 1.0), "sums"), (("P1 = 1", 1.0), "")],
    malformed=1.878,
)
def axis(answer):
    name, total = pair_of(answer, "of a name and a number")
    wrong = attention_matrix(torch.tensor([[9.0, 3.0], [3.0, 1.0]], dtype=F64).T).T
    if str(name).replace(" ", "").upper() != "P1=1":
        return "checked the shape, not the sums: shape and signs survive, the row sums do not."
    return None if close(total, float(wrong[0].sum())) else UNKNOWN
