"""Derivations: lengths counted and weighed, cancellation, draws, baselines.

Depths are small and fixed, strengths are symbols; the sentence of each step says why any depth works.
"""

import sympy as sp

from .engine.steps import Derivation, identity, inequality

HALF = sp.Rational(1, 2)


def weighed_lengths() -> Derivation:
    """Weights of lengths are binomial too (Proposition (Weighed lengths))."""
    e, h = sp.symbols("eta H", positive=True)
    k, j = sp.symbols("k j", positive=True)
    z, depth = sp.Symbol("z", nonnegative=True), 4
    e1, e2, e3 = sp.symbols("eta1:4", positive=True)
    chance = e / (1 + e)
    weights = [sp.binomial(depth, i) * e**i for i in range(depth + 1)]
    shares = [weight / (1 + e) ** depth for weight in weights]
    draws = [sp.binomial(depth, i) * chance**i * (1 - chance) ** (depth - i) for i in range(depth + 1)]
    unequal = (1 + e1 * z) * (1 + e2 * z) * (1 + e3 * z)
    logs = [e1, e2, e3]
    return Derivation(
        "weighed_lengths",
        "Layers of strength eta weigh the lengths binomially, with chance eta/(1+eta); counting is eta = H.",
        (
            identity(
                "all lengths together",
                sum(weights),
                (1 + e) ** depth,
                "Every layer gives 1, its skip, or eta, its heads.",
                assumptions="four layers",
                latex=r"\sum_k \binom{L}{k} \eta^k = (1 + \eta)^L",
            ),
            identity(
                "shares are binomial",
                sp.Matrix(shares),
                sp.Matrix(draws),
                "Divide each bracket by 1 + eta.",
                assumptions="four layers",
                latex="\\binom{L}{k} \\frac{\\eta^k}{(1 + \\eta)^L}\n"
                "= \\binom{L}{k} s^k (1 - s)^{L - k}, \\quad s = \\frac{\\eta}{1 + \\eta}",
            ),
            identity(
                "the mean length",
                sum(i * share for i, share in enumerate(shares)),
                depth * chance,
                "The mean of a binomial.",
                assumptions="four layers",
                latex=r"\sum_k k \cdot \mathrm{share}_k = \frac{L \eta}{1 + \eta}",
            ),
            identity(
                "counting is one case",
                (depth * chance).subs(e, h),
                depth * h / (h + 1),
                "With eta = H every head weighs 1.",
                assumptions="four layers",
                latex=r"\frac{L \eta}{1 + \eta} \Big|_{\eta = H} = \frac{L H}{H + 1}",
            ),
            inequality(
                "stronger layers, longer paths",
                e / (1 + e),
                (e + k) / (1 + e + k),
                "The share of the skip falls.",
                strict=True,
                assumptions="k more strength",
                latex=r"\frac{\eta}{1 + \eta} < \frac{\eta + k}{1 + \eta + k}",
            ),
            identity(
                "from one length to the next",
                (k + j) * e * (j / ((k + 1) * (k + j))),
                j * e / (k + 1),
                "The quotient of neighbouring weights, with L = k + j.",
                assumptions="k, j positive",
                latex="\\binom{L}{k+1} \\eta^{k+1} \\Big/ \\binom{L}{k} \\eta^k\n"
                "= \\frac{(L - k) \\, \\eta}{k + 1}",
            ),
            identity(
                "unequal layers",
                sp.diff(unequal, z).subs(z, 1) / unequal.subs(z, 1),
                sum(s / (1 + s) for s in logs),
                "The mean is the logarithmic derivative at z = 1.",
                assumptions="three layers",
                latex=r"\mathrm{mean} = \sum_l \frac{\eta_l}{1 + \eta_l}",
            ),
        ),
        "Proposition (Weighed lengths) in chapter `which-paths`.",
    )


