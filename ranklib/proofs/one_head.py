"""One head: the bound without hypothesis, two tokens, and the printed hypothesis."""

import sympy as sp

from .engine import (
    BigF,
    ColNorm,
    Composite,
    Derivation,
    Kappa,
    RowNorm,
    Scalar,
    Softmax,
    SquareG,
    by_intervals,
    by_lemma,
    d,
    definition,
    identity,
    inequality,
    j,
    l,
    matrices,
    n,
    sequences,
    weights,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def one_layer() -> Derivation:
    """One layer is bounded by G(Lambda) without any hypothesis."""
    lam = sp.Symbol("Lambda", positive=True)
    u = sp.Symbol("u", nonnegative=True)
    tanh, exp = sp.tanh(lam / 2), sp.exp(lam)
    a, b = matrices("a b", 1, 2)
    w, rest = sequences("w v", positive=True)
    return Derivation(
        "one_layer",
        "One head shrinks the residual to at most G(Lambda) times itself, and G is at most e^Lambda - 1.",
        (
            definition(
                "the factor of the columns",
                BigF(lam),
                (exp - 1 + lam) / 4,
                "The column lemma, summed over the rows.",
            ),
            definition(
                "both norms, one root",
                SquareG(lam),
                2 * BigF(lam) * tanh,
                "The factor of the columns times that of the rows; norms of R and W_V multiply to theirs.",
            ),
            inequality(
                "the range of a row of E",
                RowNorm(a - b),
                RowNorm(a) + RowNorm(b),
                "Two entries differ by at most the sum of their sizes: D is at most 2 Lambda.",
            ),
            inequality(
                "how F compares",
                u,
                sp.exp(u) - 1,
                "A convex function above its tangent: F is at most half of e^Lambda - 1.",
                grows_in=u,
            ),
            identity(
                "so G is bounded",
                (exp - 1) * tanh,
                (exp - 1) ** 2 / (exp + 1),
                "Twice the bound of F times the tangent.",
            ),
            inequality(
                "drop the denominator",
                (exp - 1) ** 2 / (exp + 1),
                (exp - 1) ** 2,
                "It is larger than 1.",
            ),
            by_intervals(
                "the bound of G, up to 10",
                SquareG(lam) * (1 + exp),
                (exp - 1) ** 2,
                "All at once, both sides times the denominator, as a check of the chain.",
                over={lam: (0, 10)},
                zeros={0: 3},
            ),
            identity(
                "for small Lambda",
                sp.Limit(SquareG(lam) / lam**2, lam, 0),
                HALF,
                "G is about Lambda over the root of 2, and Lambda is quadratic in the residual.",
            ),
            inequality(
                "columns of an attention matrix",
                sp.Sum(w[j] / (w[j] + rest[j]), (j, 1, n)),
                n,
                "Each of the n weights is below 1; rows sum to 1, so a factor root n always suffices.",
                strict=True,
                given={n: 3},
            ),
        ),
        "Theorem (One layer).",
        {},
        __name__,
    )


def two_tokens_theorem() -> Derivation:
    """For two tokens the sharp factor is tanh(Lambda/2)."""
    t, c, u = sp.symbols("t c u", nonnegative=True)
    e, s = sp.Symbol("e", positive=True), sp.Symbol("s", real=True)
    a, w, v = sp.symbols("a w v", positive=True)
    gap, w_qk, x = matrices("a", d, 1), matrices("W", d, d), matrices("X", 2, 1)
    lam = sp.Symbol("Lambda", positive=True)
    pair = {x: sp.Matrix([a, -a])}
    return Derivation(
        "two_tokens_theorem",
        "Two tokens: the residual shrinks to at most tanh(Lambda/2) times itself, for every bias, and an "
        "opposite pair on a line attains it.",
        (
            inequality(
                "biases only help",
                sp.sinh(2 * e) / (sp.cosh(2 * s) + sp.cosh(2 * e)),
                sp.tanh(e),
                "The hyperbolic cosine of 2s is at least 1.",
                form=2
                * sp.sinh(s) ** 2
                * sp.sinh(2 * e)
                / ((1 + sp.cosh(2 * e)) * (sp.cosh(2 * s) + sp.cosh(2 * e))),
            ),
            by_lemma(
                "the score of the half-gap",
                abs(Scalar(gap.T * w_qk * gap)),
                RowNorm(gap) * ColNorm(w_qk) * ColNorm(gap),
                "A largest entry times a column norm times a sum: half of Lambda.",
                lemma="Hoelder's inequality",
            ),
            identity(
                "that is half of Lambda",
                w * ColNorm(x) * RowNorm(x),
                2 * (w * a**2),
                "For a pair in one feature: column norm 2a, row norm a.",
                given=pair,
            ),
            inequality(
                "the tangent increases",
                sp.tanh(c),
                sp.tanh(c + u),
                "Its derivative is positive, so |e| may be replaced by Lambda/2.",
                grows_in=u,
            ),
            identity(
                "an opposite pair",
                v * Softmax(w * x * x.T) * x,
                v * sp.tanh(w * a**2) * x,
                "One feature, no bias.",
                given=pair,
            ),
            identity(
                "attains the bound",
                Composite(v * sp.tanh(lam / 2) * x),
                v * sp.tanh(lam / 2) * Composite(x),
                "The midpoint is a best centre before and after.",
                given={**pair, lam: 2 * w * a**2},
            ),
            inequality("so the bound is cubic", sp.tanh(u), u, "With u = Lambda/2: one half.", grows_in=u),
            identity(
                "one half is sharp",
                sp.Limit(sp.tanh(a) / (2 * a), a, 0),
                HALF,
                "A smaller constant fails for small tokens.",
            ),
            by_intervals(
                "0.49 already fails",
                sp.Rational(49, 100) * lam,
                sp.tanh(lam / 2),
                "At Lambda = 0.2.",
                given={lam: sp.Rational(1, 5)},
            ),
        ),
        "Theorem (Two tokens).",
        {d: 2},
        __name__,
    )


def technical_lemma() -> Derivation:
    """Why 1.256: the exponential stays below 1 + 2x up to there."""
    x = sp.Symbol("x", nonnegative=True)
    t, big_d = sp.Symbol("t", positive=True), sp.Symbol("D", nonnegative=True)
    below, above = sp.Rational(1256, 1000), sp.Rational(1257, 1000)
    p, e = sequences("p", positive=True), sequences("e")
    less = sp.symbols("t1:4", nonnegative=True)
    drops = tuple(sp.exp(big_d) - gap for gap in less)
    growth = sequences("g")
    return Derivation(
        "technical_lemma",
        "If the scores of a row differ by at most 1.256, its weights stay within linear factors of p.",
        (
            inequality(
                "from below", 1 - x, sp.exp(-x), "The exponential lies above its tangent.", grows_in=x
            ),
            by_intervals(
                "from above",
                sp.exp(x),
                1 + 2 * x,
                "On the whole interval, with equality at 0 alone.",
                over={x: (0, below)},
                zeros={0: 1},
            ),
            by_intervals(
                "at 1.257 no longer",
                1 + 2 * x,
                sp.exp(x),
                "So the root lies between; it is 1.25643.",
                given={x: above},
            ),
            identity(
                "the root is where kappa is 2",
                sp.exp(t) - 1 - 2 * t,
                t * (Kappa(t) - 2),
                "Divide by t.",
            ),
            identity(
                "a weight over its base",
                sp.exp(e[j]) / sp.Sum(p[l] * sp.exp(e[l]), (l, 1, n)),
                1 / sp.Sum(p[l] * sp.exp(e[l] - e[j]), (l, 1, n)),
                "Divide by the exponential of the own score.",
                given={j: 1},
            ),
            inequality(
                "an average of exponentials",
                sp.Sum(p[j] * growth[j], (j, 1, n)),
                sp.exp(big_d),
                "At most the largest one; the smallest follows alike.",
                given={p: weights("a", 3), growth: drops},
            ),
        ),
        f"Theorem (Small oscillation); the lemma is in {PAPER}, appendix.",
        {n: 3},
        __name__,
    )


DERIVATIONS = (one_layer, two_tokens_theorem, technical_lemma)
