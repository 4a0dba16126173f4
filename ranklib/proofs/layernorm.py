"""Dividing columns or rows: what cannot collapse, and when a norm is harmless."""

import sympy as sp

from .engine import (
    ColNorm,
    Derivation,
    Largest,
    Normed,
    RowNorm,
    Softmax,
    d,
    i,
    identity,
    inequality,
    j,
    k,
    matrices,
    n,
    sequences,
)

HALF = sp.Rational(1, 2)
BOOK = "this book"


def column_division() -> Derivation:
    """Normalised columns have residual at least sqrt d."""
    a, b, x = sp.symbols("a b x", real=True)
    p, q, r = sp.symbols("p q r", nonnegative=True)
    z, y = sequences("z y")
    column = {z: (a, b, -a - b), n: 3}
    return Derivation(
        "column_division",
        "If every column has mean 0 and variance 1 over the tokens, the residual is at least the root of d.",
        (
            identity(
                "a column about any number",
                sp.Sum((z[i] - x) ** 2, (i, 1, n)),
                sp.Sum(z[i] ** 2, (i, 1, n)) + n * x**2,
                "The cross term is the sum of the column, zero; with variance 1 the squares add to n at least.",
                given=column,
            ),
            inequality(
                "a sum is at least the root of squares",
                sp.Sum(y[i] ** 2, (i, 1, n)),
                sp.Sum(abs(y[i]), (i, 1, n)) ** 2,
                "Multiply out: the mixed terms are not negative. So every column has absolute sum root n.",
                given={n: 3, y: (p, q, r)},
                form=2 * (p * q + p * r + q * r),
            ),
            inequality(
                "a largest row is at least the mean row",
                sp.Sum(y[i], (i, 1, n)) / n,
                Largest(y[i], (i, 1, n)),
                "For n rows: g is one n-th of d root n at least, and f is root n, so f g is at least d.",
                given={n: 2},
            ),
        ),
        f"Theorem (Columns cannot collapse); {BOOK}.",
        {},
        __name__,
    )


def opposite_pairs() -> Derivation:
    """Pairs stay pairs, and LayerNorm keeps their residual at sqrt(2d) at least."""
    x, w = matrices("X", 2, 2), matrices("W", 2, 2)
    pi, v = matrices("Pi", 2, 2), sp.Matrix([sp.symbols("v_1:3", real=True)])
    u, z = sp.symbols("u z", real=True)
    entry, c = sequences("u c")
    one = matrices("u", 2, d)
    signs = sp.Matrix([[1, 1, -1, 1], [-1, -1, 1, -1]])
    s1, s2, s3 = sp.symbols("s1 s2 s3", nonnegative=True)
    given = {pi: sp.Matrix([[0, 1], [1, 0]]), x: sp.Matrix.vstack(v, -v)}
    row = matrices("x", 1, 3)
    return Derivation(
        "opposite_pairs",
        "Without biases and masks opposite tokens stay opposite, with or without LayerNorm; with it the "
        "residual is at least the root of 2d in every layer, and tokens of entries plus and minus 1 attain it.",
        (
            identity("pairs are a symmetry", pi * x, -x, "Swapping partners changes all signs.", given=given),
            identity(
                "attention keeps it",
                pi * Softmax(x * w * x.T) * x,
                -Softmax(x * w * x.T) * x,
                "Row -v puts on -y the weight that row v puts on y, whatever the weights W are.",
                given=given,
            ),
            identity("LayerNorm is odd", Normed(-row), -Normed(row), "Centre, then divide by a length."),
            inequality(
                "any centre of one feature",
                2 * abs(u),
                abs(u - z) + abs(-u - z),
                "So f is at least twice the largest entry, and twice the largest row sum adds up over features.",
            ),
            inequality(
                "rows: the sum of sizes",
                2 * sp.Sum(abs(entry[k]), (k, 1, d)),
                sp.Sum(abs(entry[k] - c[k]) + abs(-entry[k] - c[k]), (k, 1, d)),
                "One of the two rows is at least the mean of both: g is at least the sum of the sizes.",
                given={d: 2},
            ),
            inequality(
                "largest entry times sum of sizes",
                sp.Sum(entry[k] ** 2, (k, 1, d)),
                Largest(entry[k], (k, 1, d)) * sp.Sum(entry[k], (k, 1, d)),
                "Each square is at most the largest entry times its own size; after LayerNorm the squares add to d, so f g is at least 2d.",
                given={d: 3, entry: (s1 + s2 + s3, s2 + s3, s3)},
            ),
            identity(
                "entries plus and minus 1 attain it",
                ColNorm(one) * RowNorm(one),
                2 * d,
                "Column 2, row d about zero.",
                given={d: 4, one: signs},
            ),
        ),
        f"Opposite pairs under LayerNorm; {BOOK}.",
        {},
        __name__,
    )


