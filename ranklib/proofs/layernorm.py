"""Derivations: dividing columns or rows, the pair on a circle, epsilon, and ranks.

Sizes are small, entries are symbols; the sentence of each step says why any size works.
"""

import sympy as sp

from .engine.matrices import softmax_rows
from .engine.steps import Derivation, distinct, identity, inequality

HALF = sp.Rational(1, 2)
BOOK = "this book"


def column_division() -> Derivation:
    """Normalised columns have residual at least sqrt d (Theorem (Columns cannot collapse))."""
    a, b, x = sp.symbols("a b x", real=True)
    p, q, r = sp.symbols("p q r", nonnegative=True)
    n, d = sp.symbols("n d", positive=True)
    column = [a, b, -a - b]
    return Derivation(
        "column_division",
        "If every column has mean 0 and variance 1 over the tokens, the residual is at least the root of d.",
        (
            identity(
                "a column about any number",
                sum((z - x) ** 2 for z in column),
                sum(z**2 for z in column) + 3 * x**2,
                "The cross term is the sum of the column, zero.",
                assumptions="three tokens",
                latex=r"\sum_i (z_i - x)^2 = \sum_i z_i^2 + n x^2",
            ),
            inequality(
                "so its squares are at least n",
                n,
                n + n * x**2,
                "The variance is 1, the sum is n.",
                latex=r"n \le \sum_i (z_i - x)^2",
            ),
            inequality(
                "a sum is at least the root of squares",
                p**2 + q**2 + r**2,
                (p + q + r) ** 2,
                "Multiply out: the mixed terms are not negative.",
                form=2 * (p * q + p * r + q * r),
                latex=r"\sum_i z_i^2 \le \bigl(\sum_i |z_i|\bigr)^2",
            ),
            inequality(
                "a largest row is at least the mean row",
                (p + q) / 2,
                sp.Max(p, q),
                "For n rows: one n-th of the sum of all entries.",
                latex=r"\tfrac{1}{n} \sum_{ik} |Z_{ik} - x_k| \le g(x)",
            ),
            identity(
                "columns times rows",
                sp.sqrt(n) * (d * sp.sqrt(n) / n),
                d,
                "All d columns have absolute sum at least root n.",
                latex=r"f(x) g(x) \ge \sqrt{n} \cdot \tfrac{d \sqrt{n}}{n} = d",
            ),
        ),
        f"Theorem (Columns cannot collapse) in chapter `layernorm`; {BOOK}.",
    )


def ball_projection() -> Derivation:
    """LayerNorm is a projection to a ball, so it is Lipschitz (Theorem (When it folds))."""
    phi, a, b = sp.symbols("phi a b", real=True)
    eps, d, big_p, big_q = sp.symbols("epsilon d P Q", positive=True)
    s, t, h, p, q, r = sp.symbols("s t h p q r", nonnegative=True)
    x = sp.symbols("x1:4", real=True)
    mean = sum(x) / 3
    return Derivation(
        "ball_projection",
        "Two vectors outside the unit ball are at least as far apart as their directions.",
        (
            identity(
                "epsilon is one more feature",
                2 * ((a**2 + b**2) / 2 + eps),
                a**2 + b**2 + sp.sqrt(2 * eps) ** 2,
                "The divisor is the length of the longer vector.",
                assumptions="two features",
                latex=r"d \sigma^2 = \sum_k u_k^2 + (\sqrt{d \varepsilon})^2",
            ),
            identity(
                "distance of two vectors",
                (big_p - big_q * sp.cos(phi)) ** 2 + (big_q * sp.sin(phi)) ** 2,
                (big_p - big_q) ** 2 + 2 * big_p * big_q * (1 - sp.cos(phi)),
                "Lengths P and Q, angle phi.",
                latex="|u - v|^2\n= (P - Q)^2 + 2 P Q (1 - \\cos \\varphi)",
            ),
            identity(
                "distance of their directions",
                (1 - sp.cos(phi)) ** 2 + sp.sin(phi) ** 2,
                2 * (1 - sp.cos(phi)),
                "The same with P = Q = 1.",
            ),
            inequality(
                "projection does not enlarge",
                2 * h,
                (s - t) ** 2 + 2 * (1 + s) * (1 + t) * h,
                "With h = 1 - cos phi: drop the square, and PQ is at least 1.",
                form=(s - t) ** 2 + 2 * h * (s + t + s * t),
                assumptions="P = 1 + s, Q = 1 + t",
            ),
            identity(
                "all pairs, or all about the mean",
                (x[0] - x[1]) ** 2 + (x[0] - x[2]) ** 2 + (x[1] - x[2]) ** 2,
                3 * sum((value - mean) ** 2 for value in x),
                "So a bound for each pair bounds mu.",
                assumptions="three tokens",
                latex=r"\sum_{i<j} |x_i - x_j|^2 = n \sum_i |x_i - \bar x|^2",
            ),
            inequality(
                "rows cost the root of d",
                (p + q + r) ** 2,
                3 * (p**2 + q**2 + r**2),
                "Cauchy and Schwarz.",
                form=(p - q) ** 2 + (p - r) ** 2 + (q - r) ** 2,
                latex=r"|y|_1^2 \le d \, |y|_2^2",
            ),
            inequality(
                "columns cost d",
                p**2 + q**2 + r**2,
                (p + q + r) ** 2,
                "One entry is at most the length of its row, that at most the sum of the row; "
                "the sums of the d columns are each at most the largest.",
                form=2 * (p * q + p * r + q * r),
                latex=r"|y|_2^2 \le |y|_1^2",
            ),
            identity(
                "both together",
                sp.sqrt(d) * d,
                sp.sqrt(d**3),
                "The root comes last.",
                latex=r"\sqrt{d} \cdot d = (d^{3/4})^2",
            ),
        ),
        f"Theorem (When it folds) in chapter `layernorm`; {BOOK}.",
    )


