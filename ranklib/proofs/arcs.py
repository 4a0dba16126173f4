"""Derivations: the pair on a circle, the growth of its errors, and two heads that hold it.

Rows are tokens in the plane; the sentence of each step says why any number of heads works.
"""

import sympy as sp

from .engine.matrices import softmax_rows
from .engine.steps import Derivation, identity, inequality

HALF = sp.Rational(1, 2)
BOOK = "this book"
EYE = sp.eye(2)
TURN_LATEX = r"T_\delta"


def turn(c: sp.Expr, s: sp.Expr) -> sp.Matrix:
    """The matrix that turns a row counter-clockwise, from a cosine and a sine."""
    return sp.Matrix([[c, s], [-s, c]])


def quotient(u: sp.Expr) -> sp.Expr:
    """q(u) = 4u / sinh 2u."""
    return 4 * u / sp.sinh(2 * u)


def drawn_circle() -> Derivation:
    """One head draws the circle exactly (Proposition (One head draws))."""
    x, y, c, s = sp.symbols("x y c s", real=True)
    w, u = sp.symbols("w u", positive=True)
    t = sp.Symbol("u", nonnegative=True)
    pair, tanh = sp.Matrix([[x, y], [-x, -y]]), sp.tanh(u)
    return Derivation(
        "drawn_circle",
        "Scores w x y on the circle of radius A, and a turn divided by tanh(w A^2), make every step right.",
        (
            identity(
                "attention shortens the pair",
                softmax_rows(w * pair * pair.T) * pair,
                sp.tanh(w * (x**2 + y**2)) * pair,
                "An opposite pair in the plane, with W_QK = w I.",
                latex=r"P X = \tanh(w |a|^2) \, X",
            ),
            identity(
                "the values make up for it",
                tanh * pair * (turn(c, s) / tanh),
                pair * turn(c, s),
                "On the circle the shortening is tanh u, so divide the turn by it.",
                assumptions="u = w A^2",
                latex=rf"\tanh u \; X \, \tfrac{{1}}{{\tanh u}} {TURN_LATEX} = X {TURN_LATEX}",
            ),
            identity(
                "beside a skip",
                pair + tanh * pair * ((turn(c, s) - EYE) / tanh),
                pair * turn(c, s),
                "The skip brings the pair itself, so the head has to add the difference only.",
                latex=rf"X + X ({TURN_LATEX} - I) = X {TURN_LATEX}",
            ),
            inequality(
                "what u coth u costs",
                sp.tanh(t),
                t,
                "So u / tanh u is at least 1.",
                grows_in=t,
                latex=r"\tanh u \le u",
            ),
            identity(
                "its slope",
                sp.diff(u / sp.tanh(u), u),
                (sp.sinh(2 * u) - 2 * u) / (2 * sp.sinh(u) ** 2),
                "The sine is above its argument, so u / tanh u grows.",
                latex="\\frac{d}{du} \\frac{u}{\\tanh u}\n= \\frac{\\sinh 2u - 2u}{2 \\sinh^2 u}",
            ),
        ),
        f"Proposition (One head draws) in chapter `drawing-arcs`; {BOOK}.",
    )


def radial_factor() -> Derivation:
    """How a step multiplies a radial error (Theorem (Radial factor))."""
    e, u, s = sp.symbols("e u s", positive=True)
    t = sp.Symbol("t", nonnegative=True)
    c1, c2, q1, q2 = sp.symbols("c1 c2 q1 q2", real=True)
    phi, x, y = sp.symbols("delta x y", real=True)
    q, extra = sp.symbols("q p", positive=True)
    a = sp.Matrix([[x, y]])
    rotation = turn(sp.cos(phi), sp.sin(phi))
    return Derivation(
        "radial_factor",
        "A head with share c multiplies a radial error by c (1 + q), a skip by its share alone.",
        (
            identity(
                "one head",
                sp.diff(s * sp.tanh(s**2 * e), s).subs(s, 1) / sp.tanh(e),
                1 + quotient(e),
                "Scale the half-gap by s: the logit grows like s^2.",
                latex="\\frac{1}{\\tanh e} \\frac{d}{ds} \\, s \\tanh(s^2 e) \\Big|_{s=1}\n"
                "= 1 + \\frac{4e}{\\sinh 2e}",
            ),
            identity(
                "several heads and a skip",
                (1 - c1 - c2) + c1 * (1 + q1) + c2 * (1 + q2),
                1 + c1 * q1 + c2 * q2,
                "The derivative of a sum; the shares add to 1.",
                latex="c_0 + \\sum_h c_h (1 + q_h)\n= 1 + \\sum_h c_h q_h",
            ),
            inequality("q is at most 2", t, sp.sinh(t), "With t = 2e.", grows_in=t, latex=r"2e \le \sinh 2e"),
            identity(
                "and tends to 2",
                sp.Limit(quotient(u), u, 0),
                sp.Integer(2),
                "At small logits.",
                latex=r"\lim_{e \to 0} q(e) = 2",
            ),
            identity(
                "share of a head beside a skip",
                (a * (rotation - EYE)) * (a * rotation).T,
                sp.Matrix([[(1 - sp.cos(phi)) * (x**2 + y**2)]]),
                "The head adds the difference of two points of the circle.",
                latex="\\langle a (T_\\delta - I), a T_\\delta \\rangle\n= (1 - \\cos \\delta) |a|^2",
            ),
            inequality(
                "a pull that suffices",
                (1 - (q / (1 + q) + extra)) * (1 + q),
                1,
                "Any more than q / (1 + q).",
                strict=True,
                form=extra * (1 + q),
                latex=r"(1 - p)(1 + q) < 1 \quad \text{for } p > \tfrac{q}{1 + q}",
            ),
        ),
        f"Theorem (Radial factor) in chapter `drawing-arcs`; {BOOK}.",
    )


