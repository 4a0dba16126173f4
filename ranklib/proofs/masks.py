"""Derivations: attention with a mask or with position terms in the scores.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import real_matrix, softmax_rows, stochastic_matrix
from .engine.steps import Derivation, distinct, identity, inequality

HALF = sp.Rational(1, 2)


def sigmoid(x: sp.Expr) -> sp.Expr:
    """1 / (1 + e^-x)."""
    return 1 / (1 + sp.exp(-x))


def averages(mask: sp.MatrixBase) -> sp.Matrix:
    """Each row of a matrix of zeros and ones divided by its sum."""
    return sp.Matrix(*mask.shape, lambda i, j: sp.Rational(mask[i, j], sum(mask.row(i))))


def difference_map() -> Derivation:
    """What attention does to differences (Lemma (Differences))."""
    p, x = stochastic_matrix("p", 3), real_matrix("x", 3, 2)
    z = sp.Symbol("z")
    rest = p[1:, 1:] - sp.ones(2, 1) * p[:1, 1:]
    first = sp.ones(2, 1)
    base = sp.Matrix([[1, 0, 0], [1 - p[1, 1], p[1, 1], 0], [p[2, 0], p[2, 1], 1 - p[2, 0] - p[2, 1]]])
    lower = base[1:, 1:] - sp.ones(2, 1) * base[:1, 1:]
    return Derivation(
        "difference_map",
        "Attention acts on the differences from the first token by a matrix with the other eigenvalues of P.",
        (
            identity(
                "differences after the layer",
                (p * x)[1:, :] - first * (p * x)[:1, :],
                rest * (x[1:, :] - first * x[:1, :]),
                "The weights of two rows differ by numbers with sum zero, so the first token drops out.",
                assumptions="three tokens, two features",
                latex=r"(P X)_i - (P X)_1 = \textstyle\sum_{j \ge 2} Q_{ij} (x_j - x_1)",
            ),
            identity(
                "its eigenvalues",
                (z * sp.eye(3) - p).det(),
                (z - 1) * (z * sp.eye(2) - rest).det(),
                "The characteristic polynomials differ by the factor of the eigenvalue 1.",
                latex="\\det (z - P)\n= (z - 1) \\det (z - Q)",
            ),
            identity(
                "equal rows",
                rest.subs({p[1, 0]: p[0, 0], p[2, 0]: p[0, 0], p[1, 1]: p[0, 1], p[2, 1]: p[0, 1]}),
                sp.zeros(2, 2),
                "Where all rows weigh alike, nothing of first order is left.",
                latex=r"P_i = P_1 \text{ for all } i: \quad Q = 0",
            ),
            identity(
                "causal: a triangle",
                lower,
                base[1:, 1:],
                "The first row of P is (1, 0, 0), so Q is a block of P.",
                latex=r"Q = (P_{ij})_{i, j \ge 2}",
            ),
            identity(
                "causal: the diagonal",
                (z * sp.eye(2) - lower).det(),
                (z - base[1, 1]) * (z - base[2, 2]),
                "A triangular matrix has its diagonal as eigenvalues.",
                latex="\\det (z - Q)\n= (z - P_{22})(z - P_{33})",
            ),
        ),
        "Lemma (Differences) in chapter `masks-and-positions`.",
    )


def causal_pair() -> Derivation:
    """The first two tokens under a causal mask (Theorem (First two tokens))."""
    x, p = real_matrix("x", 3, 2), real_matrix("p", 1, 3)
    own = sp.Symbol("q", real=True)
    causal = sp.Matrix([[1, 0, 0], [1 - own, own, 0], [1 - p[1] - p[2], p[1], p[2]]])
    w, s, t = sp.symbols("w s t", real=True)
    a, b = sp.symbols("a b", real=True)
    u, d, z = sp.symbols("u d z", nonnegative=True)
    gap = a - b
    row = softmax_rows(sp.Matrix([[w * b * a, w * b * b]]))
    return Derivation(
        "causal_pair",
        "Under a causal mask the difference of the first two tokens is multiplied by the second one's weight "
        "on itself, whatever follows them.",
        (
            identity(
                "the first token stays",
                (causal * x)[0, :],
                x[0, :],
                "It sees itself only.",
                latex="x_1' = x_1",
            ),
            identity(
                "the difference",
                (causal * x)[1, :] - (causal * x)[0, :],
                own * (x[1, :] - x[0, :]),
                "The weight on the first token drops out.",
                assumptions="q is the weight P_22",
                latex="x_2' - x_1'\n= P_{22} (x_2 - x_1)",
            ),
            identity(
                "that weight",
                sp.exp(t) / (sp.exp(s) + sp.exp(t)),
                sigmoid(t - s),
                "Divide by its own exponential.",
                assumptions="scores s on token 1, t on itself",
                latex=r"P_{22} = \sigma(S_{22} - S_{21})",
            ),
            identity(
                "on a line",
                row[1],
                sigmoid(-w * b * gap),
                "With tokens a, b and one feature.",
                latex=r"P_{22} = \sigma(-w \, x_2 (x_1 - x_2))",
            ),
            identity(
                "when the gap closes",
                sigmoid(-w * b * gap).subs(a, b),
                HALF,
                "Both scores agree then.",
                latex=r"x_1 = x_2: \quad P_{22} = \tfrac{1}{2}",
            ),
            inequality(
                "it cannot be small",
                1 / (1 + sp.exp(u + d)),
                1 / (1 + sp.exp(u)),
                "If the scores of row 2 differ by u, at most D = u + d.",
                grows_in=d,
                assumptions="u, d non-negative",
                latex=r"P_{22} \ge \frac{1}{1 + e^D}",
            ),
            inequality(
                "later tokens look at more",
                sp.exp(s) / (sp.exp(s) + sp.exp(t) + z),
                sp.exp(s) / (sp.exp(s) + sp.exp(t)),
                "If scores depend on the offset only, row i + 1 has the terms of row i and one more.",
                assumptions="z non-negative",
                latex="P_{i+1,i+1} = \\frac{e^{s_0}}{e^{s_0} + \\dots + e^{s_i}}\n\\le P_{ii}",
            ),
            identity(
                "two layers",
                own * (own * (x[1, :] - x[0, :])),
                own**2 * (x[1, :] - x[0, :]),
                "Factors multiply over layers: a geometric law, not a doubly exponential one.",
                assumptions="the same weight q twice",
                latex="x_2'' - x_1'' = q^2 (x_2 - x_1)",
            ),
        ),
        "Theorem (First two tokens) in chapter `masks-and-positions`.",
    )


def position_pairs() -> Derivation:
    """Two tokens with a diagonal bias, or rotated (Propositions (Bias) and (Rotary))."""
    a, b, w, m, phi = sp.symbols("a b w m phi", real=True)
    u = sp.Symbol("u", positive=True)
    n = sp.Symbol("n", positive=True)
    pair = sp.Matrix([a, -a])
    with_bias = softmax_rows(w * pair * pair.T + b * sp.eye(2))
    turn = sp.Matrix([[sp.cos(phi), -sp.sin(phi)], [sp.sin(phi), sp.cos(phi)]])

    def rotated(rows: list) -> sp.Matrix:
        turned = [rows[0], turn * rows[1]]
        return sp.Matrix(2, 2, lambda i, j: (turned[i].T * turned[j])[0])

    e1 = sp.Matrix([1, 0])
    common, opposite = rotated([m * e1, m * e1]), rotated([a * e1, -a * e1])
    pythagoras = {sp.sin(phi) ** 2: 1 - sp.cos(phi) ** 2}
    common, opposite = (s.expand().subs(pythagoras).expand() for s in (common, opposite))
    c = sp.Symbol("c", real=True)
    common, opposite = common.subs(sp.cos(phi), c), opposite.subs(sp.cos(phi), c)
    weights = [softmax_rows(s) for s in (common, opposite)]
    return Derivation(
        "position_pairs",
        "A bias b on the diagonal multiplies a small pair by tanh(b/2); a rotation does so if there is a "
        "common row, and leaves the cube if there is none.",
        (
            identity(
                "a bias on the diagonal",
                with_bias * pair,
                a * sp.tanh(w * a**2 + b / 2) * sp.Matrix([1, -1]),
                "Own score minus the other one is 2 w a^2 + b in both rows.",
                latex=r"\pm a \mapsto \pm a \tanh (w a^2 + \tfrac{b}{2})",
            ),
            identity(
                "for small pairs",
                sp.tanh(w * a**2 + b / 2).subs(a, 0),
                sp.tanh(b / 2),
                "A fixed factor instead of a square.",
                latex=r"a \to 0: \quad \tanh \tfrac{b}{2}",
            ),
            identity(
                "any number of tokens",
                sp.exp(b) / (sp.exp(b) + n - 1) - 1 / (sp.exp(b) + n - 1),
                (sp.exp(b) - 1) / (sp.exp(b) + n - 1),
                "At a common row P is a multiple of the identity plus equal rows.",
                latex=r"\lambda_2 = \frac{e^b - 1}{e^b + n - 1}",
            ),
            identity(
                "two of them",
                ((sp.exp(b) - 1) / (sp.exp(b) + n - 1)).subs(n, 2),
                sp.tanh(b / 2),
                "The factor of the pair again.",
                latex=r"n = 2: \quad \lambda_2 = \tanh \tfrac{b}{2}",
            ),
            identity(
                "rotated, at a common row",
                common,
                m**2 * sp.Matrix([[1, c], [c, 1]]),
                "A rotation by phi between the two places.",
                assumptions="c is the cosine of phi",
                latex="S = m^2 \\begin{pmatrix} 1 & \\cos \\varphi \\\\ \\cos \\varphi & 1 \\end{pmatrix}",
            ),
            identity(
                "its second eigenvalue",
                weights[0][0, 0] - weights[0][0, 1],
                sp.tanh(m**2 * (1 - c) / 2),
                "The difference of the two weights.",
                latex=r"\lambda_2 = \tanh \tfrac{1}{2} m^2 (1 - \cos \varphi)",
            ),
            identity(
                "rotated, an opposite pair",
                weights[1] * pair,
                a * sp.tanh(a**2 * (1 + c) / 2) * sp.Matrix([1, -1]),
                "Without a common row the score is quadratic in the differences.",
                latex=r"\pm a \mapsto \pm a \tanh \tfrac{1}{2} a^2 (1 + \cos \varphi)",
            ),
            inequality(
                "so it is cubic",
                sp.tanh(u),
                u,
                "The tangent is at most its argument.",
                grows_in=u,
                assumptions="u positive",
            ),
        ),
        "Propositions (Bias) and (Rotary) in chapter `masks-and-positions`.",
    )


def dobrushin_contraction() -> Derivation:
    """Dobrushin's coefficient, and how fast a causal mask forgets (Lemma (Contraction))."""
    p, q, x1, x2 = sp.symbols("p q x1 x2", real=True)
    r = sp.symbols("p1:4", nonnegative=True)
    t = sp.symbols("q1:4", nonnegative=True)
    i = sp.Symbol("i", positive=True, integer=True)
    j = sp.Symbol("j", positive=True, integer=True)
    eps = sp.Symbol("e", nonnegative=True)
    pair = sp.Matrix([[p, 1 - p], [q, 1 - q]])
    smaller = [(a + b - abs(a - b)) / 2 for a, b in zip(r, t, strict=True)]
    total = {r[2]: 1 - r[0] - r[1], t[2]: 1 - t[0] - t[1]}
    half = averages(sp.Matrix([[1, 0, 0], [1, 1, 0], [0, 1, 1]]))
    rest = half[1:, 1:]
    return Derivation(
        "dobrushin_contraction",
        "The spread shrinks at least by the largest distance of two rows; for a uniform causal mask k layers "
        "leave at most (n-1)/2^k.",
        (
            identity(
                "two tokens",
                (pair * sp.Matrix([x1, x2]))[0] - (pair * sp.Matrix([x1, x2]))[1],
                (p - q) * (x1 - x2),
                "With equality: the coefficient of two rows is |p - q|.",
                latex=r"x_1' - x_2' = (p - q)(x_1 - x_2)",
            ),
            identity(
                "what two rows share",
                (sum(abs(a - b) for a, b in zip(r, t, strict=True)) / 2).subs(total),
                (1 - sum(smaller)).subs(total),
                "The smaller of two numbers is half of their sum minus half of their distance.",
                assumptions="two rows of three weights that sum to 1",
                latex="\\tfrac{1}{2} \\textstyle\\sum_j |p_j - q_j|\n"
                "= 1 - \\textstyle\\sum_j \\min (p_j, q_j)",
            ),
            inequality(
                "a column that all rows have",
                1 - (eps + abs(p)),
                1 - eps,
                "If every row gives at least e to one token, the coefficient is at most 1 - e.",
                assumptions="the other minima sum to |p|",
                latex=r"\tau(P) \le 1 - e",
            ),
            identity(
                "a causal average",
                sp.summation(j - 1, (j, 1, i)) / i,
                (i - 1) / 2,
                "From place i one goes to any of 1, ..., i: the distance to the first place halves.",
                latex=r"\tfrac{1}{i} \textstyle\sum_{j=1}^{i} (j - 1) = \tfrac{1}{2} (i - 1)",
            ),
            identity(
                "a causal window",
                rest,
                HALF * sp.Matrix([[1, 0], [1, 1]]),
                "Three tokens that see themselves and one before: what it does to the differences.",
                latex="2 Q = \\begin{pmatrix} 1 & 0 \\\\ 1 & 1 \\end{pmatrix}",
            ),
            identity(
                "one eigenvalue, twice",
                (rest - HALF * sp.eye(2)) ** 2,
                sp.zeros(2, 2),
                "The second eigenvalue is one half, and there is no other.",
                latex=r"(Q - \tfrac{1}{2})^2 = 0",
            ),
            distinct(
                "but no multiple of the identity",
                rest,
                HALF * sp.eye(2),
                "So Q has no basis of eigenvectors: a Jordan block.",
                at={},
                latex=r"Q \neq \tfrac{1}{2} I",
            ),
        ),
        "Lemma (Contraction) and Proposition (Halving) in chapter `masks-and-positions`.",
    )


DERIVATIONS = {
    build.__name__: build for build in (difference_map, causal_pair, position_pairs, dobrushin_contraction)
}
