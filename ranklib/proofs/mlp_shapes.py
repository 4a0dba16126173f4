"""An MLP in the size of the diameter: what its constant bounds, and what it leaves open."""

import sympy as sp

from .engine import Derivation, Relu, by_intervals, identity, inequality, matrices

BOOK = "this book"


def mlp_diameter() -> Derivation:
    """One constant for an MLP, from both sides with a skip, and through depth."""
    x, y, b = matrices("x y b", 1, 2)
    w = matrices("W_1", 2, 2)
    r, s, alpha, big = sp.symbols("r s alpha lambda", nonnegative=True)
    angle, phi = sp.Symbol("h", nonnegative=True), sp.Symbol("phi", real=True)
    t, u, v, q = sp.symbols("t u v q", nonnegative=True)
    c, size = sp.symbols("c d", positive=True)
    depth = sp.Symbol("l", positive=True, integer=True)
    return Derivation(
        "mlp_diameter",
        "Attention and then a map of constant lambda take d to at most lambda c d^3; depth unrolls it.",
        (
            identity(
                "biases cancel",
                (x * w + b) - (y * w + b),
                (x - y) * w,
                "So a linear map stretches a difference by its largest singular value at most.",
            ),
            inequality(
                "a slope between 0 and 1",
                Relu(t) - Relu(-u),
                t + u,
                "ReLU across its kink: a difference t + u becomes t. On one side of it slopes are 0 or 1.",
            ),
            identity(
                "a difference and its skip",
                (alpha * r + s * sp.cos(phi)) ** 2 + (s * sp.sin(phi)) ** 2,
                (alpha * r) ** 2 + s**2 + 2 * alpha * r * s * sp.cos(phi),
                "Two tokens at distance r; what f makes of the difference has length s and the angle phi to it.",
            ),
            inequality(
                "at most the sum",
                (alpha * r) ** 2 + s**2 + 2 * alpha * r * s * (1 - angle),
                (alpha * r + s) ** 2,
                "With h = 1 - cos phi, and s at most lambda r.",
                form=2 * alpha * r * s * angle,
            ),
            inequality(
                "at least the difference",
                (alpha * r - s) ** 2,
                (alpha * r) ** 2 + s**2 + 2 * alpha * r * s * (angle - 1),
                "With h = 1 + cos phi.",
                form=2 * alpha * r * s * angle,
            ),
            inequality(
                "the cube stays",
                big * sp.tanh(q) * size,
                big * q * size,
                "With q = c d^2: the MLP multiplies what attention leaves, and tanh q is at most q.",
                grows_in=q,
            ),
            identity(
                "one layer more",
                big * c * ((big * c) ** ((3**depth - 1) / 2) * size ** (3**depth)) ** 3,
                (big * c) ** ((3 ** (depth + 1) - 1) / 2) * size ** (3 ** (depth + 1)),
                "So after l layers the constant stands there (3^l - 1)/2 times, and d to the power 3^l.",
                given={depth: 3},
            ),
        ),
        f"Theorem (MLP) and Corollary (Depth with MLPs); {BOOK}.",
        {},
        __name__,
    )


def three_shapes() -> Derivation:
    """Three functions of one steepness behind the pair."""
    lam, a, x = sp.symbols("lambda a x", positive=True)
    u, z = sp.symbols("u z", nonnegative=True)
    low = sp.Rational(2389, 1000)
    return Derivation(
        "three_shapes",
        "Behind the pair a linear map has an edge, an even one merges, and a saturating one holds.",
        (
            inequality(
                "a small gap needs a steep map",
                sp.tanh(u),
                u,
                "A linear map holds a for the steepness 1/tanh u, with u = a^2: that is 1/a^2 or more.",
                grows_in=u,
            ),
            inequality(
                "the factor grows with the gap",
                sp.tanh(u),
                sp.tanh(u + z),
                "So below this half-gap the pair falls ever faster, and above it grows ever faster.",
                grows_in=z,
            ),
            by_intervals(
                "two fixed points of tanh at 2.390",
                sp.atanh(a),
                sp.Rational(2390, 1000) * a * sp.tanh(a**2),
                "At a = 0.85 the step is upwards.",
                given={a: sp.Rational(85, 100)},
            ),
            by_intervals(
                "none at 2.389",
                low * sp.tanh(x) * sp.tanh(sp.tanh(x) ** 2),
                x,
                "With a = tanh x.",
                over={x: (0, sp.Rational(5, 2))},
                zeros={0: 1},
            ),
            inequality(
                "nor beyond",
                low * sp.tanh(u),
                sp.Rational(5, 2),
                "For x above 5/2: a product of tangents is at most one of them.",
                form=sp.Rational(111, 1000) + low * 2 / (sp.exp(2 * u) + 1),
            ),
        ),
        f"Proposition (Three shapes); {BOOK}.",
        {},
        __name__,
    )


DERIVATIONS = (mlp_diameter, three_shapes)
