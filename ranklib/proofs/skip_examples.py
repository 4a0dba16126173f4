"""What a skip does not guarantee: contributions that cancel, growth, and directions that align."""

import sympy as sp

from .engine import (
    ONE,
    Composite,
    Derivation,
    Inner,
    Scalar,
    Softmax,
    Squares,
    by_intervals,
    d,
    distinct,
    identity,
    inequality,
    j,
    l,
    matrices,
    n,
    sequences,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def orthogonal_contribution() -> Derivation:
    """Orthogonal to the input is not enough."""
    x, c = matrices("X C", 2, 1)
    tokens = {x: sp.Matrix([3, 1]), c: sp.Matrix([-HALF, sp.Rational(3, 2)])}
    r, s = matrices("R S", n, d)
    mean, add = matrices("x c", d, 1)
    free = [[sp.Symbol(f"r_{a}{b}", real=True) for b in (1, 2)] for a in (1, 2)]
    centred = sp.Matrix([*free, [-free[0][0] - free[1][0], -free[0][1] - free[1][1]]])
    a, b = matrices("A B", 2, 2)
    pairs = {a: sp.Matrix([[9, 3], [-9, -3]]), b: sp.Matrix([[1, -3], [-1, 3]])}
    return Derivation(
        "orthogonal_contribution",
        "A contribution may be orthogonal to the input and cancel its residual; orthogonal to the residual is "
        "what counts, and only in the Frobenius norm.",
        (
            identity(
                "two heads",
                3 * ONE * ONE.T * x - sp.Rational(9, 2) * Softmax(sp.log(2) / 2 * x * x.T) * x,
                c,
                "Value -9/2 with w = (ln 2)/2, and a second head with uniform weights and value 6.",
                given={**tokens, n: 2},
            ),
            identity("orthogonal", Inner(x, c), 0, "The contribution meets the condition.", given=tokens),
            identity(
                "and everything is gone",
                Composite(x + c - sp.Rational(5, 2) * ONE),
                0,
                "Equal tokens.",
                given={**tokens, n: 2},
            ),
            identity(
                "for any tokens",
                Inner(ONE * mean.T + r, ONE * add.T - r),
                n * Scalar(mean.T * add) - Squares(r),
                "A contribution -R + 1 c' about the mean is orthogonal when this vanishes.",
                given={r: centred},
            ),
            identity(
                "Pythagoras",
                Squares(r + s),
                Squares(r) + 2 * Inner(r, s) + Squares(s),
                "So a non-negative inner product of the residuals is enough.",
            ),
            identity("orthogonal residuals", Inner(a, b), 0, "Two opposite tokens each.", given=pairs),
            by_intervals(
                "the composite falls all the same",
                Composite(a + b),
                Composite(a),
                "The roots of 200 and 216: orthogonal residuals do not protect the composite.",
                given=pairs,
            ),
        ),
        f"Example (Orthogonal); the phrase is Claim 3.1 of {PAPER}.",
        {n: 3, d: 2},
        __name__,
    )


def never_shrinks() -> Derivation:
    """Heads that spread one feature."""
    s, u = sp.Symbol("s", real=True), sp.symbols("u", positive=True)
    y = sequences("y")
    t, gap, more = sp.symbols("t g e", nonnegative=True)
    z = sp.Sum(sp.exp(s * y[j]), (j, 1, n))
    mean = sp.Sum(y[j] * sp.exp(s * y[j]), (j, 1, n)) / z
    pairs = sp.Sum(sp.Sum(sp.exp(s * (y[j] + y[l])) * (y[j] - y[l]) ** 2, (l, 1, n)), (j, 1, n))
    return Derivation(
        "never_shrinks",
        "A head that looks along one feature pulls its tokens apart; with a skip no distance shrinks.",
        (
            identity(
                "the mean grows with the tilt",
                sp.Derivative(mean, s),
                pairs / (2 * z**2),
                "The derivative of a tilted mean is a variance.",
            ),
            inequality(
                "it is not negative",
                0,
                pairs / (2 * z**2),
                "So a larger token, whose tilt is larger, has a larger mean: distances do not shrink.",
            ),
            inequality(
                "nor does the distance to a centre",
                t * gap,
                t * (gap + more),
                "Neighbours have the gap g before and g + e after; a centre at the share t of it goes back to "
                "the share t.",
                form=t * more,
            ),
            identity(
                "a crush",
                1 - sp.Rational(9, 10) * sp.tanh(u),
                sp.Rational(28, 100),
                "There the tangent is 4/5: a skip does not forbid it.",
                given={u: sp.log(3)},
            ),
        ),
        "Proposition (No entry shrinks).",
        {n: 3},
        __name__,
    )


def aligned_directions() -> Derivation:
    """Uniform attention with skips aligns the tokens."""
    s, c0, size, g = sp.symbols("s c_0 q g", positive=True)
    depth = sp.Symbol("L", positive=True, integer=True)
    x, r = matrices("x", 1, 2), matrices("R", n, d)
    signs = [
        sp.Matrix(2, 2, bits) / sp.sqrt(2)
        for bits in [(p, q, t, v) for p in (1, -1) for q in (1, -1) for t in (1, -1) for v in (1, -1)]
    ]
    mean = sp.S.Zero
    for w in signs:
        mean += Squares(x * w) / len(signs)
    common = g * ((1 + s) ** depth - 1)
    return Derivation(
        "aligned_directions",
        "The mean row grows by a factor in every layer, the differences stay as they are: directions align.",
        (
            identity(
                "random values keep the size",
                mean,
                Squares(x),
                "Independent signs over the root of d, all 16 cases; any such variance 1/d does it.",
            ),
            identity(
                "differences stay",
                (sp.Identity(n) - ONE * ONE.T / n) * (ONE * ONE.T / n) * r,
                sp.ZeroMatrix(n, d),
                "A uniform average is the same for all tokens.",
            ),
            identity(
                "one more layer",
                common + s * g * (1 + s) ** depth,
                g * ((1 + s) ** (depth + 1) - 1),
                "The squared mean row g grows by s of itself.",
            ),
            identity(
                "the cosine",
                1 - (c0 + common) / (1 + common),
                (1 - c0) / (1 + common),
                "Inner product over squared length.",
            ),
            identity(
                "scaled branches",
                sp.Limit((1 + 1 / size) ** size, size, sp.oo),
                sp.E,
                "With s = 1/L the growth stays bounded.",
            ),
            distinct(
                "unscaled ones do not",
                (1 + s) ** depth,
                1 + depth * s,
                "With s = 1 the growth is 2^L.",
                at={s: 1, depth: 8},
            ),
        ),
        "Theorem (Aligned directions).",
        {n: 3, d: 2},
        __name__,
    )


DERIVATIONS = (orthogonal_contribution, never_shrinks, aligned_directions)
