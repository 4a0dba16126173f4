"""Derivations: the layer and its biases, the composite, two tokens, rank, the certificate.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import composite, max_col_sum, max_row_sum, real_matrix, softmax_rows, stochastic_matrix
from .engine.steps import Derivation, by_lemma, distinct, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"


def layer_bias() -> Derivation:
    """Value biases and output bias of a layer add one constant row (Proposition (Biases))."""
    n, d, widths, out = 3, 2, (2, 4), 5
    x, b_o, one = real_matrix("x", n, d), real_matrix("c", out, 1), sp.ones(n, 1)
    p = [stochastic_matrix(f"p{h}", n) for h in (1, 2)]
    w_v = [real_matrix(f"v{h}", d, width) for h, width in enumerate(widths, 1)]
    b_v = [real_matrix(f"b{h}", width, 1) for h, width in enumerate(widths, 1)]
    w_o = [real_matrix(f"o{h}", width, out) for h, width in enumerate(widths, 1)]
    heads = [p[h] * x * w_v[h] + one * b_v[h].T for h in (0, 1)]
    products = [w_v[h] * w_o[h] for h in (0, 1)]
    bias = b_o + sum((w_o[h].T * b_v[h] for h in (0, 1)), sp.zeros(out, 1))
    layer = heads[0] * w_o[0] + heads[1] * w_o[1] + one * b_o.T
    joined = heads[0].row_join(heads[1]) * w_o[0].col_join(w_o[1])
    return Derivation(
        "layer_bias",
        "All biases of an attention layer together add one and the same row to every token.",
        (
            identity(
                "averaging keeps a constant row",
                p[0] * one,
                one,
                "The weights of a token sum to one, so averaging equal rows changes nothing.",
                latex=r"P_h \mathbf{1} = \mathbf{1}",
            ),
            identity(
                "the value bias passes through",
                p[0] * (x * w_v[0] + one * b_v[0].T),
                heads[0],
                "The bias is the same row for every token, and the average of equal rows is that row.",
                latex="P_h (X W_{V,h} + \\mathbf{1} b_{V,h}^\\top)\n"
                "= P_h X W_{V,h} + \\mathbf{1} b_{V,h}^\\top",
            ),
            identity(
                "joining heads is adding them",
                joined,
                heads[0] * w_o[0] + heads[1] * w_o[1],
                "A row of blocks times a column of blocks is the sum of the products.",
                latex="[A_1, A_2] \\begin{bmatrix} W_{O,1} \\\\ W_{O,2} \\end{bmatrix}\n"
                "= A_1 W_{O,1} + A_2 W_{O,2}",
            ),
            identity(
                "one head",
                heads[0] * w_o[0],
                p[0] * x * products[0] + one * (w_o[0].T * b_v[0]).T,
                "Multiply out; a constant row times a matrix is a constant row.",
                latex="(P_h X W_{V,h} + \\mathbf{1} b_{V,h}^\\top) W_{O,h}\n"
                "= P_h X W_h + \\mathbf{1} (W_{O,h}^\\top b_{V,h})^\\top",
            ),
            identity(
                "the layer",
                layer,
                p[0] * x * products[0] + p[1] * x * products[1] + one * bias.T,
                "Add the heads and the output bias: constant rows add to a constant row.",
                latex="\\mathrm{SA}(X) = \\sum_h P_h X W_h + \\mathbf{1} b^\\top,\n"
                "b = b_O + \\sum_h W_{O,h}^\\top b_{V,h}",
            ),
        ),
        f"Proposition (Biases) in chapter `attention-and-residual`; "
        f"formula of {PAPER}, section 2, with its value biases put back.",
    )


def composite_triangle() -> Derivation:
    """The composite violates the triangle inequality (Proposition (Composite))."""
    a, b = sp.Matrix([[1, 1]]), sp.Matrix([[1, 0]])
    pair = sp.Matrix([1, -1])
    square, row = sp.Matrix([[1, 0], [1, 0]]), sp.Matrix([[1, 1], [0, 0]])
    root = sp.sqrt
    return Derivation(
        "composite_triangle",
        "The composite of a sum can exceed the sum of the composites: it is not a norm.",
        (
            identity(
                "two rows and their sum",
                sp.Matrix([composite(m) for m in (a, b, a + b)]),
                sp.Matrix([root(2), 1, root(6)]),
                "For (1, 1), (1, 0), (2, 1) the factors are 1 and 2, 1 and 1, 2 and 3.",
                latex="\\|(1, 1)\\|_{1,\\infty} = \\sqrt{2},\n\\|(1, 0)\\|_{1,\\infty} = 1,\n"
                "\\|(2, 1)\\|_{1,\\infty} = \\sqrt{6}",
            ),
            inequality(
                "the sum is larger",
                root(2) + 1,
                root(6),
                "Square both: 3 + 2 sqrt(2) is less than 6.",
                strict=True,
            ),
            identity(
                "two pairs of tokens",
                sp.Matrix([composite(pair * m) for m in (a, b, a + b)]),
                sp.Matrix([2, root(2), root(12)]),
                "Tokens plus and minus the same rows; zero is their midpoint and so their best centre.",
                latex="\\|\\pm(1, 1)\\|_{1,\\infty} = 2,\n\\|\\pm(1, 0)\\|_{1,\\infty} = \\sqrt{2},\n"
                "\\|\\pm(2, 1)\\|_{1,\\infty} = \\sqrt{12}",
            ),
            inequality(
                "residuals fail too",
                2 + root(2),
                root(12),
                "Square both: 6 + 4 sqrt(2) is less than 12.",
                strict=True,
            ),
            identity(
                "a square example",
                sp.Matrix([composite(m) for m in (square, row, square + row)]),
                sp.Matrix([root(2), root(2), 3]),
                "A column of ones and a row of ones meet in one corner.",
                latex="A = \\begin{bmatrix} 1 & 0 \\\\ 1 & 0 \\end{bmatrix},\n"
                "B = \\begin{bmatrix} 1 & 1 \\\\ 0 & 0 \\end{bmatrix},\n"
                "\\|A\\|_{1,\\infty} = \\|B\\|_{1,\\infty} = \\sqrt{2},\n"
                "\\|A + B\\|_{1,\\infty} = 3",
            ),
            inequality(
                "the sum of squares is larger", 2 * root(2), 3, "Square both: 8 is less than 9.", strict=True
            ),
        ),
        f"Proposition (Composite) in chapter `attention-and-residual`; "
        f"that it is not a norm is stated in {PAPER}.",
    )


def two_tokens_midpoint() -> Derivation:
    """For two tokens the midpoint is a best centre in any dimension (Proposition (Two tokens))."""
    d = 3
    a, z = real_matrix("a", 1, d), real_matrix("z", 1, d)
    u, v, y, c = sp.symbols("u v y c", real=True)
    f = max_col_sum((a - z).col_join(-a - z))
    total = sum(map(abs, a))
    rows = [sum(map(abs, side[:2])) for side in (a - z, a + z)]
    middle = a.col_join(-a)
    return Derivation(
        "two_tokens_midpoint",
        "For two tokens the midpoint makes both norms least at once, in any dimension.",
        (
            inequality(
                "one column",
                2 * abs(c),
                abs(c - y) + abs(c + y),
                "Triangle inequality: the two tokens are 2|a| apart, wherever the centre is.",
                latex=r"2 |a_k| \le |a_k - z_k| + |a_k + z_k|",
            ),
            inequality(
                "the column norm",
                2 * sp.Max(*map(abs, a)),
                f,
                "The largest column sum is at least each column's own bound.",
                assumptions="tokens m + a, m - a; centre m + z",
                latex=r"2 \max_k |a_k| \le f(m + z)",
            ),
            inequality(
                "a maximum is at least the average",
                (u + v) / 2,
                sp.Max(u, v),
                "The difference is half the distance of the two numbers.",
                form=abs(u - v) / 2,
            ),
            inequality(
                "the row norm",
                sum(map(abs, a[:2])),
                (rows[0] + rows[1]) / 2,
                "Add the columns: the average of the two row sums is at least the sum of |a|.",
                latex="\\sum_k |a_k| \\le \\tfrac{1}{2} \\sum_k \\bigl(|a_k - z_k|\n"
                "+ |a_k + z_k|\\bigr) \\le g(m + z)",
            ),
            identity(
                "the midpoint attains both",
                sp.Matrix([max_col_sum(middle), max_row_sum(middle)]),
                sp.Matrix([sp.Max(*(2 * abs(entry) for entry in a)), total]),
                "At z = 0 both tokens are a away, so both bounds are equalities.",
                latex="f(m) = 2 \\max_k |a_k|,\ng(m) = \\sum_k |a_k|",
            ),
        ),
        "Proposition (Two tokens) in chapter `attention-and-residual`.",
    )


def rank_lifted_pair() -> Derivation:
    """The rank stays 2 at every layer while the gap vanishes (Proposition (Rank of a pair))."""
    a, b = sp.Symbol("a", positive=True), sp.Symbol("b", positive=True)
    lifted = sp.Matrix([[1, a], [1, -a]])
    p = softmax_rows(sp.Matrix([[a**2, -(a**2)], [-(a**2), a**2]]))
    new = a * sp.tanh(a**2)
    return Derivation(
        "rank_lifted_pair",
        "A pair of opposite tokens has rank 1 without being equal; lifted by a common coordinate, it keeps "
        "rank 2 at every layer, although the tokens merge.",
        (
            identity(
                "opposite tokens have rank one",
                sp.Matrix([[a, b], [-a, -b]]).det(),
                0,
                "One row is minus the other, yet the rows differ.",
                latex=r"\det \begin{bmatrix} a & b \\ -a & -b \end{bmatrix} = 0",
            ),
            distinct(
                "and are not equal",
                sp.Matrix([[a, b]]),
                sp.Matrix([[-a, -b]]),
                "Rank one does not mean equal rows.",
                at={a: 1, b: 2},
                latex=r"(a, b) \neq (-a, -b)",
            ),
            identity(
                "the lifted pair",
                lifted.det(),
                -2 * a,
                "The common coordinate 1 makes the rows independent.",
                latex=r"\det \begin{bmatrix} 1 & a \\ 1 & -a \end{bmatrix} = -2 a",
            ),
            inequality(
                "its rank is two",
                0,
                2 * a,
                "A determinant that is not zero means full rank.",
                strict=True,
                assumptions="a positive",
                latex=r"|{-2 a}| = 2 a > 0",
            ),
            identity(
                "its singular values",
                lifted.T * lifted,
                sp.diag(2, 2 * a**2),
                "Their squares are on the diagonal: the singular values are sqrt(2) and sqrt(2) a.",
                latex=r"X^\top X = \operatorname{diag}(2, 2 a^2)",
            ),
            identity(
                "one attention layer",
                p * lifted,
                sp.Matrix([[1, new], [1, -new]]),
                "Scores from the second coordinate alone; the first is averaged with itself.",
                latex="X \\mapsto \\begin{bmatrix} 1 & a' \\\\ 1 & -a' \\end{bmatrix},\na' = a \\tanh(a^2)",
            ),
            inequality(
                "the gap never vanishes",
                0,
                new,
                "So the rank is 2 again, at every depth.",
                strict=True,
                assumptions="a positive",
            ),
            inequality(
                "but it shrinks at least like a cube",
                sp.tanh(b),
                b,
                "With b = a^2 the new gap is at most a^3.",
                grows_in=b,
                assumptions="b positive",
            ),
        ),
        "Proposition (Rank of a pair) in chapter `attention-and-residual`.",
    )


def certificate() -> Derivation:
    """A sum of weighted medians bounds both norms at every centre (Lemma (Certificate))."""
    n, d = 3, 2
    x, z = real_matrix("x", n, d), real_matrix("z", d, 1)
    f, s, t = sp.symbols("f s t", nonnegative=True)
    u, v = (sp.symbols(f"{name}1:{size + 1}", nonnegative=True) for name, size in (("u", d), ("v", n)))

    def spread(k: int, centre: sp.Expr) -> sp.Expr:
        return sum((u[k] + v[i]) * abs(x[i, k] - centre) for i in range(n))

    least = [sp.Min(*(spread(k, entry) for entry in x[:, k])) for k in range(d)]
    shifted = x - sp.ones(n, 1) * z.T
    weighted = sum(u) * max_col_sum(shifted) + sum(v) * max_row_sum(shifted)
    box = {symbol: (-2, 2) for symbol in [*x, *z]} | {symbol: (0, 2) for symbol in (*u, *v)}
    column = {symbol: box[symbol] for symbol in (*x[:, 0], z[0], u[0], *v)}
    return Derivation(
        "certificate",
        "Any weights u on features and v on tokens give a line below all pairs (f, g), whatever the centre.",
        (
            inequality(
                "weights times a maximum",
                u[0] * (f - s) + u[1] * (f - t),
                (u[0] + u[1]) * f,
                "A column sum is at most f, so a weighted sum is at most (sum u) f; rows alike.",
                assumptions="column sums f - s, f - t; all symbols non-negative",
            ),
            by_lemma(
                "a weighted median is least",
                least[0],
                spread(0, z[0]),
                "So the least value over the n entries is the least over all centres.",
                lemma="a convex piecewise linear function is least at a kink",
                box=column,
                latex="\\min_l \\sum_i (u_k + v_i) |X_{ik} - X_{lk}|\n"
                "\\le \\sum_i (u_k + v_i) |X_{ik} - z_k|",
            ),
            by_lemma(
                "the certificate",
                least[0] + least[1],
                weighted,
                "Add the columns and use the first step for f and for g.",
                lemma="weak duality of linear programmes",
                box=box,
                assumptions="u, v non-negative; any centre z",
                latex="\\varphi(u, v) \\le (\\textstyle\\sum u) f(z) + (\\textstyle\\sum v) g(z),\n"
                "\\varphi(u, v) = \\sum_k \\min_y \\sum_i (u_k + v_i) |X_{ik} - y|",
            ),
        ),
        "Lemma (Certificate) in chapter `attention-and-residual`.",
    )


DERIVATIONS = {
    build.__name__: build
    for build in (layer_bias, composite_triangle, two_tokens_midpoint, rank_lifted_pair, certificate)
}
