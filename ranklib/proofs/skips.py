"""Derivations: what a skip guarantees, what it does not, and how directions align beside it.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import composite, max_row_sum, real_matrix, softmax_rows
from .engine.steps import Derivation, distinct, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def two_sides() -> Derivation:
    """A layer with a skip, from both sides (Theorem (Two sides))."""
    one, z, c = sp.ones(3, 1), real_matrix("z", 2, 1), real_matrix("c", 2, 1)
    r, delta = real_matrix("r", 3, 2), real_matrix("m", 3, 2)
    a, b = real_matrix("a", 3, 1), real_matrix("b", 3, 1)
    alpha, x, y, w = sp.symbols("alpha x y w", real=True)
    f, g, s1, s2, p1, p2 = sp.symbols("f g S1 S2 P1 P2", positive=True)
    return Derivation(
        "two_sides",
        "The skip keeps the residual, attention moves it by at most a share of itself; both norms apart.",
        (
            identity(
                "about the right centre",
                alpha * (one * z.T + r) + one * c.T + delta - one * (alpha * z + c).T,
                alpha * r + delta,
                "A skip of strength alpha sends the centre z to alpha z, attention adds a constant row.",
                latex="X' - \\mathbf{1} (\\alpha z + c)^\\top\n= \\alpha R + \\Delta",
            ),
            inequality(
                "every centre pays the range",
                x - y,
                abs(x - w) + abs(w - y),
                "Two tokens of a column are seen from any centre w, so f is at least the range.",
                latex=r"\mathrm{osc}(X) \le f(z) \quad \text{for all } z",
            ),
            inequality(
                "upper side",
                max_row_sum(a + b),
                max_row_sum(a) + max_row_sum(b),
                "A largest row sum is a norm; column sums alike.",
                assumptions="three tokens",
                latex="\\|\\alpha R + \\Delta\\|_\\infty\n"
                "\\le |\\alpha| \\|R\\|_\\infty + \\|\\Delta\\|_\\infty",
            ),
            identity(
                "lower side",
                (a + b) - b,
                a,
                "The same inequality, for R = (R' - Delta)/alpha.",
                latex=r"|\alpha| \|R\|_\infty \le \|R'\|_\infty + \|\Delta\|_\infty",
            ),
            identity(
                "as a share",
                p1 * f - s1 * f,
                (p1 - s1) * f,
                "Delta is at most S_1 f.",
                latex=r"|\alpha| f - S_1 f = (|\alpha| - S_1) f",
            ),
            identity(
                "the root last",
                (p1 * f) * (p2 * g),
                (f * g) * (p1 * p2),
                "Factors of the columns times factors of the rows, then one root.",
                latex="f' g' \\ge (|\\alpha| - S_1) f\n\\cdot (|\\alpha| - S_\\infty) g",
            ),
            inequality(
                "a mean of the sides",
                (1 + s1) * (1 + s2),
                (1 + (s1 + s2) / 2) ** 2,
                "Arithmetic and geometric mean.",
                form=(s1 - s2) ** 2 / 4,
                latex="(1 + S_1)(1 + S_\\infty)\n\\le (1 + \\tfrac{1}{2}(S_1 + S_\\infty))^2",
            ),
        ),
        "Theorem (Two sides) in chapter `skip-connections`.",
    )


def slow_decay() -> Derivation:
    """With a skip a small residual changes algebraically (Theorem (Slow decay))."""
    lam, k, rho, s1, s2, u = sp.symbols("Lambda K rho S1 S2 u", positive=True)
    y, s = sp.symbols("y s", nonnegative=True)
    x = sp.Rational(1256, 1000)
    return Derivation(
        "slow_decay",
        "A layer takes away at most K rho^2 of rho^2, so the reciprocal of rho^2 grows by at most 2K.",
        (
            identity(
                "what tanh leaves",
                1 - sp.tanh(lam / 2),
                2 / (sp.exp(lam) + 1),
                "By definition.",
                latex=r"1 - \tanh \tfrac{\Lambda}{2} = \frac{2}{e^\Lambda + 1}",
            ),
            identity(
                "when F is at most Lambda",
                2 / (sp.exp(lam) + 1) - (sp.exp(lam) - 1) / (2 * lam),
                (1 + 4 * lam - sp.exp(2 * lam)) / (2 * lam * (sp.exp(lam) + 1)),
                "So F(Lambda) is at most Lambda as long as e^x is at most 1 + 2x at x = 2 Lambda.",
                latex="\\frac{2}{e^\\Lambda + 1} - \\frac{\\kappa(\\Lambda)}{2}\n"
                "= \\frac{1 + 4 \\Lambda - e^{2 \\Lambda}}{2 \\Lambda (e^\\Lambda + 1)}",
            ),
            inequality(
                "that is up to 0.628",
                sp.exp(x),
                1 + 2 * x,
                "At x = 1.256.",
                strict=True,
                latex=r"e^{1.256} < 1 + 2 \cdot 1.256",
            ),
            inequality(
                "both factors",
                1 - s1 - s2,
                (1 - s1) * (1 - s2),
                "The difference is a product.",
                form=s1 * s2,
                latex=r"1 - S_1 - S_\infty \le (1 - S_1)(1 - S_\infty)",
            ),
            identity(
                "take reciprocals",
                1 / (rho**2 * (1 - k * rho**2)) - 1 / rho**2,
                k / (1 - k * rho**2),
                "Partial fractions.",
                latex="\\frac{1}{\\rho^2 (1 - K \\rho^2)} - \\frac{1}{\\rho^2}\n= \\frac{K}{1 - K \\rho^2}",
            ),
            inequality(
                "at most 2K",
                k / (HALF + s),
                2 * k,
                "With K rho^2 = 1/2 - s.",
                assumptions="s >= 0",
                form=2 * k * s / (HALF + s),
                latex=r"\frac{K}{1 - K \rho^2} \le 2 K \quad (K \rho^2 \le \tfrac{1}{2})",
            ),
            inequality(
                "the other side",
                (1 - y) * (1 + y / 2) ** 2,
                1,
                "Multiply out.",
                form=3 * y**2 / 4 + y**3 / 4,
                assumptions="y = K rho^2",
                latex=r"(1 - y)(1 + \tfrac{y}{2})^2 \le 1",
            ),
            identity(
                "the pair follows the law",
                sp.Limit(((1 - sp.tanh(u)) ** -2 - 1) / u, u, 0),
                2,
                "The pair with v w = -1: the reciprocal of a^2 grows by about 2.",
                assumptions="u = a^2",
                latex=r"\lim_{u \to 0} \tfrac{1}{u} \left((1 - \tanh u)^{-2} - 1\right) = 2",
            ),
        ),
        "Theorem (Slow decay) in chapter `skip-connections`.",
    )


def skip_corollary() -> Derivation:
    """Two tokens and one head beat the printed bound with skips (Example (Skip corollary))."""
    w, y, t = sp.symbols("w y t", positive=True)
    pair = sp.Matrix([1, -1])
    a, u = sp.symbols("a u", positive=True)
    return Derivation(
        "skip_corollary",
        "A skip keeps a tall column, the head adds a long row; the composite of the sum exceeds both.",
        (
            identity(
                "the scores",
                softmax_rows(w * pair * pair.T) * pair,
                sp.tanh(w) * pair,
                "The first feature is an opposite pair.",
                latex=r"P X = \tanh w \; X",
            ),
            identity(
                "beta",
                sp.sqrt(t * (y**2 * t)) * w,
                w * t * y,
                "The value matrix has one row of m entries t: norms t and m t.",
                assumptions="m = y^2",
                latex=r"\beta = w \sqrt{t \cdot m t} = w t \sqrt{m}",
            ),
            identity(
                "both terms agree",
                8 * sp.Rational(1, 8) * sp.sqrt(2) ** 3,
                2 * sp.sqrt(2),
                "With beta = 1/8 and rho the root of 2.",
                latex=r"8 \beta \rho^3 = 2 \rho = 2 \sqrt{2}",
            ),
            identity(
                "the output",
                composite(sp.Matrix([[1, t, t], [-1, -t, -t]]).subs(t, HALF)) ** 2,
                2 * (1 + 2 * HALF),
                "For m = 2 and tanh(w) t = 1/2: column 2, row 1 + m t tanh w.",
                latex=r"\|\mathrm{res} X'\|^2 = 2 (1 + m t \tanh w)",
            ),
            identity(
                "in terms of m",
                2 * (1 + y**2 * (1 / (8 * w * y)) * sp.tanh(w)),
                2 * (1 + y / 8 * sp.tanh(w) / w),
                "Put in t.",
                assumptions="m = y^2",
                latex="\\|\\mathrm{res} X'\\|^2\n= 2 (1 + \\tfrac{1}{8} \\sqrt{m} \\; \\tfrac{\\tanh w}{w})",
            ),
            identity(
                "576 outputs in the limit",
                2 * (1 + sp.Rational(24, 8)),
                (2 * sp.sqrt(2)) ** 2,
                "Equality.",
                latex=r"2 (1 + \tfrac{1}{8} \sqrt{576}) = 8",
            ),
            inequality(
                "577 outputs beat it",
                4,
                1 + sp.sqrt(577) / 8 * 20 * sp.tanh(sp.Rational(1, 20)),
                "At w = 0.05.",
                strict=True,
                latex=r"4 < 1 + \tfrac{1}{8} \sqrt{577} \cdot 20 \tanh \tfrac{1}{20}",
            ),
            inequality(
                "the worst order",
                4 * a * u**3,
                16 * a * u**3,
                "Doubling first and cubing then gives 16, the other order 4.",
                latex=r"2 \cdot 2 a u^3 \le 2 a (2 u)^3",
            ),
        ),
        f"Example (Skip corollary) in chapter `skip-connections`, against the appendix of {PAPER}.",
    )


def orthogonal_contribution() -> Derivation:
    """Orthogonal to the input is not enough (Example (Orthogonal))."""
    x, c = sp.Matrix([3, 1]), sp.Matrix([-HALF, sp.Rational(3, 2)])
    p = softmax_rows(sp.log(2) / 2 * x * x.T)
    free, centre, add = real_matrix("r", 2, 2), real_matrix("x", 2, 1), real_matrix("c", 2, 1)
    one = sp.ones(3, 1)
    r = sp.Matrix([free.row(0), free.row(1), -free.row(0) - free.row(1)])
    frob = sum(entry**2 for entry in r)
    inner = (one * centre.T + r).multiply_elementwise(one * add.T - r)
    s = real_matrix("s", 3, 2)
    pairs = [sp.Matrix([[9, 3], [-9, -3]]), sp.Matrix([[1, -3], [-1, 3]])]
    return Derivation(
        "orthogonal_contribution",
        "A contribution may be orthogonal to the input and cancel its residual; "
        "orthogonal to the residual is what counts, and only in the Frobenius norm.",
        (
            identity(
                "attention of head 1",
                p * x,
                sp.Matrix([sp.Rational(25, 9), sp.Rational(7, 3)]),
                "Weights 8/9 and 2/3 on the first token, with w = (ln 2)/2.",
                latex=r"P (3, 1)^\top = (\tfrac{25}{9}, \tfrac{7}{3})^\top",
            ),
            identity(
                "two heads",
                -sp.Rational(9, 2) * p * x + 6 * sp.ones(2, 2) / 2 * x,
                c,
                "Value -9/2, and a second head with uniform weights and value 6.",
                latex=r"C = (-\tfrac{1}{2}, \tfrac{3}{2})^\top",
            ),
            identity("orthogonal", (x.T * c)[0], 0, "Multiply.", latex=r"\langle X, C \rangle = 0"),
            identity(
                "and everything is gone",
                x + c,
                sp.Matrix([5, 5]) / 2,
                "Equal tokens.",
                latex=r"X + C = (\tfrac{5}{2}, \tfrac{5}{2})^\top",
            ),
            identity(
                "for any tokens",
                sum(inner),
                3 * (centre.T * add)[0] - frob,
                "C = -R + 1 c^T about the mean is orthogonal when this vanishes.",
                assumptions="n = 3",
                latex=r"\langle X, C \rangle = n \, x \cdot c - \|R\|_F^2",
            ),
            identity(
                "Pythagoras",
                sum((u + v) ** 2 for u, v in zip(r, s)),
                frob + 2 * sum(u * v for u, v in zip(r, s)) + sum(v**2 for v in s),
                "So a non-negative inner product of the residuals is enough.",
                latex="\\|R + R_C\\|_F^2 = \\|R\\|_F^2\n+ 2 \\langle R, R_C \\rangle + \\|R_C\\|_F^2",
            ),
            identity(
                "orthogonal residuals",
                sum(pairs[0].multiply_elementwise(pairs[1])),
                0,
                "Two opposite tokens each.",
                latex=r"\langle (9, 3), (1, -3) \rangle = 0",
            ),
            identity("composite before", composite(pairs[0]) ** 2, 216, "Column 18, row 12."),
            identity("composite after", composite(pairs[0] + pairs[1]) ** 2, 200, "Column 20, row 10."),
            inequality(
                "it has fallen", 200, 216, "Orthogonal residuals do not protect the composite.", strict=True
            ),
        ),
        f"Example (Orthogonal) in chapter `skip-connections`; the phrase is Claim 3.1 of {PAPER}.",
    )


def never_shrinks() -> Derivation:
    """Heads that spread one feature (Proposition (No entry shrinks))."""
    s, t = sp.Symbol("s", real=True), sp.Symbol("t", nonnegative=True)
    y = sp.symbols("y1:4", real=True)
    weights = [sp.exp(s * v) for v in y]
    mean = sum(v * w for v, w in zip(y, weights)) / sum(weights)
    pairs = [(0, 1), (0, 2), (1, 2)]
    spread = sum(weights[i] * weights[j] * (y[i] - y[j]) ** 2 for i, j in pairs)
    a, b, m, n = sp.symbols("a b m n", real=True)
    gap, more = sp.symbols("g e", nonnegative=True)
    big, small, rho = sp.symbols("O o rho", positive=True)
    return Derivation(
        "never_shrinks",
        "A head that looks along one feature pulls its tokens apart; with a skip no distance shrinks.",
        (
            identity(
                "the mean grows with the tilt",
                mean.diff(s),
                spread / sum(weights) ** 2,
                "The derivative of a tilted mean is a variance.",
                assumptions="three tokens",
                latex="m'(s) = \\frac{1}{Z^2} \\sum_{j<l}\ne^{s (y_j + y_l)} (y_j - y_l)^2",
            ),
            inequality(
                "it is not negative",
                0,
                spread / sum(weights) ** 2,
                "Squares with positive weights.",
                latex=r"0 \le m'(s)",
            ),
            identity(
                "differences",
                (a + t * m) - (b + t * n),
                (a - b) + t * (m - n),
                "A larger token has a larger tilt, so its mean is larger: distances do not shrink.",
                latex=r"y_i' - y_j' = (y_i - y_j) + t (m_i - m_j)",
            ),
            inequality(
                "nor does the distance to a centre",
                t * gap,
                t * (gap + more),
                "Neighbours have the gap g before and g + e after; a centre at the share t of it goes "
                "back to the share t.",
                form=t * more,
                assumptions="t, g, e non-negative",
                latex="\\varphi(z) - y_i = t g\n\\le t (g + e) = z - y_i'",
            ),
            identity(
                "strict growth",
                (((sp.sqrt(2) * rho + small) / big) * big - small) / sp.sqrt(2),
                rho,
                "The value from which the range alone exceeds the old residual.",
                latex="t = \\frac{\\sqrt{2} \\rho + \\mathrm{osc}(X)}{\\mathrm{osc}(P X)}: \\quad\n"
                "\\frac{t \\, \\mathrm{osc}(P X) - \\mathrm{osc}(X)}{\\sqrt{2}} = \\rho",
            ),
            identity(
                "a crush",
                1 - sp.Rational(9, 10) * sp.tanh(sp.log(3)),
                sp.Rational(28, 100),
                "At u = ln 3 the tangent is 4/5: a skip does not forbid it.",
                latex=r"1 - 0.9 \tanh \ln 3 = 0.28",
            ),
        ),
        "Proposition (No entry shrinks) and Proposition (Growth) in chapter `skip-connections`.",
    )


def aligned_directions() -> Derivation:
    """Uniform attention with skips aligns the tokens (Theorem (Aligned directions))."""
    n, s, c0, size = sp.symbols("n s c0 q", positive=True)
    depth = sp.Symbol("L", positive=True, integer=True)
    x = real_matrix("x", 1, 2)
    signs = [
        sp.Matrix(2, 2, bits) / sp.sqrt(2)
        for bits in [(p, q, r, v) for p in (1, -1) for q in (1, -1) for r in (1, -1) for v in (1, -1)]
    ]
    mean = sum(((x * w * w.T * x.T)[0] for w in signs), sp.S.Zero) / len(signs)
    crossed = sum(((x * w * sp.Matrix([1, 0]))[0] for w in signs), sp.S.Zero)
    b = (1 + (n - 1) * c0) / n
    common = b * ((1 + s) ** depth - 1)
    nxt = b * ((1 + s) ** (depth + 1) - 1)
    r = real_matrix("r", 2, 2)
    return Derivation(
        "aligned_directions",
        "The mean row grows by a factor in every layer, the differences stay as they are: directions align.",
        (
            identity(
                "random values keep the size",
                mean,
                (x * x.T)[0],
                "Independent signs over the root of d, all 16 cases; any such variance 1/d does it.",
                assumptions="d = 2",
                latex=r"\mathbf{E} \|x W\|^2 = \|x\|^2",
            ),
            identity(
                "and have no direction",
                crossed,
                0,
                "Cross terms vanish in the mean.",
                latex=r"\mathbf{E} \, x W = 0",
            ),
            identity(
                "differences stay",
                (sp.eye(2) - sp.ones(2, 2) / 2) * sp.ones(2, 2) / 2 * r,
                sp.zeros(2, 2),
                "A uniform average is the same for all tokens.",
                latex=r"(I - J) J = 0",
            ),
            identity(
                "the first layer",
                b.subs(c0, 0),
                1 / n,
                "Orthogonal unit tokens: mean of size 1/n.",
                latex=r"\|\bar x\|^2 = \tfrac{1}{n}",
            ),
            identity(
                "one more layer",
                common + s * b * (1 + s) ** depth,
                nxt,
                "The squared mean row grows by s of itself.",
                latex="\\bar G ((1 + s)^L - 1) + s \\bar G (1 + s)^L\n= \\bar G ((1 + s)^{L+1} - 1)",
            ),
            identity(
                "the cosine",
                1 - (c0 + common) / (1 + common),
                (1 - c0) / (1 + common),
                "Inner product over squared length.",
                latex=r"1 - \cos_L = \frac{1 - \cos_0}{1 + \bar G ((1 + s)^L - 1)}",
            ),
            identity(
                "scaled branches",
                sp.Limit((1 + 1 / size) ** size, size, sp.oo),
                sp.E,
                "With s = 1/L the growth stays bounded.",
                latex=r"\lim_{L \to \infty} (1 + \tfrac{1}{L})^L = e",
            ),
            distinct(
                "unscaled ones do not",
                (1 + s) ** depth,
                1 + depth * s,
                "With s = 1 it is 2^L.",
                at={s: 1, depth: 8},
                latex=r"2^8 \neq 1 + 8",
            ),
        ),
        "Theorem (Aligned directions) in chapter `skip-connections`.",
    )


DERIVATIONS = {
    build.__name__: build
    for build in (
        two_sides,
        slow_decay,
        skip_corollary,
        orthogonal_contribution,
        never_shrinks,
        aligned_directions,
    )
}