def circle_pair() -> Derivation:
    """The half-angle of a pair on a circle (Theorem (Knife edge))."""
    c, s = sp.symbols("c s", real=True)
    w, length = sp.symbols("w l", positive=True)
    u, r, t = sp.symbols("u r T", nonnegative=True)
    pair, tanh = sp.Matrix([[c, s], [c, -s]]), sp.tanh(w * s**2)
    mixed = softmax_rows(w * pair * pair.T) * pair
    return Derivation(
        "circle_pair",
        "Attention and normalisation send tan theta to tan theta tanh(w sin^2 theta).",
        (
            identity(
                "attention pulls inwards",
                mixed,
                sp.Matrix([[c, s * tanh], [c, -s * tanh]]),
                "The common part c stays, the half-gap s shrinks.",
                assumptions="W_QK = w I, W_V = I",
                latex="x_+ = (c, s)\n\\mapsto (c, s \\tanh (w s^2))",
            ),
            identity(
                "the length cancels",
                (s * tanh / length) / (1 / length),
                s * tanh,
                "Both tokens have the same length, so their quotient of coordinates is unchanged.",
                latex=r"\tan \theta' = \tan \theta \, \tanh (w \sin^2 \theta)",
            ),
            inequality(
                "a longer wait near the edge",
                sp.tanh(u),
                sp.tanh(u + r),
                "With u = w sin^2 theta and u + r = w: the cotangent grows at least by 1/tanh w.",
                grows_in=r,
                latex=r"\tanh (w \sin^2 \theta) \le \tanh w",
            ),
            inequality(
                "tanh is below its argument", sp.tanh(u), u, "Its derivative is at most 1.", grows_in=u
            ),
            inequality(
                "the sine is below the tangent",
                t**2 / (1 + t**2),
                t**2,
                "With T = tan theta.",
                form=t**4 / (1 + t**2),
                latex=r"\sin^2 \theta \le \tan^2 \theta",
            ),
            identity(
                "with a skip",
                pair + mixed,
                sp.Matrix([[2 * c, s * (1 + tanh)], [2 * c, -s * (1 + tanh)]]),
                "The common part doubles, the half-gap does not.",
                latex="(c, s)\n\\mapsto (2 c, s (1 + \\tanh (w s^2)))",
            ),
            inequality(
                "post-norm shrinks the tangent",
                (1 + sp.tanh(u)) / 2,
                1,
                "It tends to one half.",
                strict=True,
                form=1 / (1 + sp.exp(2 * u)),
                latex=r"\tfrac{1}{2} (1 + \tanh u) < 1",
            ),
        ),
        f"Theorem (Knife edge) and Proposition (Post and pre) in chapter `layernorm`; {BOOK}.",
    )


