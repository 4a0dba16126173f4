"""Derivations about centres: the mean, how bad it can be, the columnwise median.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import centring, composite, max_col_sum, max_row_sum, real_matrix
from .engine.steps import Derivation, by_lemma, identity, inequality

HALF = sp.Rational(1, 2)


def mean_centre() -> Derivation:
    """The residual about the mean is at most 2(1 - 1/n) times the best (Theorem (Mean centre))."""
    n = sp.Symbol("n", positive=True, integer=True)
    sizes = (2, 3, 5, 7)
    x, centre, one = real_matrix("x", 3, 2), real_matrix("z", 2, 1), sp.ones(3, 1)
    a, b = real_matrix("a", 2, 3), real_matrix("b", 3, 2)
    box = {symbol: (-2, 2) for symbol in [*a, *b]}
    f, g, s, t, c = sp.symbols("f g s t c", nonnegative=True)
    y, u = sp.symbols("y u", real=True)
    factor = [2 * (1 - sp.Rational(1, size)) for size in sizes]
    lemma = "induced norms are submultiplicative"
    mean = x.T * one / 3
    return Derivation(
        "mean_centre",
        "Centring at the mean costs at most the factor 2(1 - 1/n), and the identity matrix attains it.",
        (
            identity(
                "centring kills a constant row",
                centring(3) * one,
                0 * one,
                "Each row of the centring matrix sums to zero.",
                latex="C \\mathbf{1} = 0,\nC = I - \\tfrac{1}{n} \\mathbf{1} \\mathbf{1}^\\top",
            ),
            identity(
                "centring subtracts the mean",
                centring(3) * x,
                x - one * mean.T,
                "The averaging matrix puts the column means into every row.",
                latex=r"C X = X - \mathbf{1} \mu^\top",
            ),
            identity(
                "centring ignores the centre",
                centring(3) * (x - one * centre.T),
                centring(3) * x,
                "It may therefore be applied to the residual about the best centre.",
                latex=r"C (X - \mathbf{1} x^\top) = C X",
            ),
            identity(
                "a row of the centring matrix",
                (1 - 1 / n) + (n - 1) / n,
                2 * (1 - 1 / n),
                "One entry 1 - 1/n and n - 1 entries of size 1/n; columns are the same by symmetry.",
                latex=r"(1 - \tfrac{1}{n}) + \tfrac{n - 1}{n} = 2 (1 - \tfrac{1}{n})",
            ),
            identity(
                "both norms, n = 2, 3, 5, 7",
                sp.Matrix([[max_col_sum(centring(k)), max_row_sum(centring(k))] for k in sizes]),
                sp.Matrix([[value, value] for value in factor]),
                "The two norms of the explicit matrices are what the row computation gives.",
                latex=r"\|C\|_1 = \|C\|_\infty = 2 (1 - \tfrac{1}{n})",
            ),
            by_lemma(
                "product rule, columns",
                max_col_sum(a * b),
                max_col_sum(a) * max_col_sum(b),
                "Apply it to C times the best residual.",
                lemma=lemma,
                box=box,
                latex=r"\|A B\|_1 \le \|A\|_1 \|B\|_1",
            ),
            by_lemma(
                "product rule, rows",
                max_row_sum(a * b),
                max_row_sum(a) * max_row_sum(b),
                "The same for the row sums.",
                lemma=lemma,
                box=box,
                latex=r"\|A B\|_\infty \le \|A\|_\infty \|B\|_\infty",
            ),
            inequality(
                "multiply the two bounds",
                f * g,
                (f + s) * (g + t),
                "If each factor is at most another one, so is the product; all are non-negative.",
                assumptions="f, g, s, t non-negative",
            ),
            identity(
                "take the root",
                sp.sqrt(c * f * c * g),
                c * sp.sqrt(f * g),
                "Both norms carry the same factor c = 2(1 - 1/n), so the root of the product does.",
                assumptions="c, f, g non-negative",
                latex=r"\sqrt{(c f)(c g)} = c \sqrt{f g}",
            ),
            inequality(
                "the identity matrix: columns",
                1,
                abs(1 - y) + abs(y),
                "A column of the identity holds a one and a zero, so no centre brings f below 1.",
                latex=r"1 \le |1 - y| + |y| \le f",
            ),
            inequality(
                "the identity matrix: rows",
                1,
                (abs(1 - y) + abs(y) + abs(1 - u) + abs(u)) / 2,
                "Two rows of the identity meet a one and a zero twice, so g is at least 1.",
                latex="1 \\le \\tfrac{1}{2} (|1 - y| + |y|\n+ |1 - u| + |u|) \\le g",
            ),
            identity(
                "the identity matrix attains it",
                sp.Matrix([[composite(sp.eye(k)), composite(centring(k))] for k in sizes]),
                sp.Matrix([[1, value] for value in factor]),
                "About zero the composite is 1, the least possible; about the mean it is 2(1 - 1/n).",
                latex="\\|I\\|_{1,\\infty} = 1,\n\\|C I\\|_{1,\\infty} = 2 (1 - \\tfrac{1}{n})",
            ),
        ),
        "Theorem (Mean centre) in chapter `attention-and-residual`; "
        "product rule: Horn and Johnson, Matrix Analysis, section 5.6.",
    )


def mean_family() -> Derivation:
    """A family whose mean residual approaches the factor 2(1 - 1/n) (Theorem (Mean centre))."""
    n, k, j = sp.Symbol("n", positive=True), sp.Symbol("K", positive=True), sp.Symbol("j", nonnegative=True)
    mu = (2 - n) / n**2
    f_mean, g_mean = 2 * (1 - 1 / n), (1 - 1 / n) * (1 + 2 * k / n)
    rows, formulas = [], []
    for size, copies in ((3, 5), (4, 2), (5, 3)):
        x = sp.eye(size)[:, :1].row_join(sp.Matrix([1] + [-1] * (size - 1)) * sp.ones(1, copies) / size)
        both = (x, centring(size) * x)
        rows.append([norm(y) for y in both for norm in (max_col_sum, max_row_sum)])
        formulas.append([e.subs({n: size, k: copies}) for e in (sp.S.One, 1 + k / n, f_mean, g_mean)])
    square = f_mean * g_mean / (1 + k / n)
    return Derivation(
        "mean_family",
        "One column (1, 0, ..., 0) and K columns (1, -1, ..., -1)/n: as K grows, the mean is worse than the "
        "centre zero by a factor that tends to 2(1 - 1/n).",
        (
            identity(
                "the single column",
                (1 - 1 / n) + (n - 1) / n,
                f_mean,
                "Its mean is 1/n: one deviation 1 - 1/n and n - 1 deviations 1/n.",
                latex=r"(1 - \tfrac{1}{n}) + \tfrac{n - 1}{n} = 2 (1 - \tfrac{1}{n})",
            ),
            identity(
                "mean of a repeated column",
                (1 - (n - 1)) / n**2,
                mu,
                "One entry 1/n and n - 1 entries -1/n, divided by n.",
                latex=r"\tfrac{1}{n^2} (1 - (n - 1)) = \tfrac{2 - n}{n^2} = \mu",
            ),
            identity(
                "a repeated column",
                (1 / n - mu) + (n - 1) * (1 / n + mu),
                4 * (n - 1) / n**2,
                "The first token deviates upwards, the n - 1 others downwards.",
                latex="(\\tfrac{1}{n} - \\mu) + (n - 1)(\\tfrac{1}{n} + \\mu)\n= \\tfrac{4 (n - 1)}{n^2}",
            ),
            inequality(
                "the single column decides f",
                (4 * (n - 1) / n**2).subs(n, 2 + j),
                f_mean.subs(n, 2 + j),
                "For two or more tokens the first column has the largest sum.",
                assumptions="n = 2 + j, j non-negative",
                latex=r"\tfrac{4 (n - 1)}{n^2} \le \tfrac{2 (n - 1)}{n}",
            ),
            inequality(
                "the first token decides g",
                ((1 + 2 * k / n) / n).subs(n, 2 + j),
                g_mean.subs(n, 2 + j),
                "Every deviation of the first token is n - 1 times that of another one.",
                assumptions="n = 2 + j, j non-negative; K positive",
                latex="\\tfrac{1}{n} (1 + \\tfrac{2 K}{n})\n\\le (1 - \\tfrac{1}{n}) (1 + \\tfrac{2 K}{n})",
            ),
            identity(
                "the explicit matrices agree",
                sp.Matrix(rows),
                sp.Matrix(formulas),
                "Both norms about zero and about the mean, for (n, K) = (3, 5), (4, 2), (5, 3).",
                latex="f(0) = 1, \\quad g(0) = 1 + \\tfrac{K}{n},\nf(\\mu) = 2 (1 - \\tfrac{1}{n}),\n"
                "g(\\mu) = (1 - \\tfrac{1}{n}) (1 + \\tfrac{2 K}{n})",
            ),
            identity(
                "the squared ratio",
                square,
                2 * (1 - 1 / n) ** 2 * (n + 2 * k) / (n + k),
                "Divide the product of the norms about the mean by the product about zero.",
                latex="\\frac{f(\\mu) g(\\mu)}{f(0) g(0)}\n= 2 (1 - \\tfrac{1}{n})^2 \\frac{n + 2 K}{n + K}",
            ),
            inequality(
                "never above the theorem", (n + 2 * k) / (n + k), 2, "The limit is not exceeded on the way."
            ),
            identity(
                "the limit",
                sp.Limit(square, k, sp.oo),
                (2 * (1 - 1 / n)) ** 2,
                "The fraction tends to 2, so the ratio tends to 2(1 - 1/n).",
                latex="\\lim_{K \\to \\infty} \\frac{f(\\mu) g(\\mu)}{f(0) g(0)}\n"
                "= (2 (1 - \\tfrac{1}{n}))^2",
            ),
            identity(
                "four tokens, K = 20",
                square.subs({n: 4, k: 20}),
                sp.Rational(33, 16),
                "The ratio is 1.436, already close to the limit 1.5.",
            ),
        ),
        "Theorem (Mean centre) in chapter `attention-and-residual`, sharpness.",
    )


def median_centre() -> Derivation:
    """The columnwise median costs at most the factor sqrt(3) (Theorem (Median centre))."""
    a, b, c, e, w, g, r, s, t, f = sp.symbols("a b c e w g r s t f", nonnegative=True)
    y, z, u, v, p, q = sp.symbols("y z u v p q", real=True)
    k = sp.Symbol("m", positive=True, integer=True)
    size = 3
    x = sp.Matrix(
        [
            [2 if 0 < (col - row) % (2 * size) < size else 0 for col in range(2 * size)]
            for row in range(2 * size)
        ]
        + [2 * size * [3]]
    )
    norms = [norm(x - centre * sp.ones(*x.shape)) for centre in (0, 2) for norm in (max_col_sum, max_row_sum)]
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
                assumptions="three entries; a, b non-negative",
                latex="a + b \\le\n|y - a - z| + |y - z| + |y + b - z|",
            ),
            inequality(
                "half lie on the far side, odd n",
                3 * HALF * w,
                abs(-a - w) + abs(-w) + abs(b - w),
                "Seen from a centre w above, the median and all below it are at least w away.",
                assumptions="entries -a, 0, b about the median; w non-negative, otherwise reflect",
                latex=r"\tfrac{n}{2} w \le \sum_i |X_{ik} - x_k|",
            ),
            inequality(
                "half lie on the far side, even n",
                2 * w,
                abs(-a - b - w) + abs(-a - w) + abs(c - w) + abs(c + e - w),
                "Any point between the two middle entries is a median, and the same count holds.",
                assumptions="entries -a-b, -a, c, c+e about a median; all non-negative",
                latex=r"\tfrac{n}{2} w \le \sum_i |X_{ik} - x_k|",
            ),
            inequality(
                "the sum of the row sums",
                (g - r) + (g - s) + (g - t),
                3 * g,
                "Each of the n rows sums to at most g, so the distance of the centres is at most 2g.",
                assumptions="row sums g - r, g - s, g - t; r, s, t non-negative",
                latex="\\|m - x\\|_1 \\le \\tfrac{2}{n} \\sum_{ik} |X_{ik} - x_k|\n\\le \\tfrac{2}{n} n g",
            ),
            inequality(
                "triangle inequality in a row",
                abs(u - p) + abs(v - q),
                abs(u - y) + abs(v - z) + abs(y - p) + abs(z - q),
                "Row (u, v), median (p, q), centre (y, z): go through the centre.",
                latex="\\|X_i - m\\|_1 \\le\n\\|X_i - x\\|_1 + \\|x - m\\|_1",
            ),
            identity(
                "g at the median",
                g + 2 * g,
                3 * g,
                "A row is g(x) from the centre, and the centre 2 g(x) away.",
                latex=r"g(m) \le g(x) + 2 g(x) = 3 g(x)",
            ),
            inequality(
                "multiply the two bounds",
                f * g,
                (f + s) * (g + t),
                "The median has f(m) at most f(x) and g(m) at most 3 g(x); all are non-negative.",
                assumptions="f, g, s, t non-negative",
            ),
            identity(
                "take the root",
                sp.sqrt(f * 3 * g),
                sp.sqrt(3) * sp.sqrt(f * g),
                "This holds for every centre x, the best one included.",
                assumptions="f, g non-negative",
                latex=r"\sqrt{f \cdot 3 g} = \sqrt{3} \sqrt{f g}",
            ),
            identity(
                "a cyclic example, n = 7, d = 6",
                sp.Matrix(norms),
                sp.Matrix([7, 18, 9, 8]),
                "Zeros and cyclically shifted twos, a last row of threes: median 0, centre 2.",
                latex="f(0) = 7, \\quad g(0) = 18,\nf(2) = 9, \\quad g(2) = 8",
            ),
            identity(
                "the constant is sharp",
                sp.Limit((2 * k + 1) * 6 * k / ((2 * k + 3) * (2 * k + 2)), k, sp.oo),
                3,
                "The same example with n = 2m + 1 tokens and 2m features: the squared ratio tends to 3.",
                latex="\\lim_{m \\to \\infty} \\frac{(2 m + 1) \\cdot 6 m}{(2 m + 3) (2 m + 2)}\n= 3",
            ),
        ),
        "Theorem (Median centre) in chapter `attention-and-residual`.",
    )


DERIVATIONS = {build.__name__: build for build in (mean_centre, mean_family, median_centre)}
