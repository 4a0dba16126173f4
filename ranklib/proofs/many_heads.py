"""Derivations: several heads, the price of the composite, and heads that cancel.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import composite, max_col_sum, max_row_sum, real_matrix, softmax_rows
from .engine.steps import Derivation, by_lemma, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"
ROOT = sp.sqrt


def two_heads() -> Derivation:
    """Two heads, two tokens, many outputs beat the printed bound (Example (Two heads))."""
    y, z, w = sp.symbols("y z w", positive=True)
    pair, m = sp.Matrix([1, -1]), y**4
    heads = [sp.Matrix([[2, 0, 0, 0]]), sp.ones(1, 4)]
    size = ROOT((2 * z * (y**2 + 1)) * (z * (y**2 + m)))
    edge = 8 + 3 * ROOT(7)
    ratio = sp.Rational(257, 256)
    return Derivation(
        "two_heads",
        "Two heads of equal composite, one with a single large output and one with many small ones, give a "
        "sum that is larger than twice either.",
        (
            identity(
                "two opposite tokens",
                softmax_rows(w * pair * pair.T) * pair,
                sp.tanh(w) * pair,
                "Both heads have the same scores.",
                latex=r"P X = \tanh w \, (1, -1)^\top",
            ),
            identity(
                "four outputs",
                sp.Matrix([composite(head) for head in heads]),
                sp.Matrix([2, 2]),
                "Value matrices (2, 0, 0, 0) and (1, 1, 1, 1): both of composite 2.",
                latex=r"\|W_1\|_{1,\infty} = \|W_2\|_{1,\infty} = \sqrt{m} = 2",
            ),
            inequality(
                "their sum",
                4,
                composite(sum(heads, sp.zeros(1, 4))),
                "The row (3, 1, 1, 1) has norms 3 and 6.",
                strict=True,
                latex=r"2 + 2 < \|W_1 + W_2\|_{1,\infty} = \sqrt{18}",
            ),
            identity(
                "m outputs",
                ROOT((ROOT(m) + 1) * (ROOT(m) + m)),
                y * (y**2 + 1),
                "One entry of root m + 1 and m - 1 ones; the root comes last.",
                assumptions="m = y^4",
                latex=r"\sqrt{(\sqrt{m} + 1)(\sqrt{m} + m)} = m^{1/4} (\sqrt{m} + 1)",
            ),
            identity(
                "the residual of the output",
                size,
                ROOT(2) * z * y * (y**2 + 1),
                "Two opposite tokens: the midpoint is a best centre.",
                assumptions="m = y^4, z = tanh w",
                latex=r"\|\mathrm{res} X'\| = \sqrt{2} \, z \, m^{1/4} (\sqrt{m} + 1)",
            ),
            identity(
                "over the printed bound",
                size / (4 * (w * y**2) * 2 * ROOT(2) ** 3),
                z / w * (y + 1 / y) / 16,
                "The residual of X is the root of 2, and beta is w times root m.",
                assumptions="H = 2",
                latex="\\frac{\\|\\mathrm{res} X'\\|}{4 \\beta H \\|\\mathrm{res} X\\|^3}\n"
                "= \\frac{\\tanh w}{w} \\cdot \\frac{m^{1/4} + m^{-1/4}}{16}",
            ),
            identity(
                "small scores",
                sp.Limit(sp.tanh(w) / w, w, 0),
                1,
                "So small oscillation does not help.",
                latex=r"\lim_{w \to 0} \frac{\tanh w}{w} = 1",
            ),
            identity(
                "where it is 16",
                edge + 1 / edge,
                16,
                "The larger root of y + 1/y = 16.",
                latex=r"y = 8 + 3 \sqrt{7}: \quad y + 1/y = 16",
            ),
            identity(
                "its fourth power",
                edge**4 + (8 - 3 * ROOT(7)) ** 4,
                64514,
                "The other root is 1/y, and its fourth power is below 1.",
                latex=r"y^4 + y^{-4} = 64514",
            ),
            inequality(
                "so 64 513 outputs are not enough",
                64513,
                edge**4,
                "The sum grows with y.",
                strict=True,
                latex=r"64513 < y^4",
            ),
            inequality(
                "and 64 514 are",
                edge**4,
                64514,
                "The first m that beats the bound for small w.",
                strict=True,
                latex=r"y^4 < 64514",
            ),
            identity(
                "65 536 outputs",
                (sp.Integer(65536) ** sp.Rational(1, 4) + sp.Rational(1, 16)) / 16,
                ratio,
                "The fourth root is 16.",
                latex=r"\frac{16 + 1/16}{16} = \frac{257}{256}",
            ),
            inequality(
                "with scores of one twentieth",
                1,
                ratio * 20 * sp.tanh(sp.Rational(1, 20)),
                "The bound is beaten at w = 0.05.",
                strict=True,
                latex=r"1 < \tfrac{257}{256} \cdot 20 \tanh \tfrac{1}{20}",
            ),
        ),
        f"Example (Two heads) in chapter `many-heads`, against Theorem 2.3 of {PAPER}.",
    )


def many_heads() -> Derivation:
    """Column sums add, row sums add, the root comes last (Theorem (Many heads))."""
    a, b = (real_matrix(name, 2, 2) for name in "ab")
    thin = [real_matrix(name, 3, 1) for name in "rs"]
    one, c1, c2 = sp.ones(3, 1), real_matrix("c", 2, 1), real_matrix("d", 2, 1)
    m1, m2 = real_matrix("m", 3, 2), real_matrix("n", 3, 2)
    f1, f2, v1, v2, size, rows = sp.symbols("F1 F2 V1 V2 A B", positive=True)
    s1, s2, rho, c, beta1, beta2, h = sp.symbols("S1 S2 rho C b1 b2 H", positive=True)
    x, y, r, s = sp.symbols("x y r s", positive=True)
    u, lam = sp.Symbol("u", nonnegative=True), sp.Integer(5)
    return Derivation(
        "many_heads",
        "All heads are compared with constant rows, which add; then two norms are added separately, and the "
        "root is taken last.",
        (
            identity(
                "constant rows add",
                (one * c1.T + m1) + (one * c2.T + m2),
                one * (c1 + c2).T + (m1 + m2),
                "Each head is a constant row plus a small remainder.",
                latex=r"\sum_h (\mathbf{1} c_h^\top + \Delta_h) = \mathbf{1} c^\top + \sum_h \Delta_h",
            ),
            inequality(
                "column norms add",
                max_col_sum(a + b),
                max_col_sum(a) + max_col_sum(b),
                "A largest column sum is a norm.",
                latex=r"\|\Delta_1 + \Delta_2\|_1 \le \|\Delta_1\|_1 + \|\Delta_2\|_1",
            ),
            inequality(
                "row norms add",
                max_row_sum(thin[0] + thin[1]),
                max_row_sum(thin[0]) + max_row_sum(thin[1]),
                "So is a largest row sum.",
                latex="\\|\\Delta_1 + \\Delta_2\\|_\\infty\n"
                "\\le \\|\\Delta_1\\|_\\infty + \\|\\Delta_2\\|_\\infty",
            ),
            identity(
                "collect the columns",
                f1 * size * v1 + f2 * size * v2,
                size * (f1 * v1 + f2 * v2),
                "The input is common to all heads; rows alike.",
                latex="\\|\\textstyle\\sum_h \\Delta_h\\|_1 \\le \\|R\\|_1 S_1,\n"
                "S_1 = \\textstyle\\sum_h F(\\Lambda_h) \\|W_h\\|_1",
            ),
            identity(
                "the root last",
                ROOT(size * s1 * rows * s2),
                ROOT(size * rows) * ROOT(s1 * s2),
                "One product, one root.",
                latex="\\|\\mathrm{res} X'\\| \\le \\rho \\sqrt{S_1 S_\\infty},\n"
                "S_\\infty = \\textstyle\\sum_h 2 \\tanh(\\Lambda_h/2) \\|W_h\\|_\\infty",
            ),
            inequality(
                "roots first would be too small",
                (ROOT(x * y) + ROOT(r * s)) ** 2,
                (x + r) * (y + s),
                "Composites of heads do not bound the composite of the sum.",
                form=(ROOT(x * s) - ROOT(y * r)) ** 2,
                assumptions="x, y, r, s positive",
                latex=r"(\sqrt{x y} + \sqrt{r s})^2 \le (x + r)(y + s)",
            ),
            inequality(
                "the factor of the rows",
                sp.tanh(u),
                u,
                "With u = Lambda/2.",
                grows_in=u,
                assumptions="u non-negative",
            ),
            identity(
                "cubic",
                rho * ROOT(c**2 * rho**2 * s1 * rho**2 * s2),
                c * ROOT(s1 * s2) * rho**3,
                "Both sums hold Lambda_h = q_h rho^2 once.",
                latex="\\|\\mathrm{res} X'\\| \\le C \\rho^3 \\, \\cdot\n"
                "\\sqrt{\\textstyle\\sum_h q_h \\|W_h\\|_1 \\sum_h q_h \\|W_h\\|_\\infty}",
            ),
            identity(
                "with separate bounds",
                ROOT(h * beta1 * h * beta2),
                h * ROOT(beta1 * beta2),
                "Then H heads cost a factor of H.",
                latex=r"\sqrt{H \beta_1 \cdot H \beta_\infty} = H \beta",
            ),
            inequality(
                "constant four up to Lambda = 5",
                ((sp.exp(lam) - 1) / 2 + lam * sp.tanh(lam / 2)) / lam,
                16,
                "The value is 15.73, and F(Lambda)/Lambda increases.",
                strict=True,
                latex=r"C^2 = F(5)/5 < 16",
            ),
        ),
        f"Theorem (Many heads) in chapter `many-heads`; repairs Theorem 2.3 of {PAPER}.",
    )


def kantorovich() -> Derivation:
    """What the composite costs, by Kantorovich's inequality (Proposition (Price of the shape))."""
    a, s, t, x, y, h, theta = sp.symbols("a s t x y H theta", positive=True)
    b, w = sp.Symbol("b", positive=True), real_matrix("w", 2, 2)
    mu, top = sp.symbols("mu M", positive=True)
    osc = sp.Rational(1256, 1000)
    c = ROOT((sp.exp(osc) - 1) / osc / 2 + sp.tanh(osc / 4))
    column = sp.Matrix(4, 4, lambda i, j: int(j == 0))

    def price(width: int) -> sp.Expr:
        return (ROOT(width) + 1 / ROOT(width)) / 2

    return Derivation(
        "kantorovich",
        "With composites alone, H heads cost H times a factor that depends on the values' shapes.",
        (
            inequality(
                "one number",
                (a + s) + a * (a + s + t) / (a + s),
                a + (a + s + t),
                "It is (x - a)(b - x)/x below, with both brackets non-negative.",
                form=s * t / (a + s),
                assumptions="x = a + s, b = x + t",
                latex=r"x + \frac{a b}{x} \le a + b",
            ),
            inequality(
                "arithmetic and geometric mean",
                2 * ROOT(x * y),
                x + y,
                "The difference is a square.",
                form=(ROOT(x) - ROOT(y)) ** 2,
                assumptions="x, y positive",
            ),
            identity(
                "sum and square",
                (h * (a + b) / (2 * ROOT(a * b))) ** 2,
                h**2 * (a + b) ** 2 / (4 * a * b),
                "Sum the first step over heads, then use the second.",
                latex=r"\sum_h x_h \sum_h \frac{1}{x_h} \le H^2 \frac{(a + b)^2}{4 a b}",
            ),
            identity(
                "two heads attain it",
                (a + b) * (1 / a + 1 / b),
                2**2 * (a + b) ** 2 / (4 * a * b),
                "One at each end.",
                assumptions="x_1 = a, x_2 = b",
            ),
            identity(
                "as a ratio",
                (a + theta**2 * a) / (2 * ROOT(a * theta**2 * a)),
                (theta + 1 / theta) / 2,
                "Only the ratio b/a matters.",
                assumptions="b = theta^2 a",
                latex=r"\frac{a + b}{2 \sqrt{a b}} = \frac{\theta + \theta^{-1}}{2}",
            ),
            identity(
                "in terms of shapes",
                ROOT(ROOT(top) / ROOT(mu)),
                (top / mu) ** sp.Rational(1, 4),
                "A head's x_h is the root of its column norm over its row norm, from mu to M.",
                latex=r"\theta = (M / \mu)^{1/4}",
            ),
            by_lemma(
                "no shape is worse than its size",
                max_col_sum(w),
                2 * max_row_sum(w),
                "A column has d_in entries, each at most a row sum; rows alike.",
                lemma="entries are at most row sums",
                box={symbol: (-1, 1) for symbol in w},
                assumptions="d_in = 2",
                latex=r"\|W\|_1 \le d_\mathrm{in} \|W\|_\infty",
            ),
            identity(
                "a column and a row of ones",
                sp.Matrix([composite(m) for m in (column, column.T, column + column.T)]),
                sp.Matrix([2, 2, 5]),
                "With n = 4: composites root n, but n + 1 for the sum.",
                latex="\\|A\\|_{1,\\infty} = \\|A^\\top\\|_{1,\\infty} = 2,\n"
                "\\|A + A^\\top\\|_{1,\\infty} = 5",
            ),
            inequality(
                "47 features",
                c * price(47),
                4,
                "The printed 4 beta H holds at oscillation 1.256.",
                strict=True,
                latex=r"C(1.256) \, \frac{\sqrt{47} + 1/\sqrt{47}}{2} < 4",
            ),
            inequality(
                "48 features",
                4,
                c * price(48),
                "Beyond that this argument gives more than 4.",
                strict=True,
                latex=r"4 < C(1.256) \, \frac{\sqrt{48} + 1/\sqrt{48}}{2}",
            ),
        ),
        "Proposition (Price of the shape) in chapter `many-heads`.",
    )


