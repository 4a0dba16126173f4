"""The columnwise median as a centre."""

import sympy as sp

from .engine import ONE, Composite, Derivation, d, i, identity, inequality, matrices, n, sequences


def median_centre() -> Derivation:
    """The columnwise median costs at most the factor sqrt(3)."""
    a, b, c, e, w, g, s1, s2, s3 = sp.symbols("a b c e w g s1 s2 s3", nonnegative=True)
    y, z, u, v, p, q = sp.symbols("y z u v p q", real=True)
    movers = sp.Symbol("m", positive=True, integer=True)
    entries, r = sequences("x r")
    far = sp.Sum(abs(entries[i] - w), (i, 1, n))
    size = 3
    cyclic = sp.Matrix(
        [[2 * (0 < (col - row) % 6 < size) for col in range(2 * size)] for row in range(2 * size)] + [6 * [3]]
    )
    x = matrices("X", n, d)
    return Derivation(
        "median_centre",
        "A columnwise median makes f least and g at most three times the least, so it costs at most the "
        "factor sqrt(3).",
        (
            inequality(
                "a median makes f least",
                a + b,
                abs(y - a - z) + abs(y - z) + abs(y + b - z),
                "Entries y - a, y, y + b: the outer two alone are a + b apart, for every centre z.",
            ),
            inequality(
                "half lie on the far side, odd n",
                n * w / 2,
                far,
                "Seen from a centre w above the median 0, the median and all below it are at least w away.",
                given={n: 3, entries: (-a, 0, b)},
            ),
            inequality(
                "half lie on the far side, even n",
                n * w / 2,
                far,
                "Any point between the two middle entries is a median, and the same count holds.",
                given={n: 4, entries: (-a - b, -a, c, c + e)},
            ),
            inequality(
                "the sum of the row sums",
                sp.Sum(r[i], (i, 1, n)),
                n * g,
                "Each of the n rows sums to at most g, so the distance of median and centre is at most 2g.",
                given={n: 3, r: (g - s1, g - s2, g - s3)},
            ),
            inequality(
                "triangle inequality in a row",
                abs(u - p) + abs(v - q),
                abs(u - y) + abs(v - z) + abs(y - p) + abs(z - q),
                "Row (u, v), median (p, q), centre (y, z): a row is g + 2g from the median, so f g grows to 3 f g.",
            ),
            identity(
                "a cyclic example",
                Composite(x) ** 2 / Composite(x - 2 * ONE * sp.OneMatrix(1, d)) ** 2,
                sp.Rational(7, 4),
                "Zeros and cyclically shifted twos, a last row of threes: the median 0 against the centre 2.",
                given={n: 7, d: 6, x: cyclic},
            ),
            identity(
                "the constant is sharp",
                sp.Limit(
                    (2 * movers + 1) * 6 * movers / ((2 * movers + 3) * (2 * movers + 2)), movers, sp.oo
                ),
                3,
                "The same example with n = 2m + 1 tokens and 2m features: the squared ratio tends to 3.",
            ),
        ),
        "Theorem (Median centre).",
        {},
        __name__,
    )


DERIVATIONS = (median_centre,)
