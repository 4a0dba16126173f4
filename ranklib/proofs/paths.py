"""Derivations: the sum over paths, its bias row, the lengths of paths and their spectrum.

Sizes are small and distinct, entries are symbols; the sentence of each step says why any size works.
"""

from itertools import product

import sympy as sp

from .engine.matrices import real_matrix, softmax_rows, stochastic_matrix
from .engine.steps import Derivation, distinct, identity, inequality

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)


def path_two_layers() -> Derivation:
    """Two layers of two heads: four paths, nine with skip (Theorem (Path decomposition))."""
    n, d, heads = 2, 2, (1, 2)
    x = real_matrix("x", n, d)
    p = {(l, h): stochastic_matrix(f"p{l}{h}", n) for l in (1, 2) for h in heads}
    w = {(l, h): real_matrix(f"w{l}{h}", d, d) for l in (1, 2) for h in heads}
    p |= {(l, 0): sp.eye(n) for l in (1, 2)}
    w |= {(l, 0): sp.eye(d) for l in (1, 2)}

    def layer(l: int, y: sp.Matrix, choices: tuple[int, ...]) -> sp.Matrix:
        return sum((p[l, h] * y * w[l, h] for h in choices), sp.zeros(n, d))

    def paths(choices: tuple[int, ...]) -> sp.Matrix:
        terms = (p[2, g] * p[1, h] * x * w[1, h] * w[2, g] for h, g in product(choices, repeat=2))
        return sum(terms, sp.zeros(n, d))

    ones = {symbol: 1 for m in [x, *p.values(), *w.values()] for symbol in m.free_symbols}
    point = ones | {p[1, 1][0, 0]: 0, p[1, 1][1, 0]: 0, p[2, 1][0, 0]: 0, x[0, 0]: 2}
    gap = HALF * (1 + sp.tanh(sp.Rational(1, 4)))
    lengths = [(h > 0) + (g > 0) for h, g in product(range(3), repeat=2)]
    return Derivation(
        "path_two_layers",
        "Multiplying out the layers as brackets gives one term for every choice of a head in every layer.",
        (
            identity(
                "two layers are four paths",
                layer(2, layer(1, x, heads), heads),
                paths(heads),
                "A layer is a sum over its heads, and multiplying from either side distributes over sums.",
                latex="\\sum_g P^2_g \\bigl(\\textstyle\\sum_h P^1_h X W^1_h\\bigr) W^2_g\n"
                "= \\sum_{g, h} (P^2_g P^1_h) X (W^1_h W^2_g)",
            ),
            distinct(
                "the last attention matrix stands leftmost",
                p[2, 1] * p[1, 1] * x,
                p[1, 1] * p[2, 1] * x,
                "Attention matrices collect on the left, weights on the right, in opposite orders.",
                at=point,
                latex=r"P^2_g P^1_h X \neq P^1_h P^2_g X",
            ),
            identity(
                "the rows of a path matrix sum to one",
                p[2, 1] * p[1, 2] * sp.ones(n, 1),
                sp.ones(n, 1),
                "Apply the right factor to the ones, then the left one.",
                latex=r"P^2_g P^1_h \mathbf{1} = \mathbf{1}",
            ),
            identity(
                "with skip: nine paths",
                layer(2, layer(1, x, (0, 1, 2)), (0, 1, 2)),
                paths((0, 1, 2)),
                "The skip is one more head, whose attention matrix and weights are identities.",
                latex="X^2 = \\sum_{g, h = 0}^2 (P^2_g P^1_h) X (W^1_h W^2_g),\nP_0 = I, \\quad W_0 = I",
            ),
            identity(
                "their lengths",
                sp.Matrix([lengths.count(k) for k in range(3)]),
                sp.Matrix([1, 4, 4]),
                "The length counts the layers whose skip is not taken.",
                latex=r"1 + 4 + 4 = (1 + 2)^2 = 9",
            ),
            distinct(
                "paths are not independent",
                sp.tanh(gap**2),
                sp.tanh((gap - HALF) ** 2),
                "Cutting the skip of layer 1 changes the attention of layer 2, which sees the whole input.",
                at={},
                assumptions="pair 1/2, -1/2; w = v = 1",
                latex="\\tanh a_1^2 \\neq \\tanh (a_1 - \\tfrac{1}{2})^2,\n"
                "a_1 = \\tfrac{1}{2} (1 + \\tanh \\tfrac{1}{4})",
            ),
        ),
        f"Theorem (Path decomposition) in chapter `path-decomposition`; {PAPER}, Theorem 2.1.",
    )