def stretch() -> Derivation:
    """LayerNorm is a projection to a ball, so it is Lipschitz, and tokens of one deviation attain it."""
    phi = sp.Symbol("phi", real=True)
    eps, big_p, big_q, sigma = sp.symbols("epsilon P Q s", positive=True)
    r, t, h = sp.symbols("r t h", nonnegative=True)
    u, v = sequences("u v")
    return Derivation(
        "stretch",
        "Two vectors outside the unit ball are at least as far apart as their directions.",
        (
            identity(
                "centring is a projection",
                sp.Sum((u[k] - sp.Sum(u[j], (j, 1, d)) / d) ** 2, (k, 1, d)),
                sp.Sum(u[k] ** 2, (k, 1, d)) - sp.Sum(u[k], (k, 1, d)) ** 2 / d,
                "A difference of two tokens only gets shorter when its mean is subtracted.",
                given={d: 3},
            ),
            identity(
                "epsilon is one more feature",
                d * (sp.Sum(u[k] ** 2, (k, 1, d)) / d + eps),
                sp.Sum(u[k] ** 2, (k, 1, d)) + sp.sqrt(d * eps) ** 2,
                "The divisor is the length of the longer vector.",
                given={d: 2},
            ),
            identity(
                "distance of two vectors",
                (big_p - big_q * sp.cos(phi)) ** 2 + (big_q * sp.sin(phi)) ** 2,
                (big_p - big_q) ** 2 + 2 * big_p * big_q * (1 - sp.cos(phi)),
                "Lengths P and Q, angle phi; for directions both lengths are 1.",
            ),
            inequality(
                "projection does not enlarge",
                2 * h,
                (big_p - big_q) ** 2 + 2 * big_p * big_q * h,
                "With h = 1 - cos phi: drop the square, and PQ is at least 1.",
                form=(r - t) ** 2 + 2 * h * (r + t + r * t),
                given={big_p: 1 + r, big_q: 1 + t},
            ),
            identity(
                "equal deviations attain it",
                sp.Sum((u[k] / sigma - v[k] / sigma) ** 2, (k, 1, d)),
                sp.Sum((u[k] - v[k]) ** 2, (k, 1, d)) / sigma**2,
                "Centred tokens of one deviation s are all divided by s.",
                given={d: 2},
            ),
        ),
        f"Theorem (Stretch); {BOOK}.",
        {},
        __name__,
    )


def ball_projection() -> Derivation:
    """What the stretch of LayerNorm costs in the paper's size."""
    p, q, r = sp.symbols("p q r", nonnegative=True)
    y, x = sequences("y x")
    mean = sp.Sum(x[j], (j, 1, n)) / n
    three = {d: 3, y: (p, q, r)}
    return Derivation(
        "ball_projection",
        "From Euclidean distances of tokens to column and row sums: the root of d cubed for both together.",
        (
            identity(
                "all pairs, or all about the mean",
                sp.Sum(sp.Sum((x[i] - x[j]) ** 2, (j, 1, n)), (i, 1, n)),
                2 * n * sp.Sum((x[i] - mean) ** 2, (i, 1, n)),
                "So a bound for each pair bounds mu.",
                given={n: 3},
            ),
            inequality(
                "rows cost the root of d",
                sp.Sum(y[k], (k, 1, d)) ** 2,
                d * sp.Sum(y[k] ** 2, (k, 1, d)),
                "Cauchy and Schwarz.",
                form=(p - q) ** 2 + (p - r) ** 2 + (q - r) ** 2,
                given=three,
            ),
            inequality(
                "columns cost d",
                sp.Sum(y[k] ** 2, (k, 1, d)),
                sp.Sum(y[k], (k, 1, d)) ** 2,
                "An entry is at most the length of its row, that the sum of the row, and the d columns' sums are "
                "each at most the largest: both together the root of d cubed.",
                form=2 * (p * q + p * r + q * r),
                given=three,
            ),
        ),
        f"When LayerNorm folds into the paper's size; {BOOK}.",
        {},
        __name__,
    )


DERIVATIONS = (column_division, opposite_pairs, stretch, ball_projection)