def epsilon_threshold() -> Derivation:
    """Which pair a norm with epsilon holds (Theorem (Nose))."""
    s = sp.Symbol("s", real=True)
    u = sp.Symbol("u", nonnegative=True)
    r, eps, b = sp.symbols("r epsilon b", positive=True)
    held = sp.sqrt(eps / r)
    return Derivation(
        "epsilon_threshold",
        "The pair is held where v tanh(a^2) sqrt(1 - a^2) is the root of epsilon.",
        (
            identity(
                "solve for b",
                held / sp.sqrt(held**2 + eps),
                1 / sp.sqrt(1 + r),
                "So a fixed half-gap has b = a (epsilon / (1 - a^2))^(1/2).",
                assumptions="a^2 = 1/(1 + r)",
                latex="a = \\frac{b}{\\sqrt{b^2 + \\varepsilon}} \\quad \\text{for} \\quad\n"
                "b = \\frac{a \\sqrt{\\varepsilon}}{\\sqrt{1 - a^2}}",
            ),
            identity(
                "the slope of its logarithm",
                sp.diff(sp.log(sp.tanh(s)) + sp.log(1 - s) / 2, s),
                2 / sp.sinh(2 * s) - 1 / (2 * (1 - s)),
                "With s = a^2.",
                latex="\\bigl(\\log \\tanh s + \\tfrac{1}{2} \\log (1 - s)\\bigr)'\n"
                "= \\frac{2}{\\sinh 2 s} - \\frac{1}{2 (1 - s)}",
            ),
            inequality(
                "vanishes once",
                0,
                sp.diff(sp.sinh(2 * s) - 4 * (1 - s), s),
                "The slope has the sign of 4(1 - s) - sinh 2s, which falls from 4 to below 0.",
                strict=True,
                form=2 * sp.cosh(2 * s) + 4,
                latex=r"0 < \bigl(\sinh 2 s - 4 (1 - s)\bigr)'",
            ),
            inequality(
                "the lower edge",
                sp.tanh(u),
                u,
                "So v a^2 is at least the root of epsilon at a fixed half-gap.",
                grows_in=u,
            ),
            inequality(
                "epsilon bounds the factor",
                b**2 / (b**2 + eps),
                b**2 / eps,
                "No half-gap is multiplied by more than the inverse root of epsilon.",
                form=b**4 / (eps * (b**2 + eps)),
            ),
        ),
        f"Theorem (Nose) in chapter `layernorm`; {BOOK}.",
    )


def rank_two() -> Derivation:
    """Two tokens of rank 2 that stay, and orthogonal values (Example (Rank two))."""
    phi, p, q = sp.symbols("phi p q", real=True)
    value, root = sp.Matrix([[1, 2], [0, 1]]), sp.sqrt(3) / 2
    first, second, tangent = sp.Matrix([[0, 1]]), sp.Matrix([[-HALF, -root]]), sp.Matrix([[root, -HALF]])
    return Derivation(
        "rank_two",
        "A triangular value matrix keeps two tokens apart; an orthogonal one halves their angle.",
        (
            identity(
                "token 1 stays", first * value, first, "It sees itself only.", latex=r"(0, 1) W_V = (0, 1)"
            ),
            identity(
                "token 2 stays",
                (first + second) * value,
                second,
                "It sees both with weight one half; the length of the row is divided out.",
                latex=r"(x_1 + x_2) W_V = x_2",
            ),
            identity(
                "any other token 1",
                sp.Matrix([[p, q]]) * value,
                sp.Matrix([[p, q + 2 * p]]),
                "Its quotient q/p grows by 2: it goes to (0, 1) if p is positive, to (0, -1) if negative.",
                latex=r"(p, q) W_V = (p, q + 2 p)",
            ),
            identity(
                "the length of token 2",
                second.dot(second),
                1,
                "So the division does not move it.",
                latex=r"|x_2| = 1",
            ),
            identity(
                "rank two",
                first.col_join(second).det(),
                HALF,
                "The determinant is not zero.",
                latex=r"\det (x_1; x_2) = \tfrac{1}{2}",
            ),
            identity(
                "a small turn of token 2",
                (tangent * value * tangent.T)[0],
                1 - root,
                "The part along the circle of the image of a tangent vector.",
                latex="\\tau W_V \\tau^\\top = 1 - \\tfrac{\\sqrt{3}}{2}\n\\quad \\text{for} \\quad "
                "\\tau = (\\tfrac{\\sqrt{3}}{2}, -\\tfrac{1}{2})",
            ),
            inequality(
                "dies out",
                1 - root,
                sp.Rational(1, 7),
                "So the equilibrium attracts token 2, not token 1.",
                strict=True,
                latex=r"1 - \tfrac{\sqrt{3}}{2} < \tfrac{1}{7}",
            ),
            identity(
                "orthogonal values",
                sp.Matrix([[1 + sp.cos(2 * phi), sp.sin(2 * phi)]]),
                2 * sp.cos(phi) * sp.Matrix([[sp.cos(phi), sp.sin(phi)]]),
                "The sum of two unit rows bisects their angle, and a rotation keeps angles.",
                latex="(1, 0) + (\\cos 2 \\varphi, \\sin 2 \\varphi)\n"
                "= 2 \\cos \\varphi \\, (\\cos \\varphi, \\sin \\varphi)",
            ),
        ),
        "Example (Rank two) in chapter `layernorm`, after Wu et al. 2024; the numbers are this book's.",
    )


