"""The exercises of ``printed-theorems``: their checks, and answers that the tests give."""

import math

from ranklib.exercises.answers import UNKNOWN, call, close, exercise, number
from ranklib.paper.counterexamples import row_wise_l1


@exercise(
    right=[65026],
    wrong=[(math.inf, "overlap"), (64514, "kept the overlap"), (65025, "exceeded"), (65536, "")],
    malformed="never",
)
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


@exercise(
    right=[18],
    wrong=[(17, "limit"), (16, "below"), (math.inf, "falls"), (30, "")],
    malformed="seventeen",
)
def first_copies(answer):
    k = number(answer)

    def first(w):
        sizes = range(1, 400)
        return next((k for k in sizes if row_wise_l1(k, w)[0].facts["ratio"] > 1), math.inf)

    if k == first(0.02):
        return None
    if k == first(1e-9):
        return "that is the limit of small w: here wk is not small, and tanh(wk) stays below wk."
    if k == 16:
        return "at 16 copies the quotient tends to 1 from below, and exceeds means more than 1."
    if k == math.inf:
        return "some number of copies does it: try each; the quotient falls again for very many copies."
    return UNKNOWN


@exercise(
    right=[1.597, 1.6, math.expm1(2) / 4],
    wrong=[(3.195, "half"), (2.097, "key itself"), (3.695, "forgot"), (0.5, "")],
    malformed="many",
)
def movers_alone(answer):
    value, truth = number(answer), math.expm1(2) / 4
    for slip, said in (
        (truth, None),
        (2 * truth, "key 1 loses in proportion to what it has, one half, and a mover has half of the rest."),
        (truth + 0.5, "counted rows that score on the key itself: here there are none."),
        (2 * truth + 0.5, "forgot that both shares are one half."),
    ):
        if abs(value - slip) < 5e-3:
            return said
    return UNKNOWN


@exercise(
    right=[3842, (4 + math.sqrt(15)) ** 4, 3840],
    wrong=[(7.873, "fourth power"), (61.98, "square"), (4096, "reciprocal"), (256, "")],
    malformed="large",
)
def room(answer):
    value, theta = number(answer), 4 + math.sqrt(15)
    for slip, said in (
        (theta**4, None),
        (theta, "that is theta; M is its fourth power."),
        (theta**2, "that is its square, the root of M."),
        (8.0**4, "dropped the reciprocal: theta + 1/theta is 8, not theta."),
    ):
        if abs(value / slip - 1) < 2e-3:
            return said
    return UNKNOWN


@exercise(
    right=[
        lambda s: 1 / math.cosh(s) ** 2,
        lambda s: 1 - math.tanh(s) ** 2,
        lambda s: 2 / (1 + math.cosh(2 * s)),
    ],
    wrong=[
        (lambda s: math.cosh(s) ** 2, "speed"),
        (lambda s: 1.0, "offset"),
        (lambda s: 2 / math.cosh(s) ** 2, "twice"),
        (lambda s: 1 / math.cosh(2 * s), "also the 1"),
        (lambda s: 1 / math.cosh(s), "square"),
        (lambda s: 1 / (1 + s), ""),
    ],
    malformed=2,
)
def offset_factor(answer):
    points = (0.0, 0.5, 1.0, 2.0)
    values = [number(call(answer, s)) for s in points]

    def like(truth):
        return all(close(value, truth(s)) for value, s in zip(values, points, strict=True))

    for slip, said in (
        (lambda s: 1 / math.cosh(s) ** 2, None),
        (lambda s: 1.0, "that is the pair without an offset: s does not enter."),
        (
            lambda s: 2 / math.cosh(s) ** 2,
            "twice too large: with e = a^2, sinh 2e is about 2 a^2, and cosh 2s + 1 is 2 cosh^2 s.",
        ),
        (
            lambda s: 1 / math.cosh(2 * s),
            "the denominator is cosh 2s + cosh 2e: for small e also the 1 counts.",
        ),
        (lambda s: 1 / math.cosh(s), "cosh 2s + 1 is 2 cosh^2 s: you lost the square."),
    ):
        if like(slip):
            return said
    if values[-1] > values[0]:
        return "rows that peak at one token speed the mixing: the factor falls with s."
    return UNKNOWN


def two_ledgers(lam, w_1, w_inf):
    """The factor of a layer of heads on two tokens: columns and rows apart, the root last."""
    columns, rows = (sum(math.tanh(a / 2) * b for a, b in zip(lam, w, strict=True)) for w in (w_1, w_inf))
    return math.sqrt(columns * rows)


def head_by_head(lam, w_1, w_inf):
    """The roots taken head by head, which is no bound."""
    return sum(math.tanh(s / 2) * math.sqrt(a * b) for s, a, b in zip(lam, w_1, w_inf, strict=True))


@exercise(
    right=[two_ledgers],
    wrong=[
        (head_by_head, "head by head"),
        (lambda *lists: two_ledgers(*lists) ** 2, "root"),
        (lambda lam, w_1, w_inf: two_ledgers([2 * s for s in lam], w_1, w_inf), "half"),
        (lambda lam, w_1, w_inf: two_ledgers(lam, w_1, w_1), "only the columns"),
        (lambda lam, w_1, w_inf: two_ledgers(lam, w_inf, w_inf), "only the rows"),
        (lambda *lists: 1.0, ""),
    ],
    malformed=3,
)
def heads_pair(answer):
    cases = (
        ([0.5, 2.0], [1.0, 7.0], [3.0, 0.5]),
        ([1.0, 0.2, 3.0], [2.0, 9.0, 1.0], [5.0, 0.1, 4.0]),
    )
    got = [number(call(answer, *case)) for case in cases]

    def like(truth):
        return all(close(value, truth(*case)) for value, case in zip(got, cases, strict=True))

    for slip, said in (
        (two_ledgers, None),
        (head_by_head, "took the roots head by head: add columns and rows apart, and take the root last."),
        (lambda *lists: two_ledgers(*lists) ** 2, "forgot the root: it is the root of columns times rows."),
        (lambda lam, *w: two_ledgers([2 * s for s in lam], *w), "it is the tanh of half of each Lambda."),
        (
            lambda lam, w_1, w_inf: two_ledgers(lam, w_1, w_1),
            "used only the columns: rows have a ledger too.",
        ),
        (
            lambda lam, w_1, w_inf: two_ledgers(lam, w_inf, w_inf),
            "used only the rows: columns have a ledger too.",
        ),
    ):
        if like(slip):
            return said
    return UNKNOWN
