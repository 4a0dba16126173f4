"""Derivations: the lemmas on weights that are tilted by a small matrix of scores.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

from collections.abc import Callable

import sympy as sp

from .engine.matrices import max_col_sum, real_matrix, softmax_rows
from .engine.steps import Derivation, by_lemma, identity, inequality

HALF = sp.Rational(1, 2)


def exp_minus_one(t: sp.Expr) -> sp.Expr:
    """The exponential minus 1, written so that float64 does not cancel."""
    return 2 * sp.tanh(t / 2) / (1 - sp.tanh(t / 2))


def mean_absolute_deviation() -> Derivation:
    """The mean deviation is at most half the range (Lemma (Mean absolute deviation))."""
    y, a = sp.symbols("y1:4", real=True), sp.symbols("a1:4", positive=True)
    p = [weight / sum(a) for weight in a]
    mean = sum(weight * value for weight, value in zip(p, y, strict=True))
    u, c, m, low, high = sp.symbols("u c m a b", real=True)
    r, w, s, t = sp.symbols("r w s t", positive=True)
    box = {symbol: (-1, 1) for symbol in y} | {symbol: (0.01, 1) for symbol in a}
    return Derivation(
        "mean_absolute_deviation",
        "Under any weights, the mean absolute deviation from the mean is at most half the range.",
        (
            identity(
                "deviations cancel",
                sum(q * (value - mean) for q, value in zip(p, y, strict=True)),
                0,
                "Weights sum to one.",
                latex=r"\sum_j p_j (y_j - \bar y) = 0",
            ),
            identity(
                "count the positive ones twice",
                abs(u),
                2 * sp.Max(u, 0) - u,
                "Hence the mean deviation is twice the mean of the positive parts.",
                latex=r"|u| = 2 u_+ - u",
            ),
            inequality(
                "a chord lies above the positive part",
                sp.Max((w * s - r * t) / (s + t), 0),
                w * s / (s + t),
                "The positive part is convex, and the chord joins its end values.",
                assumptions="r, w: from the mean down to a and up to b; y divides [a, b] as s : t",
                latex="(y - \\bar y)_+\n\\le (b - \\bar y) \\frac{y - a}{b - a}",
            ),
            identity(
                "average the chord",
                sum(q * (high - mean) * (value - low) / (high - low) for q, value in zip(p, y, strict=True)),
                (high - mean) * (mean - low) / (high - low),
                "The chord is linear in y.",
                latex="\\sum_j p_j (b - \\bar y) \\frac{y_j - a}{b - a}\n"
                "= \\frac{(b - \\bar y)(\\bar y - a)}{b - a}",
            ),
            inequality(
                "the product is largest in the middle",
                2 * r * w / (r + w),
                (r + w) / 2,
                "The difference is a square; r + w is the range.",
                form=(r - w) ** 2 / (2 * (r + w)),
                assumptions="r, w positive",
            ),
            by_lemma(
                "the lemma",
                sum(q * abs(value - mean) for q, value in zip(p, y, strict=True)),
                (sp.Max(*y) - sp.Min(*y)) / 2,
                "Twice the averaged chord is at most half the range.",
                lemma="the steps above",
                box=box,
                latex=r"\sum_j p_j |y_j - \bar y| \le \tfrac{1}{2} \mathrm{osc}(y)",
            ),
            identity(
                "it is attained",
                HALF * abs(m + c - m) + HALF * abs(m - c - m),
                abs(c),
                "Two values with equal weights: the range is 2|c|.",
                latex=r"\tfrac{1}{2} |c| + \tfrac{1}{2} |{-c}| = \tfrac{1}{2} \cdot 2 |c|",
            ),
        ),
        "Lemma (Mean absolute deviation) in chapter `one-head`.",
    )


def total_variation() -> Derivation:
    """A tilt of range D moves a share of tanh(D/4) at most (Lemma (Total variation))."""
    a, e = sp.symbols("a1:4", positive=True), sp.symbols("e1:4", real=True)
    g, h, u, v, d = sp.symbols("g h u v D", nonnegative=True)
    b, c = sp.symbols("b c", positive=True)
    q, s = sp.symbols("q s", real=True)
    p = [weight / sum(a) for weight in a]
    tilted = [weight * sp.exp(score) for weight, score in zip(a, e, strict=True)]
    moved = sum(abs(weight / sum(tilted) - old) for weight, old in zip(tilted, p, strict=True)) / 2
    gain = q * (1 - q) * (s**2 - 1) / (1 + q * (s**2 - 1))
    box = {symbol: (0.01, 1) for symbol in a} | {symbol: (-2, 2) for symbol in e}
    return Derivation(
        "total_variation",
        "Tilting weights by scores of range D moves a share of at most tanh(D/4); two tokens attain it.",
        (
            identity(
                "what is gained is lost",
                (abs(g + h) + abs(-g) + abs(-h)) / 2,
                g + h,
                "So the moved share is the gain of the set S of weights that grow.",
                assumptions="changes g + h, -g, -h",
                latex=r"\tfrac{1}{2} \sum_j |P_j - p_j| = P(S) - p(S)",
            ),
            inequality(
                "the worst tilt has two levels",
                b / (b + c + v),
                (b + u) / (b + u + c),
                "The largest score on S, the smallest off S: the share of S can only grow.",
                assumptions="b, c positive; u, v non-negative",
                latex=r"P(S) \le \frac{q e^D}{q e^D + 1 - q}, \quad q = p(S)",
            ),
            identity(
                "the gain",
                q * s**2 / (q * s**2 + 1 - q) - q,
                gain,
                "Subtract q, with s the exponential of D/2.",
                latex="\\frac{q s^2}{q s^2 + 1 - q} - q\n= \\frac{q (1 - q)(s^2 - 1)}{1 + q (s^2 - 1)}",
            ),
            identity(
                "a perfect square",
                1 + q * (s**2 - 1) - q * (1 - q) * (s + 1) ** 2,
                (1 - q * (s + 1)) ** 2,
                "Multiply out.",
                latex="1 + q (s^2 - 1) - q (1 - q)(s + 1)^2\n= (1 - q (s + 1))^2",
            ),
            inequality(
                "so the gain is bounded",
                q * (1 - q) * (s + 1) ** 2,
                1 + q * (s**2 - 1),
                "Multiply by s - 1, and divide by s + 1 and by the right side.",
                form=(1 - q * (s + 1)) ** 2,
                latex="q (1 - q)(s + 1)^2 \\le 1 + q (s^2 - 1):\n"
                "\\frac{q (1 - q)(s^2 - 1)}{1 + q (s^2 - 1)} \\le \\frac{s - 1}{s + 1}",
            ),
            identity(
                "in terms of D",
                (sp.exp(d / 2) - 1) / (sp.exp(d / 2) + 1),
                sp.tanh(d / 4),
                "Divide by the exponential of D/4.",
                latex=r"\frac{e^{D/2} - 1}{e^{D/2} + 1} = \tanh \frac{D}{4}",
            ),
            identity(
                "two tokens attain it",
                gain.subs(q, 1 / (s + 1)),
                (s - 1) / (s + 1),
                "The square vanishes at q = 1/(s + 1).",
                latex=r"q = \frac{1}{s + 1}: \quad P(S) - q = \frac{s - 1}{s + 1}",
            ),
            by_lemma(
                "three tokens",
                moved,
                sp.tanh((sp.Max(*e) - sp.Min(*e)) / 4),
                "The bound for any weights and scores.",
                lemma="the steps above",
                box=box,
                latex=r"\tfrac{1}{2} \sum_j |P_j - p_j| \le \tanh \frac{D}{4}",
            ),
            inequality(
                "at most a quarter of D",
                sp.tanh(u),
                u,
                "With u = D/4.",
                grows_in=u,
                assumptions="u non-negative",
            ),
        ),
        "Lemma (Total variation) in chapter `one-head`.",
    )


def key_identity() -> Derivation:
    """The change of an average is a sum of score times deviation (Lemma (Key identity))."""
    p, e, y = (sp.symbols(f"{name}1:4", real=True) for name in "pey")
    a = sp.symbols("a1:4", positive=True)
    p = (p[0], p[1], 1 - p[0] - p[1])
    n, z, s = sp.symbols("N Z s", real=True)
    u = sp.Symbol("u", nonnegative=True)

    def parts(p: tuple[sp.Expr, ...], growth: Callable[[sp.Expr], sp.Expr]) -> tuple[sp.Expr, ...]:
        mean = sum(q * v for q, v in zip(p, y, strict=True))
        total = sum(q * sp.exp(t) for q, t in zip(p, e, strict=True))
        change = sum(q * (sp.exp(t) - total) * v for q, t, v in zip(p, e, y, strict=True))
        pull = sum(q * growth(t) * (v - mean) for q, t, v in zip(p, e, y, strict=True))
        return total, change, pull

    total, change, pull = parts(p, lambda t: sp.exp(t) - 1)  # change is Z times Delta
    norm, _, force = parts(tuple(weight / sum(a) for weight in a), exp_minus_one)
    size = sum(weight * abs(score) for weight, score in zip(a, e, strict=True)) / sum(a)
    box = {symbol: (-1, 1) for symbol in (*e, *y)} | {symbol: (0.01, 1) for symbol in a}
    return Derivation(
        "key_identity",
        "The change of an average under a tilt, times the normaliser, is linear in the tilt's exponentials.",
        (
            identity(
                "changes cancel",
                sum(q * (sp.exp(t) / total - 1) for q, t in zip(p, e, strict=True)),
                0,
                "Both rows of weights sum to one, so y may be replaced by its deviation.",
                latex=r"\sum_j (P_j - p_j) = 0",
            ),
            identity(
                "one weight",
                p[0] * sp.exp(e[0]) / z - p[0],
                p[0] * (sp.exp(e[0]) - z) / z,
                "Common denominator.",
                assumptions="Z not 0",
                latex=r"Z (P_j - p_j) = p_j (e^{E_{ij}} - Z)",
            ),
            identity(
                "the key identity",
                change,
                pull,
                "Deviations cancel too, so the 1 is free.",
                latex="Z \\Delta = N,\n\\Delta = \\textstyle\\sum_j (P_j - p_j) y_j,\n"
                "N = \\textstyle\\sum_j p_j (e^{E_{ij}} - 1)(y_j - \\bar y)",
            ),
            inequality(
                "a large normaliser",
                abs(n) / (1 + u),
                abs(n),
                "Dividing by Z makes N smaller.",
                assumptions="Z = 1 + u, u non-negative",
                latex=r"|\Delta| = |N| / Z \le |N|",
            ),
            identity(
                "a small one",
                n / z,
                n + (1 - z) * (n / z),
                "Write the quotient as N plus the rest.",
                assumptions="Z not 0",
                latex=r"\Delta = N + (1 - Z) \Delta",
            ),
            inequality(
                "negative scores",
                1 - sp.exp(-u),
                u,
                "The exponential lies above its tangent.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            inequality(
                "positive scores",
                1 - sp.exp(u),
                0,
                "They only make Z larger.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            inequality(
                "so the rest is small",
                a[0] * (u - s**2) + a[1] * (0 - u),
                a[0] * u + a[1] * u,
                "A weighted sum of such terms is at most the weighted sum of the sizes.",
                latex=r"1 - Z \le \sum_l p_l |E_{il}|",
            ),
            by_lemma(
                "the inequality",
                abs(force / norm),
                abs(force) + size * abs(force / norm),
                "Either case is covered.",
                lemma="the two cases",
                box=box,
                latex=r"|\Delta| \le |N| + \bigl(\textstyle\sum_l p_l |E_{il}|\bigr) |\Delta|",
            ),
        ),
        "Lemma (Key identity) in chapter `one-head`.",
    )


def kappa() -> Derivation:
    """The function (e^t - 1)/t: its growth, and kappa times tau (Lemma (Master))."""
    t, s, d = sp.symbols("t s D", positive=True)
    u, mu = sp.symbols("u mu", nonnegative=True)
    c = sp.Symbol("c", real=True)

    def k(value: sp.Expr) -> sp.Expr:
        return (sp.exp(value) - 1) / value

    part = sp.tanh(c)
    return Derivation(
        "kappa",
        "The secant slope of the exponential grows, and its product with tau is a square.",
        (
            identity(
                "an average",
                sp.Integral(sp.exp(t * s), (s, 0, 1)),
                k(t),
                "The average of the exponentials between 0 and t.",
                assumptions="t positive",
                latex=r"\kappa(t) = \int_0^1 e^{t s} \, ds = \frac{e^t - 1}{t}",
            ),
            identity(
                "at zero",
                sp.Limit(k(t), t, 0),
                1,
                "The slope of the exponential there.",
                latex=r"\kappa(0) = 1",
            ),
            identity(
                "its slope",
                t**2 * sp.Derivative(k(t), t),
                t * sp.exp(t) - sp.exp(t) + 1,
                "Quotient rule.",
                assumptions="t positive",
                latex=r"t^2 \kappa'(t) = t e^t - e^t + 1",
            ),
            inequality(
                "it increases",
                0,
                u * sp.exp(u) - sp.exp(u) + 1,
                "Zero at 0, and its derivative is not negative.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            inequality(
                "at least at rate one half",
                u * (sp.exp(u) - 1) / 2,
                u * sp.exp(u) - sp.exp(u) + 1,
                "Twice differentiated, the difference is not negative.",
                grows_in=u,
                assumptions="u non-negative",
                latex=r"\tfrac{1}{2} \kappa(u) \le \kappa'(u)",
            ),
            inequality(
                "negative arguments",
                1 - sp.exp(-u),
                u,
                "There the slope is at most 1.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            by_lemma(
                "a bound for both signs",
                abs(exp_minus_one(mu * part)),
                exp_minus_one(mu) * abs(part),
                "The secant slope is largest at the right end.",
                lemma="kappa increases",
                box={mu: (0, 3), c: (-3, 3)},
                assumptions="-mu <= t <= mu",
                latex=r"|e^t - 1| \le \kappa(\mu) |t|",
            ),
            identity(
                "kappa times tau",
                k(d) * sp.tanh(d / 4) / (d / 4),
                k(d / 2) ** 2,
                "With s = e^(D/2): the tangent is (s - 1)/(s + 1), and s^2 - 1 holds both factors.",
                latex=r"\kappa(D) \, \frac{\tanh(D/4)}{D/4} = \kappa(D/2)^2",
            ),
            inequality(
                "tau is at most 1", sp.tanh(u), u, "With u = D/4.", grows_in=u, assumptions="u non-negative"
            ),
        ),
        "Lemma (Master) in chapter `one-head`.",
    )


def master_lemma() -> Derivation:
    """Columns and rows of (P - 1 p^T) R, whatever E is (Lemma (Master))."""
    e, r, ends = real_matrix("e", 1, 3), real_matrix("r", 3, 2), real_matrix("b", 2, 2)
    s, c1, c2 = sp.symbols("s c1 c2", real=True)
    g, h, m, u, v, k, t, osc, top = sp.symbols("g h m u v kappa T o c", nonnegative=True)
    a, b, low = sp.symbols("a b l", positive=True)
    d, less = sp.symbols("d1:4", nonnegative=True), sp.symbols("t1:4", nonnegative=True)
    sizes = sp.Matrix(2, 3, sp.symbols("E1:7", nonnegative=True))
    scores = real_matrix("e", 2, 2)
    gaps = [scores[i, 0] - scores[i, 1] for i in range(2)]
    mu, size = sp.Max(*map(abs, scores)), max_col_sum(scores)
    moved = sum(abs(b * exp_minus_one(gap)) / ((1 + b) * (1 + b * sp.exp(gap))) for gap in gaps)
    factor = exp_minus_one(mu) / 2 + mu * sp.tanh(sp.Max(*map(abs, gaps)) / 4)
    box = {symbol: (-0.1, 0.1) for symbol in scores} | {b: (0.5, 2)}
    return Derivation(
        "master_lemma",
        "The residual after averaging is the size of E times the range of R, up to a factor that tends to "
        "one half; its rows move by the total variation.",
        (
            identity(
                "shift a row of E",
                softmax_rows(e - s * sp.ones(1, 3)),
                softmax_rows(e),
                "Softmax does not see it.",
                latex=r"E'_{ij} = E_{ij} - s_i, \quad P' = P",
            ),
            inequality(
                "no entry grows",
                u,
                low + u,
                "Shift by the number of the row's range that is closest to 0; here all are positive.",
                assumptions="entries l + u, least entry l positive, shift l",
                latex=r"|E'_{ij}| = u \le l + u = |E_{ij}|",
            ),
            inequality(
                "none exceeds the row's range",
                u,
                u + v,
                "Now 0 lies in the range of the row.",
                assumptions="u + v is the range",
                latex=r"|E'_{ij}| \le D_i",
            ),
            inequality(
                "triangle inequality",
                abs(a * c1 + b * c2),
                a * abs(c1) + b * abs(c2),
                "In the key identity, with each exponential bounded by kappa.",
                latex=r"|N| \le \kappa(\mu) \sum_j p_j |E'_{ij}| |y_j - \bar y|",
            ),
            identity(
                "sum over rows",
                sum(d[j] * sizes[i, j] for i in range(2) for j in range(3)),
                sum(d[j] * sum(sizes.col(j)) for j in range(3)),
                "Change the order of summation: columns of E appear.",
                latex="\\sum_i \\sum_j d_j |E'_{ij}| = \\sum_j d_j \\sum_i |E'_{ij}|,\n"
                "d_j = p_j |y_j - \\bar y|",
            ),
            inequality(
                "the largest column",
                sum(x * (top - w) for x, w in zip(d, less, strict=True)),
                sum(d) * top,
                "Each column sum is at most the norm.",
                assumptions="column sums c - t_j",
                latex=r"\sum_j d_j \sum_i |E'_{ij}| \le \|E\|_1 \sum_j d_j",
            ),
            identity(
                "both parts",
                k * (osc / 2) * m + t * osc * m,
                (k / 2 + t) * m * osc,
                "The mean deviation gives one half, the total variation gives T.",
                latex="\\|(P - \\mathbf{1} p^\\top) R\\|_1\n"
                "\\le (\\tfrac{1}{2} \\kappa(\\mu) + T) \\|E\\|_1 \\, \\mathrm{osc}(R),\n"
                "\\mu = \\min(M, D), \\quad T = \\tanh \\tfrac{D}{4}",
            ),
            identity(
                "a row of the residual",
                (g + h) * r[0, :] - g * r[1, :] - h * r[2, :],
                g * (r[0, :] - r[1, :]) + h * (r[0, :] - r[2, :]),
                "What some tokens gain, others lose: a sum of differences of rows.",
                assumptions="changes g + h, -g, -h",
                latex="\\sum_j (P_{ij} - p_j) R_j\n= g (R_1 - R_2) + h (R_1 - R_3)",
            ),
            inequality(
                "rows move by the total variation",
                g * (m - u) + h * (m - v),
                (g + h) * m,
                "Each difference is at most the distance of two rows.",
                assumptions="distances m - u, m - v",
                latex="\\|(P - \\mathbf{1} p^\\top) R\\|_\\infty\n\\le T \\, \\mathrm{dist}(R)",
            ),
            inequality(
                "the range of a column",
                c1 - c2,
                abs(c1) + abs(c2),
                "At most its absolute sum.",
                latex=r"\mathrm{osc}(R) \le \|R\|_1",
            ),
            inequality(
                "the distance of two rows",
                sum(abs(ends[0, i] - ends[1, i]) for i in range(2)),
                sum(map(abs, ends)),
                "Through zero.",
                latex=r"\mathrm{dist}(R) \le 2 \|R\|_\infty",
            ),
            by_lemma(
                "two tokens",
                mu * moved,
                factor * size,
                "The column bound, both sides times the largest entry of E.",
                lemma="the steps above",
                box=box,
                assumptions="weights 1 : b, range of R one",
                latex="\\|(P - \\mathbf{1} p^\\top) R\\|_1\n"
                "\\le (\\tfrac{1}{2} \\kappa(M) + T) \\|E\\|_1 \\, \\mathrm{osc}(R)",
            ),
        ),
        "Lemma (Master) in chapter `one-head`.",
    )


DERIVATIONS = {
    build.__name__: build
    for build in (mean_absolute_deviation, total_variation, key_identity, kappa, master_lemma)
}