def layer_norm_ranks() -> Derivation:
    """LayerNorm can raise the affine rank, and lower it by two (Proposition (Ranks))."""

    def normed(x: sp.Matrix) -> sp.Matrix:
        centred = x - x * sp.ones(x.cols, x.cols) / x.cols
        rows = [centred.row(i) / sp.sqrt(centred.row(i).dot(centred.row(i)) / x.cols) for i in range(x.rows)]
        return sp.Matrix.vstack(*rows)

    def minor(x: sp.Matrix) -> sp.Matrix:
        return sp.Matrix([x.row(1) - x.row(0), x.row(2) - x.row(0)])[:, [0, 2]]

    line = sp.Matrix([[1, t, 0, 2] for t in (0, 1, 3)])
    ray = sp.Matrix([[1, -1, 0], [2, -2, 0], [2, 0, 1]])
    unit = sp.Matrix([[1, -1, 0]]) * sp.sqrt(sp.Rational(3, 2))
    return Derivation(
        "layer_norm_ranks",
        "LayerNorm can turn a line of tokens into a triangle, and a triangle into one point.",
        (
            identity(
                "three tokens on a line",
                3 * (line.row(1) - line.row(0)),
                line.row(2) - line.row(0),
                "Affine rank 1.",
                assumptions="rows (1, t, 0, 2), t = 0, 1, 3",
                latex=r"3 (x_2 - x_1) = x_3 - x_1",
            ),
            distinct(
                "no longer on a line",
                minor(normed(line)).det(),
                0,
                "Affine rank 2 after LayerNorm.",
                at={},
                latex=r"\det (z_2 - z_1; z_3 - z_1)_{1,3} \neq 0",
            ),
            identity(
                "a triangle",
                minor(ray).det(),
                1,
                "Affine rank 2.",
                assumptions="rows (1, -1, 0), (2, -2, 0), (2, 0, 1)",
                latex=r"\det (x_2 - x_1; x_3 - x_1)_{1,3} = 1",
            ),
            identity(
                "becomes a point",
                normed(ray),
                sp.Matrix.vstack(unit, unit, unit),
                "All three rows are (1, -1, 0) up to a shift and a positive factor.",
                latex=r"z_1 = z_2 = z_3 = \sqrt{\tfrac{3}{2}} \, (1, -1, 0)",
            ),
            identity(
                "matrix rank",
                sp.ones(1, 2) * normed(sp.eye(2)),
                sp.zeros(1, 2),
                "The identity has rank 2, its image rank 1: centring lands in a hyperplane.",
                assumptions="X = I",
                latex=r"z_1 + z_2 = 0",
            ),
        ),
        f"Proposition (Ranks) in chapter `layernorm`; {BOOK}.",
    )


DERIVATIONS = {
    build.__name__: build
    for build in (
        column_division,
        ball_projection,
        circle_pair,
        epsilon_threshold,
        rank_two,
        layer_norm_ranks,
    )
}
