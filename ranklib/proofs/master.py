"""The secant slope kappa, and the lemma on columns and rows of (P - 1 p') R."""

import sympy as sp

from .engine import (
    ONE,
    ColNorm,
    Derivation,
    Kappa,
    RowNorm,
    Rows,
    Softmax,
    Vartheta,
    by_search,
    definition,
    i,
    identity,
    inequality,
    j,
    matrices,
    n,
    sequences,
)


def kappa() -> Derivation:
    """The function (e^t - 1)/t: its growth, and kappa times vartheta."""
    t, s, big_d = sp.symbols("t s D", positive=True)
    u = sp.Symbol("u", nonnegative=True)
    return Derivation(
        "kappa",
        "The secant slope of the exponential grows, and its product with vartheta is a square.",
        (
            definition("the secant slope", Kappa(t), (sp.exp(t) - 1) / t, "The chord from 0 to t."),
            identity(
                "an average",
                sp.Integral(sp.exp(t * s), (s, 0, 1)),
                Kappa(t),
                "The average of the exponentials between 0 and t.",
            ),
            identity("at zero", sp.Limit(Kappa(t), t, 0), 1, "The slope of the exponential there."),
            identity(
                "its slope",
                t**2 * sp.Derivative(Kappa(t), t),
                t * sp.exp(t) - sp.exp(t) + 1,
                "Quotient rule.",
            ),
            inequality(
                "it increases at least at rate one half of itself",
                u * (sp.exp(u) - 1) / 2,
                u * sp.exp(u) - sp.exp(u) + 1,
                "Twice differentiated, the difference is not negative; the left side is t^2 kappa / 2.",
                grows_in=u,
            ),
            inequality(
                "negative arguments",
                1 - sp.exp(-u),
                u,
                "There the slope is at most 1, so |e^t - 1| is at most kappa(mu) |t| for |t| up to mu.",
                grows_in=u,
            ),
            definition("and vartheta", Vartheta(big_d), sp.tanh(big_d / 4) / (big_d / 4), "What TV loses."),
            identity(
                "kappa times vartheta",
                Kappa(big_d) * Vartheta(big_d),
                Kappa(big_d / 2) ** 2,
                "With s = e^(D/2): the tangent is (s - 1)/(s + 1), and s^2 - 1 holds both factors.",
            ),
            inequality("vartheta is at most 1", sp.tanh(u), u, "With u = D/4.", grows_in=u),
        ),
        "Lemma (Master).",
        {},
        __name__,
    )


def master_lemma() -> Derivation:
    """Columns and rows of (P - 1 p^T) R, whatever E is."""
    e, r = matrices("E", n, n), matrices("R", 3, 2)
    shift = matrices("s", n, 1)
    y = sequences("y")
    dev, c = sequences("d c", nonnegative=True)
    size = sp.IndexedBase("E", nonnegative=True)
    g, h, top, u, v = sp.symbols("g h c u v", nonnegative=True)
    low, x1, x2 = sp.symbols("l x y", real=True)
    a, b = sp.symbols("a b", positive=True)
    change = matrices("c", 3, 1)
    weight, two, spread = matrices("q", 2, 1), matrices("E", 2, 2), matrices("R", 2, 1)
    tilted = sp.Matrix([[0, sp.log(b)], [0, sp.log(b)]])
    base = sp.Matrix([1, b]) / (1 + b)
    moved = ColNorm((Softmax(two + tilted) - sp.OneMatrix(2, 1) * weight.T) * spread)
    scores = sp.Matrix(2, 2, lambda row, column: sp.Symbol(f"E_{row + 1}{column + 1}", real=True))
    mu = sp.Max(*map(abs, scores))
    osc = sp.Max(*(abs(scores[row, 0] - scores[row, 1]) for row in range(2)))
    box = {symbol: (-0.1, 0.1) for symbol in scores} | {b: (0.5, 2)}
    return Derivation(
        "master_lemma",
        "The residual after averaging is the size of E times the range of R, up to a factor that tends to "
        "one half; its rows move by the total variation.",
        (
            identity(
                "shift a row of E",
                Softmax(e - shift * ONE.T),
                Softmax(e),
                "Softmax does not see it.",
                given={n: 3},
            ),
            inequality(
                "no entry grows",
                abs(x1 - low),
                abs(x1),
                "Shift by the number l of the row's range that is closest to 0; here all are positive.",
                given={x1: a + u, low: a},
            ),
            inequality(
                "triangle inequality",
                abs(sp.Sum(y[j], (j, 1, n))),
                sp.Sum(abs(y[j]), (j, 1, n)),
                "In the key identity, with each exponential bounded by kappa(mu) |E|.",
                given={n: 3},
            ),
            identity(
                "sum over rows",
                sp.Sum(sp.Sum(dev[j] * size[i, j], (j, 1, 3)), (i, 1, 2)),
                sp.Sum(dev[j] * sp.Sum(size[i, j], (i, 1, 2)), (j, 1, 3)),
                "Change the order of summation: columns of E appear, with the mean deviations d_j.",
            ),
            inequality(
                "the largest column",
                sp.Sum(dev[j] * c[j], (j, 1, 2)),
                top * sp.Sum(dev[j], (j, 1, 2)),
                "Each column sum is at most the norm. Mean deviation gives kappa/2, total variation tanh(D/4).",
                given={c: (top - u, top - v)},
            ),
            identity(
                "a row of the residual",
                change.T * r,
                g * (Rows(r, 1) - Rows(r, 2)) + h * (Rows(r, 1) - Rows(r, 3)),
                "What some tokens gain, others lose: a sum of differences of rows.",
                given={change: sp.Matrix([g + h, -g, -h])},
            ),
            inequality(
                "rows move by the total variation",
                g * c[1] + h * c[2],
                (g + h) * top,
                "Each difference is at most the largest distance of two rows, and g + h is the moved share.",
                given={c: (top - u, top - v)},
            ),
            inequality("the range of a column", x1 - x2, abs(x1) + abs(x2), "At most its absolute sum."),
            inequality(
                "the distance of two rows",
                RowNorm(Rows(r, 1) - Rows(r, 2)),
                RowNorm(Rows(r, 1)) + RowNorm(Rows(r, 2)),
                "Through zero: at most twice the largest row sum.",
            ),
            by_search(
                "two tokens",
                moved,
                (Kappa(mu) / 2 + sp.tanh(osc / 4)) * ColNorm(two),
                "The column bound, with weights 1 : b and a range of R of one.",
                box=box,
                where=mu > sp.Rational(1, 1000),
                given={weight: base, spread: sp.Matrix([1, 0])},
            ),
        ),
        "Lemma (Master).",
        {},
        __name__,
    )


DERIVATIONS = (kappa, master_lemma)
