"""Derivations: examples against two printed steps, and against a constant below 1/sqrt(2).

Tokens are few and explicit, their sizes are symbols; the sentence of each step says what it shows.
"""

import sympy as sp

from .engine.matrices import composite, max_col_sum, softmax_rows
from .engine.steps import Derivation, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def printed_steps() -> Derivation:
    """Two printed steps and the examples against them (What the printed proof misses)."""
    eps, m = sp.symbols("epsilon m", positive=True)
    r, p = sp.Matrix([1, -1]), sp.ones(1, 2) / 2
    e = r * r.T / 2
    osc = sp.Matrix([e[i, :][0] - e[i, :][1] for i in range(2)]).applyfunc(abs)
    slack = 1 + 2 * osc[0]

    def row_ranges(x: sp.Matrix) -> sp.Expr:
        return sum(sp.Max(*x.row(i)) - sp.Min(*x.row(i)) for i in range(x.rows))

    return Derivation(
        "printed_steps",
        "An entrywise inequality of matrices may not be multiplied by a signed matrix, and ranges of rows "
        "do not add up to twice a column norm.",
        (
            identity(
                "two opposite tokens",
                softmax_rows(e) * r,
                sp.tanh(HALF) * r,
                "Scores one half and minus one half.",
                assumptions="R = (1, -1), E = R R^T / 2",
                latex=r"P R = \tanh \tfrac{1}{2} \, (1, -1)^\top",
            ),
            identity(
                "their ranges",
                osc,
                sp.ones(2, 1),
                "Both rows of E have range 1.",
                latex=r"D_{11} = D_{22} = 1",
            ),
            identity(
                "the printed upper bound",
                slack * (p * r)[0],
                0,
                "The weighted average of R is zero.",
                latex=r"\mathbf{1} p^\top R + 2 D \mathbf{1} p^\top R = 0",
            ),
            inequality(
                "is violated",
                slack * (p * r)[0],
                (softmax_rows(e) * r)[0],
                "The entry is 0.462: the sign of R matters.",
                strict=True,
                latex=r"0 < \tanh \tfrac{1}{2}",
            ),
            inequality(
                "with absolute values it holds",
                (softmax_rows(e) * r)[0],
                (slack * p * r.applyfunc(abs))[0],
                "Bound the difference by the weighted average of |R|.",
                strict=True,
                latex=r"|P R - \mathbf{1} p^\top R| < 2 D \mathbf{1} p^\top |R|",
            ),
            identity(
                "three tokens",
                sp.eye(3) * (eps * sp.eye(3)) * sp.eye(3).T,
                eps * sp.eye(3),
                "Private features: each token scores itself only.",
                assumptions="R = I",
                latex=r"E = R (\epsilon I) R^\top = \epsilon I",
            ),
            identity(
                "the norm of E",
                max_col_sum(eps * sp.eye(3)),
                eps,
                "One entry in each column.",
                latex=r"\|E\|_1 = \epsilon",
            ),
            identity(
                "the sum of the ranges",
                row_ranges(eps * sp.eye(3)),
                3 * eps,
                "Every row has range epsilon.",
                latex=r"\sum_i \mathrm{osc}(E_i) = 3 \epsilon",
            ),
            inequality(
                "is larger than twice the norm",
                2 * eps,
                3 * eps,
                "So the printed step fails.",
                strict=True,
                assumptions="epsilon positive",
            ),
            identity(
                "two tokens do not show it",
                row_ranges(eps * sp.eye(2)),
                2 * max_col_sum(eps * sp.eye(2)),
                "There it is an equality.",
                latex=r"\sum_i \mathrm{osc}(E_i) = 2 \epsilon = 2 \|E\|_1",
            ),
            inequality(
                "many tokens",
                2 * eps,
                (2 + m) * eps,
                "The factor grows like the number of tokens.",
                strict=True,
                assumptions="n = 2 + m tokens",
                latex=r"2 \epsilon < n \epsilon",
            ),
        ),
        f"What the printed proof misses in chapter `one-head`; the steps are in the appendix of {PAPER}.",
    )


