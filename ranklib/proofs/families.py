"""Tokens that break the printed bound: a clean family, 6,001 tokens, and oscillation 7.6."""

import sympy as sp

from .engine import (
    ColNorm,
    Composite,
    Derivation,
    Softmax,
    by_intervals,
    definition,
    identity,
    inequality,
    matrices,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
Q = sp.Rational


def clean_family() -> Derivation:
    """A family of 3m + 1 tokens beats the bound."""
    m, s = sp.Symbol("m", positive=True), matrices("S", 2, 3)
    t, z = sp.symbols("t z", nonnegative=True)
    c, x = sp.symbols("c x", real=True)
    r, x0 = matrices("R", 7, 3), sp.Symbol("x_0", real=True)
    least = Q(13851, 10000)
    alpha, beta = Q(9, 10), Q(9, 100)
    columns = 2 * m * abs(alpha - x0) + m * abs(beta - x0)
    printed = 16 * sp.log(90 * m + 1) ** 2

    def centre(name: str, rows: sp.Expr, why: str, value: sp.Expr, form: sp.Expr | None = None):
        return inequality(name, least * m, columns * rows, why, given={x0: value}, form=form)

    return Derivation(
        "clean_family",
        "One default token, m movers with private features and 2m stayers: the output's residual grows like "
        "the root of m, the printed bound like log m.",
        (
            identity(
                "the input",
                Composite(r),
                1,
                "Rows and columns hold at most a single 1: a default token, here two movers, four stayers.",
                given={r: sp.eye(3).col_join(sp.zeros(4, 3))},
            ),
            identity(
                "a stayer and a mover",
                Softmax(s),
                sp.Matrix([[Q(9, 10), Q(1, 20), Q(1, 20)], [Q(9, 100), Q(181, 200), Q(1, 200)]]),
                "Base weights 9m : 1, and the mover's own one times 90m + 1, here for m = 2: the default feature "
                "gets 0.9 and 0.09, and own minus other is 0.9.",
                given={s: sp.Matrix([[sp.log(18), 0, 0], [sp.log(18), sp.log(181), 0]])},
            ),
            inequality(
                "any centre of a private feature",
                abs(c),
                abs(c - x) + abs(x),
                "The own entry and another are 0.9 apart: the movers' rows hold 0.9 on average besides the "
                "default feature.",
            ),
            centre("centres below 0.09", Q(9, 10) + t, "On the default feature alone.", beta - t),
            centre("centres above 0.9", Q(81, 100) + t + Q(9, 10), "Equality at 0.9.", alpha + t),
            centre(
                "centres in between",
                alpha - Q(81, 100) / (1 + z) - beta + Q(9, 10),
                "The difference is y (0.9 - y) m with y = 0.9 - x_0, at most 0.81.",
                alpha - Q(81, 100) / (1 + z),
                m * Q(81, 100) / (1 + z) * (9 + 90 * z) / (100 * (1 + z)),
            ),
            by_intervals("2000 movers", printed, least * m, "With 6001 tokens.", given={m: 2000}),
            by_intervals("the first m", printed, least * m, "With 4909 tokens.", given={m: 1636}),
            by_intervals("one less is not enough", least * m, printed, "For this bound.", given={m: 1635}),
        ),
        f"Theorem (Clean family), against the one-layer bound of {PAPER}.",
        {},
        __name__,
    )


def pocket_example() -> Derivation:
    """6001 tokens in fractions."""
    w0, m, h, boost = sp.symbols("w_0 m h g", positive=True)
    a, b, e = sp.symbols("alpha beta delta", positive=True)
    t, z = sp.symbols("t z", nonnegative=True)
    numbers = {w0: 12000, m: 2000, h: 4000, boost: 126000}
    alpha, beta, delta = Q(12000, 14000), Q(12000, 139999), Q(125999, 139999)
    values = {a: alpha, b: beta, e: delta}
    gap = alpha - beta
    x0 = sp.Symbol("x_0", real=True)
    columns = h * abs(a - x0) + m * abs(b - x0)
    total = w0 + m - 1 + boost
    at_stayers = 2000 * gap * (gap + delta)
    y = gap / (1 + z)

    def centre(name: str, value: sp.Expr, difference: sp.Expr, why: str):
        lower = {**numbers, **values, x0: value}
        return inequality(
            name, m * (a - b) * (a - b + e), columns * (abs(b - x0) + e), why, given=lower, form=difference
        )

    return Derivation(
        "pocket_example",
        "With weights 12000 : 1, 2000 movers and e^L = 126000 the printed bound is violated in four lines.",
        (
            definition("stayers", a, w0 / (w0 + m), "Default weight 12000, movers 2000 together: 6/7."),
            definition("movers", b, w0 / total, "Their own weight is multiplied by 126000."),
            definition("own minus other", e, (boost - 1) / total, "On the private features, about .899999."),
            centre(
                "centres towards the movers",
                alpha - y,
                2000 * y * (delta - gap + delta * z) / (1 + z),
                "The difference is 2000 y (delta - y), and y is at most alpha - beta, below delta.",
            ),
            centre(
                "beyond the movers",
                beta - t,
                (4000 * (gap + t) + 2000 * t) * (delta + t) - at_stayers,
                "Both factors grow, and delta is above alpha - beta.",
            ),
            centre(
                "beyond the stayers",
                alpha + t,
                (4000 * t + 2000 * (gap + t)) * (gap + t + delta) - at_stayers,
                "Both factors grow.",
            ),
            by_intervals(
                "the printed bound is smaller",
                (4 * sp.log(boost)) ** 2,
                m * (a - b) * (a - b + e),
                "The roots are 46.976 and 50.78; strictly, so tiny positive weights of the stayers change nothing.",
                given={**numbers, **values},
            ),
        ),
        f"Example (6001 tokens), against the one-layer bound of {PAPER}.",
        {},
        __name__,
    )


def special_query() -> Derivation:
    """An oscillation of 7.6 is not small enough, nor is Lambda = 7.57."""
    lam, x, m, q, s = sp.symbols("L x m q s", positive=True)
    w = matrices("W", 4, 4)
    scores = sp.diag(0, lam, lam, lam)
    mu, z = 1 - q - s, 1 + s * x
    taken = s * (1 - s) * x / z
    one = {q: Q(494, 1000), s: Q(126, 10000)}
    two = {q: Q(503, 1000), s: Q(9, 1000)}
    square = 2 * taken * (q * mu * x + q * s * x / z)
    total = q * sp.exp(-lam) + s * sp.exp(lam) + mu
    left = q - q * sp.exp(-lam) / total
    both = 2 * (s * sp.exp(lam) / total - s) * (q * mu * (sp.exp(lam) - 1) + left)
    growth = {x: sp.exp(lam) - 1}

    def refutes(name: str, value: sp.Expr, start: sp.Rational, why: str, given: dict):
        over = {lam: (start, 40)}
        return by_intervals(name, 16 * lam**2, value, why, over=over, given=given)

    return Derivation(
        "special_query",
        "With many stayers and movers and one special query, oscillation 7.6 already breaks constant 4.",
        (
            identity(
                "the scores",
                ColNorm(w),
                lam,
                "Default, special query, and two of the m movers; R has rows e_k or 0, so Lambda is at most L.",
                given={w: scores},
            ),
            identity(
                "the special row",
                s * (1 + x) / (1 + s * x) - s,
                taken,
                "With x = e^L - 1: what it gains for itself; it takes as much from all others.",
            ),
            identity(
                "its part of the default column",
                q - q / (1 + s * x),
                q * s * x / z,
                "All others are divided by the same number.",
            ),
            identity(
                "many movers",
                sp.Limit(m * (q - q / (1 + mu * x / m)), m, sp.oo),
                q * mu * x,
                "A mover has the share mu/m; together they take this from the default column.",
            ),
            refutes(
                "from oscillation 7.6 on, up to 40",
                square,
                Q(76, 10),
                "Columns times rows in the limit, with 0.494 on the default and 0.0126 on the special token.",
                {**growth, **one},
            ),
            by_intervals(
                "7.59 is not enough",
                square,
                16 * lam**2,
                "For these shares; the root is 7.5982.",
                given={**growth, **one, lam: Q(759, 100)},
            ),
            refutes(
                "from Lambda = 7.57 on, up to 40",
                both,
                Q(757, 100),
                "The special query also scores -L on the default; 0.503 and 0.009.",
                two,
            ),
            by_intervals(
                "7.56 is not enough",
                both,
                16 * lam**2,
                "For these shares; the root is 7.568.",
                given={**two, lam: Q(756, 100)},
            ),
        ),
        "Theorem (Oscillation 7.6).",
        {},
        __name__,
    )


DERIVATIONS = (clean_family, pocket_example, special_query)
