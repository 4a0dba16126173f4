"""The sum over paths, and the bias row."""

from itertools import product

import sympy as sp

from .engine import (
    ONE,
    Derivation,
    Softmax,
    d,
    distinct,
    identity,
    inequality,
    l,
    matrices,
    n,
    sequences,
    stochastic,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def path_two_layers() -> Derivation:
    """Two layers of two heads: four paths, nine with skip."""
    x = matrices("X", n, d)
    first, second = matrices("P_1 P_2", n, n), matrices("Q_1 Q_2", n, n)
    v, w = matrices("V_1 V_2", d, d), matrices("W_1 W_2", d, d)
    given = {n: 2, d: 2}
    given |= {p: stochastic(name, 2) for p, name in zip((*first, *second), ("p", "q", "r", "s"))}
    inner = sum((p * x * a for p, a in zip(first[1:], v[1:])), first[0] * x * v[0])
    outer = second[0] * inner * w[0] + second[1] * inner * w[1]
    paths = [second[g] * first[h] * x * v[h] * w[g] for g, h in product((0, 1), repeat=2)]
    skipped = x + inner
    with_skip = skipped + second[0] * skipped * w[0] + second[1] * skipped * w[1]
    short = [q * x * b for q, b in zip(second, w)]
    gap = HALF * (1 + sp.tanh(sp.Rational(1, 4)))
    point = {
        sp.Symbol(f"{name}_{a}1", real=True): value
        for name, values in (("p", (1, 0)), ("r", (0, 1)))
        for a, value in zip((1, 2), values)
    }
    point |= {sp.Symbol(f"X_{a}{b}", real=True): a for a in (1, 2) for b in (1, 2)}
    point[sp.Symbol("p_21", real=True)] = 1
    return Derivation(
        "path_two_layers",
        "Multiplying out the layers as brackets gives one term for every choice of a head in every layer.",
        (
            identity(
                "two layers are four paths",
                outer,
                paths[0] + paths[1] + paths[2] + paths[3],
                "A layer is a sum over its heads, and multiplying from either side distributes over sums.",
            ),
            distinct(
                "the last attention matrix stands leftmost",
                second[0] * first[0] * x,
                first[0] * second[0] * x,
                "Attention matrices collect on the left, weights on the right, in opposite orders.",
                at=point,
            ),
            identity(
                "the rows of a path matrix sum to one",
                second[0] * first[1] * ONE,
                ONE,
                "Apply the right factor to the ones, then the left one.",
            ),
            identity(
                "with skip: nine paths",
                with_skip,
                x + inner + short[0] + short[1] + paths[0] + paths[1] + paths[2] + paths[3],
                "The skip is one more head; lengths 0, 1 and 2 occur once, four and four times.",
            ),
            distinct(
                "paths are not independent",
                sp.tanh(gap**2),
                sp.tanh((gap - HALF) ** 2),
                "The pair 1/2, -1/2 with w = v = 1: cutting the skip of layer 1 changes the attention of "
                "layer 2, which sees the whole input.",
                at={},
            ),
        ),
        f"Theorem (Path decomposition); {PAPER}, Theorem 2.1.",
        given,
        __name__,
    )


def path_induction() -> Derivation:
    """A layer on a sum over paths, and the bias row."""
    x, c = matrices("X", n, 1), matrices("c", d, 1)
    p, q = matrices("P_1 P_2", n, n), matrices("Q_1 Q_2", n, n)
    w, v, b = matrices("W_1 W_2", d, d), matrices("V_1 V_2", 1, d), matrices("b_1 b_2 b_3", d, 1)
    r, s = sequences("p q", nonnegative=True)
    sofar = q[0] * x * v[0] + q[1] * x * v[1]
    longer = [p[h] * q[a] * x * v[a] * w[h] for h, a in product((0, 1), repeat=2)]
    row = ONE * c.T
    names = zip((*p, *q), ("p", "q", "r", "s"))
    return Derivation(
        "path_induction",
        "A layer applied to a sum over paths is a sum over paths that are one step longer, and its biases "
        "stay one and the same row for every token.",
        (
            identity(
                "paths grow by one step",
                p[0] * sofar * w[0] + p[1] * sofar * w[1],
                longer[0] + longer[1] + longer[2] + longer[3],
                "Distribute, then read the brackets the other way.",
            ),
            identity(
                "the new rows sum to one",
                p[0] * q[0] * ONE,
                ONE,
                "A product of row-stochastic matrices is row-stochastic.",
            ),
            inequality(
                "the new entries are not negative",
                0,
                sp.Sum(r[l] * s[l], (l, 1, n)),
                "Sums of products of weights.",
            ),
            identity(
                "the bias recursion",
                p[0] * row * w[0] + p[1] * row * w[1] + ONE * b[0].T,
                ONE * ((w[0] + w[1]).T * c + b[0]).T,
                "Averaging equal rows changes nothing; the heads' weights add up, and the layer's own bias joins.",
            ),
            identity(
                "three layers",
                w[1].T * (w[0].T * b[0] + b[1]) + b[2],
                w[1].T * w[0].T * b[0] + w[1].T * b[1] + b[2],
                "A bias passes through all later layers; no attention matrix is left in it.",
            ),
            identity(
                "with skip",
                row + p[0] * row * w[0] + ONE * b[0].T,
                ONE * ((sp.Identity(d) + w[0]).T * c + b[0]).T,
                "The skip adds the identity to the summed weights.",
            ),
        ),
        "Theorem (Path decomposition) and Proposition (Bias row); "
        f"{PAPER}, Theorem 2.1, with the biases written out.",
        {n: 2, d: 3} | {letter: stochastic(name, 2) for letter, name in names},
        __name__,
    )


def one_path() -> Derivation:
    """What one path, and all paths of one length, make of the diameter."""
    a, w, z = sp.symbols("a w z", positive=True)
    p, q, y = sp.symbols("p q y", real=True)
    first = sp.symbols("s_1 t_1", nonnegative=True)
    second = sp.symbols("s_2 t_2", nonnegative=True)
    x, tokens = matrices("X", 2, 1), matrices("Y", 2, 1)
    recipes = matrices("P", 2, 2)
    brackets = (1 + sum(first) * z) * (1 + sum(second) * z)
    once, twice = sum((*first, *second)), sum(u * v for u, v in product(first, second))
    gap = sp.Matrix([[1, -1]])
    return Derivation(
        "one_path",
        "Every head of a path multiplies the diameter by its share; brackets add up all paths of one length.",
        (
            identity(
                "two recipes of two tokens",
                gap * recipes * tokens,
                (p - q) * gap * tokens,
                "What two averages differ by is what the recipes differ by, p - q, times the difference of the tokens.",
                given={recipes: sp.Matrix([[p, 1 - p], [q, 1 - q]]), tokens: sp.Matrix([y, sp.Symbol("x")])},
            ),
            identity(
                "the pair attains the share",
                Softmax(w * x * x.T) * x,
                sp.tanh(w * (2 * a) ** 2 / 4) * x,
                "A pair of diameter 2a: the share of the theorem, exactly, and the next head gives its own.",
                given={x: sp.Matrix([a, -a])},
            ),
            identity(
                "brackets add up the paths",
                brackets,
                1 + once * z + twice * z**2,
                "Two layers of two heads with the shares s and t: 1, 4 and 4 paths. The product of sums is the sum "
                "of products.",
            ),
        ),
        "Corollary (One path).",
        {},
        __name__,
    )


DERIVATIONS = (path_two_layers, path_induction, one_path)
