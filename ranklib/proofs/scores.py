"""Derivations: the terms of a biased score, and which of them softmax sees.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import real_matrix, softmax_rows, stochastic_matrix
from .engine.steps import Derivation, distinct, identity

N, DIM, DIM_QK = 3, 2, 5
ONE = sp.ones(N, 1)
PAPER = "Dong, Cordonnier and Loukas 2021, appendix"


def score_expansion() -> Derivation:
    """A biased score has four terms, two constant along rows (Theorem (What softmax sees))."""
    x = real_matrix("x", N, DIM)
    w_q, w_k = real_matrix("q", DIM, DIM_QK), real_matrix("k", DIM, DIM_QK)
    b_q, b_k = real_matrix("b", DIM_QK, 1), real_matrix("c", DIM_QK, 1)
    query_term, key_term = x * w_q * b_k * ONE.T, ONE * (x * w_k * b_q).T
    constant = ONE * b_q.T * b_k * ONE.T
    differences = sp.Matrix([[1, 1], [-1, 0], [0, -1]])
    point = {symbol: 1 for symbol in key_term.free_symbols} | {x[1, 0]: 2}
    tokens = sp.Matrix([3, 1])
    pruned = tokens * tokens.T + sp.ones(2, 1) * tokens.T / 2
    full = (2 * tokens + sp.ones(2, 1)) * (tokens / 2 + 2 * sp.ones(2, 1)).T
    return Derivation(
        "score_expansion",
        "Of the four terms of a biased score, two are constant along every row and drop out of the softmax; "
        "the term that holds the key alone stays.",
        (
            identity(
                "four terms",
                (x * w_q + ONE * b_q.T) * (x * w_k + ONE * b_k.T).T,
                x * w_q * w_k.T * x.T + query_term + key_term + constant,
                "Multiply out, with the product of the projections written as one matrix.",
                latex="(X W_Q + \\mathbf{1} b_Q^\\top)(X W_K + \\mathbf{1} b_K^\\top)^\\top\n"
                "= X W_{QK} X^\\top + X W_Q b_K \\mathbf{1}^\\top\n"
                "\\quad + \\mathbf{1} b_Q^\\top W_K^\\top X^\\top\n"
                "\\quad + \\mathbf{1} b_Q^\\top b_K \\mathbf{1}^\\top",
            ),
            identity(
                "the query term is constant along rows",
                query_term * differences,
                sp.zeros(N, N - 1),
                "It ends in a row of ones, so the difference of any two of its columns is zero.",
                latex=r"X W_Q b_K \mathbf{1}^\top (e_j - e_l) = 0",
            ),
            identity(
                "so is the product of the biases",
                constant * differences,
                sp.zeros(N, N - 1),
                "It is one number, the same everywhere.",
                latex=r"\mathbf{1} b_Q^\top b_K \mathbf{1}^\top (e_j - e_l) = 0",
            ),
            identity(
                "the key term has equal rows",
                differences.T * key_term,
                sp.zeros(N - 1, N),
                "It starts with a column of ones: every token adds the same scores.",
                latex=r"(e_i - e_l)^\top \mathbf{1} b_Q^\top W_K^\top X^\top = 0",
            ),
            distinct(
                "but is not constant along rows",
                key_term[0, 0],
                key_term[0, 1],
                "It ranks the keys, so the softmax sees it.",
                at=point,
                assumptions="the second token has 2, all else 1",
                latex=r"b_Q^\top W_K^\top (X_1 - X_2)^\top \neq 0",
            ),
            identity(
                "an example in integers",
                full - pruned - sp.Matrix([[14, 14], [6, 6]]),
                sp.zeros(2, 2),
                "Tokens 3 and 1: what was dropped is constant along rows.",
                latex="(2 x_i + 1)(\\tfrac{1}{2} x_j + 2) - (x_i x_j + \\tfrac{1}{2} x_j)\n"
                "= \\begin{bmatrix} 14 & 14 \\\\ 6 & 6 \\end{bmatrix}",
            ),
            identity(
                "its softmax is kept",
                softmax_rows(full),
                softmax_rows(pruned),
                "The pruned scores give the same attention matrix.",
                latex=r"P_\text{full} = P_\text{pruned}",
            ),
            distinct(
                "dropping the key term changes it",
                softmax_rows(full),
                softmax_rows(tokens * tokens.T),
                "Without the key term the attention matrix is another one.",
                at={},
                latex=r"P_\text{full} \neq \operatorname{softmax}(x x^\top)",
            ),
        ),
        f"Theorem (What softmax sees) in chapter `softmax-shift-invariance`; {PAPER}.",
    )


def centred_score() -> Derivation:
    """Softmax of the scores is softmax of E + 1 r^T (Theorem (What softmax sees))."""
    x, residual = real_matrix("x", DIM, 1), real_matrix("r", N, DIM)
    w_q, w_k = real_matrix("q", DIM, DIM_QK), real_matrix("k", DIM, DIM_QK)
    b_q, b_k = real_matrix("b", DIM_QK, 1), real_matrix("c", DIM_QK, 1)
    w, root, tokens = w_q * w_k.T, sp.sqrt(DIM_QK), ONE * x.T + residual
    scores = (tokens * w_q + ONE * b_q.T) * (tokens * w_k + ONE * b_k.T).T / root
    e, key = residual * w * residual.T / root, residual * w_k * (w_q.T * x + b_q) / root
    dropped = (tokens * w_q + ONE * b_q.T) * (w_k.T * x + b_k) / root
    any_e, any_r, any_v = real_matrix("e", N, N), real_matrix("r", N, 1), real_matrix("v", N, 1)
    p, base = softmax_rows(any_e + ONE * any_r.T), softmax_rows(any_r.T)
    tilted = sp.Matrix(N, N, lambda i, j: base[j] * sp.exp(any_e[i, j]))
    weights = stochastic_matrix("p", N)
    return Derivation(
        "centred_score",
        r"With $X = \mathbf{1} x^\top + R$, the attention matrix is the softmax of $E + \mathbf{1} r^\top$: "
        "$E$ is quadratic in $R$, $r$ is linear in $R$, and no hypothesis is needed.",
        (
            identity(
                "four products",
                tokens * w * tokens.T,
                ONE * x.T * w * x * ONE.T
                + ONE * x.T * w * residual.T
                + residual * w * x * ONE.T
                + residual * w * residual.T,
                r"Insert $X = \mathbf{1} x^\top + R$ on both sides and multiply out.",
                latex="X W X^\\top = \\mathbf{1} x^\\top W x \\mathbf{1}^\\top\n"
                "\\quad + \\mathbf{1} x^\\top W R^\\top + R W x \\mathbf{1}^\\top\n"
                "\\quad + R W R^\\top",
            ),
            identity(
                "the scores, with biases",
                scores,
                e + ONE * key.T + dropped * ONE.T,
                "Split the key side into the common key and the rest: the common key gives the last term.",
                latex="S = E + \\mathbf{1} r^\\top + v \\mathbf{1}^\\top,\n"
                "E = R W_{QK} R^\\top / \\sqrt{d_{qk}},\n"
                "r = R W_K (W_Q^\\top x + b_Q) / \\sqrt{d_{qk}},\n"
                "v = (X W_Q + \\mathbf{1} b_Q^\\top)\n\\quad (W_K^\\top x + b_K) / \\sqrt{d_{qk}}",
            ),
            identity(
                "softmax drops the last term",
                softmax_rows(any_e + ONE * any_r.T + any_v * ONE.T),
                p,
                "It ends in a row of ones, so it is constant along rows, whatever E, r and v are.",
                latex="\\operatorname{softmax}(E + \\mathbf{1} r^\\top + v \\mathbf{1}^\\top)\n"
                "= \\operatorname{softmax}(E + \\mathbf{1} r^\\top)",
            ),
            identity(
                "weights of the base, tilted by E",
                p,
                sp.Matrix(N, N, lambda i, j: tilted[i, j] / sum(tilted.row(i))),
                "Multiply numerator and denominator by the same number; if E = 0, every row is p.",
                latex="P_{ij} = \\frac{p_j e^{E_{ij}}}{\\sum_l p_l e^{E_{il}}},\n"
                "p = \\operatorname{softmax}(r)",
            ),
            identity(
                "the common row stays",
                weights * tokens,
                ONE * x.T + weights * residual,
                "Rows of P sum to one, so averaging keeps the common row.",
                latex=r"P X = \mathbf{1} x^\top + P R",
            ),
        ),
        f"Theorem (What softmax sees) in chapter `softmax-shift-invariance`; {PAPER}.",
    )


DERIVATIONS = {build.__name__: build for build in (score_expansion, centred_score)}
