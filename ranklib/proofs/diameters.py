"""The diameter theorem: scores of two rows, averages of tokens, its extreme case, depth, and the wait."""

import sympy as sp

from .engine import (
    Derivation,
    Largest,
    Least,
    by_search,
    d,
    identity,
    inequality,
    j,
    k,
    m,
    matrices,
    n,
    sequences,
    weights,
)

HALF = sp.Rational(1, 2)
D_QK = sp.Symbol("d_qk", positive=True, integer=True)


def averages() -> Derivation:
    """Two averages of the same tokens differ by the moved share of a difference of two others."""
    p, q, c, r, s, x = sequences("p q c r s x")
    p_1, p_2, q_1, q_2 = sp.symbols("p_1 p_2 q_1 q_2", nonnegative=True)
    r_1, r_2, s_1, s_2 = sp.symbols("r_1 r_2 s_1 s_2", nonnegative=True)
    sums = {
        p: (p_1, p_2, 1 - p_1 - p_2),
        q: (q_1, q_2, 1 - q_1 - q_2),
        r: (r_1, r_2, 1 - r_1 - r_2),
        s: (s_1, s_2, 1 - s_1 - s_2),
    }
    over = (j, 1, n)
    moved = sp.Sum(abs(p[j] - q[j]), over) / 2
    return Derivation(
        "averages",
        "Averages of the same tokens with two recipes differ by at most the moved share times the diameter.",
        (
            identity(
                "what is common drops",
                sp.Sum(p[j] * x[j], over) - sp.Sum(q[j] * x[j], over),
                sp.Sum((p[j] - c[j]) * x[j], over) - sp.Sum((q[j] - c[j]) * x[j], over),
                "Take out of both recipes what they share.",
            ),
            identity(
                "what is left weighs the moved share",
                sp.Sum(p[j] - (p[j] + q[j] - abs(p[j] - q[j])) / 2, over),
                moved,
                "The smaller of two numbers is half of their sum minus half of their distance; both recipes "
                "have the sum 1. The same holds for q.",
                given=sums,
            ),
            identity(
                "a difference of averages is an average of differences",
                sp.Sum(r[j] * x[j], over) - sp.Sum(s[j] * x[j], over),
                sp.Sum(r[j] * s[m] * (x[j] - x[m]), over, (m, 1, n)),
                "With r and s for what is left, divided by its weight.",
                given=sums,
            ),
            by_search(
                "three tokens on a line",
                abs(sp.Sum((p[j] - q[j]) * x[j], over)),
                moved * (Largest(x[k], (k, 1, n)) - Least(x[k], (k, 1, n))),
                "The bound for any two recipes, by the steps above.",
                given={p: weights("a", 3), q: weights("b", 3)},
            ),
        ),
        "Lemma (Averages).",
        {n: 3},
        __name__,
    )


def diameter_theorem() -> Derivation:
    """The scores of two tokens differ by a product of two differences, biases included."""
    x_i, x_k, x_j, x_m = matrices("x_i x_k x_j x_m", 1, d)
    w_q, w_k = matrices("W_Q W_K", d, D_QK)
    b_q, b_k = matrices("b_Q b_K", 1, D_QK)
    w_qk = w_q * w_k.T

    def score(token, key):
        return (token * w_q + b_q) * (key * w_k + b_k).T

    first, second, b = matrices("y_i y_k b_O", 1, d)
    w, b_v = matrices("W", d, d), matrices("b_V", 1, d)
    u = sp.Symbol("u", nonnegative=True)
    return Derivation(
        "diameter_theorem",
        "Up to a constant of the row, the scores of two tokens differ by a product of two differences; what "
        "tanh makes of it is at most linear.",
        (
            identity(
                "the scores of two tokens",
                score(x_i, x_j) - score(x_k, x_j),
                (x_i - x_k) * w_qk * x_j.T + (x_i - x_k) * w_q * b_k.T,
                "The last term does not depend on the key: a constant of the row, which softmax does not see. "
                "The bias of the queries is gone.",
            ),
            identity(
                "from key to key",
                (score(x_i, x_j) - score(x_k, x_j)) - (score(x_i, x_m) - score(x_k, x_m)),
                (x_i - x_k) * w_qk * (x_j - x_m).T,
                "A product of two differences: divided by the root of d_qk at most omega times the square of "
                "the diameter.",
            ),
            identity(
                "values",
                (first * w + b_v * w + b) - (second * w + b_v * w + b),
                (first - second) * w,
                "Rows of P sum to 1, so the biases of values and outputs are the same for all tokens.",
            ),
            inequality("at most linear", sp.tanh(u), u, "Its derivative is at most 1.", grows_in=u),
        ),
        "Theorem (Diameter).",
        {d: 2, D_QK: 2},
        __name__,
    )