def path_induction() -> Derivation:
    """A layer on a sum over paths, and the bias row (Theorem (Path decomposition) and Proposition (Bias row))."""
    n, d = 2, 3
    x, one = real_matrix("x", n, 1), sp.ones(n, 1)
    p, q = ([stochastic_matrix(f"{name}{h}", n) for h in (1, 2)] for name in "pq")
    w, v = [real_matrix(f"w{h}", d, d) for h in (1, 2)], [real_matrix(f"v{h}", 1, d) for h in (1, 2)]
    b, c = [real_matrix(f"b{l}", d, 1) for l in (1, 2, 3)], real_matrix("c", d, 1)
    first, second = (sp.symbols(f"{name}1:4", nonnegative=True) for name in "pq")
    sofar = q[0] * x * v[0] + q[1] * x * v[1]
    longer = [p[h] * q[a] * x * v[a] * w[h] for h, a in product((0, 1), repeat=2)]
    row = one * c.T
    return Derivation(
        "path_induction",
        "A layer applied to a sum over paths is a sum over paths that are one step longer, and its biases "
        "stay one and the same row for every token.",
        (
            identity(
                "paths grow by one step",
                p[0] * sofar * w[0] + p[1] * sofar * w[1],
                sum(longer, sp.zeros(n, d)),
                "Distribute, then read the brackets the other way.",
                latex="\\sum_h P_h \\bigl(\\textstyle\\sum_a Q_a X V_a\\bigr) W_h\n"
                "= \\sum_{h, a} (P_h Q_a) X (V_a W_h)",
            ),
            identity(
                "the new rows sum to one",
                p[0] * q[0] * one,
                one,
                "A product of row-stochastic matrices is row-stochastic.",
                latex=r"P_h Q_a \mathbf{1} = P_h \mathbf{1} = \mathbf{1}",
            ),
            inequality(
                "the new entries are not negative",
                0,
                sum(a * e for a, e in zip(first, second, strict=True)),
                "Sums of products of weights.",
                latex=r"0 \le \sum_l (P_h)_{il} (Q_a)_{lj}",
                assumptions="weights non-negative",
            ),
            identity(
                "a constant row passes through a head",
                p[0] * row * w[0],
                one * (w[0].T * c).T,
                "Averaging equal rows changes nothing, so only the weights act.",
                latex=r"P_h \mathbf{1} c^\top W_h = \mathbf{1} (W_h^\top c)^\top",
            ),
            identity(
                "the bias recursion",
                p[0] * row * w[0] + p[1] * row * w[1] + one * b[0].T,
                one * ((w[0] + w[1]).T * c + b[0]).T,
                "The heads' weights add up, and the layer's own bias joins.",
                latex="c_l = W_l^\\top c_{l-1} + b_l,\nW_l = \\textstyle\\sum_h W^l_h",
            ),
            identity(
                "three layers",
                w[1].T * (w[0].T * b[0] + b[1]) + b[2],
                w[1].T * w[0].T * b[0] + w[1].T * b[1] + b[2],
                "A bias passes through all later layers; no attention matrix is left in it.",
                latex="c_3 = W_3^\\top W_2^\\top b_1\n\\quad + W_3^\\top b_2 + b_3",
            ),
            identity(
                "with skip",
                row + p[0] * row * w[0] + one * b[0].T,
                one * ((sp.eye(d) + w[0]).T * c + b[0]).T,
                "The skip adds the identity to the summed weights.",
                latex=r"c_l = (I + W_l)^\top c_{l-1} + b_l",
            ),
        ),
        "Theorem (Path decomposition) and Proposition (Bias row) in chapter `path-decomposition`; "
        f"{PAPER}, Theorem 2.1, with the biases written out.",
    )


