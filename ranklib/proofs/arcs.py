"""The pair on a circle, the growth of its errors, and two heads that hold it."""

import sympy as sp

from .engine import Derivation, Scalar, Softmax, by_intervals, identity, inequality, matrices, named

BOOK = "this book"
Quotient = named("Quotient", "q", lambda u: 4 * u / sp.sinh(2 * u), "4u over sinh 2u.")


def turn(c: sp.Expr, s: sp.Expr) -> sp.Matrix:
    """The matrix that turns a row counter-clockwise, from a cosine and a sine."""
    return sp.Matrix([[c, s], [-s, c]])


def drawn_circle() -> Derivation:
    """One head draws the circle exactly."""
    x, y, c, s = sp.symbols("x y c s", real=True)
    w, u = sp.symbols("w u", positive=True)
    tokens, rotation, eye = matrices("X", 2, 2), matrices("T_delta", 2, 2), sp.Identity(2)
    given = {tokens: sp.Matrix([[x, y], [-x, -y]]), rotation: turn(c, s)}
    return Derivation(
        "drawn_circle",
        "Scores w x y on the circle of radius A, and a turn divided by tanh(w A^2), make every step right.",
        (
            identity(
                "attention shortens the pair",
                Softmax(w * tokens * tokens.T) * tokens,
                sp.tanh(w * (x**2 + y**2)) * tokens,
                "An opposite pair in the plane, with W_QK = w I. So divide the turn by tanh(w A^2).",
            ),
            identity(
                "beside a skip",
                tokens
                + Softmax(w * tokens * tokens.T) * tokens * (rotation - eye) / sp.tanh(w * (x**2 + y**2)),
                tokens * rotation,
                "The skip brings the pair itself, so the head has to add the difference only.",
            ),
            identity(
                "what it costs grows",
                sp.Derivative(u / sp.tanh(u), u),
                (sp.sinh(2 * u) - 2 * u) / (2 * sp.sinh(u) ** 2),
                "The hyperbolic sine is above its argument, so u coth u grows from 1.",
            ),
        ),
        f"Proposition (One head draws); {BOOK}.",
        given,
        __name__,
    )


def radial_factor() -> Derivation:
    """How a step multiplies a radial error."""
    e, u, s = sp.symbols("e u s", positive=True)
    t = sp.Symbol("t", nonnegative=True)
    c0, c1, c2, q1, q2 = sp.symbols("c_0 c_1 c_2 q_1 q_2", real=True)
    phi, x, y = sp.symbols("delta x y", real=True)
    q, extra, pull = sp.symbols("q u p", positive=True)
    a, rotation = matrices("a", 1, 2), matrices("T_delta", 2, 2)
    given = {a: sp.Matrix([[x, y]]), rotation: turn(sp.cos(phi), sp.sin(phi))}
    return Derivation(
        "radial_factor",
        "A head with share c multiplies a radial error by c (1 + q), a skip by its share alone.",
        (
            identity(
                "one head",
                sp.Subs(sp.Derivative(s * sp.tanh(s**2 * e), s), s, 1) / sp.tanh(e),
                1 + Quotient(e),
                "Scale the half-gap by s: the logit grows like s^2; q is 4e over sinh 2e.",
            ),
            identity(
                "several heads and a skip",
                c0 + c1 * (1 + q1) + c2 * (1 + q2),
                1 + c1 * q1 + c2 * q2,
                "The derivative of a sum; the shares add to 1.",
                given={c0: 1 - c1 - c2},
            ),
            inequality("q is at most 2", t, sp.sinh(t), "With t = 2e.", grows_in=t),
            identity("and tends to 2", sp.Limit(Quotient(u), u, 0), 2, "At small logits."),
            identity(
                "share of a head beside a skip",
                Scalar(a * (rotation - sp.Identity(2)) * (a * rotation).T),
                (1 - sp.cos(phi)) * Scalar(a * a.T),
                "The head adds the difference of two points of the circle.",
                given=given,
            ),
            inequality(
                "a pull that suffices",
                (1 - pull) * (1 + q),
                1,
                "Any more than q / (1 + q).",
                strict=True,
                form=extra * (1 + q),
                given={pull: q / (1 + q) + extra},
            ),
        ),
        f"Theorem (Radial factor); {BOOK}.",
        {},
        __name__,
    )


