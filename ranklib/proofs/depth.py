"""A cubic recursion through many layers."""

import sympy as sp

from .engine import Derivation, identity, inequality, j

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def unrolled_exponent() -> Derivation:
    """A cubic recursion unrolled."""
    depth = sp.Symbol("L", positive=True, integer=True)
    c, rho = sp.symbols("c rho", positive=True)
    y, t = sp.Symbol("y", nonnegative=True), sp.Symbol("t", positive=True)
    bound = c ** ((3**depth - 1) / 2) * rho ** (3**depth)
    return Derivation(
        "unrolled_exponent",
        "Each layer cubes what is there: exponents add to (3^L - 1)/2, and the bound falls iff c rho^2 < 1.",
        (
            identity(
                "three layers",
                c * (c * (c * rho**3) ** 3) ** 3,
                bound,
                "The exponents of c are 1 + 3 + 9.",
                given={depth: 3},
            ),
            identity(
                "exponents add to a half",
                sp.Sum(3 ** (j - 1), (j, 1, depth)),
                (3**depth - 1) / 2,
                "A geometric sum.",
                given={depth: 5},
            ),
            identity(
                "one layer more, for any depth",
                sp.log(c) + 3 * ((3**depth - 1) / 2 * sp.log(c) + 3**depth * sp.log(rho)),
                (3 ** (depth + 1) - 1) / 2 * sp.log(c) + 3 ** (depth + 1) * sp.log(rho),
                "Cube the bound and multiply by c, in logarithms.",
            ),
            identity(
                "as one power",
                (3**depth - 1) / 2 * sp.log(c) + 3**depth * sp.log(rho),
                3**depth * sp.log(sp.sqrt(c) * rho) - sp.log(c) / 2,
                "So the root of c times rho is what is raised to 3^L.",
            ),
            inequality(
                "the hypothesis is kept",
                c * rho**3,
                rho,
                "With c rho^2 = 1/(1 + y): Lambda does not grow from layer to layer.",
                given={c: 1 / ((1 + y) * rho**2)},
            ),
            identity(
                "below it the bound vanishes",
                sp.Limit(sp.exp(-t * 3**depth), depth, sp.oo),
                0,
                "Doubly exponentially, with the root of c rho^2 equal to e^(-t).",
            ),
            identity(
                "an example",
                bound,
                sp.Rational(1, 10) ** 81,
                "Three layers at c = 1 turn a thousandth into 10^(-81).",
                given={depth: 3, c: 1, rho: sp.Rational(1, 1000)},
            ),
        ),
        f"Theorem (One head, L layers); {PAPER}, Theorem 2.2.",
        {},
        __name__,
    )


DERIVATIONS = (unrolled_exponent,)