def path_lengths() -> Derivation:
    """Path lengths are binomial, so most paths are long (Proposition (Lengths))."""
    depth = 4
    h, t = sp.Symbol("H", positive=True), sp.Symbol("t", nonnegative=True)
    k, j = sp.symbols("k j", positive=True)
    s = h / (1 + h)
    counts = [sp.binomial(depth, i) * h**i for i in range(depth + 1)]
    shares = [count / (1 + h) ** depth for count in counts]
    draws = [sp.binomial(depth, i) * s**i * (1 - s) ** (depth - i) for i in range(depth + 1)]
    mean = depth * s
    short = sum(sp.binomial(12, i) * sp.Integer(12) ** i for i in range(7))
    return Derivation(
        "path_lengths",
        "With a skip at every layer, the length of a path drawn at random is binomial with chance H/(H+1).",
        (
            identity(
                "Pascal's rule",
                1 / k + 1 / (j + 1),
                (k + j + 1) / (k * (j + 1)),
                "A layer keeps a path or lengthens it. Both sides times L!/((k-1)! j!), with L = k + j.",
                assumptions="k, j positive, L = k + j",
                latex=r"\binom{L}{k} + \binom{L}{k-1} = \binom{L+1}{k}",
            ),
            identity(
                "the number of paths",
                sum(counts),
                (1 + h) ** depth,
                "Every layer offers its H heads or the skip.",
                assumptions="four layers",
                latex=r"\sum_k \binom{L}{k} H^k = (1 + H)^L",
            ),
            identity(
                "shares are binomial",
                sp.Matrix(shares),
                sp.Matrix(draws),
                "Of the layers' H + 1 choices, H count towards the length.",
                assumptions="four layers",
                latex="\\binom{L}{k} \\frac{H^k}{(1 + H)^L} = \\binom{L}{k} s^k (1 - s)^{L - k},\n"
                "s = \\frac{H}{H + 1}",
            ),
            identity(
                "the mean length",
                sum(i * share for i, share in enumerate(shares)),
                mean,
                "The mean of a binomial.",
                assumptions="four layers",
                latex=r"\sum_k k \cdot \mathrm{share}_k = \frac{L H}{H + 1}",
            ),
            identity(
                "the variance",
                sum((i - mean) ** 2 * share for i, share in enumerate(shares)),
                mean / (1 + h),
                "The variance of a binomial.",
                assumptions="four layers",
                latex="\\sum_k (k - \\mathrm{mean})^2 \\, \\mathrm{share}_k\n= \\frac{L H}{(H + 1)^2}",
            ),
            inequality(
                "never below half the depth",
                HALF,
                (1 + t) / (2 + t),
                "With at least one head, the skip is at most every second choice.",
                assumptions="H = 1 + t, t non-negative",
                latex=r"\frac{1}{2} \le \frac{H}{H + 1}",
            ),
            inequality(
                "more heads, longer paths",
                (1 + t) / (2 + t),
                (1 + t + k) / (2 + t + k),
                "The share of the skip falls.",
                strict=True,
                assumptions="k more heads",
                latex=r"\frac{H}{H + 1} < \frac{H + k}{H + k + 1}",
            ),
            identity(
                "twelve layers of twelve heads",
                sp.Integer(13) ** 12,
                sp.Integer(23298085122481),
                "About 23 trillion paths.",
                latex=r"13^{12} = 23\,298\,085\,122\,481",
            ),
            identity(
                "lengths 11 and 12 are equally common",
                sp.binomial(12, 11) * sp.Integer(12) ** 11,
                sp.Integer(12) ** 12,
                "Each has a share of 0.383; the mean is 144/13.",
                latex=r"\binom{12}{11} 12^{11} = 12^{12}",
            ),
            inequality(
                "short paths are rare",
                10**5 * short,
                14 * sp.Integer(13) ** 12,
                "Paths of at most half the length: fewer than 14 in 100 000.",
                strict=True,
                latex=r"\sum_{k \le 6} \binom{12}{k} 12^k < \frac{14}{10^5} \, 13^{12}",
            ),
        ),
        f"Proposition (Lengths) in chapter `path-decomposition`; the counts are in {PAPER}, section 3.",
    )


