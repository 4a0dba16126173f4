"""How fast attention with a mask forgets: contraction, the wait, and collapse from everywhere."""

import sympy as sp

from .engine import (
    Derivation,
    Model,
    Rows,
    Scalar,
    Sigma,
    by_intervals,
    distinct,
    identity,
    inequality,
    j,
    matrices,
    n,
    sequences,
    weights,
)

HALF = sp.Rational(1, 2)


def dobrushin_contraction() -> Derivation:
    """Dobrushin's coefficient, and how fast a causal mask forgets."""
    p, q = sp.symbols("p q", real=True)
    a, b = sequences("p q")
    v, w = sequences("v w", positive=True)
    s = sp.Symbol("s", positive=True, integer=True)
    two, x = matrices("P", 2, 2), matrices("X", 2, 1)
    rest, eye = matrices("Q", 2, 2), sp.Identity(2)
    one = sp.Matrix([[1, -1]])
    numbers = {
        a: (*sp.symbols("p_1:3", nonnegative=True), 1 - sum(sp.symbols("p_1:3", nonnegative=True))),
        b: (*sp.symbols("q_1:3", nonnegative=True), 1 - sum(sp.symbols("q_1:3", nonnegative=True))),
        n: 3,
    }
    shared = sp.Sum((a[j] + b[j] - abs(a[j] - b[j])) / 2, (j, 1, n))
    window = {rest: sp.Matrix([[HALF, 0], [HALF, HALF]])}
    return Derivation(
        "dobrushin_contraction",
        "The spread shrinks at least by the largest distance of two rows; for a uniform causal mask k layers "
        "leave at most (n-1)/2^k.",
        (
            identity(
                "two tokens",
                one * two * x,
                (p - q) * one * x,
                "With equality: the coefficient of two rows is |p - q|.",
                given={two: sp.Matrix([[p, 1 - p], [q, 1 - q]])},
            ),
            identity(
                "what two rows share",
                sp.Sum(abs(a[j] - b[j]), (j, 1, n)) / 2,
                1 - shared,
                "The smaller of two numbers is half of their sum minus half of their distance.",
                given=numbers,
            ),
            inequality(
                "a column that all rows have",
                sp.Sum(abs(v[j] - w[j]), (j, 1, n)) / 2,
                sp.Sum(v[j] + w[j], (j, 1, n)) / 2,
                "If every row gives at least e to one token, what is left is 1 - e times two rows of weights, "
                "whose distance is at most 1: the coefficient is at most 1 - e.",
                given={n: 3},
            ),
            identity(
                "a causal average",
                sp.Sum(j - 1, (j, 1, s)) / s,
                (s - 1) / 2,
                "From place i, here s, one goes to any of 1, ..., i: the distance to the first place halves.",
                given={s: 6},
            ),
            identity(
                "one eigenvalue, twice",
                (rest - HALF * eye) * (rest - HALF * eye),
                sp.ZeroMatrix(2, 2),
                "Three tokens that see themselves and one before: the second eigenvalue is one half alone.",
                given=window,
            ),
            distinct(
                "but no multiple of the identity",
                rest,
                HALF * eye,
                "So Q has no basis of eigenvectors: its powers are not those of a number.",
                at={},
                given=window,
            ),
        ),
        "Theorem (From everywhere), the coefficient of a product; Dobrushin 1956.",
        {},
        __name__,
    )


def _window(name: str, size: int, before: int, after: int = 0) -> sp.Matrix:
    """Positive weights of sum 1 on the places from ``before`` earlier to ``after`` later."""
    rows = []
    for r in range(size):
        seen = [
            sp.Symbol(f"{name}_{r + 1}{c + 1}", positive=True) if r - before <= c <= r + after else 0
            for c in range(size)
        ]
        rows.append([entry / sum(seen) for entry in seen])
    return sp.Matrix(rows)


