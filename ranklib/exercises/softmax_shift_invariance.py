"""The exercises of ``softmax-shift-invariance``: their checks, and answers that the tests give."""

import math
import re

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, matrix, number, pair_of
from ranklib.measures.attention import dobrushin
from ranklib.model.attention import SelfAttention
from ranklib.model.softmax import attention_matrix

INTEGERS = torch.tensor([[9.0, 3.0], [3.0, 1.0]], dtype=F64)
"""The scores of the tokens 3 and 1."""


@exercise(
    right=[{"v1T", "11T"}, ["11T", "v1T"]],
    wrong=[
        ({"1vT", "11T"}, "rows as columns"),
        ({"v1T", "11T", "diag"}, "one entry of each row"),
        ({"v1T", "11T", "vvT"}, "a multiple of v"),
        ({"v1T"}, "another one drops"),
        ({"11T"}, "may differ"),
        (set(), "may differ"),
        ({"v"}, "names among"),
    ],
    malformed=3,
)
def drop(answer):
    if not isinstance(answer, set | list | tuple | frozenset):
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
    truth = [name for name, term in terms.items() if torch.allclose(attention_matrix(s + term), p)]
    given = {str(name) for name in answer}
    if given == set(truth):
        return None
    if not given <= set(terms):
        return f"use the names among {', '.join(terms)}."
    slips = {
        "1vT": "read rows as columns: in 1vᵀ every row is vᵀ, and that ranks the keys.",
        "diag": "diag(v) changes one entry of each row, and so its share.",
        "vvT": "row i of vvᵀ is a multiple of v: it is not constant.",
    }
    if said := [text for name, text in slips.items() if name in given]:
        return said[0]
    return (
        "another one drops too." if "v1T" in given else "each row must be constant, but the rows may differ."
    )


@exercise(
    right=[0.4, 0.4004],
    wrong=[
        (0.8, "half"),
        (0.3, "largest single"),
        (math.sqrt(0.2), "squares"),
        (0.6, "in common"),
        (0.2, "once"),
        (0.0, "are not equal"),
        (1.4, "between 0 and 1"),
        (0.5, ""),
    ],
    malformed="0.4",
)
def moved_weight(answer):
    p, q = torch.tensor([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]], dtype=F64)
    truth = float(dobrushin(torch.stack([p, q])))
    slips = {
        2 * truth: "this is the sum of the absolute differences: take half of it.",
        float(
            (p - q).abs().max()
        ): "this is the largest single difference; add what is too much on all keys.",
        float((p - q).norm()): "this is the root of the sum of squares; add absolute values.",
        1 - truth: "this is what the two have in common.",
        truth / 2: "halve the sum once, not twice.",
        0.0: "the recipes are not equal: the differences must not cancel, take absolute values.",
    }
    if close(answer, truth):
        return None
    said = next((text for slip, text in slips.items() if close(answer, slip)), None)
    return said or (UNKNOWN if 0 <= number(answer) <= 1 else "a total variation lies between 0 and 1.")