def sharp_constant() -> Derivation:
    """No constant below one over the root of 2 (Proposition (Sharp constant))."""
    w, t, y = sp.symbols("w t y", positive=True)
    (z, u), (x, c) = sp.symbols("z u", nonnegative=True), sp.symbols("x c", real=True)
    r = sp.Matrix([[1, 0], [0, 1], [0, 0], [0, 0]])
    w_qk = sp.Matrix([[w, -w], [0, 0]])
    p, row = sp.ones(1, 2) / 2, sp.Matrix([[w, -w]])
    change = sp.Matrix([t / 2, 0, 0, 0]) * sp.Matrix([[1, -1]])
    small, near = 1 / (2 + y), 1 / (1 + y)
    return Derivation(
        "sharp_constant",
        "Four tokens with two features: the output over Lambda rho tends to one over the root of 2.",
        (
            identity(
                "the matrix E",
                r * w_qk * r.T,
                sp.diag(row, sp.zeros(3, 2)),
                "Only the first row moves.",
                latex="R = (e_1, e_2, 0, 0)^\\top, \\quad W_{QK} = w (e_1 e_1^\\top - e_1 e_2^\\top):\n"
                "\\quad E_{11} = w, \\quad E_{12} = -w",
            ),
            identity(
                "the input",
                sp.Matrix([composite(r), max_col_sum(w_qk)]),
                sp.Matrix([1, w]),
                "So Lambda is w, if the residual at zero is the least one.",
                latex=r"\rho = 1, \quad \|W_{QK}\|_1 = w",
            ),
            inequality(
                "which it is: columns",
                1,
                abs(1 - x) + abs(x),
                "The range of a column is 1.",
                latex=r"f \ge |1 - x| + |x| \ge 1",
            ),
            inequality(
                "and rows",
                2,
                (abs(1 - x) + abs(c)) + (abs(x) + abs(1 - c)),
                "The first two rows are 2 apart, so one of them is at least 1 from any centre (x, c).",
                latex=r"2 g \ge \|R_1 - R_2\|_1 = 2",
            ),
            identity(
                "weights of the first token",
                softmax_rows(row) - p,
                sp.tanh(w) * sp.Matrix([[1, -1]]) / 2,
                "Base weights one half each on two tokens: scores w and -w differ by 2w.",
                latex=r"P_1 - p = \tfrac{1}{2} \tanh w \, (1, -1, 0, 0)",
            ),
            identity(
                "the output",
                sp.Matrix([t / 2, 0, 0, 0]) * sp.Matrix([[1, -1, 0, 0]]) * r,
                change,
                "One row, up to a constant one.",
                assumptions="t = tanh w",
                latex=r"(P - \mathbf{1} p^\top) R = e_1 \tfrac{t}{2} (1, -1)",
            ),
            identity(
                "centres on the line",
                abs(1 - near) + 3 * abs(near),
                1 + 2 * near,
                "By symmetry a best centre is alpha times the odd row; f = (t/2)(1 + 2 alpha).",
                assumptions="alpha = 1/(1 + y)",
                latex=r"|1 - \alpha| + 3 |\alpha| = 1 + 2 \alpha",
            ),
            inequality(
                "in the first half",
                1,
                (1 + 2 * small) * (1 - small),
                "The difference is alpha (1 - 2 alpha).",
                form=small * y / (2 + y),
                assumptions="alpha = 1/(2 + y), below 1/2",
                latex=r"1 \le (1 + 2 \alpha)(1 - \alpha)",
            ),
            inequality(
                "and in the second",
                1,
                (1 + 2 * (HALF + z)) * (HALF + z),
                "Both factors grow.",
                assumptions="alpha = 1/2 + z",
                latex=r"1 \le (1 + 2 \alpha) \alpha",
            ),
            identity(
                "the residual of the output",
                composite(change),
                t / sp.sqrt(2),
                "Attained at the centre zero: f is t/2, g is t.",
                latex=r"\sqrt{\tfrac{t}{2} \cdot t} = \frac{\tanh w}{\sqrt{2}}",
            ),
            identity(
                "the limit",
                sp.Limit(sp.tanh(w) / (sp.sqrt(2) * w), w, 0),
                1 / sp.sqrt(2),
                "So no constant below 0.7071 will do.",
                latex=r"\lim_{w \to 0} \frac{\tanh w}{\sqrt{2} \, w} = \frac{1}{\sqrt{2}}",
            ),
            inequality(
                "never above it here", sp.tanh(u), u, "With u = w.", grows_in=u, assumptions="u non-negative"
            ),
        ),
        "Proposition (Sharp constant) in chapter `one-head`.",
    )


DERIVATIONS = {build.__name__: build for build in (printed_steps, sharp_constant)}