def the_wait() -> Derivation:
    """In a causal window nothing need happen before layer (n - 1)/b."""
    first, second, third, both = (matrices(name, 4, 4) for name in ("F", "G", "H", "P"))
    x = matrices("X", 4, 1)
    given = {x: sp.Matrix([1, 0, 0, 0])}
    given |= {
        p: Model(_window(name, 4, 1), "a causal window of one place, positive weights with sum 1")
        for p, name in ((first, "p"), (second, "q"), (third, "r"))
    }
    given[both] = Model(_window("s", 4, 1, 1), "a window of one to either side, positive weights with sum 1")
    two = second * first
    return Derivation(
        "the_wait",
        "A window of b places reaches back by b a layer: with n = 4 and b = 1, two layers leave the first and "
        "the last row without a common key, and the third one joins them.",
        (
            identity(
                "after two layers rows 1 and 4 share no key",
                Rows(two, 1) * Rows(two, 4).T,
                sp.ZeroMatrix(1, 1),
                "Token 4 is an average of the tokens from n - kb = 2 on, token 1 is itself.",
            ),
            identity(
                "so their distance is one",
                sp.Sum(abs(two[0, j - 1] - two[3, j - 1]), (j, 1, 4)) / 2,
                1,
                "Half the sum of absolute differences: Dobrushin's coefficient of the product is 1.",
            ),
            identity(
                "and a spread may stay whole",
                Rows(two * x, 1) - Rows(two * x, 4),
                sp.ones(1, 1),
                "The tokens (1, 0, 0, 0) still differ by 1.",
            ),
            inequality(
                "at layer (n - 1)/b it ends",
                0,
                Scalar(Rows(third * two * x, 4)),
                "After three layers token 4 has a positive weight on token 1.",
                strict=True,
            ),
            identity(
                "a symmetric window waits half as long",
                Rows(both, 1) * Rows(both, 4).T,
                sp.ZeroMatrix(1, 1),
                "Both rows move towards each other: here for one layer, which is below (n - 1)/(2b).",
            ),
        ),
        "Theorem (From everywhere), the wait before it.",
        given,
        __name__,
    )


def from_everywhere() -> Derivation:
    """With a mask that connects the tokens collapse is at least geometric."""
    eps, big, g, h, u, v, rng = sp.symbols("epsilon E g h u v D", nonnegative=True)
    growth, p, q, s = sequences("g p q s")
    rest = sp.symbols("a b c d", nonnegative=True)
    drops = sp.symbols("t1:4", nonnegative=True)
    w, y = sequences("w v", positive=True)
    w1, w2 = sp.symbols("w_1 w_2", real=True)
    chain = {p: (eps + u, *rest[:2]), q: (eps + v, *rest[2:]), n: 3}
    return Derivation(
        "from_everywhere",
        "With one W_QK in all layers, or D as the largest range over the layers, every allowed weight is at "
        "least epsilon, every r layers give epsilon^r to one token, and the spread falls by 1 - epsilon^r.",
        (
            inequality(
                "a weight is at least epsilon",
                1 / (1 + (n - 1) * big),
                1 / (1 + sp.Sum(growth[j], (j, 1, n - 1))),
                "Divided by the own exponential the others are at most E = e^D.",
                given={growth: (g, h), big: g + h + u, n: 3},
            ),
            inequality(
                "ranges do not grow from layer to layer",
                sp.Sum(w[j] * s[j], (j, 1, n)),
                rng,
                "Later tokens are averages of the first ones, and with the same W_QK a score difference is linear "
                "in each of them: an average of differences that are at most D.",
                given={w: weights("a", 3), s: tuple(rng - drop for drop in drops), n: 3},
            ),
            inequality(
                "a path of two steps",
                eps**2,
                sp.Sum(p[j] * q[j], (j, 1, n)),
                "One allowed step after the other, each of weight epsilon at least; r steps give epsilon^r.",
                given=chain,
            ),
            inequality(
                "what is left",
                sp.Sum(abs(w[j] - y[j]), (j, 1, n)) / 2,
                sp.Sum(w[j] + y[j], (j, 1, n)) / 2,
                "Two rows that both give epsilon^r to one token differ by 1 - epsilon^r times this.",
                given={n: 3},
            ),
            by_intervals(
                "different W_QK need the largest range",
                3 * (1 - Sigma(-w1)) ** 2,
                sp.Rational(3, 2) * Sigma(w2 * sp.Rational(3, 4)),
                "Causal, tokens 1 and -2, w_1 = 0, w_2 = 50: with the D of the first layer, 0, the claim would "
                "be 3/4, but the gap is 3/2 after layer 1 and nearly stays.",
                given={w1: 0, w2: 50},
            ),
        ),
        "Theorem (From everywhere); its form is that of Wu et al. 2024.",
        {},
        __name__,
    )


DERIVATIONS = (dobrushin_contraction, the_wait, from_everywhere)
