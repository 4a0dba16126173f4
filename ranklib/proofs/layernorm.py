"""Dividing columns or rows: what cannot collapse, and when a norm is harmless."""

import sympy as sp

from .engine import (
    ONE,
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
    m,
    matrices,
    n,
    sequences,
)

CENTRING = sp.Identity(n) - ONE * ONE.T / n
HALF = sp.Rational(1, 2)
BOOK = "this book"


def column_division() -> Derivation:
    """Normalised columns cannot all be near one row: the spectral norm is below both sums."""
    a, u, v, y = sequences("a u v y")
    z, x = matrices("Z", n, d), matrices("x", d, 1)
    p, q, r = sp.symbols("p q r", nonnegative=True)
    u1, u2, u3, v1, v2, v3 = sp.symbols("u_1:4 v_1:4", real=True)
    rank, root = sp.Symbol("r", positive=True, integer=True), sp.sqrt(2)
    apart = sp.Matrix([[root, 0], [-root, 0], [0, root], [0, -root]])
    return Derivation(
        "column_division",
        "If every column has mean 0 and variance 1 over the tokens, the squared residual is at least nd over the rank.",
        (
            inequality(
                "the spectral norm is below both sums",
                sp.Sum(a[k] * u[k] * v[k], (k, 1, m)) ** 2,
                sp.Sum(a[k] * u[k] ** 2, (k, 1, m)) * sp.Sum(a[k] * v[k] ** 2, (k, 1, m)),
                "With the sizes of the entries as a: for unit vectors the factors are at most the largest row and column sum.",
                given={m: 3, a: (p, q, r), u: (u1, u2, u3), v: (v1, v2, v3)},
                form=p * q * (u1 * v2 - u2 * v1) ** 2
                + p * r * (u1 * v3 - u3 * v1) ** 2
                + q * r * (u2 * v3 - u3 * v2) ** 2,
            ),
            identity(
                "the mean takes any centre away",
                CENTRING * (z - ONE * x.T),
                z - ONE * (ONE.T * z) / n,
                "A projection, which enlarges no spectral norm; columns of mean zero stay as they are.",
                given={n: 3, d: 2},
            ),
            inequality(
                "squares share out",
                sp.Sum(y[j], (j, 1, rank)),
                rank * Largest(y[j], (j, 1, rank)),
                "The squared singular values add to nd, and at most min(n - 1, d) of them are not zero.",
                given={rank: 3, y: (p + q + r, q + r, r)},
            ),
            identity(
                "two tokens attain it",
                ColNorm(z) * RowNorm(z),
                2 * d,
                "The rows (1, ..., 1) and (-1, ..., -1), of rank 1.",
                given={n: 2, d: 4, z: sp.Matrix([[1] * 4, [-1] * 4])},
            ),
            identity(
                "twice as many tokens as features attain it",
                ColNorm(z) * RowNorm(z),
                n,
                "Two rows for each column: 2 root (n/2) times root (n/2).",
                given={n: 4, d: 2, z: apart},
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
        f"Proposition (Opposite pairs); {BOOK}.",
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
        f"Theorem (When it folds); {BOOK}.",
        {},
        __name__,
    )


DERIVATIONS = (column_division, opposite_pairs, stretch, ball_projection)