def cancelling_lengths() -> Derivation:
    """Lengths of alternating sign (Proposition (Cancelling lengths))."""
    e, depth = sp.Symbol("eta", positive=True), 6
    terms = [sp.binomial(depth, k) * (-e) ** k for k in range(depth + 1)]
    sizes = [sp.binomial(depth, k) * e**k for k in range(depth + 1)]
    late = sum(terms[:depth])
    return Derivation(
        "cancelling_lengths",
        "Layers of strength minus eta give sums of alternating sign; added, their sizes exceed the output.",
        (
            identity(
                "the output",
                sum(terms),
                (1 - e) ** depth,
                "The binomial theorem at -eta.",
                assumptions="six layers",
                latex=r"\sum_k \binom{L}{k} (-\eta)^k = (1 - \eta)^L",
            ),
            identity(
                "the sizes",
                sum(sizes),
                (1 + e) ** depth,
                "Without the signs.",
                assumptions="six layers",
                latex=r"\sum_k \binom{L}{k} \eta^k = (1 + \eta)^L",
            ),
            inequality(
                "the sizes are larger",
                (1 - e) ** 2,
                (1 + e) ** 2,
                "The difference is 4 eta.",
                strict=True,
                form=4 * e,
                latex=r"(1 - \eta)^2 < (1 + \eta)^2",
            ),
            identity(
                "without the longest paths",
                late - sum(terms),
                -(e**depth),
                "One term is missing, and it alone.",
                assumptions="six layers",
                latex=r"\sum_{k < L} \binom{L}{k} (-\eta)^k = (1 - \eta)^L - (-\eta)^L",
            ),
            identity(
                "at eta = 1/2",
                (sum(sizes) / sum(terms)).subs(e, HALF),
                sp.Integer(729),
                "Six layers.",
                latex=r"\Bigl(\frac{3/2}{1/2}\Bigr)^6 = 3^6 = 729",
            ),
            identity(
                "at eta = 3/2, the last term",
                (sizes[6] / sum(sizes)).subs(e, 3 * HALF),
                sp.Rational(729, 15625),
                "Less than 5 percent of the sizes.",
                latex=r"\frac{\eta^6}{(1 + \eta)^6} = \Bigl(\frac{3}{5}\Bigr)^6 = \frac{729}{15625}",
            ),
            identity(
                "and it is most of the difference",
                (late / sum(terms)).subs(e, 3 * HALF),
                sp.Integer(-728),
                "The output is 1/64; without the last term it is -728/64.",
                latex=r"\frac{(1/2)^6 - (3/2)^6}{(1/2)^6} = 1 - 3^6 = -728",
            ),
        ),
        "Proposition (Cancelling lengths) in chapter `which-paths`.",
    )


def distinct_draws() -> Derivation:
    """Draws with replacement repeat themselves (Proposition (Distinct paths))."""
    m, n = sp.Symbol("M", positive=True), sp.Symbol("n", positive=True)
    three = [len({a, b}) for a in range(3) for b in range(3)]
    seen = [12 * (1 - sp.Rational(11, 12) ** draws) for draws in (5, 20)]
    return Derivation(
        "distinct_draws",
        "n draws with replacement out of M paths show M (1 - (1 - 1/M)^n) different ones on average.",
        (
            identity(
                "M paths, each missed by chance",
                m - m * (1 - 1 / m) ** n,
                m * (1 - (1 - 1 / m) ** n),
                "A path is missed by all n draws with this probability; expectations add.",
                latex="M - \\sum_{\\mathrm{paths}} (1 - \\tfrac{1}{M})^n\n"
                "= M \\bigl(1 - (1 - \\tfrac{1}{M})^n\\bigr)",
            ),
            identity(
                "two draws of three",
                sp.Rational(sum(three), 9),
                3 * (1 - sp.Rational(2, 3) ** 2),
                "All nine pairs of draws, counted.",
                latex=r"\tfrac{15}{9} = 3 (1 - (\tfrac{2}{3})^2)",
            ),
            inequality(
                "five draws of twelve, from below",
                sp.Rational(422, 100),
                seen[0],
                "About 4.23.",
                strict=True,
                latex=r"4.22 < 12 \, (1 - (\tfrac{11}{12})^5)",
            ),
            inequality(
                "and from above",
                seen[0],
                sp.Rational(424, 100),
                "About 4.23.",
                strict=True,
                latex=r"12 \, (1 - (\tfrac{11}{12})^5) < 4.24",
            ),
            inequality(
                "twenty draws, from below",
                sp.Rational(989, 100),
                seen[1],
                "About 9.89.",
                strict=True,
                latex=r"9.89 < 12 \, (1 - (\tfrac{11}{12})^{20})",
            ),
            inequality(
                "and again from above",
                seen[1],
                sp.Rational(990, 100),
                "About 9.89.",
                strict=True,
                latex=r"12 \, (1 - (\tfrac{11}{12})^{20}) < 9.90",
            ),
        ),
        "Proposition (Distinct paths) in chapter `which-paths`.",
    )


