"""Derivations: row-wise maps in both matrix norms, their constants, and what the bound misses.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import composite, real_matrix, softmax_rows
from .engine.steps import Derivation, by_lemma, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)
ROOT = sp.sqrt


def both_norms() -> Derivation:
    """A row-wise map through both matrix norms (Theorem (Both norms))."""
    p, q, r = sp.symbols("p q r", real=True)
    size, rows = sp.symbols("A B", positive=True)
    slopes = sp.Matrix(2, 2, sp.symbols("l_11 l_12 l_21 l_22", nonnegative=True))
    gaps = sp.Matrix(3, 2, sp.symbols("r_11 r_12 r_21 r_22 r_31 r_32", nonnegative=True))
    s, t = sp.symbols("s t", nonnegative=True)
    one, inf = sp.symbols("lambda_1 lambda_inf", positive=True)
    pair, half = sp.Matrix([[1, -1], [-1, 1]]), ROOT(2 + ROOT(2)) / 2
    turned = sp.Matrix([[half, half * (ROOT(2) - 1)], [-half, -half * (ROOT(2) - 1)]])
    return Derivation(
        "both_norms",
        "A row-wise map multiplies column sums by at most lambda_1 and row sums by at most lambda_inf.",
        (
            identity(
                "one coordinate at a time",
                p - r,
                (p - q) + (q - r),
                "Go from one row to the other by changing one coordinate after the other.",
                assumptions="two coordinates, three values of an output",
            ),
            inequality(
                "so the slopes add",
                abs(p - r),
                abs(p - q) + abs(q - r),
                "Each term is at most a slope times a gap.",
                latex="|\\varphi_k(Y_i) - \\varphi_k(y)|\n\\le \\textstyle\\sum_m \\ell_{km} |Y_{im} - y_m|",
            ),
            identity(
                "sum over the tokens",
                sum((gaps * slopes.T)[:, 0]),
                sum(slopes[0, m] * sum(gaps[:, m]) for m in range(2)),
                "The sums change places; each inner one is a column sum.",
                latex="\\textstyle\\sum_i \\sum_m \\ell_{km} r_{im}\n"
                "= \\textstyle\\sum_m \\ell_{km} \\sum_i r_{im}",
            ),
            inequality(
                "column sums",
                slopes[0, 0] * (size - s) + slopes[0, 1] * (size - t),
                (slopes[0, 0] + slopes[0, 1]) * size,
                "A column sum is at most the largest one, A.",
                assumptions="column sums A - s, A - t",
                latex=r"\textstyle\sum_m \ell_{km} \sum_i r_{im} \le \lambda_1 A",
            ),
            inequality(
                "row sums",
                sum((gaps * slopes.T)[0, :]),
                (slopes[0, 0] + slopes[1, 0] + s) * gaps[0, 0]
                + (slopes[0, 1] + slopes[1, 1] + t) * gaps[0, 1],
                "The sums of slopes over outputs are at most the largest one.",
                assumptions="largest sum of slopes = each sum + s, + t",
                latex="\\textstyle\\sum_k \\sum_m \\ell_{km} r_{im}\n"
                "\\le \\lambda_\\infty \\textstyle\\sum_m r_{im}",
            ),
            identity(
                "the root last",
                ROOT(one * size * inf * rows),
                ROOT(one * inf) * ROOT(size * rows),
                "Two norms, one root.",
                latex=r"\sqrt{\lambda_1 A \, \lambda_\infty B} = \lambda \sqrt{A B}",
            ),
            identity(
                "a difference",
                sp.Matrix([composite(pair), composite(pair * sp.Matrix([1, -1]))]),
                sp.Matrix([2, ROOT(2) * 2]),
                "The pair (1, -1), (-1, 1) under u_1 - u_2: lambda_1 = 2, lambda_inf = 1, attained.",
                latex=r"2 \;\mapsto\; \sqrt{2} \cdot 2",
            ),
            identity(
                "a turn by an eighth of pi",
                half**2 + (half * (ROOT(2) - 1)) ** 2,
                1,
                "The row (1, 0) becomes a row of length 1.",
                latex=r"\cos^2 \tfrac{\pi}{8} + \sin^2 \tfrac{\pi}{8} = 1",
            ),
            inequality(
                "makes the residual larger",
                composite(sp.Matrix([[1, 0], [-1, 0]])),
                composite(turned),
                "So spectral norm 1 is not enough either.",
                strict=True,
                latex=r"\sqrt{2} < \sqrt{1 + \sqrt{2}}",
            ),
            identity(
                "by this much",
                composite(turned) ** 2,
                1 + ROOT(2),
                "Twice the largest entry times the sum of entries.",
                latex=r"2 \cos^2 \tfrac{\pi}{8} + 2 \cos \tfrac{\pi}{8} \sin \tfrac{\pi}{8} "
                r"= 1 + \sqrt{2}",
            ),
        ),
        "Theorem (Both norms) in chapter `mlps`.",
    )


def two_linear_maps() -> Derivation:
    """Constants of linear, activation, linear (Proposition (Two linear maps))."""
    outer, inner = real_matrix("v", 1, 3), real_matrix("w", 3, 2)
    s = sp.symbols("s1:4", real=True)
    low, z = sp.symbols("a z", real=True)
    x, y, plus, minus = sp.symbols("x y P N", nonnegative=True)
    density = sp.exp(-(z**2) / 2) / ROOT(2 * sp.pi)
    slope = (1 + sp.erf(z / ROOT(2))) / 2 + z * density
    u, t = sp.Symbol("u", nonnegative=True), sp.Symbol("t", positive=True)
    v1, v2, w1, w2 = sp.symbols("v1 v2 w1 w2", nonnegative=True)
    return Derivation(
        "two_linear_maps",
        "With slopes in [a, b], an entry of the Jacobian is at most max(bP - aN, bN - aP) in absolute value.",
        (
            identity(
                "the Jacobian",
                (outer * sp.diag(*s) * inner)[0, 0],
                sum(s[j] * outer[0, j] * inner[j, 0] for j in range(3)),
                "A sum of products of weights, each times a slope.",
                latex=r"J_{km} = \textstyle\sum_j s_j (W_2)_{kj} (W_1)_{jm}",
            ),
            inequality(
                "from above",
                (low + x) * plus - (low + x) * minus - y * minus,
                (low + x + y) * plus - low * minus,
                "Positive products get at most b, negative ones at least a.",
                assumptions="slopes a + x and a + x + y, b = a + x + y",
                latex=r"\textstyle\sum_j s_j c_j \le b P - a N",
            ),
            inequality(
                "from below",
                low * plus - (low + x + y) * minus,
                (low + x) * plus - (low + x) * minus,
                "The other way round.",
                assumptions="b = a + x + y",
                latex=r"a P - b N \le \textstyle\sum_j s_j c_j",
            ),
            inequality(
                "ReLU loses half at most",
                (plus + minus) / 2,
                sp.Max(plus, minus),
                "Between max(P, N) and the simple bound P + N.",
                latex=r"\tfrac{1}{2} (P + N) \le \max(P, N)",
            ),
            identity(
                "two units make an absolute value",
                sp.Max(t, 0) + sp.Max(-t, 0),
                t,
                "P = N = 1: the formula gives slope 1, the simple bound P + N gives 2.",
                assumptions="t positive; the other sign alike",
                latex=r"\mathrm{relu}(t) + \mathrm{relu}(-t) = |t|",
            ),
            identity(
                "no signs, no loss",
                v1 * w1 + v2 * w2,
                abs(v1 * w1 + v2 * w2),
                "Where all units are active the Jacobian is the product of the weights.",
                assumptions="weights non-negative",
                latex=r"W_2 W_1 = |W_2| |W_1|",
            ),
            identity(
                "the slope of tanh",
                sp.diff(sp.tanh(z), z),
                1 - sp.tanh(z) ** 2,
                "Between 0 and 1, and 1 at 0.",
                latex=r"\tanh'(z) = 1 - \tanh^2 z",
            ),
            identity(
                "the slope of GELU",
                sp.diff(z * (1 + sp.erf(z / ROOT(2))) / 2, z),
                slope,
                "Product rule.",
                latex=r"\mathrm{GELU}'(z) = \Phi(z) + z \phi(z)",
            ),
            identity(
                "turns at the root of 2",
                sp.diff(slope, z),
                (2 - z**2) * density,
                "It grows between the two turning points only.",
                latex=r"\mathrm{GELU}''(z) = (2 - z^2) \, \phi(z)",
            ),
            identity(
                "the other end",
                slope.subs(z, -u),
                1 - slope.subs(z, u),
                "So the least slope is 1 minus the largest.",
                latex=r"\mathrm{GELU}'(-z) = 1 - \mathrm{GELU}'(z)",
            ),
            inequality(
                "the largest slope from below",
                sp.Rational(1128, 1000),
                slope.subs(z, ROOT(2)),
                "At the root of 2.",
                strict=True,
                latex=r"1.128 < \mathrm{GELU}'(\sqrt{2})",
            ),
            inequality(
                "and from above",
                slope.subs(z, ROOT(2)),
                sp.Rational(1129, 1000),
                "So GELU has constant 1.129, not 1.",
                strict=True,
                latex=r"\mathrm{GELU}'(\sqrt{2}) < 1.129",
            ),
        ),
        "Proposition (Two linear maps) in chapter `mlps`.",
    )


def row_wise_readings() -> Derivation:
    """A constant for rows is not enough (Example (34 features), Example (Spectral norm one))."""
    k, w, c, y = sp.symbols("k w c y", positive=True)
    z, s, u = sp.symbols("z s u", nonnegative=True)
    u1, u2 = sp.symbols("u1 u2", real=True)
    f, total, n, count, top, rest = sp.symbols("F T n N t q", positive=True)
    small = sp.Rational(1, 1000)
    four = sp.Rational(1, 4) + ROOT(c / 2) / 2
    at = ((HALF + 64 * ROOT(HALF) - 8192 * (HALF - ROOT(HALF) / 128) / 1500) / 2) / 16
    return Derivation(
        "row_wise_readings",
        "Read row by row, in the 1-norm or the 2-norm, the constant of an MLP does not bound what the "
        "matrix norms see.",
        (
            identity(
                "the scores of token 1",
                sp.Matrix([w / k * k * k, -w / k * k * k]),
                sp.Matrix([w * k, -w * k]),
                "Blocks of k ones, weights w/k.",
                latex=r"E_{11} = w k, \quad E_{12} = -w k",
            ),
            identity(
                "its weights",
                softmax_rows(sp.Matrix([[y, -y]])),
                sp.Matrix([[1 + sp.tanh(y), 1 - sp.tanh(y)]]) / 2,
                "The other rows keep one half each.",
                assumptions="y = wk",
                latex=r"P_{1\cdot} = \tfrac{1}{2} (1 + \tanh y, 1 - \tanh y)",
            ),
            identity(
                "what phi makes of it",
                k * y / 2 - k * (-y / 2),
                k * y,
                "Both blocks move by half of y, in opposite directions, and phi adds them up.",
                assumptions="y = tanh wk",
                latex=r"\varphi(\pm \tfrac{1}{2} y, \ldots) = k y",
            ),
            inequality(
                "one number among four",
                (2 * z + s) ** 2,
                (2 * z + s + 2 * z) * (z + s),
                "So its residual is itself: no centre helps.",
                form=z * s,
                assumptions="number 2z + s, centre z up to half of it",
                latex=r"y^2 \le (y + 2 z)(y - z)",
            ),
            identity(
                "over the printed bound",
                k * sp.tanh(w * k) / (4 * (w * k) * ROOT(k)),
                ROOT(k) / 4 * (sp.tanh(w * k) / (w * k)),
                "Lambda = wk, and rho is the root of k.",
                latex=r"\frac{k \tanh w k}{4 w k \sqrt{k}} = \frac{\sqrt{k}}{4} \cdot "
                r"\frac{\tanh w k}{w k}",
            ),
            inequality(
                "sixteen copies are not enough",
                sp.tanh(u),
                u,
                "The quotient is below 1.",
                grows_in=u,
                assumptions="u = 16w",
                latex=r"\frac{\tanh 16 w}{16 w} \le 1",
            ),
            inequality(
                "seventeen are",
                1,
                ROOT(17) / 4 * sp.tanh(17 * small) / (17 * small),
                "At w = 1/1000.",
                strict=True,
                latex=r"1 < \frac{\sqrt{17}}{4} \cdot \frac{\tanh 0.017}{0.017}",
            ),
            inequality(
                "spectral norm one",
                (u1 - u2) ** 2 / 4 + (u1**2 + u2**2) / 2,
                u1**2 + u2**2,
                "With equality for opposite coordinates.",
                form=(u1 + u2) ** 2 / 4,
                latex=r"|\varphi(u)|^2 \le u_1^2 + u_2^2",
            ),
            identity(
                "column times row",
                HALF * (HALF + 2 * c / ROOT(8 * c)),
                four,
                "The largest entry times the sum of the row, in units of tanh w squared.",
                latex="\\tfrac{1}{2} (\\tfrac{1}{2} + 2c/\\sqrt{8c})\n"
                "= \\tfrac{1}{4} + \\tfrac{1}{2} \\sqrt{c/2}",
            ),
            inequality(
                "1984 copies are not enough",
                four.subs(c, 1984),
                16,
                "For any number of tokens.",
                strict=True,
                latex=r"\tfrac{1}{4} + \tfrac{1}{2} \sqrt{992} < 16",
            ),
            inequality(
                "1985 are, with many tokens",
                16,
                four.subs(c, 1985),
                "So 3971 outputs.",
                strict=True,
                latex=r"16 < \tfrac{1}{4} + \tfrac{1}{2} \sqrt{992.5}",
            ),
            identity(
                "what a centre can gain",
                sp.diff(f * (total - (f - top + count * (f - rest)) / (n - 2)), f, 2),
                -2 * (count + 1) / (n - 2),
                "The product is concave in F: its ends decide.",
                latex=r"\frac{d^2}{dF^2} F (T - \mu(F)) = -\frac{2 (N + 1)}{n - 2}",
            ),
            inequality(
                "with 1502 tokens",
                sp.Rational(115, 100) ** 2,
                at,
                "With 8193 outputs the quotient is 1.16.",
                strict=True,
                latex=r"1.15^2 < \frac{t (T - N s)}{16}",
            ),
        ),
        f"Example (34 features) and Example (Spectral norm one) in chapter `mlps`, on readings of {PAPER}.",
    )


def mlps_in_depth() -> Derivation:
    """The corollary with MLPs, and what lambda does not say (Corollary (L layers with MLPs))."""
    depth = sp.Symbol("L", positive=True, integer=True)
    rho, s1, s2, one, inf = sp.symbols("rho S_1 S_inf lambda_1 lambda_inf", positive=True)
    c, h, beta, lam, a = sp.symbols("C H beta lambda a", positive=True)
    x, u = sp.Symbol("x", positive=True), sp.Symbol("u", nonnegative=True)
    half = (3**depth - 1) / 2
    near = sp.Rational(85, 100)
    return Derivation(
        "mlps_in_depth",
        "An MLP multiplies the constant of every layer by lambda and keeps the exponent.",
        (
            identity(
                "one layer",
                ROOT((one * s1) * (inf * s2)) * rho,
                ROOT(one * inf) * ROOT(s1 * s2) * rho,
                "The MLP after the theorem on many heads.",
                latex=r"\sqrt{\lambda_1 S_1 \, \lambda_\infty S_\infty} \, \rho = "
                r"\lambda \sqrt{S_1 S_\infty} \, \rho",
            ),
            identity(
                "cubic",
                lam * c * h * beta * rho**3,
                (c * h * beta * lam) * rho**3,
                "A new constant, the same power.",
            ),
            identity(
                "one layer more",
                1 + 3 * half,
                (3 ** (depth + 1) - 1) / 2,
                "Cube the bound and multiply by the constant.",
                latex=r"1 + 3 \cdot \tfrac{1}{2} (3^L - 1) = \tfrac{1}{2} (3^{L+1} - 1)",
            ),
            identity(
                "what lambda adds",
                half * sp.log(lam * x) - half * sp.log(x),
                half * sp.log(lam),
                "A delay of the bound, in logarithms.",
                latex="\\log (\\lambda x)^{(3^L - 1)/2} - \\log x^{(3^L - 1)/2}\n"
                "= \\tfrac{1}{2} (3^L - 1) \\log \\lambda",
            ),
            identity(
                "a linear MLP attains it",
                sp.Limit(lam * a * sp.tanh(a**2) / a**3, a, 0),
                lam,
                "On the pair.",
                latex=r"\lim_{a \to 0} \frac{\lambda a \tanh a^2}{a^3} = \lambda",
            ),
            identity(
                "an even function merges the pair",
                lam * abs(x) - lam * abs(-x),
                0,
                "In one layer, for every lambda.",
                latex=r"\lambda |x| - \lambda |{-x}| = 0",
            ),
            identity(
                "ReLU halves the gap",
                (sp.Max(x, 0) - sp.Max(-x, 0)) / 2,
                x / 2,
                "Its constant is 1 all the same.",
                latex=r"\tfrac{1}{2} (\mathrm{relu}(x) - \mathrm{relu}(-x)) = \tfrac{1}{2} x",
            ),
            inequality(
                "a saturating one adds to the pull",
                sp.tanh(u),
                u,
                "Below its tangent.",
                grows_in=u,
                assumptions="u = lambda times the linear step",
            ),
            by_lemma(
                "no fixed point below 2.389",
                sp.Rational(2389, 1000) * sp.tanh(x) * sp.tanh(sp.tanh(x) ** 2),
                x,
                "So there the pair always merges.",
                lemma="one variable",
                box={x: (0.1, 5)},
                near=0.001,
                assumptions="a = tanh x",
                latex=r"2.389 \, a \tanh a^2 \le \mathrm{artanh}\, a",
            ),
            inequality(
                "two fixed points above 2.390",
                sp.atanh(near),
                sp.Rational(2390, 1000) * near * sp.tanh(near**2),
                "At a = 0.85 the step grows.",
                strict=True,
                latex=r"\mathrm{artanh}\, 0.85 < 2.390 \cdot 0.85 \tanh 0.85^2",
            ),
        ),
        f"Corollary (L layers with MLPs) in chapter `mlps`; {PAPER}, Corollary 3.2.",
    )


DERIVATIONS = {
    build.__name__: build for build in (both_norms, two_linear_maps, row_wise_readings, mlps_in_depth)
}
