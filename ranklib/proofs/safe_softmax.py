"""Softmax in floating point: the safe form, where it overflows, and where it no longer reacts."""

import sympy as sp

from .engine import (
    ONE,
    Derivation,
    Largest,
    Scalar,
    Sigma,
    Softmax,
    by_intervals,
    identity,
    inequality,
    j,
    l,
    matrices,
    n,
    sequences,
)

HALF = sp.Rational(1, 2)
ROW = {n: 3}


def safe_softmax() -> Derivation:
    """Subtracting the row maximum keeps the weights and avoids overflow."""
    s, c = sequences("s"), sp.Symbol("c", real=True)
    row, t = matrices("s", 1, n), sp.Symbol("t", nonnegative=True)
    u, v = sp.symbols("u v", nonnegative=True)
    top = sp.Symbol("M", real=True)
    drops = {s: (top, top - u, top - v)}
    total = sp.Sum(sp.exp(s[j] - top), (j, 1, n))
    b, e = sp.symbols("b e", positive=True)
    largest = 2**e * (1 - 2**-b)
    double, single = {e: 1024, b: 53}, {e: 128, b: 24}
    return Derivation(
        "safe_softmax",
        "Subtracting the largest score of a row keeps the weights, and no exponential is above 1.",
        (
            identity(
                "the weights are the same",
                Softmax(row - c * ONE.T),
                Softmax(row),
                "A constant along a row, here the largest score, drops out.",
            ),
            inequality(
                "exponents are not positive",
                s[j],
                Largest(s[l], (l, 1, n)),
                "A score is at most the largest one.",
                given={j: 2},
            ),
            inequality(
                "exponentials are at most 1", sp.exp(-t), 1, "The exponential function grows.", grows_in=t
            ),
            inequality(
                "the sum is at least 1",
                1,
                total,
                "The largest score M contributes 1, the others more than 0.",
                given=drops,
            ),
            by_intervals(
                "float64 overflows beyond 709",
                sp.exp(709),
                largest,
                "The largest float64.",
                given=double,
            ),
            by_intervals(
                "and before 710", largest, sp.exp(710), "So the exponential of 710 is infinite.", given=double
            ),
            by_intervals(
                "float32 overflows beyond 88", sp.exp(88), largest, "The largest float32.", given=single
            ),
            by_intervals(
                "and before 89", largest, sp.exp(89), "So the exponential of 89 is infinite.", given=single
            ),
        ),
        "In floating point.",
        ROW,
        __name__,
    )


def saturation() -> Derivation:
    """The derivative of softmax is diag(p) - p p^T; it vanishes for peaked rows."""
    p, z, s = matrices("p", n, 1), matrices("z", n, 1), matrices("S", 1, n)
    u, q = sp.symbols("u q", real=True)
    y = sp.Symbol("y", positive=True)
    a, b = sp.symbols("p1 p2", real=True)
    share = {p: sp.Matrix([a, b, 1 - a - b])}
    spread = sum(p[r, 0] * p[c, 0] * (z[r, 0] - z[c, 0]) ** 2 for r, c in ((0, 1), (0, 2), (1, 2)))
    positive = {p: sp.Matrix(sp.symbols("p1:4", nonnegative=True))}
    first = Softmax(s)[0, 0]
    slope = {s: sp.Matrix([[u, q, 0]])}
    return Derivation(
        "saturation",
        "Softmax reacts to a score by p_i (1 - p_i) at most: a peaked row no longer reacts.",
        (
            identity(
                "the derivative in the own score",
                sp.Derivative(first, u),
                first * (1 - first),
                "Quotient rule; the row is (u, q, 0).",
                given=slope,
            ),
            identity(
                "and in another one",
                sp.Derivative(first, q),
                -first * Softmax(s)[0, 1],
                "Together they are diag(p) - p p'.",
                given=slope,
            ),
            identity(
                "it is a variance",
                sp.Sum(p[j - 1, 0] * z[j - 1, 0] ** 2, (j, 1, n)) - Scalar(p.T * z) ** 2,
                spread,
                "The quadratic form of diag(p) - p p' is a sum over pairs, so shifts are not felt.",
                given=share,
            ),
            inequality(
                "so it is not negative", 0, spread, "Products of weights and squares.", given=positive
            ),
            identity(
                "two tokens",
                sp.Derivative(Sigma(u), u),
                Sigma(u) * (1 - Sigma(u)),
                "The two-way softmax is the logistic function of the gap u.",
            ),
            inequality(
                "at most a quarter",
                q * (1 - q),
                sp.Rational(1, 4),
                "The difference is a square.",
                form=(HALF - q) ** 2,
            ),
            inequality(
                "it dies exponentially",
                y / (1 + y) ** 2,
                y,
                "With y = e^(-u): the derivative is below e^(-u).",
            ),
            identity(
                "the gap of the weights",
                Sigma(2 * u) - Sigma(-2 * u),
                sp.tanh(u),
                "Scores that differ by 2u have weights that differ by tanh u.",
            ),
        ),
        "In floating point.",
        ROW,
        __name__,
    )


DERIVATIONS = (safe_softmax, saturation)
