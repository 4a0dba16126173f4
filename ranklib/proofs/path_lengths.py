"""How long paths are, and the sums of outputs by length."""

import sympy as sp

from .engine import (
    Derivation,
    by_intervals,
    distinct,
    identity,
    inequality,
    j,
    k,
    l,
    matrices,
    n,
    sequences,
    stochastic,
)

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)
L = sp.Symbol("L", positive=True, integer=True)
LENGTHS = (k, 0, L)


def path_lengths() -> Derivation:
    """Path lengths are binomial, so most paths are long."""
    h, t = sp.Symbol("H", positive=True), sp.Symbol("t", nonnegative=True)
    a, b, extra = sp.symbols("a b k", positive=True)
    s, many = h / (1 + h), sp.Symbol("H", positive=True)
    count = sp.binomial(L, k) * h**k
    return Derivation(
        "path_lengths",
        "With a skip at every layer, the length of a path drawn at random is binomial with chance H/(H+1).",
        (
            identity(
                "Pascal's rule",
                1 / a + 1 / (b + 1),
                (a + b + 1) / (a * (b + 1)),
                "Times L!/((a - 1)! b!) with L = a + b: a layer keeps a path or lengthens it.",
            ),
            identity(
                "the number of paths",
                sp.Sum(count, LENGTHS),
                (1 + h) ** L,
                "Every layer offers its H heads or the skip.",
            ),
            identity(
                "the mean length",
                sp.Sum(k * count, LENGTHS) / (1 + h) ** L,
                L * s,
                "The mean of a binomial.",
            ),
            identity(
                "the variance",
                sp.Sum((k - L * s) ** 2 * count, LENGTHS) / (1 + h) ** L,
                L * s / (1 + h),
                "The variance of a binomial.",
            ),
            inequality(
                "never below half the depth",
                HALF,
                s,
                "With at least one head, the skip is at most every second choice.",
                given={h: 1 + t},
            ),
            inequality(
                "more heads, longer paths",
                s,
                (h + extra) / (h + extra + 1),
                "The share of the skip falls with k more heads.",
                strict=True,
            ),
            identity(
                "twelve layers of twelve heads",
                sp.Sum(count, LENGTHS),
                sp.Integer(23298085122481),
                "About 23 trillion paths.",
                given={L: 12, many: 12},
            ),
            inequality(
                "short paths are rare",
                10**5 * sp.Sum(count, (k, 0, 6)),
                14 * (1 + h) ** L,
                "Paths of at most half the length: fewer than 14 in 100 000.",
                strict=True,
                given={L: 12, many: 12},
            ),
        ),
        f"Proposition (Lengths); the counts are in {PAPER}, section 3.",
        {L: 4},
        __name__,
    )


def length_generating() -> Derivation:
    """Sums of outputs by length are coefficients of a product."""
    z, heads = sp.Symbol("z", real=True), sp.Symbol("H", positive=True)
    t = sp.symbols("t1:4", real=True)
    whole = sp.prod([1 + factor * z for factor in t])
    sums = [sp.S.One, sum(t), t[0] * t[1] + t[0] * t[2] + t[1] * t[2], t[0] * t[1] * t[2]]
    s, r, w, p = matrices("S", n, 2), matrices("R", n, 2), matrices("W", 2, 2), matrices("P", n, n)
    c = sequences("c")
    omega = sp.Symbol("omega")
    root = (-1 + sp.sqrt(3) * sp.I) / 2
    half_gap = sp.Symbol("a", positive=True)
    after = half_gap * (1 + sp.tanh(half_gap**2))
    first = {half_gap: HALF * (1 + sp.tanh(sp.Rational(1, 4)))}
    value = sp.Sum(c[l] * omega ** (j * l), (l, 1, 3))
    return Derivation(
        "length_generating",
        "Weigh each layer's heads by z: the coefficient of z^k is the sum of all paths of length k.",
        (
            identity(
                "three layers",
                whole,
                sum(term * z**power for power, term in enumerate(sums)),
                "Each bracket gives 1, the skip, or t z, the heads.",
            ),
            identity(
                "the same with matrices",
                s + z * r + z * p * (s + z * r) * w,
                s + z * (r + p * s * w) + z**2 * p * r * w,
                "The heads' map is linear once the attention matrices are held fixed.",
            ),
            identity(
                "counting is a special case",
                sp.Subs(sp.Derivative(L * sp.log(1 + heads * z), z), z, 1),
                L * heads / (1 + heads),
                "With every t equal to H the logarithmic derivative is the mean length.",
            ),
            identity(
                "three passes recover three sums",
                sp.Sum(omega ** (2 * j * k) * value, (j, 1, 3)) / 3,
                c[k],
                "An inverse discrete Fourier transform, with omega a third root of one.",
                given={omega: root, k: 2},
            ),
            by_intervals(
                "the two-layer example, from below",
                sp.Rational(8521, 10000),
                after,
                "Skip and one head, w = v = 1, half-gap 1/2 at first: the sums are .5, .307 and .0452.",
                given=first,
            ),
            by_intervals(
                "and from above", after, sp.Rational(8523, 10000), "Together about .8522.", given=first
            ),
            distinct(
                "two heads can cancel, though no path vanishes",
                p * s * w,
                sp.ZeroMatrix(n, 2),
                "With values W and -W and equal scores the sum is zero, and this is one of its two paths.",
                at={
                    sp.Symbol(f"{name}_{a}{b}", real=True): 1
                    for name in ("S", "W")
                    for a in (1, 2, 3)
                    for b in (1, 2)
                }
                | {sp.Symbol(f"p_{a}{b}", real=True): sp.Rational(1, 3) for a in (1, 2, 3) for b in (1, 2)},
            ),
        ),
        "Theorem (Length spectrum).",
        {n: 3, p: stochastic("p", 3)},
        __name__,
    )


DERIVATIONS = (path_lengths, length_generating)
