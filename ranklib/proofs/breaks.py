"""Derivations: tokens that break the printed bound, and when its constant 4 is true.

Entries are symbols or exact fractions; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import composite, max_col_sum
from .engine.steps import Derivation, by_lemma, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"
Q = sp.Rational


def clean_family() -> Derivation:
    """A family of 3m + 1 tokens beats the bound (Theorem (Clean family))."""
    m = sp.Symbol("m", positive=True, integer=True)
    t, z = sp.symbols("t z", nonnegative=True)
    c, x = sp.symbols("c x", real=True)
    r = sp.eye(3).col_join(sp.zeros(4, 3))
    y, least = Q(81, 100) / (1 + z), Q(13851, 10000)
    printed = {size: 16 * sp.log(90 * size + 1) ** 2 for size in (1635, 1636, 2000)}
    return Derivation(
        "clean_family",
        "One default token, m movers with private features and 2m stayers: the output's residual grows like "
        "the root of m, the printed bound like log m.",
        (
            identity(
                "the input",
                composite(r),
                1,
                "Rows and columns hold at most a single 1, so rho is at most 1.",
                assumptions="m = 2: default, two movers, four stayers",
                latex=r"R = (e_0, e_1, \ldots, e_m, 0, \ldots, 0)^\top: \ \|R\|_{1,\infty} = 1",
            ),
            identity(
                "a stayer",
                9 * m / (9 * m + m),
                Q(9, 10),
                "Its row of E is zero, so it averages with the base weights.",
                assumptions="weights 9m : 1, stayers close to 0",
                latex=r"\alpha = \frac{9 m}{10 m} = 0.9",
            ),
            identity(
                "a mover's normaliser",
                10 * m - 1 + (90 * m + 1),
                100 * m,
                "Its own weight is multiplied by e^L = 90m + 1.",
                latex=r"Z = 10 m - 1 + e^L = 100 m",
            ),
            identity(
                "a mover on the default feature",
                9 * m / (100 * m),
                Q(9, 100),
                "Divide by Z.",
                latex=r"\beta = \frac{9 m}{100 m} = 0.09",
            ),
            identity(
                "own feature minus another's",
                (90 * m + 1) / (100 * m) - 1 / (100 * m),
                Q(9, 10),
                "The same in every private feature.",
                latex=r"\delta = \frac{90 m + 1}{100 m} - \frac{1}{100 m} = 0.9",
            ),
            inequality(
                "any centre of a private feature",
                abs(c),
                abs(c - x) + abs(x),
                "The own entry and another are delta apart: the movers' rows hold delta on average.",
                latex="\\delta \\le |Y_{kk} - x_k| + |Y_{ik} - x_k|:\ng \\ge |0.09 - x_0| + 0.9",
            ),
            inequality(
                "centres below 0.09",
                least * m,
                m * (2 * (Q(81, 100) + t) + t) * (Q(9, 10) + t),
                "On the default feature, f counts 2m stayers and m movers.",
                assumptions="x_0 = 0.09 - t",
                latex=r"1.3851 \, m \le m (1.62 + 3 t)(0.9 + t) \le f g",
            ),
            inequality(
                "centres above 0.9",
                least * m,
                m * (2 * t + Q(81, 100) + t) * (Q(81, 100) + t + Q(9, 10)),
                "Equality at 0.9: the centre that suits the stayers.",
                assumptions="x_0 = 0.9 + t",
                latex=r"1.3851 \, m \le m (0.81 + 3 t)(1.71 + t) \le f g",
            ),
            inequality(
                "centres in between",
                least * m,
                m * (Q(81, 100) + y) * (Q(171, 100) - y),
                "The difference is m y (0.9 - y).",
                form=m * y * (9 + 90 * z) / (100 * (1 + z)),
                assumptions="x_0 = 0.9 - y, y at most 0.81",
                latex=r"1.3851 \, m \le m (0.81 + y)(1.71 - y) \le f g",
            ),
            inequality(
                "2000 movers",
                printed[2000],
                least * 2000,
                "The two roots are 48.40 and 52.63, with 6001 tokens.",
                strict=True,
                latex=r"(4 \ln 180001)^2 < 1.3851 \cdot 2000",
            ),
            inequality(
                "the first m",
                printed[1636],
                least * 1636,
                "That is 4909 tokens.",
                strict=True,
                latex=r"(4 \ln 147241)^2 < 1.3851 \cdot 1636",
            ),
            inequality(
                "one less is not enough",
                least * 1635,
                printed[1635],
                "For this lower bound.",
                strict=True,
                latex=r"1.3851 \cdot 1635 < (4 \ln 147151)^2",
            ),
        ),
        f"Theorem (Clean family) in chapter `where-it-breaks`, against the one-layer bound of {PAPER}.",
    )


def pocket_example() -> Derivation:
    """6001 tokens in fractions (Example (6001 tokens))."""
    alpha, beta = Q(12000, 14000), Q(12000, 139999)
    gap, delta = alpha - beta, Q(126000 - 1, 139999)
    f, g = 4000 * abs(alpha - alpha) + 2000 * abs(beta - alpha), gap + delta
    t, z = sp.symbols("t z", nonnegative=True)
    y = gap / (1 + z)
    value, rest = Q(5078, 100), delta - gap
    return Derivation(
        "pocket_example",
        "With weights 12000 : 1, 2000 movers and e^L = 126000 the printed bound is violated in four lines.",
        (
            identity(
                "stayers",
                alpha,
                Q(6, 7),
                "Default weight 12000, movers 2000 together.",
                latex=r"\alpha = \frac{12000}{14000} = \frac{6}{7}",
            ),
            identity(
                "a mover's normaliser",
                sp.Integer(14000 - 1 + 126000),
                139999,
                "Its own weight is multiplied by 126000.",
                latex=r"Z = 14000 - 1 + 126000 = 139999",
            ),
            identity(
                "how far the default entries differ",
                gap,
                Q(755994, 979993),
                "Stayers minus movers, about 0.771428.",
                latex=r"\Delta = \frac{6}{7} - \frac{12000}{139999} = \frac{755994}{979993}",
            ),
            identity(
                "own minus other",
                delta,
                Q(125999, 139999),
                "On the private features, about 0.899999.",
                latex=r"\delta = \frac{126000 - 1}{139999} = \frac{125999}{139999}",
            ),
            identity(
                "the centre of the stayers",
                f * g,
                2000 * gap * (gap + delta),
                "Only the movers differ from it.",
                latex=r"f g = 2000 \Delta \cdot (\Delta + \delta)",
            ),
            inequality(
                "centres towards the movers",
                f * g,
                2000 * (gap + y) * (gap + delta - y),
                "The difference is 2000 y (delta - y), and y is at most Delta, below delta.",
                form=2000 * y * (rest + delta * z) / (1 + z),
                assumptions="x_0 = alpha - y",
                latex=r"2000 \Delta (\Delta + \delta) \le 2000 (\Delta + y)(\Delta + \delta - y)",
            ),
            inequality(
                "beyond the movers",
                f * g,
                4000 * (gap + t) * (delta + t),
                "Delta is below delta.",
                assumptions="x_0 = beta - t",
                latex=r"2000 \Delta (\Delta + \delta) \le 4000 (\Delta + t)(\delta + t)",
            ),
            inequality(
                "beyond the stayers",
                f * g,
                2000 * (gap + t) * (gap + delta + t),
                "Both factors grow.",
                assumptions="x_0 = alpha + t",
                latex="2000 \\Delta (\\Delta + \\delta)\n\\le 2000 (\\Delta + t)(\\Delta + \\delta + t)",
            ),
            inequality(
                "the residual of the output",
                value**2,
                f * g,
                "At every centre.",
                strict=True,
                latex=r"50.78^2 < f g",
            ),
            inequality(
                "the printed bound",
                4 * sp.log(126000),
                47,
                "It is 46.976.",
                strict=True,
                latex=r"4 \ln 126000 < 47",
            ),
            inequality(
                "is smaller",
                (4 * sp.log(126000)) ** 2,
                value**2,
                "Strictly, so tiny positive weights of the stayers change nothing.",
                strict=True,
                latex=r"(4 \ln 126000)^2 < 50.78^2",
            ),
        ),
        f"Example (6001 tokens) in chapter `where-it-breaks`, against the one-layer bound of {PAPER}.",
    )


def bound_g(lam: sp.Expr) -> sp.Expr:
    """The square of G at Lambda."""
    tanh = sp.tanh(lam / 2)
    return (sp.exp(lam) - 1 + 2 * lam * tanh) * tanh


def constant_four() -> Derivation:
    """When the printed constant 4 is true (Theorem (When four is true))."""
    end, s = Q(13, 2), sp.Symbol("s", nonnegative=True)
    lam, u = end * s / (1 + s), sp.Symbol("u", nonnegative=True)
    d = sp.Symbol("D", positive=True)
    phi = sp.Symbol("phi", real=True)

    def constant(osc: sp.Expr) -> sp.Expr:
        return ((sp.exp(osc) - 1) / osc / 2 + sp.tanh(osc / 4)) * sp.tanh(osc / 4) / (osc / 4)

    return Derivation(
        "constant_four",
        "The printed constant 4 is true up to Lambda = 6.5, up to oscillation 5.62, and up to n = 801.",
        (
            inequality(
                "at Lambda = 6.5",
                bound_g(end),
                26**2,
                "G(6.5)/6.5 is 3.997.",
                strict=True,
                latex=r"G(6.5)^2 < 26^2 = (4 \cdot 6.5)^2",
            ),
            inequality(
                "at 6.51 it is not",
                (4 * Q(651, 100)) ** 2,
                bound_g(Q(651, 100)),
                "The root of G = 4 Lambda is 6.502.",
                strict=True,
                latex=r"(4 \cdot 6.51)^2 < G(6.51)^2",
            ),
            inequality(
                "the secant slope grows fast enough",
                u * (sp.exp(u) - 1) / 2,
                u * sp.exp(u) - sp.exp(u) + 1,
                "Twice differentiated, the difference is not negative.",
                grows_in=u,
                assumptions="u non-negative",
                latex=r"\tfrac{1}{2} \kappa(u) \le \kappa'(u)",
            ),
            by_lemma(
                "smaller Lambda",
                bound_g(lam) * end**2,
                bound_g(end) * lam**2,
                "So G is at most 4 Lambda on the whole range.",
                lemma="G(Lambda)/Lambda increases",
                box={s: (0.001, 2000)},
                assumptions="Lambda = 6.5 s/(1 + s)",
                latex=r"G(\Lambda) / \Lambda \le G(6.5) / 6.5",
            ),
            inequality(
                "a column of averages",
                phi * (1 + Q(1, 2) * (1 - 2 * phi)),
                Q(9, 16),
                "A share phi of the tokens at one end, the centre at half the mean.",
                form=(phi - Q(3, 4)) ** 2,
                latex=r"\phi (1 + \tfrac{1}{2} (1 - 2 \phi)) \le \tfrac{9}{16}",
            ),
            identity(
                "columns times rows",
                Q(9, 16) * Q(3, 2),
                Q(27, 32),
                "Rows are at most 3/2 of B from that centre.",
                latex=r"\tfrac{9}{16} \cdot \tfrac{3}{2} = \tfrac{27}{32}",
            ),
            inequality(
                "801 tokens",
                Q(27, 32) * 801,
                26**2,
                "For larger Lambda the bound is above 26.",
                strict=True,
                latex=r"\tfrac{27}{32} \cdot 801 < 26^2",
            ),
            inequality(
                "802 are too many",
                26**2,
                Q(27, 32) * 802,
                "For this argument.",
                strict=True,
                latex=r"26^2 < \tfrac{27}{32} \cdot 802",
            ),
            identity(
                "small oscillation",
                constant(d),
                ((sp.exp(d / 2) - 1) / (d / 2)) ** 2 / 2 + sp.tanh(d / 4) ** 2 / (d / 4),
                "The master lemma with mu at most D; kappa times tau is a square.",
                latex=r"C(D)^2 = \tfrac{1}{2} \kappa(\tfrac{D}{2})^2 + \frac{\tanh^2 (D/4)}{D/4}",
            ),
            inequality(
                "oscillation 5.62",
                constant(Q(562, 100)),
                16,
                "C(5.62) is below 4.",
                strict=True,
                latex=r"C(5.62)^2 < 16",
            ),
            inequality(
                "5.63 is too much",
                16,
                constant(Q(563, 100)),
                "For this argument.",
                strict=True,
                latex=r"16 < C(5.63)^2",
            ),
            inequality(
                "oscillation 1.256",
                constant(Q(1256, 1000)),
                Q(1124, 1000) ** 2,
                "At the printed hypothesis the constant is 1.124.",
                strict=True,
                latex=r"C(1.256) < 1.124",
            ),
        ),
        "Theorem (When four is true) in chapter `where-it-breaks`; Theorem (Constant four).",
    )


def oscillation_eight() -> Derivation:
    """An oscillation of 8.2 is not small enough (Theorem (Oscillation 8.2))."""
    lam, x, m = sp.symbols("L x m", positive=True)
    w_qk = sp.Matrix([[0, 0, 0, 0], [-lam, 0, 0, 0], [0, 0, lam, 0], [0, 0, 0, lam]])
    third = Q(1, 3)
    z = 1 + x / (3 * m)

    def special(growth: sp.Expr) -> sp.Expr:
        return Q(2, 3) * growth / (growth + 3)

    def ratio(osc: sp.Expr) -> sp.Expr:
        growth = sp.exp(osc) - 1
        return 2 * special(growth) * (Q(2, 9) * growth + special(growth)) / osc**2

    return Derivation(
        "oscillation_eight",
        "With many stayers and movers and one special query, oscillation 8.2 already breaks constant 4.",
        (
            identity(
                "the scores",
                max_col_sum(w_qk),
                lam,
                "Default, special query, and two of the m movers.",
                assumptions="private features, R has rows e_k or 0",
                latex=r"\|W_{QK}\|_1 = L, \quad \Lambda \le L",
            ),
            identity(
                "the special row",
                Q(2, 3) - Q(2, 3) * sp.exp(-lam) / (Q(2, 3) * sp.exp(-lam) + third),
                special(sp.exp(lam) - 1),
                "It looks away from the default token, which has weight 2/3.",
                latex=r"T_s = \frac{2}{3} \cdot \frac{e^L - 1}{e^L + 2}",
            ),
            identity(
                "a mover's normaliser",
                1 - 1 / (3 * m) + (1 + x) / (3 * m),
                z,
                "Its own weight 1/(3m) is multiplied by e^L.",
                assumptions="x = e^L - 1",
                latex=r"Z_m = 1 + \frac{e^L - 1}{3 m}",
            ),
            identity(
                "all movers together",
                m * Q(2, 3) * (1 - 1 / z),
                Q(2, 9) * x / z,
                "Each takes a little from the default column.",
                assumptions="x = e^L - 1",
                latex=r"m \cdot \tfrac{2}{3} (1 - 1/Z_m) = \tfrac{2}{9} (e^L - 1) / Z_m",
            ),
            identity(
                "many movers",
                sp.Limit(Q(2, 9) * x / z, m, sp.oo),
                Q(2, 9) * x,
                "The normaliser tends to 1.",
                assumptions="x = e^L - 1",
                latex=r"\lim_{m \to \infty} \tfrac{2}{9} (e^L - 1) / Z_m = \tfrac{2}{9} (e^L - 1)",
            ),
            inequality(
                "it approaches from below",
                Q(2, 9) * x / z,
                Q(2, 9) * x,
                "The normaliser is above 1.",
                strict=True,
                latex=r"\tfrac{2}{9} (e^L - 1) / Z_m < \tfrac{2}{9} (e^L - 1)",
            ),
            identity(
                "the special row's length",
                special(x) + special(x),
                2 * special(x),
                "What it loses on the default feature it gains elsewhere.",
                latex=r"g \ge 2 T_s",
            ),
            inequality(
                "at 8.2",
                16,
                ratio(Q(82, 10)),
                "Larger than the square of 4.",
                strict=True,
                latex="16 < \\frac{2 T_s (\\frac{2}{9} (e^L - 1) + T_s)}{L^2},\n\\quad L = 8.2",
            ),
            inequality(
                "8.19 is not enough",
                ratio(Q(819, 100)),
                16,
                "For this family; the root is 8.1968.",
                strict=True,
                latex="\\frac{2 T_s (\\frac{2}{9} (e^L - 1) + T_s)}{L^2} < 16,\n\\quad L = 8.19",
            ),
            inequality(
                "at 8.5 the ratio is larger",
                Q(448, 100) ** 2,
                ratio(Q(85, 10)),
                "Its root is 4.489.",
                strict=True,
                latex="4.48^2 < \\frac{2 T_s (\\frac{2}{9} (e^L - 1) + T_s)}{L^2},\n\\quad L = 8.5",
            ),
        ),
        "Theorem (Oscillation 8.2) in chapter `where-it-breaks`.",
    )


DERIVATIONS = {
    build.__name__: build for build in (clean_family, pocket_example, constant_four, oscillation_eight)
}
