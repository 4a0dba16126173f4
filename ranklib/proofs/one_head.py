"""Derivations: one head, its cubic bound, the hypothesis of the printed one, and depth.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import composite, max_col_sum, max_row_sum, real_matrix, softmax_rows
from .engine.steps import Derivation, by_lemma, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def one_layer() -> Derivation:
    """One layer is bounded by G(Lambda) without any hypothesis (Theorem (One layer))."""
    lam = sp.Symbol("Lambda", positive=True)
    u, s, t, m, y = sp.symbols("u s t M y", nonnegative=True)
    a, b, v1, v2, f, g, x = sp.symbols("A B v1 v2 F T x", positive=True)
    tanh = sp.tanh(lam / 2)
    big_f = (sp.exp(lam) - 1) / 2 + lam * tanh
    square = 2 * big_f * tanh
    weights = sp.symbols("w1:7", positive=True)
    return Derivation(
        "one_layer",
        "One head shrinks the residual to at most G(Lambda) times itself, and G is at most e^Lambda - 1.",
        (
            inequality(
                "the range of a row of E",
                (m - s) + (m - t),
                2 * m,
                "An entry is at most the largest one, and that is at most the norm, hence Lambda.",
                assumptions="largest entry M - s, smallest -(M - t)",
                latex=r"D \le 2 M \le 2 \|E\|_1 \le 2 \Lambda",
            ),
            identity(
                "the factor of the columns",
                ((sp.exp(lam) - 1) / lam / 2 + tanh) * lam,
                big_f,
                "The master lemma with mu and D at their largest.",
                latex="(\\tfrac{1}{2} \\kappa(\\Lambda) + \\tanh \\tfrac{\\Lambda}{2}) \\Lambda\n"
                "= \\tfrac{1}{2} (e^\\Lambda - 1) + \\Lambda \\tanh \\tfrac{\\Lambda}{2}",
            ),
            identity(
                "columns times rows",
                sp.sqrt((f * a * v1) * (2 * g * b * v2)),
                sp.sqrt(2 * f * g) * sp.sqrt(a * b) * sp.sqrt(v1 * v2),
                "Multiply both norms, also those of the values, and take the root once.",
                latex="\\sqrt{(F \\|R\\|_1 \\|W_V\\|_1)(2 T \\|R\\|_\\infty \\|W_V\\|_\\infty)}\n"
                "= \\sqrt{2 F T} \\, \\rho \\, \\|W_V\\|_{1,\\infty}",
            ),
            inequality(
                "the tangent is at most its argument",
                sp.tanh(u),
                u,
                "With u = Lambda/2.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            inequality(
                "and Lambda is below e^Lambda - 1",
                u,
                sp.exp(u) - 1,
                "A convex function above its tangent.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            identity(
                "so F has a simple bound",
                x / 2 + x**2 / 2,
                (1 + x) * x / 2,
                "With x = e^Lambda - 1, F is at most the left side.",
                latex="F \\le \\tfrac{1}{2} x + \\tfrac{1}{2} x^2\n"
                "= \\tfrac{1}{2} e^\\Lambda (e^\\Lambda - 1)",
            ),
            identity(
                "and so has G",
                sp.exp(lam) * (sp.exp(lam) - 1) * tanh,
                (sp.exp(lam) - 1) ** 2 / (1 + sp.exp(-lam)),
                "Write the tangent with exponentials.",
                latex="G^2 \\le e^\\Lambda (e^\\Lambda - 1) \\tanh \\tfrac{\\Lambda}{2}\n"
                "= \\frac{(e^\\Lambda - 1)^2}{1 + e^{-\\Lambda}}",
            ),
            inequality(
                "drop the denominator",
                x**2 / (1 + y),
                x**2,
                "It is larger than 1.",
                latex=r"\frac{(e^\Lambda - 1)^2}{1 + e^{-\Lambda}} \le (e^\Lambda - 1)^2",
            ),
            by_lemma(
                "the bound of G",
                square,
                4 * sp.sinh(lam / 2) ** 2 * sp.exp(lam) / (1 + sp.exp(-lam)),
                "All at once.",
                lemma="the steps above",
                box={lam: (0.001, 7)},
                latex=r"G(\Lambda)^2 \le \frac{(e^\Lambda - 1)^2}{1 + e^{-\Lambda}}",
            ),
            identity(
                "for small Lambda",
                sp.Matrix([sp.Limit((sp.exp(lam) - 1) / lam, lam, 0), sp.Limit(tanh / lam, lam, 0)]),
                sp.Matrix([1, HALF]),
                "So G is about Lambda over the root of 2, and Lambda is quadratic in the residual.",
                latex="\\frac{G^2}{\\Lambda^2} = "
                "\\bigl(\\kappa(\\Lambda) + 2 \\tanh \\tfrac{\\Lambda}{2}\\bigr)\n"
                "\\quad \\cdot \\frac{\\tanh (\\Lambda/2)}{\\Lambda} \\to 1 \\cdot \\tfrac{1}{2}",
            ),
            inequality(
                "columns of an attention matrix",
                sum(weights[2 * i] / (weights[2 * i] + weights[2 * i + 1]) for i in range(3)),
                3,
                "Each of the n weights is below 1; rows sum to 1, so a factor root n always suffices.",
                strict=True,
                latex=r"\|P\|_1 < n, \quad \|P\|_\infty = 1",
            ),
        ),
        "Theorem (One layer) in chapter `one-head`.",
    )


def two_tokens_theorem() -> Derivation:
    """For two tokens the sharp factor is tanh(Lambda/2) (Theorem (Two tokens))."""
    t, u, c, phi = sp.symbols("t u c phi", nonnegative=True)
    a, b, w, v = sp.symbols("a b w v", positive=True)
    column = sp.Symbol("r", real=True)
    gap, w_qk = real_matrix("a", 1, 2), real_matrix("w", 2, 2)
    pair = sp.Matrix([a, -a])
    lam = w * max_col_sum(pair) * max_row_sum(pair)
    box = {symbol: (-1, 1) for symbol in (*gap, *w_qk)}
    return Derivation(
        "two_tokens_theorem",
        "Two tokens: the residual shrinks to at most tanh(Lambda/2) times itself, for every bias, and an "
        "opposite pair on a line attains it.",
        (
            inequality(
                "biases only help",
                b / (1 + t + u),
                b / (1 + u),
                "The hyperbolic cosine of 2s is 1 + t, at least 1; the one of 2e is u.",
                assumptions="b = sinh 2e positive; t, u non-negative",
                latex="\\frac{\\sinh 2 e}{\\cosh 2 s + \\cosh 2 e}\n\\le \\frac{\\sinh 2 e}{1 + \\cosh 2 e}",
            ),
            identity(
                "without a bias",
                sp.sinh(2 * w) / (1 + sp.cosh(2 * w)),
                sp.tanh(w),
                "Half-angle formula.",
                latex=r"\frac{\sinh 2 e}{1 + \cosh 2 e} = \tanh e",
            ),
            by_lemma(
                "the score of the half-gap",
                abs((gap * w_qk * gap.T)[0]),
                sp.Max(*map(abs, gap)) * max_col_sum(w_qk) * sum(map(abs, gap)),
                "A largest entry times a column norm times a sum.",
                lemma="Hoelder's inequality",
                box=box,
                latex=r"|a^\top W a| \le \max_k |a_k| \, \|W\|_1 \textstyle\sum_k |a_k|",
            ),
            identity(
                "that is half of Lambda",
                a * w * a,
                lam / 2,
                "The residuals are a and -a: column norm 2 max |a|, row norm the sum of |a|.",
                assumptions="one feature",
                latex="\\Lambda = \\frac{\\|W_{QK}\\|_1}{\\sqrt{d_{qk}}} \\, "
                "2 \\max_k |a_k| \\textstyle\\sum_k |a_k|,\n|e| \\le \\Lambda / 2",
            ),
            inequality(
                "the tangent increases",
                sp.tanh(c),
                sp.tanh(c + u),
                "Its derivative is positive.",
                grows_in=u,
                assumptions="c, u non-negative",
                latex=r"\tanh |e| \le \tanh (\Lambda / 2)",
            ),
            identity(
                "both norms scale",
                abs(phi * column) + abs(-phi * column),
                phi * (abs(column) + abs(-column)),
                "The new tokens are plus and minus phi times the old half-gap, times the values.",
                latex=r"\|\varphi R W_V\| = |\varphi| \, \|R W_V\|",
            ),
            identity(
                "an opposite pair",
                softmax_rows(w * pair * pair.T) * pair * v,
                v * a * sp.tanh(w * a**2) * sp.Matrix([1, -1]),
                "One feature, no bias.",
                latex=r"\pm a \mapsto \pm v a \tanh (w a^2)",
            ),
            identity(
                "attains the bound",
                composite(v * sp.tanh(w * a**2) * pair),
                sp.tanh(lam / 2) * composite(pair) * v,
                "The midpoint is a best centre before and after.",
                latex="\\|\\mathrm{res} X'\\|\n"
                "= \\tanh(\\Lambda / 2) \\, \\|\\mathrm{res} X\\| \\, \\|W_V\\|_{1,\\infty}",
            ),
            inequality(
                "so the bound is cubic",
                sp.tanh(u),
                u,
                "With u = Lambda/2: the constant is one half.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            identity(
                "one half is sharp",
                sp.Limit(sp.tanh(a) / (2 * a), a, 0),
                HALF,
                "A smaller constant fails for small tokens.",
                latex=r"\lim_{u \to 0} \frac{\tanh u}{2 u} = \tfrac{1}{2}",
            ),
            inequality(
                "0.49 already fails",
                sp.Rational(49, 100) * 2 * sp.Rational(1, 10),
                sp.tanh(sp.Rational(1, 10)),
                "At Lambda = 0.2.",
                strict=True,
                latex=r"0.49 \cdot 0.2 < \tanh 0.1",
            ),
        ),
        "Theorem (Two tokens) in chapter `one-head`.",
    )


def technical_lemma() -> Derivation:
    """Why 1.256: the exponential stays below 1 + 2x up to there (Theorem (Small oscillation))."""
    x, s, d = sp.symbols("x s D", nonnegative=True)
    c, t = sp.Symbol("c", nonnegative=True), sp.Symbol("t", positive=True)
    below, above = sp.Rational(1256, 1000), sp.Rational(1257, 1000)
    p, e = sp.symbols("p1:4", positive=True), sp.symbols("e1:4", real=True)
    less = sp.symbols("t1:4", nonnegative=True)
    share = s / (1 + s)
    total = sum(q * sp.exp(score) for q, score in zip(p, e, strict=True))
    return Derivation(
        "technical_lemma",
        "If the scores of a row differ by at most 1.256, its weights stay within linear factors of p.",
        (
            inequality(
                "from below",
                1 - x,
                sp.exp(-x),
                "The exponential lies above its tangent.",
                grows_in=x,
                assumptions="x non-negative",
            ),
            inequality(
                "at 1.256 the line is above",
                sp.exp(below),
                1 + 2 * below,
                "A comparison of numbers.",
                strict=True,
                latex=r"e^{1.256} < 1 + 2 \cdot 1.256",
            ),
            inequality(
                "at 1.257 it is below",
                1 + 2 * above,
                sp.exp(above),
                "So the root of e^x = 1 + 2x lies between; it is 1.25643.",
                strict=True,
                latex=r"1 + 2 \cdot 1.257 < e^{1.257}",
            ),
            by_lemma(
                "a chord of the exponential",
                sp.exp(share * below),
                1 + share * (sp.exp(below) - 1),
                "A convex function lies below its chord.",
                lemma="convexity of the exponential",
                box={s: (0, 50)},
                assumptions="share c = s/(1 + s)",
                latex=r"e^{c x^*} \le 1 + c (e^{x^*} - 1)",
            ),
            inequality(
                "from above",
                1 + c * (2 * below - x),
                1 + 2 * c * below,
                "The chord's right end is below the line, so the line is above on the whole interval.",
                assumptions="share c non-negative; e^1.256 = 1 + 2 * 1.256 - x",
                latex=r"e^x \le 1 + 2 x, \quad 0 \le x \le 1.256",
            ),
            identity(
                "the root is where kappa is 2",
                sp.exp(t) - 1 - 2 * t,
                t * ((sp.exp(t) - 1) / t - 2),
                "Divide by t.",
                latex=r"e^t = 1 + 2 t \iff \kappa(t) = 2",
            ),
            identity(
                "a weight over its base",
                sp.exp(e[0]) / total,
                1 / sum(q * sp.exp(score - e[0]) for q, score in zip(p, e, strict=True)),
                "Divide by the exponential of the own score.",
                latex=r"\frac{P_{ij}}{p_j} = \frac{1}{\sum_l p_l e^{E_{il} - E_{ij}}}",
            ),
            inequality(
                "an average of exponentials",
                sum(q * (sp.exp(d) - gap) for q, gap in zip(p, less, strict=True)) / sum(p),
                sp.exp(d),
                "At most the largest one; the smallest follows alike.",
                assumptions="exponentials e^D - t_l, weights divided by their sum",
                latex=r"e^{-D_i} \le P_{ij} / p_j \le e^{D_i}",
            ),
        ),
        f"Theorem (Small oscillation) in chapter `one-head`; the lemma is in {PAPER}, appendix.",
    )


def unrolled_exponent() -> Derivation:
    """A cubic recursion unrolled (Theorem (One head, L layers))."""
    depth = sp.Symbol("L", positive=True, integer=True)
    c, rho = sp.symbols("c rho", positive=True)
    y, t = sp.Symbol("y", nonnegative=True), sp.Symbol("t", positive=True)
    half = (3**depth - 1) / 2
    return Derivation(
        "unrolled_exponent",
        "Each layer cubes what is there: exponents add to (3^L - 1)/2, and the bound falls iff c rho^2 < 1.",
        (
            identity(
                "one layer",
                (sp.Integer(3) ** 1 - 1) / 2,
                1,
                "The sum starts with 1.",
                latex=r"\tfrac{1}{2} (3^1 - 1) = 1",
            ),
            identity(
                "one layer more",
                half + 3**depth,
                (3 ** (depth + 1) - 1) / 2,
                "Three halves of a power.",
                latex=r"\tfrac{1}{2} (3^L - 1) + 3^L = \tfrac{1}{2} (3^{L+1} - 1)",
            ),
            identity(
                "the exponent of c",
                1 + 3 * half,
                (3 ** (depth + 1) - 1) / 2,
                "Cube the bound and multiply by c.",
                latex=r"1 + 3 \cdot \tfrac{1}{2} (3^L - 1) = \tfrac{1}{2} (3^{L+1} - 1)",
            ),
            identity("the exponent of rho", 3 * 3**depth, 3 ** (depth + 1), "It is tripled."),
            identity(
                "three layers",
                c * (c * (c * rho**3) ** 3) ** 3,
                c**13 * rho**27,
                "The exponents of c are 1 + 3 + 9 = 13.",
            ),
            identity(
                "as one power",
                c ** (-HALF) * (sp.sqrt(c) * rho) ** 27,
                c**13 * rho**27,
                "Collect the roots of c.",
                assumptions="three layers",
                latex=r"c^{-1/2} (\sqrt{c} \, \rho)^{27} = c^{13} \rho^{27}",
            ),
            identity(
                "for any depth",
                -HALF + 3**depth / 2,
                half,
                "The exponents of c agree.",
                latex="c^{-1/2} (\\sqrt{c} \\, \\rho)^{3^L}\n= c^{(3^L - 1)/2} \\rho^{3^L}",
            ),
            identity(
                "the fixed point",
                c * (c ** (-HALF)) ** 3,
                c ** (-HALF),
                "There the recursion stands still.",
                latex=r"c \, (c^{-1/2})^3 = c^{-1/2}",
            ),
            inequality(
                "the hypothesis is kept",
                rho / (1 + y),
                rho,
                "So Lambda does not grow from layer to layer.",
                assumptions="c rho^2 = 1/(1 + y)",
                latex=r"c \rho^3 = (c \rho^2) \rho \le \rho",
            ),
            identity(
                "below it the bound vanishes",
                sp.Limit(sp.exp(-t * 3**depth), depth, sp.oo),
                0,
                "Doubly exponentially.",
                assumptions="root of c rho^2 = e^(-t)",
                latex=r"\lim_{L \to \infty} e^{-t \, 3^L} = 0",
            ),
            identity(
                "an example",
                sp.Rational(1, 1000) ** 27,
                sp.Rational(1, 10) ** 81,
                "Three layers at c = 1 turn a thousandth into 10^(-81).",
                latex=r"(10^{-3})^{27} = 10^{-81}",
            ),
        ),
        f"Theorem (One head, L layers) in chapter `one-head`; {PAPER}, Theorem 2.2.",
    )


DERIVATIONS = {
    build.__name__: build for build in (one_layer, two_tokens_theorem, technical_lemma, unrolled_exponent)
}
