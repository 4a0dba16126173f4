"""Several heads: the bound by two norms, an example against the printed one, and the price of the shape."""

import sympy as sp

from .engine import (
    ONE,
    BigF,
    ColNorm,
    Composite,
    Derivation,
    Kappa,
    RowNorm,
    Softmax,
    by_intervals,
    by_lemma,
    identity,
    inequality,
    matrices,
    n,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
ROOT = sp.sqrt


def two_heads() -> Derivation:
    """Two heads, two tokens, many outputs beat the printed bound."""
    y, w = sp.symbols("y w", positive=True)
    x, v1, v2 = matrices("X", 2, 1), sp.Matrix([[2, 0, 0, 0]]), sp.ones(1, 4)
    outputs = sp.Symbol("m", positive=True)
    size = ROOT(2) * sp.tanh(w) * ROOT((ROOT(outputs) + 1) * (ROOT(outputs) + outputs))
    edge = {y: 8 + 3 * ROOT(7)}
    many = {outputs: 65536, w: sp.Rational(1, 20)}
    return Derivation(
        "two_heads",
        "Two heads of equal composite, one with a single large output and one with many small ones, give a "
        "sum that is larger than twice either.",
        (
            identity(
                "two opposite tokens",
                Softmax(w * x * x.T) * x,
                sp.tanh(w) * x,
                "Both heads have the same scores.",
                given={x: sp.Matrix([1, -1])},
            ),
            by_intervals(
                "four outputs",
                Composite(v1) + Composite(v2),
                Composite(v1 + v2),
                "Both composites are 2; the sum has norms 3 and 6.",
            ),
            identity(
                "m outputs",
                (ROOT(outputs) + 1) * (ROOT(outputs) + outputs),
                y**2 * (y**2 + 1) ** 2,
                "One entry root m + 1 and m - 1 ones, with m = y^4; the root comes last.",
                given={outputs: y**4},
            ),
            identity(
                "over the printed bound",
                size / (4 * (w * ROOT(outputs)) * 2 * ROOT(2) ** 3),
                sp.tanh(w) / w * (y + 1 / y) / 16,
                "The residual of X is the root of 2, H is 2, and beta is w times root m.",
                given={outputs: y**4},
            ),
            identity("small scores", sp.Limit(sp.tanh(w) / w, w, 0), 1, "Small oscillation does not help."),
            identity("where it is 16", y + 1 / y, 16, "Beyond this y the limit is above 1.", given=edge),
            by_intervals("so 64 513 outputs are not enough", 64513, y**4, "It is m.", given=edge),
            by_intervals("and 64 514 are", y**4, 64514, "The first m for small w.", given=edge),
            by_intervals(
                "65 536 outputs",
                4 * (w * ROOT(outputs)) * 2 * ROOT(2) ** 3,
                size,
                "The bound is beaten at w = 1/20 too.",
                given=many,
            ),
        ),
        f"Example (Two heads), against Theorem 2.3 of {PAPER}.",
        {},
        __name__,
    )


def many_heads() -> Derivation:
    """Column sums add, row sums add, the root comes last."""
    a, b = matrices("A B", 2, 1)
    m1, m2 = matrices("M_1 M_2", n, 2)
    c1, c2 = matrices("c_1 c_2", 2, 1)
    x, y, r, s = sp.symbols("x y r s", positive=True)
    u = sp.Symbol("u", nonnegative=True)
    lam = sp.Symbol("Lambda", positive=True)
    return Derivation(
        "many_heads",
        "All heads are compared with constant rows, which add; then two norms are added separately, and the "
        "root is taken last.",
        (
            identity(
                "constant rows add",
                (ONE * c1.T + m1) + (ONE * c2.T + m2) - ONE * (c1 + c2).T,
                m1 + m2,
                "So the deviations from constant rows add too.",
                given={n: 3},
            ),
            inequality(
                "a largest column sum is a norm", ColNorm(a + b), ColNorm(a) + ColNorm(b), "Triangle."
            ),
            inequality("so is a largest row sum", RowNorm(a + b), RowNorm(a) + RowNorm(b), "Triangle."),
            inequality(
                "roots first would be too small",
                (ROOT(x * y) + ROOT(r * s)) ** 2,
                (x + r) * (y + s),
                "Composites of heads do not bound the composite of the sum.",
                form=(ROOT(x * s) - ROOT(y * r)) ** 2,
            ),
            inequality(
                "the factor of the rows",
                2 * sp.tanh(u),
                2 * u,
                "With u = Lambda/2; the factor of the columns is F.",
                grows_in=u,
            ),
            by_intervals(
                "constant four up to Lambda = 5.92",
                BigF(lam),
                16 * lam,
                "So the columns hold 16 and the rows 1, and the root of both is 4.",
                over={lam: (0, sp.Rational(592, 100))},
                zeros={0: 1},
            ),
            by_intervals(
                "which this argument gives up to 5.924",
                16 * lam,
                BigF(lam),
                "At 5.93 it is above.",
                given={lam: sp.Rational(593, 100)},
            ),
        ),
        f"Theorem (Many heads); repairs Theorem 2.3 of {PAPER}.",
        {},
        __name__,
    )


def cassels() -> Derivation:
    """What the composite costs, by Cassels' inequality."""
    a, b, s, t, x, y, theta, h, width = sp.symbols("a b s t x y theta H d", positive=True)
    w = matrices("W", 2, 2)
    column, one = matrices("A", 4, 4), sp.Matrix(4, 4, lambda row, col: int(col == 0))
    osc, big_d = sp.Rational(1256, 1000), sp.Symbol("D", positive=True)
    constant = ROOT((Kappa(big_d) + 1) / 4)
    price = (ROOT(width) + 1 / ROOT(width)) / 2
    return Derivation(
        "cassels",
        "With composites alone, a sum over heads costs a factor that depends on the shapes of the values.",
        (
            inequality(
                "one number",
                x + a * b / x,
                a + b,
                "The difference is (x - a)(b - x)/x, for x between a and b.",
                form=s * t / (a + s),
                given={x: a + s, b: a + s + t},
            ),
            inequality(
                "arithmetic and geometric mean",
                x * y,
                (x + y) ** 2 / 4,
                "With x the sum of the c_h x_h, and y that of a b c_h / x_h: together at most a + b times that of the c_h.",
                form=(x - y) ** 2 / 4,
            ),
            identity(
                "two heads attain it",
                (a + b) * (1 / a + 1 / b),
                h**2 * (a + b) ** 2 / (4 * a * b),
                "One at each end, with c_h = 1.",
                given={h: 2},
            ),
            identity(
                "as a ratio",
                (a + b) / (2 * ROOT(a * b)),
                (theta + 1 / theta) / 2,
                "Only the ratio b/a matters; x_h is the root of a head's column norm over its row norm.",
                given={b: theta**2 * a},
            ),
            by_lemma(
                "no shape is worse than its size",
                ColNorm(w),
                2 * RowNorm(w),
                "A column has d_in entries, here two, each at most a row sum; rows alike.",
                lemma="entries are at most row sums",
            ),
            by_intervals(
                "a column and a row of ones",
                Composite(column) + Composite(column.T),
                Composite(column + column.T),
                "Composites root n, but n + 1 for the sum.",
                given={column: one},
            ),
            by_intervals(
                "83 features",
                constant * price,
                4,
                "The printed 4 beta H holds at oscillation 1.256.",
                given={width: 83, big_d: osc},
            ),
            by_intervals(
                "84 features",
                4,
                constant * price,
                "Beyond that this argument gives more than 4.",
                given={width: 84, big_d: osc},
            ),
        ),
        "Proposition (Price of the shape).",
        {},
        __name__,
    )


DERIVATIONS = (two_heads, many_heads, cassels)
