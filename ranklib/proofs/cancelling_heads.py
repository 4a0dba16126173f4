"""Heads that cancel the cube."""

import sympy as sp

from .engine import Derivation, by_intervals, d, identity, inequality, l, matrices, n


def order_seven() -> Derivation:
    """Two heads that cancel to order seven."""
    u, a, t = sp.Symbol("u", positive=True), sp.Symbol("a", positive=True), sp.Symbol("t", nonnegative=True)
    depth = sp.Symbol("L", positive=True, integer=True)
    two = 2 * sp.tanh(u) - sp.tanh(2 * u)
    three = 5 * sp.tanh(u) - 4 * sp.tanh(2 * u) + sp.tanh(3 * u)
    return Derivation(
        "order_seven",
        "Heads w = 1, 2 with values 2, -1 cancel: the half-gap a becomes about 2 a^7 instead of a cube.",
        (
            identity(
                "double angle", sp.tanh(2 * u), 2 * sp.tanh(u) / (1 + sp.tanh(u) ** 2), "Addition formula."
            ),
            identity(
                "the linear terms cancel",
                two,
                2 * sp.tanh(u) ** 3 / (1 + sp.tanh(u) ** 2),
                "Two heads leave a cube of the tangent.",
            ),
            inequality(
                "at most twice the cube", 2 * t**3 / (1 + t**2), 2 * t**3, "The denominator is at least 1."
            ),
            inequality(
                "and the tangent is below u",
                sp.tanh(t),
                t,
                "With t = u = a^2 the new half-gap is at most 2 a (a^2)^3.",
                grows_in=t,
            ),
            identity("the constant is two", sp.Limit(two / u**3, u, 0), 2, "For small tokens."),
            by_intervals(
                "at one tenth",
                a * two,
                2 * a**7,
                "Below 2.0e-7, where one head gives 1e-3.",
                given={u: a**2, a: sp.Rational(1, 10)},
            ),
            identity(
                "many layers",
                1 + 7 * (7**depth - 1) / 6,
                (7 ** (depth + 1) - 1) / 6,
                "Exponents add up as before, with 7 for 3.",
            ),
            identity(
                "three heads give order eleven",
                sp.Limit(three / u**5, u, 0),
                16,
                "Take w = 1, 2, 3 with v = 5, -4, 1: the orders 3 and 7 vanish.",
            ),
        ),
        "Example (Order seven).",
        {},
        __name__,
    )


def heads_add() -> Derivation:
    """Heads on a line add with signs; heads in the plane are one block."""
    u = sp.Symbol("u", positive=True)
    w_1, w_2, v_1, v_2 = sp.symbols("w_1 w_2 v_1 v_2", positive=True)
    depth = sp.Symbol("L", positive=True, integer=True)
    layer = v_1 * sp.tanh(w_1 * u) + v_2 * sp.tanh(w_2 * u)
    linear = (v_1 * w_1 + v_2 * w_2) * u
    p, x = matrices("P", n, n), matrices("X", n, d)
    first, second = matrices("W_1 W_2", d, d)
    return Derivation(
        "heads_add",
        "For a small pair the layer is its sum of values times scores; the next term is a cube in u = a^2.",
        (
            identity(
                "the first term",
                sp.Limit(layer / u, u, 0),
                v_1 * w_1 + v_2 * w_2,
                "The hyperbolic tangent of u is about u.",
            ),
            identity(
                "the next one is a cube",
                sp.Limit((layer - linear) / u**3, u, 0),
                -(v_1 * w_1**3 + v_2 * w_2**3) / 3,
                "So after a^3 comes a^7: there is no a^5.",
            ),
            identity(
                "heads with the same scores are one head",
                p * x * first + p * x * second,
                p * x * (first + second),
                "The same P: only the sum of the values counts.",
                given={n: 2, d: 2},
            ),
            identity(
                "the exponents of the layers",
                sp.Sum(3 ** (depth - l), (l, 1, depth)),
                (3**depth - 1) / 2,
                "A geometric sum: the constant of layer l counts 3^(L-l) times.",
                given={depth: 5},
            ),
            inequality(
                "the first layer has more than two thirds",
                2 * ((3**depth - 1) / 2) / 3,
                3 ** (depth - 1),
                "Its exponent, against all of them.",
                strict=True,
                form=sp.Rational(1, 3),
            ),
        ),
        "Proposition (Heads add).",
        {},
        __name__,
    )


DERIVATIONS = (order_seven, heads_add)