def length_generating() -> Derivation:
    """Sums of outputs by length are coefficients of a product (Theorem (Length spectrum))."""
    z, heads = sp.Symbol("z", real=True), sp.Symbol("H", positive=True)
    t = sp.symbols("t1:4", real=True)
    whole = sp.prod([1 + factor * z for factor in t])
    sums = [sp.S.One, sum(t), t[0] * t[1] + t[0] * t[2] + t[1] * t[2], t[0] * t[1] * t[2]]
    sweep = sp.Matrix([1, 0, 0, 0])
    for factor in t:
        sweep = (sp.eye(4) + factor * sp.Matrix(4, 4, lambda i, j: int(i == j + 1))) * sweep
    x0, x1, w = real_matrix("s", 3, 2), real_matrix("r", 3, 2), real_matrix("w", 2, 2)
    p = stochastic_matrix("p", 3)
    root = (-1 + sp.sqrt(3) * sp.I) / 2
    c = sp.symbols("c0:3", real=True)
    passes = [sum(c[k] * root ** (j * k) for k in range(3)) for j in range(3)]
    inverse = [sum(root ** (-j * k % 3) * passes[j] for j in range(3)) / 3 for k in range(3)]
    first = sp.tanh(sp.Rational(1, 4))
    after = HALF * (1 + first) * (1 + sp.tanh((HALF * (1 + first)) ** 2))
    cancel = softmax_rows(x0 * x0.T) * x0
    return Derivation(
        "length_generating",
        "Weigh each layer's heads by z: the coefficient of z^k is the sum of all paths of length k.",
        (
            identity(
                "three layers",
                whole,
                sum(term * z**k for k, term in enumerate(sums)),
                "Each bracket gives 1, the skip, or t z, the heads.",
                latex="\\prod_{l=1}^3 (1 + t_l z) = 1 + (t_1 + t_2 + t_3) z\n"
                "\\quad + (t_1 t_2 + t_1 t_3 + t_2 t_3) z^2\n\\quad + t_1 t_2 t_3 z^3",
            ),
            identity(
                "one sweep finds all of them",
                sweep,
                sp.Matrix(sums),
                "A layer sends each sum to itself, by the skip, and to the next length, by the heads.",
                latex=r"S_k \mapsto S_k + t_l S_{k-1}",
            ),
            identity(
                "the same with matrices",
                x0 + z * x1 + z * p * (x0 + z * x1) * w,
                x0 + z * (x1 + p * x0 * w) + z**2 * p * x1 * w,
                "The heads' map is linear once the attention matrices are held fixed.",
                latex="S_k \\mapsto S_k + T(S_{k-1}),\nT(Y) = \\textstyle\\sum_h P_h Y W_h",
            ),
            identity(
                "at z = 1 it is the network",
                whole.subs(z, 1),
                sum(sums),
                "All lengths together give the output.",
                latex=r"\prod_l (1 + t_l) = \sum_k S_k",
            ),
            identity(
                "at z = 0 it is the skip",
                whole.subs(z, 0),
                sums[0],
                "Only the path of length 0 is left.",
                latex=r"\prod_l (1 + t_l \cdot 0) = S_0 = 1",
            ),
            identity(
                "counting is a special case",
                sp.Derivative(4 * sp.log(1 + heads * z), z).doit().subs(z, 1),
                4 * heads / (1 + heads),
                "With every t equal to H the logarithmic derivative is the mean.",
                assumptions="four layers",
                latex=r"\frac{d}{dz} \log (1 + H z)^L \Big|_{z=1} = \frac{L H}{H + 1}",
            ),
            identity(
                "three passes recover three sums",
                sp.Matrix(inverse),
                sp.Matrix(c),
                "An inverse discrete Fourier transform, with the attention matrices held fixed.",
                latex="S_k = \\tfrac{1}{3} \\sum_{j=0}^2 \\omega^{-jk} S(\\omega^j),\n"
                "\\omega = e^{2 \\pi i / 3}",
            ),
            inequality(
                "the two-layer example, from below",
                sp.Rational(8521, 10000),
                after,
                "Skip and one head, w = v = 1, half-gap 1/2: the sums .5, .307 and .0452.",
                strict=True,
                latex="0.8521 < a_2 = a_1 (1 + \\tanh a_1^2),\n"
                "a_1 = \\tfrac{1}{2} (1 + \\tanh \\tfrac{1}{4})",
            ),
            inequality(
                "and from above",
                after,
                sp.Rational(8523, 10000),
                "Together about 0.8522.",
                strict=True,
                latex="a_1 (1 + \\tanh a_1^2) < 0.8523",
            ),
            identity(
                "a sum can vanish though no path does",
                cancel * w - cancel * w,
                sp.zeros(3, 2),
                "Two heads with equal scores and opposite values.",
                latex=r"P X W + P X (-W) = 0",
            ),
        ),
        "Theorem (Length spectrum) in chapter `path-decomposition`.",
    )


DERIVATIONS = {
    build.__name__: build for build in (path_two_layers, path_induction, path_lengths, length_generating)
}
