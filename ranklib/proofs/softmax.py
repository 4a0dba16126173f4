"""Softmax: what shifts do, that it averages, and two tokens as a formula."""

import sympy as sp

from .engine import (
    ONE,
    Derivation,
    Scalar,
    Softmax,
    d,
    distinct,
    i,
    identity,
    inequality,
    j,
    l,
    matrices,
    n,
    sequences,
    stochastic,
    weights,
)

S, P, Q = matrices("S P Q", n, n)


def softmax_shift() -> Derivation:
    """Softmax ignores a constant along a row, not along a column."""
    v = matrices("v", n, 1)
    p = Softmax(S)
    zero = {sp.Symbol(f"S_{a}{b}", real=True): 0 for a in (1, 2, 3) for b in (1, 2, 3)}
    return Derivation(
        "softmax_shift",
        "Adding one number to a whole row of scores changes nothing; adding it to a column does.",
        (
            identity(
                "only differences matter",
                p[i - 1, j - 1] / p[i - 1, l - 1],
                sp.exp(S[i - 1, j - 1] - S[i - 1, l - 1]),
                "The common denominator cancels.",
                given={i: 1, j: 2, l: 3},
            ),
            identity(
                "one constant for each row",
                Softmax(S + v * ONE.T),
                Softmax(S),
                "Numerator and denominator of a row are multiplied by the same number.",
            ),
            distinct(
                "a constant for each column",
                Softmax(S + ONE * v.T),
                Softmax(S),
                "With v = (1, 0, 0) one weight of each row grows, the others shrink.",
                at=zero | {sp.Symbol(f"v_{a}1", real=True): int(a == 1) for a in (1, 2, 3)},
            ),
        ),
        "Lemma (Row shift).",
        {n: 3},
        __name__,
    )


def row_stochastic() -> Derivation:
    """Attention matrices and their products are row-stochastic."""
    x, r = matrices("x", d, 1), matrices("R", n, d)
    p, q = sequences("p q", positive=True)
    y = sequences("y")
    top = sp.Symbol("M", real=True)
    drops = sp.symbols("t1:4", nonnegative=True)
    lopsided = matrices("A", 2, 2)
    return Derivation(
        "row_stochastic",
        "Every row of an attention matrix holds positive weights of sum one, and so does every product.",
        (
            identity("rows sum to one", Softmax(S) * ONE, ONE, "The numerators add up to the denominator."),
            inequality(
                "weights are positive",
                0,
                Softmax(S)[0, 0],
                "An exponential divided by a sum of exponentials.",
                strict=True,
                given={n: 3},
            ),
            identity("a product's rows sum to one", P * Q * ONE, ONE, "Apply Q to the ones, then P."),
            inequality(
                "a product's entries are positive",
                0,
                sp.Sum(p[j] * q[j], (j, 1, n)),
                "Sums of products of positive numbers: a row of P times a column of Q.",
                strict=True,
            ),
            identity(
                "a common row passes through",
                P * (ONE * x.T + r),
                ONE * x.T + P * r,
                "Only the residual is averaged.",
            ),
            inequality(
                "an average is at most the largest",
                sp.Sum(p[j] * y[j], (j, 1, n)),
                top,
                "New tokens lie between the old ones, feature by feature; the smallest follows by symmetry.",
                given={p: weights("a", 3), y: tuple(top - drop for drop in drops)},
            ),
            distinct(
                "columns need not sum to one",
                sp.OneMatrix(1, 2) * Softmax(lopsided),
                sp.OneMatrix(1, 2),
                "Two tokens may prefer the same key.",
                at={},
                given={lopsided: sp.Matrix([[1, 0], [1, 0]])},
            ),
        ),
        "Proposition (Row-stochastic).",
        {n: 3, d: 2, P: stochastic("p", 3), Q: stochastic("q", 3)},
        __name__,
    )


