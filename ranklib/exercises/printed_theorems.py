"""The exercises of ``printed-theorems``: their checks, and answers that the tests give."""

import math

from ranklib.exercises.answers import UNKNOWN, exercise, number
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
