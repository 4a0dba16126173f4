"""Examples against two printed steps, and against a constant below 1/sqrt(2)."""

import sympy as sp

from .engine import (
    ColNorm,
    Composite,
    Derivation,
    Osc,
    Rows,
    Scalar,
    Sizes,
    Softmax,
    by_intervals,
    identity,
    inequality,
    matrices,
    n,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def printed_steps() -> Derivation:
    """Two printed steps and the examples against them."""
    eps = sp.Symbol("epsilon", positive=True)
    r, e, p = matrices("R", 2, 1), matrices("E", 2, 2), matrices("p", 2, 1)
    given = {r: sp.Matrix([1, -1]), e: sp.Matrix([[1, -1], [-1, 1]]) / 2, p: sp.ones(2, 1) / 2, n: 3}
    first = Softmax(e)
    osc = Osc(Rows(e, 1).T)
    diagonal = matrices("E", n, n)
    identity_scores = {n: 3, diagonal: eps * sp.eye(3)}
    ranges = sum((Osc(Rows(diagonal, row).T) for row in (2, 3)), Osc(Rows(diagonal, 1).T))
    return Derivation(
        "printed_steps",
        "An entrywise inequality of matrices may not be multiplied by a signed matrix, and ranges of rows "
        "do not add up to twice a column norm.",
        (
            identity("both rows have range one", osc, 1, "Scores one half and minus one half."),
            identity(
                "two opposite tokens", first * r, sp.tanh(HALF) * r, "They are pulled to .462 of themselves."
            ),
            by_intervals(
                "the printed upper bound is violated",
                (1 + 2 * osc) * Scalar(p.T * r),
                Scalar(Rows(first, 1) * r),
                "The weighted average of R is zero, the new token is not: the sign of R matters.",
            ),
            by_intervals(
                "with absolute values it holds",
                Scalar(Rows(first, 1) * r) - Scalar(p.T * r),
                2 * osc * Scalar(p.T * Sizes(r)),
                "Bound the difference by the weighted average of |R|.",
            ),
            inequality(
                "three tokens with private scores",
                2 * ColNorm(diagonal),
                ranges,
                "Every row has range epsilon, and so has the norm: the sum of ranges exceeds twice the norm.",
                strict=True,
                given=identity_scores,
            ),
        ),
        f"What the printed proof misses; the steps are in the appendix of {PAPER}.",
        given,
        __name__,
    )


def sharp_constant() -> Derivation:
    """No constant below one over the root of 2."""
    w, t, y = sp.symbols("w t y", positive=True)
    z, u = sp.symbols("z u", nonnegative=True)
    x, c = sp.symbols("x c", real=True)
    r, w_qk, alpha = matrices("R", 4, 2), matrices("W", 2, 2), sp.Symbol("alpha", real=True)
    change = matrices("Y", 4, 2)
    given = {
        r: sp.Matrix([[1, 0], [0, 1], [0, 0], [0, 0]]),
        w_qk: sp.Matrix([[w, -w], [0, 0]]),
        change: sp.Matrix([[t / 2, -t / 2], [0, 0], [0, 0], [0, 0]]),
    }
    row, half = matrices("S", 1, 2), sp.ones(1, 2) / 2
    return Derivation(
        "sharp_constant",
        "Four tokens with two features: the output over Lambda rho tends to one over the root of 2.",
        (
            identity(
                "the matrix E",
                r * w_qk * r.T,
                sp.diag(sp.Matrix([[w, -w]]), sp.zeros(3, 2)),
                "Only the first row moves.",
            ),
            identity(
                "the input",
                ColNorm(w_qk) * Composite(r) ** 2,
                w,
                "So Lambda is w, if the residual at zero is the least one.",
            ),
            inequality("which it is: columns", 1, abs(1 - x) + abs(x), "The range of a column is 1."),
            inequality(
                "and rows",
                2,
                (abs(1 - x) + abs(c)) + (abs(x) + abs(1 - c)),
                "The first two rows are 2 apart, so one of them is at least 1 from any centre (x, c).",
            ),
            identity(
                "weights of the first token",
                Softmax(row) - half,
                sp.tanh(w) * sp.Matrix([[1, -1]]) / 2,
                "Base weights one half each on two tokens: the output is one row, up to a constant one.",
                given={row: sp.Matrix([[w, -w]])},
            ),
            inequality(
                "centres on the line",
                1 + 2 * x,
                abs(1 - x) + 3 * abs(x),
                "By symmetry a best centre is alpha times the odd row, here with x for alpha: f is t/2 times this.",
            ),
            inequality(
                "in the first half",
                1,
                (1 + 2 * alpha) * (1 - alpha),
                "The longest row is 1 - alpha there.",
                form=y / (2 + y) ** 2,
                given={alpha: 1 / (2 + y)},
            ),
            inequality(
                "and in the second", 1, (1 + 2 * alpha) * alpha, "Both factors grow.", given={alpha: HALF + z}
            ),
            identity(
                "the residual of the output",
                Composite(change),
                t / sp.sqrt(2),
                "Attained at the centre zero, with t = tanh w: columns t/2, rows t.",
            ),
            identity(
                "the limit",
                sp.Limit(sp.tanh(w) / (sp.sqrt(2) * w), w, 0),
                1 / sp.sqrt(2),
                "So no constant below 0.7071 will do.",
            ),
            inequality("never above it here", sp.tanh(u), u, "With u = w.", grows_in=u),
        ),
        "Proposition (Sharp constant).",
        given,
        __name__,
    )


DERIVATIONS = (printed_steps, sharp_constant)
