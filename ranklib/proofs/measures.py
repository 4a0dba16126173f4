"""What ties the measures of collapse together, and what one feature does to them."""

import sympy as sp

from .engine import ONE, Derivation, Inner, Rows, Scalar, Squares, d, identity, inequality, matrices, n

MEAN = ONE * ONE.T / n


def equal_lengths() -> Derivation:
    """The mean cosine of unit rows by their relative residual."""
    x, (a, b) = matrices("X", n, d), matrices("x y", 1, d)
    size = sp.Symbol("n", positive=True)
    rel, s, total = sp.symbols("rel s q", positive=True)
    return Derivation(
        "equal_lengths",
        "For tokens of one length the mean cosine and the relative residual are one number in two forms.",
        (
            identity(
                "all pairs",
                Scalar(ONE.T * x * x.T * ONE),
                Squares(x) + 2 * sum(Inner(Rows(x, p), Rows(x, q)) for p, q in ((1, 2), (1, 3), (2, 3))),
                "The squared length of the sum of all rows.",
            ),
            identity(
                "the common part",
                Squares(MEAN * x),
                Squares(ONE.T * x) / n,
                "Each of the n rows of JX is the sum over n.",
            ),
            identity(
                "Pythagoras",
                Squares(x - MEAN * x) + Squares(MEAN * x),
                Squares(x),
                "X - JX has column sums zero, so it is orthogonal to JX.",
            ),
            identity(
                "unit rows",
                (total - size) / (size * (size - 1)),
                1 - size * rel**2 / (size - 1),
                "The squared size is n, and the squared sum of all rows is n^2 (1 - rel^2).",
                given={total: size**2 * (1 - rel**2)},
            ),
            identity(
                "another length",
                Inner(s * a, s * b) / sp.sqrt(Squares(s * a) * Squares(s * b)),
                Inner(a, b) / sp.sqrt(Squares(a) * Squares(b)),
                "A common length s drops out of every cosine.",
            ),
        ),
        "Lemma (Equal lengths).",
        {n: 3, d: 2},
        __name__,
    )


def shared_feature() -> Derivation:
    """One constant feature more."""
    x = matrices("X", n, d)
    z, count, size, top = sp.symbols("z n S s_1", positive=True)
    q = sp.Symbol("q", nonnegative=True)
    u = sp.Symbol("u", nonnegative=True)
    longer = sp.BlockMatrix([[x, z * ONE]])
    dot = sp.Symbol("c", real=True)
    return Derivation(
        "shared_feature",
        "A constant feature leaves what differs between tokens alone; "
        "a large one decides rel, cosine and stable rank.",
        (
            identity(
                "deviations",
                Squares(longer - MEAN * longer),
                Squares(x - MEAN * x),
                "The new column equals its own mean.",
            ),
            identity("size", Squares(longer), Squares(x) + n * z**2, "The column adds z^2 for each token."),
            inequality(
                "the strongest direction",
                (size + count * z**2) / top,
                1 + size / (count * z**2),
                "The squared value s_1 is at least the squared size of the new column, n z^2.",
                given={top: count * z**2 + u},
                form=u * (size + count * z**2) / (count * z**2 * (count * z**2 + u)),
            ),
            inequality(
                "one cosine",
                (1 - q**2) / (1 + q**2),
                (dot + z**2) / (z**2 + q**2 * z**2),
                "The worst pair is opposite and as long as allowed, |x_i| = q z.",
                given={dot: u - q**2 * z**2},
                form=u / (z**2 * (1 + q**2)),
            ),
        ),
        "Proposition (One shared feature).",
        {n: 3, d: 2},
        __name__,
    )


DERIVATIONS = (equal_lengths, shared_feature)