@exercise(
    right=[(0.25, 0.25, 0.818), (0.25, 0.25, 0.82), (1 / 4, 1 / 4, 1 / (1 + math.exp(-1.5)))],
    wrong=[
        ((0.25, 0.25, 0.2494), "linear"),
        ((1, 1, 0.818), "carry the factor"),
        ((0.0625, 0.25, 0.818), "quadratic in the differences"),
        ((0.25, 1, 0.818), "carry the factor"),
        ((0.25, 0.25, 0.9975), "changes"),
        ((0.0625, 0.0625, 0.593), "root"),
        ((4, 4, 1), "divided"),
        ((0.25, 0.25, 0.8), "three digits"),
        ((0.5, 0.5, 0.7), ""),
    ],
    malformed=0.25,
)
def quarter(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise Form("three numbers")
    e, r, weight = map(number, answer)
    before, after = (float(attention_matrix(INTEGERS / k)[0, 0]) for k in (1, 4))
    if close(e, 0.25) and close(r, 0.25):
        if close(weight, after):
            return None
        if close(weight, before / 4):
            return "thought that P is linear in the scores: its rows still sum to one."
        if close(weight, before):
            return "P changes: the two scores of the first row are no longer 6 apart."
        return "give P to three digits." if abs(weight - after) < 2e-2 else UNKNOWN
    if close(e, 1 / 16) and close(r, 1 / 16):
        return "the scores are divided by the root of the width."
    if close(e, 1 / 16):
        return "E is quadratic in the differences, but these have not changed; the scores have."
    if close(e, 4) or close(r, 4):
        return "the scores are divided by the root, so they become smaller."
    if close(e, 1) or close(r, 1):
        return "E and r both carry the factor 1/√d_qk."
    return UNKNOWN


def _moved(m, a, slope):
    """New positions of m + a and m - a if the weights of token x differ by tanh(slope(x))."""
    return [m + a * math.tanh(slope(x)) for x in (m + a, m - a)]


SLIPS = [
    (lambda m, a, w, b_q, b_k: _moved(m, a, lambda x: a * w * x), "the query bias stays: it ranks the keys."),
    (
        lambda m, a, w, b_q, b_k: _moved(m, a, lambda x: (w * x + b_q) * (a + b_k)),
        "the key bias drops: both scores of a row have it.",
    ),
    (
        lambda m, a, w, b_q, b_k: _moved(m, a, lambda x: (w * x + b_q) * (m + a)),
        "kept what the row shares: only the difference of a row's two scores matters.",
    ),
    (
        lambda m, a, w, b_q, b_k: _moved(m, a, lambda x: 2 * a * (w * x + b_q)),
        "the weights differ by tanh of half the difference of the scores.",
    ),
    (
        lambda m, a, w, b_q, b_k: _moved(m, a, lambda x: a * (w * x + b_q))[::-1],
        "the order: m + a comes first.",
    ),
    (
        lambda m, a, w, b_q, b_k: [v - m for v in _moved(m, a, lambda x: a * (w * x + b_q))],
        "the mean is missing: an average of m + a and m - a is m plus something.",
    ),
    (lambda m, a, w, b_q, b_k: [m + a, m - a], "these are the old positions."),
]
"""Wrong two-token maps, and what is said about each."""


@exercise(
    right=[
        lambda m, a, w, b_q, b_k: tuple(_moved(m, a, lambda x: a * (w * x + b_q))),
        lambda m, a, w, b_q, b_k: _moved(m, a, lambda x: a * w * x + a * b_q),
    ],
    wrong=[(function, re.escape(said)) for function, said in SLIPS]
    + [(lambda m, a, w, b_q, b_k: (0, 0), "")],
    malformed=3,
)
def pair(answer):
    one = torch.ones(1, 1, 1, dtype=F64)
    right, slips = True, SLIPS
    for m, a, w, b_q, b_k in (
        (0.7, 0.4, 1.3, 0.5, -0.8),
        (-1.1, 0.9, 0.5, -0.4, 0.6),
        (0.2, 0.6, -2.0, 1.0, 0.3),
    ):
        x = torch.tensor([[m + a], [m - a]], dtype=F64)
        bias = {"b_q": b_q * one[0], "b_k": b_k * one[0]}
        truth = SelfAttention(w_q=w * one, w_k=one, w_v=one, w_o=one, **bias)(x).flatten().tolist()
        got = [number(v) for v in pair_of(call(answer, m, a, w, b_q, b_k), "of new positions")]
        right = right and all(map(close, got, truth))
        slips = [(f, said) for f, said in slips if all(map(close, got, f(m, a, w, b_q, b_k)))]
    return None if right else slips[0][1] if slips else UNKNOWN


@exercise(
    right=[("P1 = 1", 1.878), ["P1=1", 1.8783]],
    wrong=[
        (("shape", 1.878), "shape survives"),
        (("positive", 1.878), "signs survive"),
        (("P1 = 1", 1.0), "columns sum to one"),
        (("P1 = 1", 0.1217), "second row"),
        (("P1 = 1", 0.9975), "one entry"),
        (("P1 = 1", 2), "three digits"),
        (("P1 = 1", 1.5), ""),
    ],
    malformed=1.878,
)
def axis(answer):
    name, total = pair_of(answer, "of a name and a number")
    wrong = attention_matrix(INTEGERS.T).T
    name = str(name).replace(" ", "").upper()
    if name == "SHAPE":
        return "checked the shape, not the sums: the shape survives, the row sums do not."
    if name == "POSITIVE":
        return "signs survive any division by a positive sum; the row sums do not."
    if name != "P1=1":
        return 'name one of "shape", "positive", "P1 = 1".'
    first, second = wrong.sum(1).tolist()
    if close(total, first):
        return None
    slips = {
        1.0: "now the columns sum to one, and the first row does not.",
        second: "this is the sum of the second row.",
        float(wrong[0, 0]): "this is one entry of the first row: add the other.",
        2.0: "near: give three digits.",
    }
    nearest = min(slips, key=lambda slip: abs(slip - number(total)))
    return slips[nearest] if close(total, nearest) else UNKNOWN


@exercise(
    right=[
        [[0, 1, 2], [5, 6, 7], [-1, 0, 1]],
        torch.tensor([[0.0, 0.0, 1.0], [2.0, 2.0, 3.0], [4.0, 4.0, 5.0]]),
    ],
    wrong=[
        ([[1, 2, 3], [1, 2, 3], [4, 5, 6]], "two rows of scores are equal"),
        ([[1, 1, 1], [2, 2, 2], [3, 3, 3]], "uniform"),
        ([[0, 5, -1], [1, 6, 0], [3, 9, 7]], "recipes differ"),
        ([[0, 1, 2], [0, 2, 4], [0, 3, 6]], "multiplied"),
        ([[0, 1, 2], [1, 2, 0], [2, 0, 1]], "order"),
        ([[0, 1, 0], [0, 0, 2], [1, 1, 1]], "recipes differ"),
    ],
    malformed=[[1, 2], [3, 4]],
)
def equal_rows(answer):
    s = matrix(answer, rows=3, columns=3)
    p = attention_matrix(s)
    apart = float(dobrushin(p))
    if apart > 1e-9:
        if torch.linalg.matrix_rank(s - s.mean(1, keepdim=True), rtol=1e-9) == 1:
            return (
                "the rows are multiplied by different numbers; softmax ignores only what is added to a row."
            )
        if torch.allclose(s.sort().values, s.sort().values[:1].expand(3, 3)):
            return (
                "the rows have the same scores in another order: the weights are the same, the keys are not."
            )
        return f"the recipes differ, by {apart:.3g} in total variation; add one number to a whole row."
    if torch.pdist(s).min() < 1e-9:
        return "two rows of scores are equal; add another number to each row."
    if (p - 1 / 3).abs().max() < 1e-9:
        return "the recipes are uniform: let the scores of a row differ."
    return None
