"""Lengths of paths weighed and cancelled, draws, and baselines."""

import sympy as sp

from .engine import ColNorm, Derivation, by_intervals, identity, inequality, k, l, sequences

HALF = sp.Rational(1, 2)
L = sp.Symbol("L", positive=True, integer=True)
LENGTHS = (k, 0, L)


def weighed_lengths() -> Derivation:
    """Weights of lengths are binomial too."""
    e, more = sp.symbols("eta k", positive=True)
    z = sp.Symbol("z", nonnegative=True)
    eta = sequences("eta", positive=True)
    strengths = sp.symbols("eta_1:4", positive=True)
    weight = sp.binomial(L, k) * e**k
    product = sp.prod([1 + s * z for s in strengths])
    return Derivation(
        "weighed_lengths",
        "Layers of strength eta weigh the lengths binomially, with chance eta/(1+eta); counting is eta = H.",
        (
            identity(
                "all lengths together",
                sp.Sum(weight, LENGTHS),
                (1 + e) ** L,
                "Every layer gives 1, its skip, or eta, its heads. Divide by it: shares are binomial.",
            ),
            identity(
                "the mean length",
                sp.Sum(k * weight, LENGTHS) / (1 + e) ** L,
                L * e / (1 + e),
                "The mean of a binomial; with eta = H every head weighs 1.",
            ),
            inequality(
                "stronger layers, longer paths",
                e / (1 + e),
                (e + more) / (1 + e + more),
                "The share of the skip falls.",
                strict=True,
            ),
            identity(
                "unequal layers",
                sp.Subs(sp.Derivative(sp.log(product), z), z, 1),
                sp.Sum(eta[l] / (1 + eta[l]), (l, 1, 3)),
                "The mean is the logarithmic derivative at z = 1.",
                given={eta: strengths},
            ),
        ),
        "Proposition (Weighed lengths).",
        {L: 4},
        __name__,
    )


def cancelling_lengths() -> Derivation:
    """Lengths of alternating sign."""
    e = sp.Symbol("eta", positive=True)
    terms, sizes = sp.binomial(L, k) * (-e) ** k, sp.binomial(L, k) * e**k
    late = sp.Sum(terms, (k, 0, L - 1))
    return Derivation(
        "cancelling_lengths",
        "Layers of strength minus eta give sums of alternating sign; added, their sizes exceed the output.",
        (
            identity("the output", sp.Sum(terms, LENGTHS), (1 - e) ** L, "The binomial theorem at -eta."),
            identity("the sizes", sp.Sum(sizes, LENGTHS), (1 + e) ** L, "Without the signs."),
            inequality(
                "the sizes are larger",
                (1 - e) ** 2,
                (1 + e) ** 2,
                "The difference is 4 eta.",
                strict=True,
                form=4 * e,
            ),
            identity(
                "without the longest paths",
                late,
                (1 - e) ** L - (-e) ** L,
                "One term is missing, and it alone.",
            ),
            identity(
                "sizes over output at eta = 1/2",
                sp.Sum(sizes, LENGTHS) / sp.Sum(terms, LENGTHS),
                3**L,
                "That is 729 for six layers.",
                given={e: HALF},
            ),
            identity(
                "at eta = 3/2, the last term is most of the difference",
                late / sp.Sum(terms, LENGTHS),
                1 - 3**L,
                "The output is 1/64; without the last term it is -728/64, though the term is under 5 percent of "
                "the sizes.",
                given={e: 3 * HALF},
            ),
        ),
        "Proposition (Cancelling lengths).",
        {L: 6},
        __name__,
    )


def distinct_draws() -> Derivation:
    """Draws with replacement repeat themselves."""
    m = sp.Symbol("M", positive=True)
    draws = sp.Symbol("n", positive=True)
    seen = m * (1 - (1 - 1 / m) ** draws)
    pairs = sp.Matrix([[1, 2, 2], [2, 1, 2], [2, 2, 1]])
    return Derivation(
        "distinct_draws",
        "n draws with replacement out of M paths show M (1 - (1 - 1/M)^n) different ones on average.",
        (
            identity(
                "two draws of three",
                ColNorm(pairs.reshape(9, 1)) / 9,
                seen,
                "All nine pairs of draws, counted: a path is missed by all n draws by chance, and expectations add.",
                given={m: 3, draws: 2},
            ),
            *(
                by_intervals(name, *sides, "In closed form.", given={m: 12, draws: count})
                for name, count, sides in (
                    ("five draws of twelve, from below", 5, (sp.Rational(422, 100), seen)),
                    ("and from above", 5, (seen, sp.Rational(424, 100))),
                    ("twenty draws, from below", 20, (sp.Rational(989, 100), seen)),
                    ("and again from above", 20, (seen, sp.Rational(990, 100))),
                )
            ),
        ),
        "Proposition (Distinct paths).",
        {},
        __name__,
    )


def frozen_or_recomputed() -> Derivation:
    """The last head of a path, evaluated twice."""
    a, t = sp.symbols("a t", positive=True)
    given = {a: HALF, t: sp.tanh(sp.Rational(1, 4))}
    frozen, recomputed = sp.tanh((a * (1 + t)) ** 2), sp.tanh((a * t) ** 2)
    thousandth = sp.Rational(1, 10**4)
    return Derivation(
        "frozen_or_recomputed",
        "On the pair, a path that recomputes its attention sees smaller tokens, and attends far less.",
        (
            inequality(
                "the path sees less",
                (a * t) ** 2,
                (a * (1 + t)) ** 2,
                "The whole network sees skip and head together; the path lacks the skip. Here t = tanh a^2.",
                strict=True,
                form=a**2 * (1 + 2 * t),
            ),
            by_intervals("frozen, from below", 3691 * thousandth, frozen, "About .3692.", given=given),
            by_intervals("frozen, from above", frozen, 3693 * thousandth, "About .3692.", given=given),
            by_intervals("recomputed, from below", 149 * thousandth, recomputed, "About .0150.", given=given),
            by_intervals("recomputed, from above", recomputed, 151 * thousandth, "About .0150.", given=given),
        ),
        "Example (Frozen or recomputed).",
        {},
        __name__,
    )


def honest_baselines() -> Derivation:
    """What can be had without solving the task."""
    q = sp.Symbol("q", positive=True)
    s = sp.Symbol("s", real=True)
    tokens = sp.Symbol("m", positive=True, integer=True)
    best = sp.Sum(sp.binomial(tokens, k) * sp.Max(k, tokens - k), (k, 0, tokens)) / 2**tokens
    return Derivation(
        "honest_baselines",
        "A predictor may know the position, the majority, or which tokens are equal, and nothing else.",
        (
            inequality(
                "guess one class always", HALF, sp.Max(s, 1 - s), "The larger share is at least one half."
            ),
            identity(
                "two letters out of q, the smaller one",
                1 - (1 - 1 / q) ** 2,
                (2 * q - 1) / q**2,
                "It is the first letter unless both miss that letter.",
            ),
            *(
                identity(
                    f"{word} equal tokens",
                    best,
                    value,
                    "One answer for all; the best is the majority.",
                    given={tokens: count},
                )
                for word, count, value in (
                    ("two", 2, sp.Rational(3, 2)),
                    ("three", 3, sp.Rational(9, 4)),
                    ("four", 4, sp.Rational(11, 4)),
                )
            ),
        ),
        "Proposition (Baselines).",
        {},
        __name__,
    )


DERIVATIONS = (weighed_lengths, cancelling_lengths, distinct_draws, frozen_or_recomputed, honest_baselines)