def sharp_diameter() -> Derivation:
    """Two groups of any sizes behave like a pair if a bias of the queries balances them."""
    size, total = sp.symbols("k n", positive=True)
    a, u = sp.symbols("a u", positive=True)
    s = sp.Symbol("s", real=True)
    rest = total - size
    plus, minus = size * sp.exp(s + u), rest * sp.exp(-s - u)
    return Derivation(
        "sharp_diameter",
        "Groups of k and n - k tokens at +a and -a attain the bound, for every n, if a key score balances them.",
        (
            identity(
                "the key score balances the groups",
                (plus / (plus + minus)),
                sp.exp(u) / (sp.exp(u) + sp.exp(-u)),
                "With exp(2s) = (n - k)/k the sizes of the groups cancel.",
                given={s: sp.log(rest / size) / 2},
            ),
            identity(
                "the average of a token at +a",
                (sp.exp(u) * a - sp.exp(-u) * a) / (sp.exp(u) + sp.exp(-u)),
                a * sp.tanh(u),
                "With u = omega a^2 and a = d/2: the theorem, with equality. The token at -a is the mirror image.",
            ),
        ),
        "Proposition (Sharp).",
        {},
        __name__,
    )


def diameter_depth() -> Derivation:
    """A cube a layer, with any constants, and the straight line."""
    c, size, t = sp.symbols("c d t", positive=True)
    depth = sp.Symbol("L", positive=True, integer=True)
    own = sequences("c", positive=True)
    line = sp.log(-sp.log(sp.exp(-t * 3**depth)))
    root = sp.log(sp.sqrt(c) * size)
    earlier = sp.Sum(3 ** (depth - j) * sp.log(own[j]), (j, 1, depth))
    return Derivation(
        "diameter_depth",
        "In the unit 1/sqrt(c) a layer cubes; constants of early layers count most.",
        (
            identity(
                "one layer more",
                sp.log(c) + 3 * (3**depth * root - sp.log(c) / 2),
                3 ** (depth + 1) * root - sp.log(c) / 2,
                "In logarithms: from the bound of d_L to c times its cube.",
            ),
            identity(
                "with a constant for each layer",
                sp.log(own[depth + 1]) + 3 * (earlier + 3**depth * sp.log(size)),
                sp.Sum(3 ** (depth + 1 - j) * sp.log(own[j]), (j, 1, depth + 1))
                + 3 ** (depth + 1) * sp.log(size),
                "The constant of layer l counts to the power 3^(L-l): the first layer most.",
                given={depth: 4},
            ),
            identity(
                "a straight line",
                line,
                sp.log(t) + depth * sp.log(3),
                "With exp(-t) for the root of c times d_0: slope log 3.",
            ),
        ),
        "Corollary (Depth).",
        {},
        __name__,
    )


def certain_collapse() -> Derivation:
    """The factor is below 1, and how little it takes away where the scores are large."""
    u, x, y = sp.Symbol("u", positive=True), sp.Symbol("x", nonnegative=True), sp.Symbol("y", positive=True)
    return Derivation(
        "certain_collapse",
        "With values of total norm 1 the diameters fall, and from a large u they wait at least about "
        "e^(2u)/(8u) layers.",
        (
            inequality(
                "the factor is below one",
                sp.tanh(u),
                1,
                "So a limit of the diameters can only be 0.",
                strict=True,
            ),
            identity(
                "what a layer takes away",
                u - u * sp.tanh(u) ** 2,
                u / sp.cosh(u) ** 2,
                "The extreme case takes u to u tanh(u)^2.",
            ),
            inequality(
                "it takes little",
                1 / sp.cosh(x) ** 2,
                4 * sp.exp(-2 * x),
                "The exponential of 2x is at most four times the square of cosh.",
                form=4 * sp.exp(-2 * x) * (1 - (1 + sp.exp(-2 * x)) ** -2),
            ),
            identity(
                "so many layers",
                sp.Integral(sp.exp(2 * x) / (4 * u), (x, y, u)),
                (sp.exp(2 * u) - sp.exp(2 * y)) / (8 * u),
                "While u falls to y, each layer covers at most 4u exp(-2x) at x; add up 1 over it.",
            ),
        ),
        "Corollary (Certain collapse).",
        {},
        __name__,
    )


DERIVATIONS = (averages, diameter_theorem, sharp_diameter, diameter_depth, certain_collapse)