def stays_inside() -> Derivation:
    """Averages are never further apart than what they average."""
    p, q = sequences("p q", positive=True)
    y, lengths = sequences("y e")
    top = sp.Symbol("D", nonnegative=True)
    drops = sp.symbols("t1:4", nonnegative=True)
    rows = {p: weights("a", 3), q: weights("b", 3)}
    both = (j, 1, n), (l, 1, n)
    return Derivation(
        "stays_inside",
        "Two averages of the same tokens are never further apart than the tokens are.",
        (
            identity(
                "the weights of the pairs sum to one",
                sp.Sum(p[j] * q[l], *both),
                1,
                "Sum over l first, then over j.",
                given=rows,
            ),
            identity(
                "a difference of averages is an average of differences",
                sp.Sum(p[j] * y[j], (j, 1, n)) - sp.Sum(q[l] * y[l], (l, 1, n)),
                sp.Sum(p[j] * q[l] * (y[j] - y[l]), *both),
                "In each feature: the p sum to one, and so do the q.",
                given=rows,
            ),
            inequality(
                "an average of lengths is at most the longest",
                sp.Sum(p[j] * lengths[j], (j, 1, n)),
                top,
                "None is longer than D. With the triangle inequality: the average of the differences is not.",
                given={p: weights("a", 3), lengths: tuple(top - drop for drop in drops)},
            ),
        ),
        "Proposition (Inside).",
        {n: 3},
        __name__,
    )


def two_token_map() -> Derivation:
    """One head on two tokens: a becomes v a tanh(w a^2)."""
    mid, a, w, v, s, e = sp.symbols("m a w v s e", real=True)
    t, u = sp.symbols("e u", nonnegative=True)
    x, sign = matrices("X", 2, 1), sp.Matrix([1, -1])
    pair = {x: sp.Matrix([a, -a])}
    gap, key = matrices("a", d, 1), matrices("k", d, 1)
    w_qk, seen = matrices("W_{QK}", d, d), matrices("S", 2, 2)
    score = Scalar(gap.T * w_qk * gap)
    both = sign * sign.T, sp.ones(2, 1) * sign.T

    def phi(value: sp.Expr) -> sp.Expr:
        return sp.sinh(2 * value) / (sp.cosh(2 * s) + sp.cosh(2 * value))

    excess = 2 * sp.sinh(s) ** 2 * sp.sinh(2 * t) / ((1 + sp.cosh(2 * t)) * (sp.cosh(2 * s) + sp.cosh(2 * t)))
    return Derivation(
        "two_token_map",
        "For two tokens a head is a formula: an opposite pair a, -a becomes v a tanh(w a^2), and in any "
        "dimension the half-gap is multiplied by one number before the value matrix.",
        (
            identity(
                "one feature",
                Softmax(w * x * x.T) * x,
                sp.Matrix([mid + a * sp.tanh(w * a * (mid + a)), mid + a * sp.tanh(w * a * (mid - a))]),
                "A two-way softmax whose entries differ by 2z has weights whose difference is tanh z.",
                given={x: sp.Matrix([mid + a, mid - a])},
            ),
            identity(
                "an opposite pair",
                v * Softmax(w * x * x.T) * x,
                v * sp.tanh(w * a**2) * x,
                "Set m = 0.",
                given=pair,
            ),
            inequality(
                "the map is at most cubic",
                sp.tanh(u),
                u,
                "With u = w a^2 the new gap is at most |v w| |a|^3.",
                grows_in=u,
            ),
            identity(
                "any dimension: the scores that are seen",
                (sign * gap.T) * w_qk * (sign * gap.T).T + sp.ones(2, 1) * (sign * gap.T * key).T,
                sp.Matrix([[score, -score], [-score, score]])
                + Scalar(gap.T * key) * sp.Matrix([[1, -1], [1, -1]]),
                "About the midpoint the residual holds the half-gap with both signs; r is linear in it.",
            ),
            identity(
                "any dimension: the averages",
                Softmax(seen) * sign,
                sp.Matrix([sp.tanh(s + e), sp.tanh(s - e)]),
                "Each row holds two scores, 2(s + e) or 2(s - e) apart; a gap 2z averages to tanh z.",
                given={seen: e * both[0] + s * both[1]},
            ),
            identity(
                "any dimension: the new half-gap",
                (sp.tanh(s + e) - sp.tanh(s - e)) / 2,
                phi(e),
                "Half the difference of the two averages is the factor; the biases only enter through s.",
            ),
            inequality(
                "a key-only score helps mixing",
                phi(t),
                sp.tanh(t),
                "The hyperbolic cosine of 2s is at least 1; the factor is odd in e.",
                form=excess,
            ),
            identity(
                "in integers",
                Softmax(x * x.T) * x,
                sp.Matrix([2 + sp.tanh(3), 2 + sp.tanh(1)]),
                "About 2.995 and 2.762, with w = 1 and no bias: the half-gap falls from 1 to 0.117.",
                given={x: sp.Matrix([3, 1])},
            ),
        ),
        "Proposition (Two tokens on a line).",
        {d: 3},
        __name__,
    )


DERIVATIONS = (softmax_shift, row_stochastic, stays_inside, two_token_map)
