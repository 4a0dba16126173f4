"""The secant slope kappa, and the lemma on the columns of P - 1 p'."""

import sympy as sp

from .engine import (
    BigF,
    Derivation,
    Kappa,
    Sigma,
    Vartheta,
    by_search,
    definition,
    identity,
    inequality,
)


def kappa() -> Derivation:
    """The function (e^t - 1)/t: its growth, and kappa times vartheta."""
    t, s, big_d = sp.symbols("t s D", positive=True)
    u = sp.Symbol("u", nonnegative=True)
    return Derivation(
        "kappa",
        "The secant slope of the exponential grows, and its product with vartheta is a square.",
        (
            definition("the secant slope", Kappa(t), (sp.exp(t) - 1) / t, "The chord from 0 to t."),
            identity(
                "an average",
                sp.Integral(sp.exp(t * s), (s, 0, 1)),
                Kappa(t),
                "The average of the exponentials between 0 and t.",
            ),
            identity("at zero", sp.Limit(Kappa(t), t, 0), 1, "The slope of the exponential there."),
            identity(
                "its slope",
                t**2 * sp.Derivative(Kappa(t), t),
                t * sp.exp(t) - sp.exp(t) + 1,
                "Quotient rule.",
            ),
            inequality(
                "it increases at least at rate one half of itself",
                u * (sp.exp(u) - 1) / 2,
                u * sp.exp(u) - sp.exp(u) + 1,
                "Twice differentiated, the difference is not negative; the left side is t^2 kappa / 2.",
                grows_in=u,
            ),
            inequality(
                "negative arguments",
                1 - sp.exp(-u),
                u,
                "There the slope is at most 1, so |e^t - 1| is at most kappa(mu) |t| for |t| up to mu.",
                grows_in=u,
            ),
            definition("and vartheta", Vartheta(big_d), sp.tanh(big_d / 4) / (big_d / 4), "What TV loses."),
            identity(
                "kappa times vartheta",
                Kappa(big_d) * Vartheta(big_d),
                Kappa(big_d / 2) ** 2,
                "With s = e^(D/2): the tangent is (s - 1)/(s + 1), and s^2 - 1 holds both factors.",
            ),
            inequality("vartheta is at most 1", sp.tanh(u), u, "With u = D/4.", grows_in=u),
        ),
        "Lemma (Columns).",
        {},
        __name__,
    )


def column_lemma() -> Derivation:
    """How far one weight moves, and the column sums of P - 1 p^T."""
    x, y = sp.symbols("x y", real=True)
    r, u, v, w, a, b, s, t, m = sp.symbols("r u v w a b s t m", positive=True)
    q = sp.Symbol("q", real=True)
    lam = sp.Symbol("Lambda", positive=True)
    e1, e2, e3 = sp.symbols("e_1 e_2 e_3", real=True)
    share = {q: 1 / (1 + r)}
    p1, p2, p3 = (k / (a + b + r) for k in (a, b, r))
    tilted = p1 * sp.exp(e1) / (p1 * sp.exp(e1) + p2 * sp.exp(e2) + p3 * sp.exp(e3))
    others = p2 * (sp.exp(abs(e2)) - 1) + p3 * (sp.exp(abs(e3)) - 1)
    return Derivation(
        "column_lemma",
        "A weight moves by at most a quarter of its own score, and by its size times what the other scores do; "
        "a column by at most (e^Lambda - 1 + Lambda)/4.",
        (
            identity(
                "one weight is a logistic function",
                q * sp.exp(x) / (q * sp.exp(x) + (1 - q) * w),
                Sigma(x + sp.log(q / ((1 - q) * w))),
                "Divide by q e^x; w is the average of the other exponentials.",
                given=share,
            ),
            inequality(
                "whose slope is at most a quarter",
                q * (1 - q),
                sp.Rational(1, 4),
                "So dropping the own score costs at most |E_ik| / 4.",
                form=(q - sp.Rational(1, 2)) ** 2,
            ),
            inequality(
                "the others grow",
                q - q / (q + (1 - q) * w),
                q * (1 - q) * (w - 1),
                "If w is at least 1, divide by a number that is at least 1.",
                given={**share, w: 1 + u},
            ),
            inequality(
                "the others shrink",
                q / (q + (1 - q) * w) - q,
                q * (1 - q) * (1 / w - 1),
                "If w is below 1, the same with 1/w.",
                given={**share, w: 1 / (1 + u)},
            ),
            inequality(
                "the reciprocal of an average",
                (s + t) / (s * a + t * b),
                (s / a + t / b) / (s + t),
                "It is at most the average of the reciprocals, here of the exponentials of -E.",
                form=s * t * (a - b) ** 2 / (a * b * (s + t) * (s * a + t * b)),
            ),
            by_search(
                "one entry",
                abs(tilted - p1),
                abs(e1) / 4 + p1 * others,
                "Both parts together: the lemma for three tokens.",
                box={a: (0.05, 2), b: (0.05, 2), r: (0.05, 2), e1: (-2, 2), e2: (-2, 2), e3: (-2, 2)},
                where=sp.Abs(e1) + sp.Abs(e2) + sp.Abs(e3) > sp.Rational(1, 1000),
                near=0.05,
            ),
            inequality(
                "the largest sum of a column",
                (a - 1) + (b - 1),
                a * b - 1,
                "With a and b the exponentials of two of the |E_ij| in a column: one row with all of it is worst.",
                given={a: 1 + u, b: 1 + v},
            ),
            definition(
                "the factor of the columns",
                BigF(lam),
                (sp.exp(lam) - 1 + lam) / 4,
                "With q (1 - q) at most a quarter; the own scores add Lambda / 4.",
            ),
            identity(
                "sharp: many movers",
                sp.Limit(m * (sp.Rational(1, 2) - 1 / (2 + (sp.exp(lam) - 1) / m)), m, sp.oo),
                (sp.exp(lam) - 1) / 4,
                "Half of p on the key, m movers share the rest: what they take from it together.",
            ),
            identity(
                "sharp: many small own scores",
                sp.Limit(m * (Sigma(lam / m) - sp.Rational(1, 2)), m, sp.oo),
                lam / 4,
                "And m rows that score Lambda / m on the key: both together attain F.",
            ),
        ),
        "Lemma (Columns).",
        {},
        __name__,
    )


DERIVATIONS = (kappa, column_lemma)
