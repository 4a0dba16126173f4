"""The pair on a circle, epsilon, a rank that stays, and ranks that change."""

import sympy as sp

from .engine import (
    Derivation,
    Det,
    Normed,
    Rows,
    Softmax,
    distinct,
    identity,
    inequality,
    matrices,
)

HALF = sp.Rational(1, 2)
BOOK = "this book"


def circle_pair() -> Derivation:
    """The half-angle of a pair on a circle."""
    c, s = sp.symbols("c s", positive=True)
    w = sp.Symbol("w", positive=True)
    u, r, t = sp.symbols("u r T", nonnegative=True)
    x = matrices("X", 2, 2)
    pair, tanh = {x: sp.Matrix([[c, s], [c, -s]])}, sp.tanh(w * s**2)
    return Derivation(
        "circle_pair",
        "Attention and normalisation send tan theta to tan theta tanh(w sin^2 theta).",
        (
            identity(
                "attention pulls inwards",
                Softmax(w * x * x.T) * x,
                sp.Matrix([[c, s * tanh], [c, -s * tanh]]),
                "The common part c stays, the half-gap s shrinks; dividing by a length keeps their quotient.",
                given=pair,
            ),
            inequality(
                "a longer wait near the edge",
                sp.tanh(u),
                sp.tanh(u + r),
                "With u = w sin^2 theta and u + r = w: the cotangent grows at least by 1/tanh w.",
                grows_in=r,
            ),
            inequality(
                "the sine is below the tangent",
                t**2 / (1 + t**2),
                t**2,
                "With T = tan theta; and tanh is below its argument.",
                form=t**4 / (1 + t**2),
            ),
            identity(
                "with a skip",
                x + Softmax(w * x * x.T) * x,
                sp.Matrix([[2 * c, s * (1 + tanh)], [2 * c, -s * (1 + tanh)]]),
                "The common part doubles, the half-gap does not.",
                given=pair,
            ),
            inequality(
                "post-norm shrinks the tangent",
                (1 + sp.tanh(u)) / 2,
                1,
                "It tends to one half.",
                strict=True,
                form=1 / (1 + sp.exp(2 * u)),
            ),
            inequality(
                "pre-norm adds a smaller quotient",
                t * sp.tanh(u),
                t,
                "Half-gap over common part is T; what a layer adds to both has T tanh u: in the limit of growing "
                "sums the quotient would have to be both.",
                form=2 * t / (1 + sp.exp(2 * u)),
            ),
        ),
        f"Theorem (Knife edge) and Proposition (Post and pre); {BOOK}.",
        {},
        __name__,
    )


def epsilon_threshold() -> Derivation:
    """Which pair a norm with epsilon holds."""
    s, a = sp.Symbol("s", positive=True), sp.Symbol("a", positive=True)
    u = sp.Symbol("u", nonnegative=True)
    r, eps, b = sp.symbols("r epsilon b", positive=True)
    return Derivation(
        "epsilon_threshold",
        "The pair is held where v tanh(a^2) sqrt(1 - a^2) is the root of epsilon.",
        (
            identity(
                "solve for b",
                b / sp.sqrt(b**2 + eps),
                a,
                "So a fixed half-gap a has this b, the root of epsilon times a over the root of 1 - a^2.",
                given={b: sp.sqrt(eps / r), a: 1 / sp.sqrt(1 + r)},
            ),
            identity(
                "the slope of its logarithm",
                sp.Derivative(sp.log(sp.tanh(s)) + sp.log(1 - s) / 2, s),
                2 / sp.sinh(2 * s) - 1 / (2 * (1 - s)),
                "With s = a^2.",
            ),
            inequality(
                "vanishes once",
                0,
                sp.Derivative(sp.sinh(2 * s) - 4 * (1 - s), s),
                "The slope has the sign of 4(1 - s) - sinh 2s, which falls from 4 to below 0.",
                strict=True,
                form=2 * sp.cosh(2 * s) + 4,
            ),
            inequality(
                "the lower edge",
                sp.tanh(u),
                u,
                "So v a^2 is at least the root of epsilon at a fixed half-gap.",
                grows_in=u,
            ),
            inequality(
                "epsilon bounds the factor",
                b**2 / (b**2 + eps),
                b**2 / eps,
                "No half-gap is multiplied by more than the inverse root of epsilon.",
                form=b**4 / (eps * (b**2 + eps)),
            ),
        ),
        f"Theorem (Nose); {BOOK}.",
        {},
        __name__,
    )


