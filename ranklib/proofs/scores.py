"""What softmax sees of a biased score, about a common row."""

import sympy as sp

from .engine import (
    ONE,
    Derivation,
    Model,
    Softmax,
    d,
    distinct,
    i,
    identity,
    j,
    l,
    matrices,
    n,
    sequences,
    stochastic,
)

D_QK = sp.Symbol("d_qk", positive=True, integer=True)
PAPER = "Dong, Cordonnier and Loukas 2021, appendix"
W_Q, W_K = matrices("W_Q W_K", d, D_QK)
B_Q, B_K = matrices("b_Q b_K", D_QK, 1)
SIZES = {n: 3, d: 2, D_QK: 3}


def score_expansion() -> Derivation:
    """A biased score has four terms, two constant along rows."""
    x, (v, u) = matrices("X", n, d), matrices("v u", n, 1)
    s = matrices("S", n, n)
    key = ONE * B_Q.T * W_K.T * x.T
    tokens = matrices("t", 2, 1)
    full = (2 * tokens + ONE) * (tokens / 2 + 2 * ONE).T
    integers = {n: 2, tokens: sp.Matrix([3, 1])}
    point = {symbol: 1 for name in ("W_K", "b_Q") for symbol in _symbols(name)} | {
        sp.Symbol(f"X_{a}{b}", real=True): 2 if a == 2 else 1 for a in (1, 2, 3) for b in (1, 2)
    }
    return Derivation(
        "score_expansion",
        "Of the four terms of a biased score, two are constant along every row and drop out of the softmax; "
        "the term that holds the key alone stays.",
        (
            identity(
                "four terms",
                (x * W_Q + ONE * B_Q.T) * (x * W_K + ONE * B_K.T).T,
                x * W_Q * W_K.T * x.T + x * W_Q * B_K * ONE.T + key + ONE * B_Q.T * B_K * ONE.T,
                "Multiply out; the second and the last term end in a row of ones.",
            ),
            identity(
                "what ends in a row of ones is not seen",
                Softmax(s + v * ONE.T + u * ONE.T),
                Softmax(s),
                "With v for the query term and u for the product of the biases: constant along rows.",
            ),
            distinct(
                "the key term is not constant along rows",
                key * sp.Matrix([1, -1, 0]),
                sp.ZeroMatrix(n, 1),
                "It ranks the keys, so the softmax sees it: the second token has 2, all else 1.",
                at=point,
                given={n: 3, d: 2, D_QK: 3},
            ),
            identity(
                "an example in integers",
                Softmax(full),
                Softmax(tokens * tokens.T + ONE * tokens.T / 2),
                "Tokens 3 and 1: the pruned scores give the same attention matrix.",
                given=integers,
            ),
            distinct(
                "dropping the key term changes it",
                Softmax(full),
                Softmax(tokens * tokens.T),
                "Without the key term the attention matrix is another one.",
                at={},
                given=integers,
            ),
        ),
        f"Theorem (What softmax sees); {PAPER}.",
        SIZES,
        __name__,
    )


def _symbols(name: str) -> list[sp.Symbol]:
    columns = 3 if name == "W_K" else 1
    rows = 2 if name == "W_K" else 3
    return [sp.Symbol(f"{name}_{a + 1}{b + 1}", real=True) for a in range(rows) for b in range(columns)]


def centred_score() -> Derivation:
    """Softmax of the scores is softmax of E + 1 r^T."""
    x, r = matrices("x", d, 1), matrices("R", n, d)
    p, e, (key, v) = matrices("P", n, n), matrices("E", n, n), matrices("r v", n, 1)
    q = sequences("q", positive=True)
    scale = sp.sqrt(D_QK)
    tokens = ONE * x.T + r
    w = W_Q * W_K.T
    tilted = sp.exp(e[i - 1, j - 1])
    row = {i: 1, j: 2}
    return Derivation(
        "centred_score",
        "With X = 1 x' + R, the attention matrix is the softmax of E + 1 r': E is quadratic in R, r is "
        "linear in R, and no hypothesis is needed.",
        (
            identity(
                "four products",
                tokens * w * tokens.T,
                ONE * x.T * w * x * ONE.T + ONE * x.T * w * r.T + r * w * x * ONE.T + r * w * r.T,
                "Multiply out; what ends in a row of ones is constant along rows.",
            ),
            identity(
                "the scores, with biases",
                (tokens * W_Q + ONE * B_Q.T) * (tokens * W_K + ONE * B_K.T).T / scale,
                r * w * r.T / scale
                + ONE * (r * W_K * (W_Q.T * x + B_Q)).T / scale
                + (tokens * W_Q + ONE * B_Q.T) * (W_K.T * x + B_K) * ONE.T / scale,
                "The first term is E, the second 1 r', and the third ends in a row of ones.",
            ),
            identity(
                "softmax drops the last term",
                Softmax(e + ONE * key.T + v * ONE.T),
                Softmax(e + ONE * key.T),
                "It is constant along rows, whatever E, r and v are.",
            ),
            identity(
                "weights of the base, tilted by E",
                Softmax(e + ONE * key.T)[i - 1, j - 1],
                q[j] * tilted / sp.Sum(q[l] * sp.exp(e[i - 1, l - 1]), (l, 1, n)),
                "With q the softmax of r; if E = 0, every row is q.",
                given={q: _base(3), **row},
            ),
            identity(
                "the common row stays",
                p * tokens,
                ONE * x.T + p * r,
                "Rows of P sum to one, so averaging keeps the common row.",
            ),
        ),
        f"Theorem (What softmax sees); {PAPER}.",
        SIZES | {p: stochastic("p", 3)},
        __name__,
    )


def _base(size: int) -> Model:
    powers = [sp.exp(sp.Symbol(f"r_{a + 1}1", real=True)) for a in range(size)]
    return Model(tuple(power / sum(powers) for power in powers), "the softmax of $r$")


DERIVATIONS = (score_expansion, centred_score)
