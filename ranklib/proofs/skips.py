"""What a skip guarantees: two sides, slow decay, and the printed maximum repaired."""

import sympy as sp

from .centres import CENTRING
from .engine import (
    ONE,
    BigF,
    Composite,
    Derivation,
    RowNorm,
    Softmax,
    by_intervals,
    d,
    identity,
    inequality,
    matrices,
    n,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def two_sides() -> Derivation:
    """A layer with a skip, from both sides."""
    x, delta = matrices("R Delta", n, d)
    weights = matrices("Q", n, n)
    z, c = matrices("z c", d, 1)
    a, b = matrices("A B", 2, 1)
    alpha = sp.Symbol("alpha", real=True)
    f, g, s1, s2, p1, p2, less, more, u, t = sp.symbols("f g S_1 S_infty p q s t u v", nonnegative=True)
    return Derivation(
        "two_sides",
        "The skip keeps the residual, attention moves it by at most a share of itself; both norms apart.",
        (
            identity(
                "about the right centre",
                alpha * (ONE * z.T + x) + (ONE * c.T + delta) - ONE * (alpha * z + c).T,
                alpha * x + delta,
                "A skip of strength alpha sends the centre z to alpha z, attention adds a constant row.",
            ),
            identity(
                "every centre serves",
                weights * CENTRING * (x - ONE * z.T),
                weights * CENTRING * x,
                "Rows that add up to zero do not see what all tokens share, so Delta is formed about any z.",
            ),
            inequality(
                "upper side",
                RowNorm(a + b),
                RowNorm(a) + RowNorm(b),
                "A row sum is a norm; column sums alike.",
            ),
            inequality(
                "lower side",
                RowNorm(a),
                RowNorm(a + b) + RowNorm(b),
                "The same inequality, with a + b for the new residual and b for what attention does.",
            ),
            inequality(
                "the root last",
                f * g * (p1 - s1) * (p2 - s2),
                (p1 * f - s1 * f + less) * (p2 * g - s2 * g + more),
                "Column and row norms are at least their shares, by s and t; multiply them.",
                given={p1: s1 + u, p2: s2 + t},
            ),
            inequality(
                "a mean of the sides",
                (1 + s1) * (1 + s2),
                (1 + (s1 + s2) / 2) ** 2,
                "Arithmetic and geometric mean.",
                form=(s1 - s2) ** 2 / 4,
            ),
        ),
        "Theorem (Two sides).",
        {n: 3, d: 2},
        __name__,
    )


def repaired_maximum() -> Derivation:
    """With both norms of the values the printed maximum holds for Lambda up to 4.14."""
    lam, rho, c = sp.symbols("Lambda rho c", positive=True)
    u, t = sp.symbols("u t", nonnegative=True)
    steps, cubes = sp.symbols("L l", positive=True, integer=True)
    return Derivation(
        "repaired_maximum",
        "With both norms of the values in beta and Lambda at most 4.14, a layer with skip at most doubles the "
        "residual or gives 2c times its cube, and the printed order is the worst.",
        (
            by_intervals(
                "the factor of the columns",
                BigF(lam),
                4 * lam,
                "So the column share S_1 is at most c rho^2, with c four times beta H.",
                over={lam: (0, sp.Rational(414, 100))},
                zeros={0: 1},
            ),
            by_intervals(
                "at 4.15 no longer",
                4 * lam,
                BigF(lam),
                "The root is 4.1462.",
                given={lam: sp.Rational(415, 100)},
            ),
            inequality(
                "the factor of the rows",
                2 * sp.tanh(u),
                4 * u,
                "With u = Lambda/2: the row share is at most c rho^2 too, even half of it.",
                grows_in=u,
            ),
            inequality(
                "a layer with skip, small tokens",
                rho + c * rho**3,
                2 * rho,
                "If c rho^2 is at most 1, the layer at most doubles.",
                given={c: 1 / ((1 + t) * rho**2)},
            ),
            inequality(
                "a layer with skip, large tokens",
                rho + c * rho**3,
                2 * c * rho**3,
                "If it is at least 1, the cube decides.",
                given={c: (1 + t) / rho**2},
            ),
            inequality(
                "doubling first is the worst order",
                2 * (2 * c * rho**3),
                2 * c * (2 * rho) ** 3,
                "Every doubling before a cube is cubed: exchanging neighbours never lowers the bound.",
            ),
            identity(
                "and gives the printed term",
                2 * c * (2 * c * (2 * rho) ** 3) ** 3,
                (2 * c) ** ((3**cubes - 1) / 2) * 2 ** (3**cubes * (steps - cubes)) * rho ** (3**cubes),
                "One doubling and two cubes.",
                given={steps: 3, cubes: 2},
            ),
        ),
        "Proposition (Repaired maximum).",
        {},
        __name__,
    )


def slow_decay() -> Derivation:
    """With a skip a small residual changes algebraically."""
    lam, big_k, rho, s1, s2, u = sp.symbols("Lambda K rho S_1 S_infty u", positive=True)
    y, s = sp.symbols("y s", nonnegative=True)
    return Derivation(
        "slow_decay",
        "A layer takes away at most K rho^2 of rho^2, so the reciprocal of rho^2 grows by at most 2K.",
        (
            by_intervals(
                "F is at most Lambda up to 1.9",
                BigF(lam),
                lam,
                "On the whole range, and so for Lambda up to x*/2 = 0.628; it says e^Lambda at most 1 + 3 Lambda.",
                over={lam: (0, sp.Rational(19, 10))},
                zeros={0: 1},
            ),
            inequality(
                "both factors",
                1 - s1 - s2,
                (1 - s1) * (1 - s2),
                "The difference is a product.",
                form=s1 * s2,
            ),
            identity(
                "take reciprocals",
                1 / (rho**2 * (1 - big_k * rho**2)) - 1 / rho**2,
                big_k / (1 - big_k * rho**2),
                "Partial fractions.",
            ),
            inequality(
                "at most 2K",
                big_k / (1 - y),
                2 * big_k,
                "With y = K rho^2, at most one half.",
                given={y: HALF - s},
                form=2 * big_k * s / (HALF + s),
            ),
            inequality(
                "the other side",
                (1 - y) * (1 + y / 2) ** 2,
                1,
                "Multiply out, with y = K rho^2.",
                form=3 * y**2 / 4 + y**3 / 4,
            ),
            identity(
                "the pair follows the law",
                sp.Limit(((1 - sp.tanh(u)) ** -2 - 1) / u, u, 0),
                2,
                "The pair with v w = -1 and u = a^2: the reciprocal of a^2 grows by about 2.",
            ),
        ),
        "Theorem (Slow decay).",
        {},
        __name__,
    )


def skip_corollary() -> Derivation:
    """Two tokens and one head beat the printed bound with skips."""
    w, t = sp.symbols("w t", positive=True)
    outputs = sp.Symbol("m", positive=True)
    x, v, y = matrices("X", 2, 1), matrices("V", 1, 4), matrices("Y", 2, 5)
    after = 2 * (1 + sp.sqrt(outputs) / 8 * sp.tanh(w) / w)
    share = 1 / (1 + sp.Symbol("s", positive=True))
    rows = sp.Matrix([[1, t, t, t, t], [-1, -t, -t, -t, -t]])
    return Derivation(
        "skip_corollary",
        "A skip keeps a tall column, the head adds a long row; the composite of the sum exceeds both.",
        (
            identity(
                "the scores",
                Softmax(w * x * x.T) * x,
                sp.tanh(w) * x,
                "The first feature is an opposite pair.",
                given={x: sp.Matrix([1, -1])},
            ),
            identity(
                "the values",
                Composite(v),
                sp.sqrt(outputs) * t,
                "One row of m entries t: norms t and m t, so beta is w t root m.",
                given={v: t * sp.ones(1, 4), outputs: 4},
            ),
            identity(
                "the output",
                Composite(y) ** 2,
                2 * (1 + outputs * t),
                "Column 2, row 1 + m t, with t for t tanh w, at most 1.",
                given={y: rows.subs(t, share), outputs: 4, t: share},
            ),
            identity(
                "576 outputs in the limit",
                sp.Limit(after, w, 0),
                (2 * sp.sqrt(2)) ** 2,
                "With beta = 1/8 and rho the root of 2 both terms of the printed bound are 2 root 2.",
                given={outputs: 576},
            ),
            by_intervals(
                "577 outputs beat it",
                8,
                after,
                "At w = 0.05.",
                given={outputs: 577, w: sp.Rational(1, 20)},
            ),
        ),
        f"Example (Skip corollary), against the appendix of {PAPER}.",
        {},
        __name__,
    )


def skip_diameter() -> Derivation:
    """One layer with a skip from both sides in the diameter, and the slow law."""
    x, a, b = matrices("X", 2, 1), matrices("A", 1, 2), matrices("B", 1, 2)
    alpha, v = sp.symbols("alpha v", real=True)
    half, w, u = sp.symbols("a w u", positive=True)
    y, s = sp.symbols("y s", nonnegative=True)
    return Derivation(
        "skip_diameter",
        "A skip keeps the diameter up to the share that attention can move; near zero a layer changes the "
        "reciprocal of y = c d^2 by at most three.",
        (
            inequality(
                "the upper side",
                RowNorm(a + b),
                RowNorm(a) + RowNorm(b),
                "A difference of two tokens, from the skip and from attention; shown for the l1 norm.",
            ),
            inequality(
                "the lower side",
                RowNorm(a),
                RowNorm(a + b) + RowNorm(b),
                "The same, for a = (a + b) - b: what attention does not take away stays.",
            ),
            identity(
                "the pair attains both",
                alpha * x + v * Softmax(w * x * x.T) * x,
                (alpha + v * sp.tanh(w * half**2)) * x,
                "Equal signs of alpha and v give the upper side, opposite ones the lower.",
                given={x: sp.Matrix([half, -half])},
            ),
            identity(
                "down",
                1 / (y * (1 - y) ** 2) - 1 / y,
                (2 - y) / (1 - y) ** 2,
                "From y to at least y (1 - y)^2.",
            ),
            by_intervals(
                "at most three",
                (2 - y) / (1 - y) ** 2,
                3,
                "For y up to 0.23.",
                over={y: (0, sp.Rational(23, 100))},
            ),
            identity(
                "up",
                1 / y - 1 / (y * (1 + y) ** 2),
                (2 + y) / (1 + y) ** 2,
                "From y to at most y (1 + y)^2.",
            ),
            inequality(
                "at most two",
                2 + y,
                2 * (1 + y) ** 2,
                "For every y.",
                form=3 * y + 2 * y**2,
            ),
            identity(
                "the pair follows the law",
                sp.Limit(((1 - sp.tanh(u)) ** -2 - 1) / u, u, 0),
                2,
                "With v w = -1 and y = u = a^2 the reciprocal grows by about two a layer.",
            ),
        ),
        "Theorem (Skip) and Corollary (Slow decay).",
        {},
        __name__,
    )


DERIVATIONS = (skip_diameter, two_sides, repaired_maximum, slow_decay, skip_corollary)
