"""Row-wise maps in both matrix norms, their constants, and depth."""

import sympy as sp

from .engine import (
    ColNorm,
    Composite,
    Derivation,
    Relu,
    RowNorm,
    by_intervals,
    i,
    identity,
    inequality,
    k,
    m,
    matrices,
    named,
    sequences,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
ROOT = sp.sqrt


def both_norms() -> Derivation:
    """A row-wise map through both matrix norms."""
    p, q, r = sp.symbols("p q r", real=True)
    size, s, t = sp.symbols("A s t", nonnegative=True)
    slope, gap = sp.IndexedBase("l", nonnegative=True), sp.IndexedBase("r", nonnegative=True)
    c, top = sequences("c", nonnegative=True), sp.Symbol("lambda", nonnegative=True)
    x, difference = matrices("X", 2, 2), sp.Matrix([1, -1])
    pair = {x: sp.Matrix([[1, -1], [-1, 1]])}
    turn, half = matrices("T", 2, 2), ROOT(2 + ROOT(2)) / 2
    eighth = sp.Matrix([[half, half * (ROOT(2) - 1)], [-half * (ROOT(2) - 1), half]])
    one = matrices("Y", 2, 2)
    turned = {turn: eighth, one: sp.Matrix([[1, 0], [-1, 0]])}
    return Derivation(
        "both_norms",
        "A row-wise map multiplies column sums by at most lambda_1 and row sums by at most lambda_inf.",
        (
            inequality(
                "one coordinate at a time",
                abs(p - r),
                abs(p - q) + abs(q - r),
                "Go from one row to the other by changing one coordinate after the other: slopes add.",
            ),
            identity(
                "sum over the tokens",
                sp.Sum(sp.Sum(slope[k, m] * gap[i, m], (m, 1, 2)), (i, 1, 3)),
                sp.Sum(slope[k, m] * sp.Sum(gap[i, m], (i, 1, 3)), (m, 1, 2)),
                "The sums change places; each inner one is a column sum.",
                given={k: 1},
            ),
            inequality(
                "column sums",
                sp.Sum(slope[k, m] * c[m], (m, 1, 2)),
                size * sp.Sum(slope[k, m], (m, 1, 2)),
                "A column sum is at most the largest one, A; the slopes into an output add to lambda_1.",
                given={k: 1, c: (size - s, size - t)},
            ),
            inequality(
                "row sums",
                sp.Sum(sp.Sum(slope[k, m] * gap[i, m], (m, 1, 2)), (k, 1, 2)),
                top * sp.Sum(gap[i, m], (m, 1, 2)),
                "The sums of slopes over outputs are at most the largest one.",
                given={i: 1, slope: ((top - s - t, top), (s, 0))},
            ),
            identity(
                "a difference attains both",
                Composite(x * difference),
                ROOT(2) * Composite(x),
                "The map u_1 - u_2 has lambda_1 = 2 and lambda_inf = 1.",
                given=pair,
            ),
            by_intervals(
                "spectral norm 1 is not enough",
                Composite(one),
                Composite(one * turn),
                "A turn by an eighth of pi makes the composite of the residual larger: the roots of 2 and 2.41.",
                given=turned,
            ),
            identity("though it is a turn", turn * turn.T, sp.eye(2), "Rows of length 1.", given=turned),
        ),
        "Theorem (Both norms).",
        {},
        __name__,
    )


def attained() -> Derivation:
    """The rows of an identity attain the largest sums of the Jacobian."""
    t = sp.Symbol("t", positive=True)
    jac, e = matrices("J", 3, 2), sp.Identity(2)
    y, z = sp.symbols("y_1 y_2", real=True)
    phi = named("phi", r"\varphi", lambda a, b: a**2 * b + sp.sinh(b), "A map of two inputs.")
    limit = sp.Limit((phi(y + t, z) - phi(y, z)) / t, t, 0)
    return Derivation(
        "attained",
        "The rows y + t e_m of a differentiable map attain the column and row sums of its Jacobian as t "
        "tends to 0, so no smaller constants would do.",
        (
            identity("the tokens", ColNorm(t * e), t, "Their differences from y are t times the identity."),
            identity("in both norms", RowNorm(t * e), t, "One entry in each row too."),
            identity(
                "one slope",
                limit,
                sp.Derivative(phi(y, z), y),
                "A row of the output moves by t times the slopes in its coordinate, up to o(t): an example.",
            ),
            identity(
                "column sums of the output",
                ColNorm(t * jac.T) / t,
                RowNorm(jac),
                "Row m holds t times the slopes in coordinate m: a column sum adds the slopes into one output.",
            ),
            identity(
                "row sums of the output",
                RowNorm(t * jac.T) / t,
                ColNorm(jac),
                "A row sum adds the slopes from one input; the theorem on both norms bounds it by lambda_inf.",
            ),
            inequality(
                "no entry can be left out",
                abs(jac[0, 0]),
                RowNorm(jac),
                "Every slope is part of the largest sums.",
            ),
        ),
        "Proposition (Attained).",
        {},
        __name__,
    )


def two_linear_maps() -> Derivation:
    """Constants of linear, activation, linear."""
    outer, inner, slopes = matrices("V", 1, 3), matrices("W", 3, 2), matrices("S", 3, 3)
    s = sequences("s")
    low, high, z = sp.symbols("a b z", real=True)
    x, y, plus, minus = sp.symbols("x y P N", nonnegative=True)
    density = sp.exp(-(z**2) / 2) / ROOT(2 * sp.pi)
    gelu = z * (1 + sp.erf(z / ROOT(2))) / 2
    slope = (1 + sp.erf(z / ROOT(2))) / 2 + z * density
    t = sp.Symbol("t", real=True)
    big, other = sp.symbols("s_1 s_2", real=True)
    between = {high: low + x + y, big: low + x, other: low + x + y}
    return Derivation(
        "two_linear_maps",
        "With slopes in [a, b], an entry of the Jacobian is at most max(bP - aN, bN - aP) in absolute value.",
        (
            identity(
                "the Jacobian",
                outer * slopes * inner,
                sp.Matrix(
                    [[sum(s[c] * outer[0, c - 1] * inner[c - 1, q] for c in (1, 2, 3)) for q in (0, 1)]]
                ),
                "A sum of products of weights, each times a slope.",
                given={slopes: sp.diag(*sp.symbols("s_1:4", real=True)), s: sp.symbols("s_1:4", real=True)},
            ),
            inequality(
                "from above",
                big * plus - other * minus,
                high * plus - low * minus,
                "Positive products get at most b, negative ones at least a.",
                given=between,
            ),
            inequality(
                "from below",
                low * plus - high * minus,
                big * plus - other * minus,
                "The other way round.",
                given=between,
            ),
            inequality(
                "ReLU loses half at most",
                (plus + minus) / 2,
                sp.Max(plus, minus),
                "Between max(P, N) and the simple bound P + N.",
            ),
            identity(
                "two units make an absolute value",
                Relu(t) + Relu(-t),
                abs(t),
                "P = N = 1: the formula gives slope 1, the simple bound P + N gives 2.",
            ),
            identity(
                "the slope of tanh", sp.Derivative(sp.tanh(z), z), 1 - sp.tanh(z) ** 2, "At most 1, at 0."
            ),
            identity("the slope of GELU", sp.Derivative(gelu, z), slope, "Product rule."),
            identity(
                "turns at the root of 2",
                sp.Derivative(slope, z),
                (2 - z**2) * density,
                "It grows between the two turning points only; at -z it is 1 minus its value at z.",
            ),
            by_intervals(
                "the largest slope from below",
                sp.Rational(1128, 1000),
                slope,
                "At the root of 2.",
                given={z: ROOT(2)},
            ),
            by_intervals(
                "and from above",
                slope,
                sp.Rational(1129, 1000),
                "So GELU has constant 1.129, not 1.",
                given={z: ROOT(2)},
            ),
        ),
        "Proposition (Two linear maps).",
        {},
        __name__,
    )


DERIVATIONS = (both_norms, attained, two_linear_maps)