def order_seven() -> Derivation:
    """Two heads that cancel to order seven (Example (Order seven))."""
    u, t = sp.Symbol("u", positive=True), sp.Symbol("t", nonnegative=True)
    a, depth = sp.Symbol("a", positive=True), sp.Symbol("L", positive=True, integer=True)
    two = 2 * sp.tanh(u) - sp.tanh(2 * u)
    weights, values = (1, 2, 3), (5, -4, 1)
    moments = [sum(v * w**k for v, w in zip(values, weights, strict=True)) for k in (1, 3, 5)]
    tenth = sp.Rational(1, 10)
    return Derivation(
        "order_seven",
        "Heads w = 1, 2 with values 2, -1 cancel: the half-gap a becomes about 2 a^7 instead of a cube.",
        (
            identity(
                "double angle",
                sp.tanh(2 * u),
                2 * sp.tanh(u) / (1 + sp.tanh(u) ** 2),
                "Addition formula.",
                latex=r"\tanh 2 u = \frac{2 t}{1 + t^2}, \quad t = \tanh u",
            ),
            identity(
                "the sum of the heads",
                2 * t - 2 * t / (1 + t**2),
                2 * t**3 / (1 + t**2),
                "The linear terms cancel.",
                assumptions="t = tanh u",
                latex=r"2 t - \frac{2 t}{1 + t^2} = \frac{2 t^3}{1 + t^2}",
            ),
            identity(
                "both together",
                two,
                2 * sp.tanh(u) ** 3 / (1 + sp.tanh(u) ** 2),
                "Two heads leave a cube of the tangent.",
                latex="2 \\tanh u - \\tanh 2 u\n= \\frac{2 \\tanh^3 u}{1 + \\tanh^2 u}",
            ),
            inequality(
                "it is positive",
                0,
                2 * t**3 / (1 + t**2),
                "A quotient of such numbers.",
                assumptions="t non-negative",
            ),
            inequality(
                "at most twice the cube",
                2 * t**3 / (1 + t**2),
                2 * t**3,
                "The denominator is at least 1.",
                assumptions="t non-negative",
            ),
            inequality(
                "and the tangent is below u",
                sp.tanh(t),
                t,
                "With t = u = a^2.",
                grows_in=t,
                assumptions="t non-negative",
            ),
            identity(
                "order seven", a * 2 * (a**2) ** 3, 2 * a**7, "The half-gap times the factor at u = a^2."
            ),
            identity(
                "the constant is two",
                sp.Limit(two / u**3, u, 0),
                2,
                "For small tokens.",
                latex=r"\lim_{u \to 0} \frac{2 \tanh u - \tanh 2 u}{u^3} = 2",
            ),
            inequality(
                "at one tenth",
                tenth * two.subs(u, tenth**2),
                2 * tenth**7,
                "Below 2.0e-7, where one head gives 1e-3.",
                strict=True,
                latex=r"\tfrac{1}{10} (2 \tanh 0.01 - \tanh 0.02) < 2 \cdot 10^{-7}",
            ),
            identity(
                "many layers",
                (7**depth - 1) / 6 + 7**depth,
                (7 ** (depth + 1) - 1) / 6,
                "Exponents add up as before, with 7 for 3.",
                latex=r"\tfrac{1}{6} (7^L - 1) + 7^L = \tfrac{1}{6} (7^{L+1} - 1)",
            ),
            identity(
                "three heads",
                sp.Matrix(moments),
                sp.Matrix([0, 0, 120]),
                "Take w = 1, 2, 3 with v = 5, -4, 1: orders 3 and 7 vanish.",
                latex=r"\sum_h v_h w_h^k = 0, 0, 120 \quad (k = 1, 3, 5)",
            ),
            identity(
                "give order eleven",
                a * sp.Rational(2, 15) * 120 * (a**2) ** 5,
                16 * a**11,
                "The fifth coefficient of the tangent is 2/15.",
                latex=r"a \cdot \tfrac{2}{15} \cdot 120 \, (a^2)^5 = 16 a^{11}",
            ),
        ),
        "Example (Order seven) in chapter `many-heads`.",
    )


DERIVATIONS = {build.__name__: build for build in (two_heads, many_heads, kantorovich, order_seven)}
