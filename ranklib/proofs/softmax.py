"""Derivations: softmax, its averages, two tokens, safety and saturation.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import real_matrix, softmax_rows, stochastic_matrix
from .engine.steps import Derivation, distinct, identity, inequality

N, DIM = 3, 2
ONE = sp.ones(N, 1)
HALF = sp.Rational(1, 2)


def softmax_shift() -> Derivation:
    """Softmax ignores a constant along a row, not along a column (Lemma (Row shift))."""
    s, v = real_matrix("s", N, N), real_matrix("v", N, 1)
    c = sp.Symbol("c", real=True)
    p, bumped = softmax_rows(s[:1, :]), softmax_rows(s[:1, :] + sp.Matrix([[c, 0, 0]]))
    return Derivation(
        "softmax_shift",
        "Adding one number to a whole row of scores changes nothing; adding it to a column does.",
        (
            identity(
                "only differences matter",
                p[0] / p[1],
                sp.exp(s[0, 0] - s[0, 1]),
                "The common denominator cancels.",
                latex=r"P_{ij} / P_{il} = e^{S_{ij} - S_{il}}",
            ),
            identity(
                "a constant along a row",
                softmax_rows(s[:1, :] + c * ONE.T),
                p,
                "Numerator and denominator are multiplied by the same number.",
                latex="\\frac{e^{S_{ij} + c}}{\\sum_l e^{S_{il} + c}}\n"
                "= \\frac{e^{S_{ij}}}{\\sum_l e^{S_{il}}}",
            ),
            identity(
                "one constant for each row",
                softmax_rows(s + v * ONE.T),
                softmax_rows(s),
                "Rows are normalised apart, so each may have its own constant.",
                latex="\\operatorname{softmax}(S + v \\mathbf{1}^\\top)\n= \\operatorname{softmax}(S)",
            ),
            distinct(
                "a constant along a column",
                bumped,
                p,
                "One weight of the row grows, the others shrink.",
                at={s[0, 0]: 0, s[0, 1]: 0, s[0, 2]: 0, c: 1},
                latex="\\operatorname{softmax}(S + \\mathbf{1} v^\\top)\n\\neq \\operatorname{softmax}(S)",
            ),
        ),
        "Lemma (Row shift) in chapter `softmax-shift-invariance`.",
    )


def row_stochastic() -> Derivation:
    """Attention matrices and their products are row-stochastic (Proposition (Row-stochastic))."""
    s, x, residual = real_matrix("s", 1, N), real_matrix("x", DIM, 1), real_matrix("r", N, DIM)
    p, q = stochastic_matrix("p", N), stochastic_matrix("q", N)
    a, b = (sp.symbols(f"{name}1:4", positive=True) for name in "pq")
    top, t = sp.Symbol("M", real=True), sp.symbols("t1:4", nonnegative=True)
    average = sum(a[j] * (top - t[j]) for j in range(N)) / sum(a)
    return Derivation(
        "row_stochastic",
        "Every row of an attention matrix holds positive weights of sum one, and so does every product.",
        (
            identity(
                "rows sum to one",
                softmax_rows(s) * ONE,
                sp.ones(1, 1),
                "The numerators add up to the denominator.",
                latex=r"\sum_j P_{ij} = 1, \quad P \mathbf{1} = \mathbf{1}",
            ),
            inequality(
                "weights are positive",
                0,
                softmax_rows(s)[0],
                "An exponential divided by a sum of exponentials.",
                strict=True,
                latex=r"0 < P_{ij}",
            ),
            identity(
                "a product's rows sum to one",
                p * q * ONE,
                ONE,
                "Apply the second factor to 1, then the first.",
                latex=r"P Q \mathbf{1} = P \mathbf{1} = \mathbf{1}",
            ),
            inequality(
                "a product's entries are positive",
                0,
                sum(a[j] * b[j] for j in range(N)),
                "Sums of products of positive numbers.",
                strict=True,
                latex=r"0 < \sum_l P_{il} Q_{lj}",
            ),
            identity(
                "a common row passes through",
                p * (ONE * x.T + residual),
                ONE * x.T + p * residual,
                "Only the residual is averaged.",
                latex="P (\\mathbf{1} x^\\top + R) = \\mathbf{1} x^\\top + P R",
            ),
            inequality(
                "an average is at most the largest",
                average,
                top,
                "New tokens lie between the old ones, feature by feature; the smallest follows by symmetry.",
                assumptions="weights positive, divided by their sum; values M - t_j with t_j non-negative",
                latex=r"\sum_j P_{ij} X_{jk} \le \max_j X_{jk}",
            ),
            distinct(
                "columns need not sum to one",
                ONE[:2, :].T * softmax_rows(sp.Matrix([[1, 0], [1, 0]])),
                sp.ones(1, 2),
                "Two tokens may prefer the same key.",
                at={},
                latex=r"\mathbf{1}^\top P \neq \mathbf{1}^\top",
            ),
        ),
        "Proposition (Row-stochastic) in chapter `softmax-shift-invariance`.",
    )


def two_token_map() -> Derivation:
    """One head on two tokens: a becomes v a tanh(w a^2) (Proposition (Two tokens on a line))."""
    m, a, w, v, s, e = sp.symbols("m a w v s e", real=True)
    t = sp.Symbol("e", nonnegative=True)
    u = sp.Symbol("u", nonnegative=True)
    tokens = sp.Matrix([m + a, m - a])
    image = [m + a * sp.tanh(w * a * token) for token in tokens]
    pair, gap = sp.Matrix([a, -a]), real_matrix("a", 1, DIM)
    w_qk, sign = real_matrix("w", DIM, DIM), sp.Matrix([1, -1])
    key, root = real_matrix("k", DIM, 1), sp.sqrt(sp.Symbol("d_qk", positive=True))
    split = {e: (gap * w_qk * gap.T)[0] / root, s: (gap * key)[0]}
    seen = e * sign * sign.T + s * sp.ones(2, 1) * sign.T
    mixed = [sp.tanh(s + e), sp.tanh(s - e)]
    three_one = sp.Matrix([3, 1])

    def phi(e_value: sp.Expr) -> sp.Expr:
        return sp.sinh(2 * e_value) / (sp.cosh(2 * s) + sp.cosh(2 * e_value))

    excess = 2 * sp.sinh(s) ** 2 * sp.sinh(2 * t) / ((1 + sp.cosh(2 * t)) * (sp.cosh(2 * s) + sp.cosh(2 * t)))
    return Derivation(
        "two_token_map",
        "For two tokens a head is a formula: an opposite pair a, -a becomes v a tanh(w a^2), and in any "
        "dimension the half-gap is multiplied by one number before the value matrix.",
        (
            identity(
                "one feature",
                v * softmax_rows(w * tokens * tokens.T) * tokens,
                v * sp.Matrix(image),
                "A two-way softmax whose entries differ by 2z has weights whose difference is tanh z.",
                assumptions="tokens m + a and m - a",
                latex=r"x_i \mapsto v (m + a \tanh(w a x_i))",
            ),
            identity(
                "an opposite pair",
                v * softmax_rows(w * pair * pair.T) * pair,
                v * a * sp.tanh(w * a**2) * sign,
                "Set m = 0.",
                latex=r"\pm a \mapsto \pm v a \tanh(w a^2)",
            ),
            inequality(
                "the map is at most cubic",
                sp.tanh(u),
                u,
                "With u = w a^2 the new gap is at most |v w| |a|^3.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            identity(
                "any dimension: the scores that are seen",
                sign * gap * w_qk * (sign * gap).T / root + sp.ones(2, 1) * (sign * gap * key).T,
                seen.subs(split),
                "About the midpoint the residual holds the half-gap with both signs; r is linear in it.",
                latex="E + \\mathbf{1} r^\\top = e \\begin{bmatrix} 1 & -1 \\\\ -1 & 1 \\end{bmatrix}\n"
                "\\quad + s \\begin{bmatrix} 1 & -1 \\\\ 1 & -1 \\end{bmatrix},\n"
                "e = a^\\top W_{QK} a / \\sqrt{d_{qk}}",
            ),
            identity(
                "any dimension: the averages",
                softmax_rows(seen) * sign,
                sp.Matrix(mixed),
                "Each row holds two scores, 2(s + e) or 2(s - e) apart; a gap 2z averages to tanh z.",
                latex="P (1, -1)^\\top =\n(\\tanh(s + e), \\tanh(s - e))^\\top",
            ),
            identity(
                "any dimension: the new half-gap",
                (mixed[0] - mixed[1]) / 2,
                phi(e),
                "Half the difference of the two averages; the biases only enter through s.",
                latex="a' = \\varphi \\, W_V^\\top a,\n"
                "\\varphi = \\frac{\\sinh 2 e}{\\cosh 2 s + \\cosh 2 e}",
            ),
            identity(
                "the factor is odd",
                phi(-e),
                -phi(e),
                "So it is enough to look at e from zero on.",
                latex=r"\varphi(-e) = -\varphi(e)",
            ),
            inequality(
                "a key-only score helps mixing",
                phi(t),
                sp.tanh(t),
                "The hyperbolic cosine of 2s is at least 1.",
                form=excess,
                assumptions="e non-negative",
                latex=r"\frac{\sinh 2 e}{\cosh 2 s + \cosh 2 e} \le \tanh e",
            ),
            identity(
                "in integers: the scores",
                three_one * three_one.T - sp.Matrix([[6, 6], [2, 2]]),
                seen.subs({e: 1, s: 2}),
                "Tokens 3 and 1: m = 2, a = 1, e = 1, s = 2.",
                latex="\\begin{bmatrix} 9 & 3 \\\\ 3 & 1 \\end{bmatrix} - "
                "\\begin{bmatrix} 6 & 6 \\\\ 2 & 2 \\end{bmatrix}\n"
                "= \\begin{bmatrix} 3 & -3 \\\\ 1 & -1 \\end{bmatrix}",
            ),
            identity(
                "in integers: the new tokens",
                softmax_rows(three_one * three_one.T) * three_one,
                sp.Matrix([2 + sp.tanh(3), 2 + sp.tanh(1)]),
                "About 2.995 and 2.762: the half-gap falls from 1 to 0.117.",
                latex=r"(3, 1) \mapsto (2 + \tanh 3, 2 + \tanh 1)",
            ),
        ),
        "Proposition (Two tokens on a line) in chapter `softmax-shift-invariance`.",
    )


def safe_softmax() -> Derivation:
    """Subtracting the row maximum keeps the weights and avoids overflow (In floating point)."""
    s = real_matrix("s", 1, N)
    c, t = sp.Symbol("c", real=True), sp.Symbol("t", nonnegative=True)
    u, v = sp.symbols("u v", positive=True)
    largest = {64: (2 - sp.Rational(1, 2**52)) * 2**1023, 32: (2 - sp.Rational(1, 2**23)) * 2**127}
    return Derivation(
        "safe_softmax",
        "Subtracting the largest score of a row keeps the weights, and no exponential is above 1.",
        (
            identity(
                "the weights are the same",
                softmax_rows(s - c * ONE.T),
                softmax_rows(s),
                "A constant along a row, here the largest score, drops out.",
                latex="\\operatorname{softmax}(s - c \\mathbf{1}^\\top)\n= \\operatorname{softmax}(s)",
            ),
            inequality(
                "exponents are not positive",
                s[0] - sp.Max(*s),
                0,
                "A score is at most the largest one.",
                latex=r"s_j - \max_l s_l \le 0",
            ),
            inequality(
                "exponentials are at most 1",
                sp.exp(-t),
                1,
                "The exponential function grows.",
                grows_in=t,
                assumptions="t non-negative",
            ),
            inequality(
                "the sum is at least 1",
                1,
                1 + u + v,
                "The largest score contributes 1, the others more than 0.",
                assumptions="u, v positive",
                latex=r"1 \le \sum_j e^{s_j - \max s}",
            ),
            inequality(
                "and at most n",
                1 + (1 - u) + (1 - v),
                3,
                "Each of the n terms is at most 1.",
                assumptions="terms 1, 1 - u, 1 - v",
                latex=r"\sum_j e^{s_j - \max s} \le n",
            ),
            inequality(
                "float64 overflows beyond 709",
                709,
                sp.log(largest[64]),
                "The largest float64 is 2^1024 (1 - 2^-53).",
                strict=True,
                latex=r"709 < \log x_\max",
            ),
            inequality(
                "and before 710",
                sp.log(largest[64]),
                710,
                "So the exponential of 710 is infinite.",
                strict=True,
                latex=r"\log x_\max < 710",
            ),
            inequality(
                "float32 overflows beyond 88",
                88,
                sp.log(largest[32]),
                "The largest float32 is 2^128 (1 - 2^-24).",
                strict=True,
                latex=r"88 < \log y_\max",
            ),
            inequality(
                "and before 89",
                sp.log(largest[32]),
                89,
                "So the exponential of 89 is infinite.",
                strict=True,
                latex=r"\log y_\max < 89",
            ),
        ),
        "In floating point in chapter `softmax-shift-invariance`.",
    )


def saturation() -> Derivation:
    """The derivative of softmax is diag(p) - p p^T; it vanishes for peaked rows (In floating point)."""
    s, z = real_matrix("s", 1, N), real_matrix("z", N, 1)
    u, q = sp.symbols("u q", real=True)
    y, p = sp.Symbol("y", positive=True), sp.Matrix(sp.symbols("p1:4", nonnegative=True))
    row, free = softmax_rows(s).T, stochastic_matrix("p", N).row(0).T
    sigma = 1 / (1 + sp.exp(-u))
    pairs = [(0, 1), (0, 2), (1, 2)]

    def spread(weights: sp.Matrix) -> sp.Expr:
        return sum(weights[i] * weights[j] * (z[i] - z[j]) ** 2 for i, j in pairs)

    return Derivation(
        "saturation",
        "Softmax reacts to a score by p_i (1 - p_i) at most: a peaked row no longer reacts.",
        (
            identity(
                "the derivative",
                row.jacobian(s),
                sp.diag(*row) - row * row.T,
                "Quotient rule.",
                latex=r"\partial p / \partial s = \operatorname{diag}(p) - p p^\top",
            ),
            identity(
                "shifts are not felt",
                (sp.diag(*free) - free * free.T) * ONE,
                0 * ONE,
                "Weights sum to one.",
                latex=r"(\operatorname{diag}(p) - p p^\top) \mathbf{1} = 0",
            ),
            identity(
                "it is a variance",
                (z.T * (sp.diag(*free) - free * free.T) * z)[0],
                spread(free),
                "The variance of z under the weights p is a sum over pairs.",
                latex="z^\\top (\\operatorname{diag}(p) - p p^\\top) z\n"
                "= \\sum_{i < j} p_i p_j (z_i - z_j)^2",
            ),
            inequality(
                "so it is not negative",
                0,
                spread(p),
                "Products of weights and squares.",
                assumptions="weights non-negative",
                latex=r"0 \le \sum_{i < j} p_i p_j (z_i - z_j)^2",
            ),
            identity(
                "two tokens",
                sp.Derivative(sigma, u),
                sigma * (1 - sigma),
                "The two-way softmax is the logistic function of the gap u.",
                latex="\\sigma'(u) = \\sigma(u) (1 - \\sigma(u)),\n\\sigma(u) = 1 / (1 + e^{-u})",
            ),
            inequality(
                "at most a quarter",
                q * (1 - q),
                sp.Rational(1, 4),
                "The difference is a square.",
                form=(HALF - q) ** 2,
                latex=r"\sigma (1 - \sigma) \le \tfrac{1}{4}",
            ),
            inequality(
                "it dies exponentially",
                y / (1 + y) ** 2,
                y,
                "With y = e^(-u): the derivative is below e^(-u).",
                assumptions="y positive",
                latex=r"\sigma'(u) \le e^{-u}",
            ),
            identity(
                "the gap of the weights",
                2 * sigma.subs(u, 2 * u) - 1,
                sp.tanh(u),
                "Scores that differ by 2u have weights that differ by tanh u.",
                latex=r"\sigma(2 u) - \sigma(-2 u) = \tanh u",
            ),
        ),
        "In floating point in chapter `softmax-shift-invariance`.",
    )


DERIVATIONS = {
    build.__name__: build
    for build in (softmax_shift, row_stochastic, two_token_map, safe_softmax, saturation)
}
