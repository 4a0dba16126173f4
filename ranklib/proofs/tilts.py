"""Weights that are tilted by scores: total variation."""

import sympy as sp

from .engine import (
    Derivation,
    Largest,
    Least,
    by_search,
    identity,
    inequality,
    j,
    k,
    l,
    n,
    sequences,
    signed_weights,
    weights,
)

HALF = sp.Rational(1, 2)
P, E, Y = sequences("p e y")
INDEX = (j, 1, n)
MEAN = sp.Sum(P[l] * Y[l], (l, 1, n))
NORMALISER = sp.Sum(P[l] * sp.exp(E[l]), (l, 1, n))


def total_variation() -> Derivation:
    """A tilt of range D moves a share of tanh(D/4) at most."""
    g, h, u, v, big_d = sp.symbols("g h u v D", nonnegative=True)
    b, c = sp.symbols("b c", positive=True)
    q, s = sp.symbols("q s", real=True)
    change = sequences("c")
    gain = q * (1 - q) * (s**2 - 1) / (1 + q * (s**2 - 1))
    moved = sp.Sum(abs(P[j] * sp.exp(E[j]) / NORMALISER - P[j]), INDEX) / 2
    rng = Largest(E[k], (k, 1, n)) - Least(E[k], (k, 1, n))
    return Derivation(
        "total_variation",
        "Tilting weights by scores of range D moves a share of at most tanh(D/4); two tokens attain it.",
        (
            identity(
                "what is gained is lost",
                sp.Sum(abs(change[j]), INDEX) / 2,
                g + h,
                "So the moved share is the gain of the set S of weights that grow.",
                given={change: (g + h, -g, -h)},
            ),
            inequality(
                "the worst tilt has two levels",
                b / (b + c + v),
                (b + u) / (b + u + c),
                "Raise the scores on S to the largest, lower those off S to the smallest: the share b of S, "
                "with c off S, can only grow.",
            ),
            identity(
                "the gain",
                q * s**2 / (q * s**2 + 1 - q) - q,
                gain,
                "With q the old share of S, and s the exponential of D/2.",
            ),
            identity(
                "a perfect square",
                1 + q * (s**2 - 1) - q * (1 - q) * (s + 1) ** 2,
                (1 - q * (s + 1)) ** 2,
                "Multiply out.",
            ),
            inequality(
                "so the gain is bounded",
                q * (1 - q) * (s + 1) ** 2,
                1 + q * (s**2 - 1),
                "Times s - 1, and divided by s + 1 and the right side: the gain is at most (s - 1)/(s + 1).",
                form=(1 - q * (s + 1)) ** 2,
            ),
            identity(
                "in terms of D",
                (sp.exp(big_d / 2) - 1) / (sp.exp(big_d / 2) + 1),
                sp.tanh(big_d / 4),
                "Divide by the exponential of D/4.",
            ),
            identity(
                "two tokens attain it",
                gain,
                (s - 1) / (s + 1),
                "The square vanishes there.",
                given={q: 1 / (s + 1)},
            ),
            by_search(
                "three tokens",
                moved,
                sp.tanh(rng / 4),
                "The bound for any weights and scores, by the steps above.",
                given={P: weights("a", 3)},
            ),
            inequality("at most a quarter of D", sp.tanh(u), u, "With u = D/4.", grows_in=u),
        ),
        "Lemma (Tilt), in the audit Lemma (Total variation).",
        {n: 3, P: signed_weights("p", 3)},
        __name__,
    )


DERIVATIONS = (total_variation,)