def rank_two() -> Derivation:
    """Two tokens of rank 2 that attract, when they exist, and orthogonal values."""
    lam, mu, c, s = sp.symbols("lambda mu c s", positive=True)
    p, q, angle, phi, psi = sp.symbols("p q alpha phi psi", real=True)
    a, b = sp.symbols("a b", real=True)
    e, f, x, t = matrices("e f x t", 1, 2)
    v = matrices("W_V", 2, 2)
    values = sp.Matrix([[lam, 0], [-(lam - mu) * c / s, mu]])
    row, other = sp.Matrix([[1, 0]]), sp.Matrix([[c, s]])
    given = {e: row, f: other, v: values}
    shear = {
        v: sp.Matrix([[1, 0], [-1, HALF]]),
        e: row,
        x: sp.Matrix([[sp.Rational(-4, 5), sp.Rational(3, 5)]]),
    }
    plain = matrices("W", 2, 2)
    unit, turned = sp.Matrix([[1, 0]]), sp.Matrix([[sp.cos(2 * angle), sp.sin(2 * angle)]])
    first, second = matrices("u w", 1, 2)
    return Derivation(
        "rank_two",
        "Two tokens of rank two stay, and attract, if the row eigenvectors of the values are close enough.",
        (
            identity("token 1 stays", e * v, lam * e, "It sees itself only.", given=given),
            identity(
                "the other direction", f * v, mu * f, "So e and f are the row eigenvectors.", given=given
            ),
            identity(
                "token 2 stays",
                (e + p * e + q * f) * v,
                mu * (p * e + q * f),
                "Compare both directions: for any q other than 0 it must be this p.",
                given={**given, p: -lam / (lam - mu)},
            ),
            inequality(
                "a unit vector on that line",
                p**2 * (1 - c**2),
                p**2 + 2 * p * q * c + q**2,
                "The square of its length. So it can be 1 exactly if p sin phi is at most 1 in absolute value.",
                form=(q + p * c) ** 2,
            ),
            identity(
                "a turn of token 2",
                t * plain * t.T + x * plain * x.T,
                sp.Matrix([[plain[0, 0] + plain[1, 1]]]) * (a**2 + b**2),
                "For orthogonal x and t of length 1: the trace. The image has length mu, so the turn is multiplied "
                "by lambda/mu times 1 plus the cosine.",
                given={x: sp.Matrix([[a, b]]), t: sp.Matrix([[-b, a]])},
            ),
            identity(
                "the turn dies out",
                sp.sin(psi) * sp.cos(psi - phi) - sp.sin(phi),
                sp.cos(psi) * sp.sin(psi - phi),
                "Positive for phi below psi below a right angle: 1 - cos(psi - phi) is below mu/lambda.",
            ),
            identity(
                "an example",
                (e + x) * v,
                x / 2,
                "Half as long and not turned.",
                given=shear,
            ),
            identity(
                "rank two", Det(sp.BlockMatrix([[e], [x]])), sp.Rational(3, 5), "Not zero.", given=shear
            ),
            identity(
                "orthogonal values",
                first + second,
                2 * sp.cos(angle) * sp.Matrix([[sp.cos(angle), sp.sin(angle)]]),
                "The sum of two unit rows bisects their angle, and a rotation keeps angles.",
                given={first: unit, second: turned},
            ),
        ),
        "Theorem (Rank two), after Wu et al. 2024; the condition and the numbers are this book's.",
        {},
        __name__,
    )


def layer_norm_ranks() -> Derivation:
    """LayerNorm can raise the affine rank, and lower it by two."""
    line, ray, flat = matrices("X", 3, 4), matrices("Y", 3, 3), matrices("Z", 2, 2)
    given = {
        line: sp.Matrix([[1, t, 0, 2] for t in (0, 1, 3)]),
        ray: sp.Matrix([[1, -1, 0], [2, -2, 0], [2, 0, 1]]),
        flat: sp.eye(2),
    }
    pick = {4: sp.Matrix([[1, 0], [0, 0], [0, 1], [0, 0]]), 3: sp.Matrix([[1, 0], [0, 0], [0, 1]])}
    steps = sp.Matrix([[-1, 1, 0], [-1, 0, 1]])
    return Derivation(
        "layer_norm_ranks",
        "LayerNorm can turn a line of tokens into a triangle, and a triangle into one point.",
        (
            identity(
                "three tokens on a line",
                3 * (Rows(line, 2) - Rows(line, 1)),
                Rows(line, 3) - Rows(line, 1),
                "Affine rank 1.",
            ),
            distinct(
                "no longer on a line",
                Det(steps * Normed(line) * pick[4]),
                0,
                "Affine rank 2 after LayerNorm: differences from the first token, features 1 and 3.",
                at={},
            ),
            identity("a triangle", Det(steps * ray * pick[3]), 1, "Affine rank 2."),
            identity(
                "becomes a point",
                Normed(ray),
                sp.ones(3, 1) * sp.Matrix([[1, -1, 0]]) * sp.sqrt(sp.Rational(3, 2)),
                "All three rows are (1, -1, 0) up to a shift and a positive factor.",
            ),
            identity(
                "matrix rank",
                Det(Normed(flat)),
                0,
                "The identity has rank 2, its image rank 1: centring lands in a hyperplane.",
            ),
        ),
        f"Proposition (Ranks); {BOOK}.",
        given,
        __name__,
    )


DERIVATIONS = (circle_pair, epsilon_threshold, rank_two, layer_norm_ranks)
