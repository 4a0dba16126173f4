"""Weights that are tilted by scores: mean deviation, total variation, and the key identity."""

import sympy as sp

from .engine import (
    Derivation,
    Largest,
    Least,
    Model,
    by_search,
    definition,
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


def mean_absolute_deviation() -> Derivation:
    """The mean deviation is at most half the range."""
    u, low, high, mid = sp.symbols("u a b m", real=True)
    r, w, s, t = sp.symbols("r w s t", positive=True)
    z = sp.Symbol("y", real=True)
    chord = {z: (w * s - r * t) / (s + t) + mid, high: mid + w, low: mid - r}
    return Derivation(
        "mean_absolute_deviation",
        "Under any weights, the mean absolute deviation from the mean is at most half the range.",
        (
            identity("deviations cancel", sp.Sum(P[j] * (Y[j] - MEAN), INDEX), 0, "Weights sum to one."),
            identity(
                "count the positive ones twice",
                abs(u),
                2 * sp.Max(u, 0) - u,
                "Hence the mean deviation is twice the mean of the positive parts.",
            ),
            inequality(
                "a chord lies above the positive part",
                sp.Max(z - mid, 0),
                (high - mid) * (z - low) / (high - low),
                "The positive part is convex, and the chord joins its end values; y divides [a, b] as s : t.",
                given=chord,
            ),
            identity(
                "average the chord",
                sp.Sum(P[j] * (high - MEAN) * (Y[j] - low) / (high - low), INDEX),
                (high - MEAN) * (MEAN - low) / (high - low),
                "The chord is linear in y.",
            ),
            inequality(
                "the product is largest in the middle",
                2 * r * w / (r + w),
                (r + w) / 2,
                "The difference is a square; r + w is the range.",
                form=(r - w) ** 2 / (2 * (r + w)),
            ),
            by_search(
                "the lemma",
                sp.Sum(P[j] * abs(Y[j] - MEAN), INDEX),
                (Largest(Y[k], (k, 1, n)) - Least(Y[k], (k, 1, n))) / 2,
                "Twice the averaged chord is at most half the range, by the steps above.",
                given={P: weights("a", 3)},
            ),
        ),
        "Lemma (Mean absolute deviation).",
        {n: 3, P: signed_weights("p", 3)},
        __name__,
    )


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
        "Lemma (Total variation).",
        {n: 3, P: signed_weights("p", 3)},
        __name__,
    )


def key_identity() -> Derivation:
    """The change of an average is a sum of score times deviation."""
    num, z, delta = sp.symbols("N Z Delta", real=True)
    u = sp.Symbol("u", nonnegative=True)
    pull = sp.Sum(P[j] * (sp.exp(E[j]) - 1) * (Y[j] - MEAN), INDEX)
    moved = sp.Sum((P[j] * sp.exp(E[j]) / NORMALISER - P[j]) * Y[j], INDEX)
    parts = sp.symbols("a1:4", nonnegative=True)
    two_signs = Model((parts[0], parts[1]), "non-negative weights")
    slack = sp.Symbol("s", nonnegative=True)
    f = sp.Symbol("f", real=True)
    return Derivation(
        "key_identity",
        "The change of an average under a tilt, times the normaliser, is linear in the tilt's exponentials.",
        (
            definition(
                "the change", delta, moved, "The new average minus the old one, with Z the normaliser."
            ),
            identity(
                "changes cancel",
                sp.Sum(P[j] * sp.exp(E[j]) / NORMALISER - P[j], INDEX),
                0,
                "Both rows of weights sum to one, so y may be replaced by its deviation.",
            ),
            identity(
                "the key identity",
                NORMALISER * moved,
                pull,
                "Deviations cancel too, so the 1 is free: Z times the change is N.",
            ),
            inequality(
                "a large normaliser",
                abs(num) / z,
                abs(num),
                "Dividing by Z makes N smaller.",
                given={z: 1 + u},
            ),
            identity(
                "a small one",
                num / z,
                num + (1 - z) * (num / z),
                "Write the quotient as N plus the rest.",
            ),
            inequality(
                "negative scores", 1 - sp.exp(-u), u, "The exponential lies above its tangent.", grows_in=u
            ),
            inequality("positive scores", 1 - sp.exp(u), 0, "They only make Z larger.", grows_in=u),
            inequality(
                "so the rest is small",
                sp.Sum(P[j] * f, (j, 1, 2)),
                sp.Sum(P[j] * u, (j, 1, 2)),
                "Each 1 - exp(e) is at most |e|, here f at most u, so the weighted sum 1 - Z is too.",
                given={P: two_signs, f: u - slack},
            ),
            by_search(
                "the inequality",
                abs(pull / NORMALISER),
                abs(pull) + sp.Sum(P[k] * abs(E[k]), (k, 1, n)) * abs(pull / NORMALISER),
                "Either case is covered, by the steps above.",
                given={P: weights("a", 3)},
            ),
        ),
        "Lemma (Key identity).",
        {n: 3, P: signed_weights("p", 3)},
        __name__,
    )


DERIVATIONS = (mean_absolute_deviation, total_variation, key_identity)