def midpoint_factors() -> Derivation:
    """How a step multiplies an error of the midpoint."""
    s = sp.Symbol("s", real=True)
    e, u = sp.symbols("e u", positive=True)
    return Derivation(
        "midpoint_factors",
        "A midpoint error is multiplied by coth u across the pair, and by coth u + q/2 along it.",
        (
            identity(
                "what the midpoint gains",
                sp.Subs(sp.Derivative((sp.tanh(s + e) + sp.tanh(s - e)) / 2, s), s, 0),
                1 / sp.cosh(e) ** 2,
                "Token i is sent to m + a tanh of its logit; the logits are s + e and s - e.",
            ),
            identity(
                "the half-gap does not notice",
                sp.Subs(sp.Derivative((sp.tanh(s + e) - sp.tanh(s - e)) / 2, s), s, 0),
                0,
                "To first order.",
            ),
            identity(
                "along the pair",
                (1 + u / sp.cosh(u) ** 2) / sp.tanh(u),
                sp.coth(u) + Quotient(u) / 2,
                "There s is u times the relative error; across the pair s is 0. So along exceeds across by half "
                "of what the radial factor exceeds 1.",
            ),
            inequality(
                "both are above 1",
                sp.tanh(u),
                1,
                "Across the pair the factor is its inverse.",
                strict=True,
                form=2 / (sp.exp(2 * u) + 1),
            ),
        ),
        f"Proposition (Midpoint); {BOOK}.",
        {},
        __name__,
    )


def opposed_heads() -> Derivation:
    """Two heads of opposite sign hold the circle."""
    e1, e2, c1, c2 = sp.symbols("e_1 e_2 c_1 c_2", real=True)
    logits = {e1: sp.Rational(3, 10), e2: 2, c1: -sp.Rational(3, 10), c2: sp.Rational(13, 10)}
    radial = 1 + c1 * Quotient(e1) + c2 * Quotient(e2)
    across = c1 * sp.coth(e1) + c2 * sp.coth(e2)
    x, y, c, s = sp.symbols("x y c s", real=True)
    pair, rotation = matrices("X", 2, 2), matrices("T_delta", 2, 2)
    heads = {pair: sp.Matrix([[x, y], [-x, -y]]), rotation: turn(c, s)}
    size = x**2 + y**2
    w1, w2 = sp.symbols("w_1 w_2", positive=True)

    def head(w: sp.Expr, share: sp.Expr) -> sp.MatrixExpr:
        return Softmax(w * pair * pair.T) * pair * rotation * (share / sp.tanh(w * size))

    def between(name: str, low: str, value: sp.Expr, high: str, why: str) -> tuple:
        return (
            by_intervals(f"{name}, from below", sp.Rational(low), value, why, given=logits),
            by_intervals(
                f"{name}, from above", value, sp.Rational(high), "Below 1: the error shrinks.", given=logits
            ),
        )

    return Derivation(
        "opposed_heads",
        "Logits 0.3 and 2 with shares -0.3 and 1.3 draw the circle, and every error but the angle shrinks.",
        (
            identity(
                "every step is right",
                head(w1, c1) + head(w2, c2),
                pair * rotation,
                "The shares add to 1.",
                given={**heads, c2: 1 - c1},
            ),
            *between("radial", "0.815", radial, "0.816", "The steep head has the negative share."),
            *between("across", "0.318", across, "0.319", "Here the flat head has to be steep enough."),
            *between(
                "along", "0.226", across + (radial - 1) / 2, "0.227", "By the relation of the three factors."
            ),
        ),
        f"Theorem (Opposed heads); {BOOK}.",
        {},
        __name__,
    )


DERIVATIONS = (drawn_circle, radial_factor, midpoint_factors, opposed_heads)
