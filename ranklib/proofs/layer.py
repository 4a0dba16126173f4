"""The layer: its biases, the composite that is no norm, two tokens, rank, and the certificate."""

import sympy as sp

from .engine import (
    ONE,
    ColNorm,
    Composite,
    Derivation,
    Det,
    Largest,
    Least,
    RowNorm,
    Softmax,
    by_intervals,
    by_lemma,
    d,
    i,
    identity,
    inequality,
    k,
    l,
    matrices,
    n,
    sequences,
    stochastic,
)

PAPER = "Dong, Cordonnier and Loukas 2021"


def layer_bias() -> Derivation:
    """Value biases and output bias of a layer add one constant row."""
    d_v, d_out = sp.symbols("d_v d_out", positive=True, integer=True)
    x, (p1, p2) = matrices("X", n, d), matrices("P_1 P_2", n, n)
    (v1, v2), (o1, o2) = matrices("W_{V1} W_{V2}", d, d_v), matrices("W_{O1} W_{O2}", d_v, d_out)
    (b1, b2), b = matrices("b_{V1} b_{V2}", d_v, 1), matrices("b_O", d_out, 1)
    a1, a2 = matrices("A_1 A_2", n, d_v)
    heads = (p1 * x * v1 + ONE * b1.T) * o1, (p2 * x * v2 + ONE * b2.T) * o2
    return Derivation(
        "layer_bias",
        "All biases of an attention layer together add one and the same row to every token.",
        (
            identity("averaging keeps a constant row", p1 * ONE, ONE, "The weights of a token sum to one."),
            identity(
                "the value bias passes through",
                p1 * (x * v1 + ONE * b1.T),
                p1 * x * v1 + ONE * b1.T,
                "The bias is the same row for every token, and the average of equal rows is that row.",
            ),
            identity(
                "joining heads is adding them",
                sp.BlockMatrix([[a1, a2]]) * sp.BlockMatrix([[o1], [o2]]),
                a1 * o1 + a2 * o2,
                "A row of blocks times a column of blocks is the sum of the products.",
            ),
            identity(
                "one head",
                heads[0],
                p1 * x * v1 * o1 + ONE * (o1.T * b1).T,
                "Multiply out; a constant row times a matrix is a constant row.",
            ),
            identity(
                "the layer",
                heads[0] + heads[1] + ONE * b.T,
                p1 * x * v1 * o1 + p2 * x * v2 * o2 + ONE * (b + o1.T * b1 + o2.T * b2).T,
                "Add the heads and the output bias: constant rows add to a constant row.",
            ),
        ),
        f"Proposition (Biases); formula of {PAPER}, section 2, with its value biases put back.",
        {n: 3, d: 2, d_v: 2, d_out: 3, p1: stochastic("p", 3), p2: stochastic("q", 3)},
        __name__,
    )


def composite_triangle() -> Derivation:
    """The composite violates the triangle inequality."""
    a, b = sp.Matrix([[1, 1]]), sp.Matrix([[1, 0]])
    pair = sp.Matrix([1, -1])
    square, row = sp.Matrix([[1, 0], [1, 0]]), sp.Matrix([[1, 1], [0, 0]])

    def larger(name: str, x: sp.Matrix, y: sp.Matrix, why: str):
        return by_intervals(name, Composite(x) + Composite(y), Composite(x + y), why)

    return Derivation(
        "composite_triangle",
        "The composite of a sum can exceed the sum of the composites: it is not a norm.",
        (
            larger("two rows", a, b, "The values are the roots of 2, 1 and 6: square 2.41 and 2.45."),
            larger(
                "two pairs of tokens",
                pair * a,
                pair * b,
                "Tokens plus and minus the same rows; zero is their midpoint and so their best centre.",
            ),
            larger("a column and a row", square, row, "They meet in one corner: 9 is more than 8."),
        ),
        f"Proposition (Composite); that it is not a norm is stated in {PAPER}.",
        {},
        __name__,
    )