def midpoint_factors() -> Derivation:
    """How a step multiplies an error of the midpoint (Proposition (Midpoint))."""
    s = sp.Symbol("s", real=True)
    e, u = sp.symbols("e u", positive=True)
    c1, c2, q1, q2, k = sp.symbols("c1 c2 q1 q2 k", real=True)
    mean, gap = (sp.tanh(s + e) + sp.tanh(s - e)) / 2, (sp.tanh(s + e) - sp.tanh(s - e)) / 2
    return Derivation(
        "midpoint_factors",
        "A midpoint error is multiplied by coth u across the pair, and by coth u + q/2 along it.",
        (
            identity(
                "what the midpoint gains",
                sp.diff(mean, s).subs(s, 0),
                1 / sp.cosh(e) ** 2,
                "Token i is sent to m + a tanh of its logit; the logits are s + e and s - e.",
                latex="\\frac{d}{ds} \\tfrac{1}{2} (\\tanh(s+e) + \\tanh(s-e)) \\Big|_0\n"
                "= \\frac{1}{\\cosh^2 e}",
            ),
            identity(
                "the half-gap does not notice",
                sp.diff(gap, s).subs(s, 0),
                sp.Integer(0),
                "To first order.",
                latex=r"\frac{d}{ds} \tfrac{1}{2} (\tanh(s+e) - \tanh(s-e)) \Big|_0 = 0",
            ),
            identity(
                "along the pair",
                (1 + u / sp.cosh(u) ** 2) / sp.tanh(u),
                1 / sp.tanh(u) + quotient(u) / 2,
                "There s is u times the relative error.",
                latex="\\frac{1 + u / \\cosh^2 u}{\\tanh u}\n= \\coth u + \\tfrac{1}{2} q(u)",
            ),
            inequality(
                "both are above 1",
                sp.tanh(u),
                1,
                "Across the pair s is 0.",
                strict=True,
                form=2 / (sp.exp(2 * u) + 1),
                latex=r"\tanh u < 1",
            ),
            identity(
                "several heads",
                (k + (c1 * q1 + c2 * q2) / 2) - k,
                ((1 + c1 * q1 + c2 * q2) - 1) / 2,
                "With k the sum of the c coth e: along exceeds across by half of what the radial "
                "factor exceeds 1.",
                latex="\\text{along} - \\text{across}\n= \\tfrac{1}{2} (\\text{radial} - 1)",
            ),
        ),
        f"Proposition (Midpoint) in chapter `drawing-arcs`; {BOOK}.",
    )


def opposed_heads() -> Derivation:
    """Two heads of opposite sign hold the circle (Theorem (Opposed heads))."""
    e1, e2 = sp.Rational(3, 10), sp.Integer(2)
    c1, c2 = sp.Rational(-3, 10), sp.Rational(13, 10)
    radial = 1 + c1 * quotient(e1) + c2 * quotient(e2)
    across = c1 / sp.tanh(e1) + c2 / sp.tanh(e2)
    along = across + (radial - 1) / 2
    x, y, c, s = sp.symbols("x y c s", real=True)
    pair, rotation = sp.Matrix([[x, y], [-x, -y]]), turn(c, s)
    heads = [sp.tanh(e) * pair * (share * rotation / sp.tanh(e)) for e, share in ((e1, c1), (e2, c2))]

    def between(name: str, low: str, value: sp.Expr, high: str, latex: str, why: str) -> tuple:
        ends = [(low, sp.Rational(low), value), (high, value, sp.Rational(high))]
        return tuple(
            inequality(
                f"{name}, {side}",
                left,
                right,
                why,
                strict=True,
                latex=f"{end} < {latex}" if side == "below" else f"{latex} < {end}",
            )
            for side, (end, left, right) in zip(("below", "above"), ends)
        )

    return Derivation(
        "opposed_heads",
        "Logits 0.3 and 2 with shares -0.3 and 1.3 draw the circle, and every error but the angle shrinks.",
        (
            identity(
                "every step is right",
                heads[0] + heads[1],
                pair * rotation,
                "The shares add to 1.",
                latex=r"-0.3 \, X T_\delta + 1.3 \, X T_\delta = X T_\delta",
            ),
            *between(
                "radial",
                "0.815",
                radial,
                "0.816",
                r"1 - 0.3 \, q(0.3) + 1.3 \, q(2)",
                "The steep head has the negative share.",
            ),
            *between(
                "across",
                "0.318",
                across,
                "0.319",
                r"-0.3 \coth 0.3 + 1.3 \coth 2",
                "Here the flat head has to be steep enough.",
            ),
            *between(
                "along",
                "0.226",
                along,
                "0.227",
                r"\text{across} + \tfrac{1}{2} (\text{radial} - 1)",
                "By the last step before.",
            ),
        ),
        f"Theorem (Opposed heads) in chapter `drawing-arcs`; {BOOK}.",
    )


DERIVATIONS = {
    build.__name__: build for build in (drawn_circle, radial_factor, midpoint_factors, opposed_heads)
}
