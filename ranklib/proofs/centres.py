"""Centres: what the mean costs, and a family where it costs nearly that."""

import sympy as sp

from .engine import (
    ONE,
    ColNorm,
    Composite,
    Derivation,
    RowNorm,
    by_lemma,
    d,
    identity,
    inequality,
    matrices,
    n,
)

CENTRING = sp.Identity(n) - ONE * ONE.T / n
COST = 2 * (1 - 1 / n)


def mean_centre() -> Derivation:
    """The residual about the mean is at most 2(1 - 1/n) times the best."""
    x, z = matrices("X", n, d), matrices("z", d, 1)
    a, b = matrices("A", 2, 3), matrices("B", 3, 2)
    y, u = sp.symbols("y u", real=True)
    lemma = "induced norms are submultiplicative"
    seven = {n: 7}
    return Derivation(
        "mean_centre",
        "Centring at the mean costs at most the factor 2(1 - 1/n), and the identity matrix attains it.",
        (
            identity(
                "centring kills a constant row", CENTRING * ONE, sp.ZeroMatrix(n, 1), "Rows sum to zero."
            ),
            identity(
                "so it may be applied about any centre",
                CENTRING * (x - ONE * z.T),
                x - ONE * (ONE.T * x) / n,
                "The averaging matrix puts the column means into every row, and z drops out.",
            ),
            identity(
                "its column norm",
                ColNorm(CENTRING),
                COST,
                "One entry 1 - 1/n and n - 1 entries of size 1/n, in every row and column.",
                given=seven,
            ),
            identity("its row norm", RowNorm(CENTRING), COST, "The matrix is symmetric.", given=seven),
            by_lemma(
                "product rule, columns",
                ColNorm(a * b),
                ColNorm(a) * ColNorm(b),
                "Apply it to the centring matrix times the best residual.",
                lemma=lemma,
            ),
            by_lemma(
                "product rule, rows",
                RowNorm(a * b),
                RowNorm(a) * RowNorm(b),
                "The same for row sums; both bounds hold the factor, so the root of their product does.",
                lemma=lemma,
            ),
            inequality(
                "the identity matrix: columns",
                1,
                abs(1 - y) + abs(y),
                "A column of the identity holds a one and a zero, so no centre brings f below 1.",
            ),
            inequality(
                "the identity matrix: rows",
                1,
                (abs(1 - y) + abs(y) + abs(1 - u) + abs(u)) / 2,
                "Two rows of the identity meet a one and a zero twice, so g is at least 1.",
            ),
            identity(
                "the identity matrix attains the factor",
                Composite(CENTRING * sp.Identity(n)),
                COST * Composite(sp.Identity(n)),
                "About zero the composite is 1, the least possible; about the mean it is the factor.",
                given={n: 5},
            ),
        ),
        "Theorem (Mean centre); product rule: Horn and Johnson, Matrix Analysis, section 5.6.",
        {n: 3, d: 2},
        __name__,
    )


def mean_family() -> Derivation:
    """A family whose mean residual approaches the factor 2(1 - 1/n)."""
    copies, t = sp.Symbol("K", positive=True), sp.Symbol("t", nonnegative=True)
    size = 4
    x = matrices("X", n, 3)
    shape = sp.eye(size)[:, :1].row_join(sp.Matrix([1, -1, -1, -1]) * sp.ones(1, 2) / size)
    small = {n: size, copies: 2, x: shape}
    g_mean, g_zero = (1 - 1 / n) * (1 + 2 * copies / n), 1 + copies / n
    ratio = COST * g_mean / g_zero
    return Derivation(
        "mean_family",
        "One column (1, 0, ..., 0) and K columns (1, -1, ..., -1)/n: as K grows, the mean is worse than the "
        "centre zero by a factor that tends to 2(1 - 1/n).",
        (
            identity("columns about zero", ColNorm(x), 1, "The first column has a single 1.", given=small),
            identity("rows about zero", RowNorm(x), g_zero, "The first token is the longest.", given=small),
            identity("columns about the mean", ColNorm(CENTRING * x), COST, "The first column.", given=small),
            identity("rows about the mean", RowNorm(CENTRING * x), g_mean, "The first token.", given=small),
            inequality(
                "the single column decides f",
                4 * (n - 1) / n**2,
                COST,
                "A repeated column deviates by the left side; with two or more tokens that is less.",
                given={n: 2 + t},
            ),
            inequality(
                "the first token decides g",
                (1 + 2 * copies / n) / n,
                g_mean,
                "Every deviation of the first token is n - 1 times that of another one.",
                given={n: 2 + t},
            ),
            identity(
                "the squared ratio",
                ratio,
                2 * (1 - 1 / n) ** 2 * (n + 2 * copies) / (n + copies),
                "Divide the product of the norms about the mean by the product about zero.",
                given={n: sp.Symbol("n", positive=True)},
            ),
            inequality(
                "never above the theorem",
                (n + 2 * copies) / (n + copies),
                2,
                "The limit is not exceeded on the way.",
                given={n: sp.Symbol("n", positive=True)},
            ),
            identity(
                "the limit",
                sp.Limit(ratio, copies, sp.oo),
                COST**2,
                "The fraction tends to 2, so the ratio tends to 2(1 - 1/n).",
            ),
            identity(
                "four tokens, 20 columns",
                sp.sqrt(ratio),
                sp.sqrt(33) / 4,
                "That is 1.436, already close to the limit 1.5.",
                given={n: 4, copies: 20},
            ),
        ),
        "Theorem (Mean centre), sharpness.",
        {},
        __name__,
    )


DERIVATIONS = (mean_centre, mean_family)