def two_tokens_midpoint() -> Derivation:
    """For two tokens the midpoint is a best centre in any dimension."""
    a, z = sequences("a z")
    u, v, b, y = sp.symbols("u v b y", real=True)
    pair = sp.Matrix([[u, v], [-u, -v]])
    both = abs(a[k] - z[k]) + abs(a[k] + z[k])
    return Derivation(
        "two_tokens_midpoint",
        "For two tokens the midpoint makes both norms least at once, in any dimension.",
        (
            inequality(
                "one column",
                2 * abs(b),
                abs(b - y) + abs(b + y),
                "Triangle inequality: the two tokens are 2|b| apart, wherever the centre is.",
            ),
            inequality(
                "the column norm",
                2 * Largest(abs(a[k]), (k, 1, d)),
                Largest(both, (k, 1, d)),
                "Tokens m + a and m - a, centre m + z: the right side is f there.",
            ),
            inequality(
                "a maximum is at least the average",
                (u + v) / 2,
                sp.Max(u, v),
                "The difference is half the distance of the two numbers.",
                form=abs(u - v) / 2,
            ),
            inequality(
                "the row norm",
                sp.Sum(abs(a[k]), (k, 1, d)),
                sp.Sum(both, (k, 1, d)) / 2,
                "Add the columns: the average of the two row sums is at least the sum of |a|.",
            ),
            identity(
                "the midpoint attains the column bound",
                ColNorm(pair),
                2 * sp.Max(abs(u), abs(v)),
                "At z = 0 both tokens are a away.",
            ),
            identity("and the row bound", RowNorm(pair), abs(u) + abs(v), "Both rows have the same sizes."),
        ),
        "Proposition (Two tokens).",
        {d: 2},
        __name__,
    )


def rank_lifted_pair() -> Derivation:
    """The rank stays 2 at every layer while the gap vanishes."""
    a, b = sp.symbols("a b", positive=True)
    x, s = matrices("X S", 2, 2)
    given = {x: sp.Matrix([[1, a], [1, -a]]), s: a**2 * sp.Matrix([[1, -1], [-1, 1]])}
    new = a * sp.tanh(a**2)
    return Derivation(
        "rank_lifted_pair",
        "A pair of opposite tokens has rank 1 without being equal; lifted by a common coordinate, it keeps "
        "rank 2 at every layer, although the tokens merge.",
        (
            identity(
                "opposite tokens have rank one",
                Det(sp.Matrix([[a, b], [-a, -b]])),
                0,
                "One row is minus the other, yet the rows differ.",
            ),
            identity("the lifted pair has rank two", Det(x), -2 * a, "The common coordinate 1 makes it so."),
            identity(
                "its singular values",
                x.T * x,
                sp.diag(2, 2 * a**2),
                "Their squares are on the diagonal: the singular values are sqrt(2) and sqrt(2) a.",
            ),
            identity(
                "one attention layer",
                Softmax(s) * x,
                sp.Matrix([[1, new], [1, -new]]),
                "Scores from the second coordinate alone; the first is averaged with itself.",
            ),
            inequality(
                "the gap never vanishes", 0, new, "So the rank is 2 again, at every depth.", strict=True
            ),
            inequality(
                "but it shrinks at least like a cube",
                sp.tanh(b),
                b,
                "With b = a^2 the new gap is at most a^3.",
                grows_in=b,
            ),
        ),
        "Proposition (Rank of a pair).",
        given,
        __name__,
    )


def certificate() -> Derivation:
    """A sum of weighted medians bounds both norms at every centre."""
    x, z = matrices("X", n, d), matrices("z", d, 1)
    y = sequences("y")
    w, u, v, c = sequences("w u v c", nonnegative=True)
    f, s, t = sp.symbols("f s t", nonnegative=True)
    centre, column = sp.Symbol("x", real=True), abs(x[i - 1, k - 1] - x[l - 1, k - 1])
    rows = (i, 1, n)
    both = sp.Sum(u[k], (k, 1, d)) * ColNorm(x - ONE * z.T) + sp.Sum(v[i], rows) * RowNorm(x - ONE * z.T)
    return Derivation(
        "certificate",
        "Any weights u on features and v on tokens give a line below all pairs (f, g), whatever the centre.",
        (
            inequality(
                "weights times a maximum",
                sp.Sum(u[k] * c[k], (k, 1, d)),
                f * sp.Sum(u[k], (k, 1, d)),
                "A column sum is at most f, so a weighted sum is at most (sum u) f; rows alike.",
                given={c: (f - s, f - t)},
            ),
            by_lemma(
                "a weighted median is least",
                Least(sp.Sum(w[i] * abs(y[i] - y[l]), rows), (l, 1, n)),
                sp.Sum(w[i] * abs(y[i] - centre), rows),
                "So the least value over the n entries is the least over all centres.",
                lemma="a convex piecewise linear function is least at a kink",
            ),
            by_lemma(
                "the certificate",
                sp.Sum(Least(sp.Sum((u[k] + v[i]) * column, rows), (l, 1, n)), (k, 1, d)),
                both,
                "Add the columns and use the first step for f and for g.",
                lemma="weak duality of linear programmes",
                given={n: 3},
            ),
        ),
        "Lemma (Certificate).",
        {n: 3, d: 2},
        __name__,
    )


DERIVATIONS = (layer_bias, composite_triangle, two_tokens_midpoint, rank_lifted_pair, certificate)