def frozen_or_recomputed() -> Derivation:
    """The last head of a path, evaluated twice (Example (Frozen or recomputed))."""
    a, t = sp.symbols("a t", positive=True)
    first = sp.tanh(sp.Rational(1, 4))
    whole, alone = (1 + first) / 2, first / 2
    return Derivation(
        "frozen_or_recomputed",
        "On the pair, a path that recomputes its attention sees smaller tokens, and attends far less.",
        (
            identity(
                "what the whole network sees",
                a + a * t,
                a * (1 + t),
                "Skip and head together.",
                latex=r"a_1 = a (1 + t), \quad t = \tanh a^2",
            ),
            inequality(
                "the path sees less",
                (a * t) ** 2,
                (a * (1 + t)) ** 2,
                "It lacks the skip.",
                strict=True,
                form=a**2 * (1 + 2 * t),
                latex=r"(a t)^2 < (a + a t)^2",
            ),
            inequality(
                "frozen, from below",
                sp.Rational(3691, 10**4),
                sp.tanh(whole**2),
                "About .3692.",
                strict=True,
                latex=r".3691 < \tanh a_1^2",
            ),
            inequality(
                "frozen, from above",
                sp.tanh(whole**2),
                sp.Rational(3693, 10**4),
                "About .3692.",
                strict=True,
                latex=r"\tanh a_1^2 < .3693",
            ),
            inequality(
                "recomputed, from below",
                sp.Rational(149, 10**4),
                sp.tanh(alone**2),
                "About .0150.",
                strict=True,
                latex=r".0149 < \tanh (a t)^2",
            ),
            inequality(
                "recomputed, from above",
                sp.tanh(alone**2),
                sp.Rational(151, 10**4),
                "About .0150.",
                strict=True,
                latex=r"\tanh (a t)^2 < .0151",
            ),
        ),
        "Example (Frozen or recomputed) in chapter `which-paths`.",
    )


def honest_baselines() -> Derivation:
    """What can be had without solving the task (Proposition (Baselines))."""
    best = [sum(sp.binomial(m, b) * sp.Integer(max(b, m - b)) for b in range(m + 1)) for m in range(1, 5)]
    p = sp.Symbol("p", nonnegative=True)
    q = sp.Symbol("q", positive=True)
    return Derivation(
        "honest_baselines",
        "A predictor may know the position, the majority, or which tokens are equal, and nothing else.",
        (
            inequality(
                "guess one class always",
                HALF,
                HALF + p,
                "The larger share is at least one half.",
                latex=r"\tfrac{1}{2} \le \max(s, 1 - s)",
            ),
            identity(
                "two letters out of q, the smaller one",
                1 - (1 - 1 / q) ** 2,
                (2 * q - 1) / q**2,
                "It is the first letter unless both miss that letter.",
                latex=r"P(X_{(1)} = 1) = 1 - \bigl(1 - \tfrac{1}{q}\bigr)^2 = \frac{2 q - 1}{q^2}",
            ),
            identity(
                "equal tokens, one to four of them",
                sp.Matrix([b / sp.Integer(2) ** m for m, b in enumerate(best, 1)]),
                sp.Matrix([1, sp.Rational(3, 2), sp.Rational(9, 4), sp.Rational(11, 4)]),
                "One answer for all of them; the best one is their more frequent label.",
                latex="\\mathrm{E} \\max(B, m - B) = 1, \\tfrac{3}{2}, \\tfrac{9}{4}, \\tfrac{11}{4},\n"
                "B \\sim \\mathrm{Bin}(m, \\tfrac{1}{2})",
            ),
        ),
        "Proposition (Baselines) in chapter `which-paths`.",
    )


DERIVATIONS = {
    build.__name__: build
    for build in (weighed_lengths, cancelling_lengths, distinct_draws, frozen_or_recomputed, honest_baselines)
}
