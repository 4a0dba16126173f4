"""Derivations: what ties the measures of collapse together, and what one feature does to them.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import real_matrix
from .engine.steps import Derivation, identity


def _squares(x: sp.MatrixBase) -> sp.Expr:
    return sum(entry**2 for entry in x)


def _deviations(x: sp.MatrixBase) -> sp.Matrix:
    return x - sp.ones(x.rows, x.rows) * x / x.rows


def equal_lengths() -> Derivation:
    """The mean cosine of unit rows by their relative residual (Lemma (Equal lengths))."""
    x = real_matrix("x", 3, 2)
    total = sp.ones(1, 3) * x
    pairs = sum((x[i, :] * x[j, :].T)[0] for i in range(3) for j in range(3) if i != j)
    n = sp.Symbol("n", positive=True)
    rel, s = sp.symbols("rel s", real=True)
    return Derivation(
        "equal_lengths",
        "For tokens of one length the mean cosine and the relative residual are one number in two forms.",
        (
            identity(
                "all pairs",
                _squares(total),
                _squares(x) + pairs,
                "Multiply out the squared length of the sum.",
                assumptions="three tokens, two features",
                latex="|\\textstyle\\sum_i x_i|^2\n= \\|X\\|_F^2 + \\textstyle\\sum_{i \\ne j} x_i^\\top x_j",
            ),
            identity(
                "the common part",
                _squares(x - _deviations(x)),
                _squares(total) / 3,
                "Each of the n rows of JX is the sum over n.",
                assumptions="n = 3",
                latex=r"\|JX\|_F^2 = |\textstyle\sum_i x_i|^2 / n",
            ),
            identity(
                "Pythagoras",
                _squares(_deviations(x)) + _squares(x - _deviations(x)),
                _squares(x),
                "X - JX has column sums zero, so it is orthogonal to JX.",
                latex="\\|X - JX\\|_F^2 + \\|JX\\|_F^2\n= \\|X\\|_F^2",
            ),
            identity(
                "unit rows",
                (n**2 * (1 - rel**2) - n) / (n * (n - 1)),
                1 - n * rel**2 / (n - 1),
                "The squared size is n, and the squared sum of all rows is n^2 (1 - rel^2).",
                latex="\\frac{n^2 (1 - \\mathrm{rel}^2) - n}{n (n - 1)}\n= 1 - \\frac{n}{n - 1} \\mathrm{rel}^2",
            ),
            identity(
                "another length",
                ((s * total) * (s * total).T)[0] / s**2,
                _squares(total),
                "A common length s drops out of every cosine.",
                assumptions="s not zero",
                latex=r"|\textstyle\sum_i s x_i|^2 / s^2 = |\textstyle\sum_i x_i|^2",
            ),
        ),
        "Lemma (Equal lengths) in chapter `measure-your-own-model`.",
    )


def shared_feature() -> Derivation:
    """One constant feature more (Proposition (One shared feature))."""
    x = real_matrix("x", 3, 2)
    z, n, size = sp.symbols("z n S", positive=True)
    q, dot = sp.symbols("q d", real=True)
    longer = x.row_join(z * sp.ones(3, 1))
    return Derivation(
        "shared_feature",
        "A constant feature leaves what differs between tokens alone; "
        "a large one decides rel, cosine and stable rank.",
        (
            identity(
                "deviations",
                _deviations(longer),
                _deviations(x).row_join(sp.zeros(3, 1)),
                "The new column equals its own mean.",
                assumptions="three tokens, two features",
                latex=r"X' - JX' = (X - JX, \; 0)",
            ),
            identity(
                "size",
                _squares(longer),
                _squares(x) + 3 * z**2,
                "The column adds z^2 for each token.",
                assumptions="n = 3",
                latex=r"\|X'\|_F^2 = \|X\|_F^2 + n z^2",
            ),
            identity(
                "the strongest direction",
                (n * z**2 + size) / (n * z**2),
                1 + size / (n * z**2),
                "The value s_1 is at least the size of the new column, sqrt(n) z.",
                assumptions="S is the squared size of X",
                latex="\\frac{\\|X'\\|_F^2}{s_1^2} \\le \\frac{S + n z^2}{n z^2}\n= 1 + \\frac{S}{n z^2}",
            ),
            identity(
                "one cosine",
                (dot + z**2).subs(dot, -(q**2) * z**2) / (z**2 + q**2 * z**2),
                (1 - q**2) / (1 + q**2),
                "The worst pair is opposite and as long as allowed, |x_i| = q z.",
                assumptions="q < 1",
                latex="\\frac{-q^2 z^2 + z^2}{q^2 z^2 + z^2}\n= \\frac{1 - q^2}{1 + q^2}",
            ),
        ),
        "Proposition (One shared feature) in chapter `measure-your-own-model`.",
    )


DERIVATIONS = {build.__name__: build for build in (equal_lengths, shared_feature)}
