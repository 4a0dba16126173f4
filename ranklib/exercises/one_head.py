"""The exercises of ``one-head``: their checks, and answers that the tests give."""

import math

from ranklib.exercises.answers import UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.theory.diameters import extreme_layer, layer_share
from ranklib.theory.sizes import diameter

FIRST, SECOND = (0.5, 0.3, 0.2), (0.1, 0.5, 0.4)


@exercise(
    right=[((1, 0, 0), (0, 0.5, 0.5)), ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5])],
    wrong=[
        (((0.4, 0, 0), (0, 0.2, 0.2)), "divide"),
        (((0, 0.5, 0.5), (1, 0, 0)), "order"),
        (((0.1, 0.3, 0.2), (0.1, 0.3, 0.2)), "common part itself"),
        (((0.4, -0.2, -0.2), (-0.4, 0.2, 0.2)), "negative"),
        (((0.5, 0.3, 0.2), (0.1, 0.5, 0.4)), "given"),
        (((1, 0, 0), (0, 0, 1)), "proportion"),
        (((0.5, 0, 0), (0, 0, 0.5)), "sum"),
    ],
    malformed=((1, 0), (0, 1)),
)
def common_part(answer):
    first, second = (_three(row) for row in pair_of(answer, "of two lists of three numbers"))
    common = [min(p, q) for p, q in zip(FIRST, SECOND)]
    left = [[p - c for p, c in zip(row, common)] for row in (FIRST, SECOND)]
    whole = [[v / sum(row) for v in row] for row in left]
    if _same(first, whole[0]) and _same(second, whole[1]):
        return None
    if _same(first, whole[1]) and _same(second, whole[0]):
        return "these are the two lists in the other order: p first."
    if _same(first, left[0]) and _same(second, left[1]):
        return "these weigh 0.4 each: divide by that, so that they are probabilities."
    if _same(first, common) and _same(second, common):
        return "this is the common part itself: what is left of p and of q without it?"
    if min(*first, *second) < 0:
        return "a recipe has no negative weight: subtract the smaller of both weights, not the other recipe."
    if _same(first, FIRST) and _same(second, SECOND):
        return "these are p and q as given: first take out the smaller of both weights at each token."
    if close(sum(first), 1) and close(sum(second), 1):
        return "both are probabilities, but not in the proportion of what is left."
    return "each of the two must have the sum 1."


def _three(row):
    if not isinstance(row, tuple | list) or len(row) != 3:
        raise Form("two lists of three numbers")
    return [number(value) for value in row]


def _same(row, truth):
    return all(math.isclose(a, b, rel_tol=2e-3, abs_tol=1e-3) for a, b in zip(row, truth))


@exercise(
    right=[2 * math.sqrt(math.log(3)), 2.096, 2.1],
    wrong=[
        (math.sqrt(math.log(3)), "half-gap"),
        (math.log(3), "u ="),
        (4 * math.log(3), "root"),
        (math.sqrt(3.2), "cube"),
        (math.inf, "above 1"),
        (0.4, ""),
    ],
    malformed="x",
)
def edge(answer):
    u, d = math.atanh(4 / 5), number(answer)
    if math.isclose(d, 2 * math.sqrt(u), rel_tol=3e-3):
        return None
    if close(d, math.sqrt(u)):
        return "this is the half-gap of the pair; the diameter is twice that."
    if close(d, u):
        return "this is u = omega d²/4: solve it for d."
    if close(d, 4 * u):
        return "this is d²: take the root."
    if close(d, 1 / math.sqrt(5 / 16)):
        return "this is where the cube c d³ is below d: safe, but the tangent itself promises more."
    if math.isinf(d):
        return "the values have a norm above 1, so the factor is above 1 for a large d."
    return UNKNOWN


def _cases(answer, truth):
    return all(close(call(answer, k, n), truth(k, n)) for k, n in ((1, 2), (3, 7), (8, 16), (1, 16)))


@exercise(
    right=[lambda k, n: 4 * k * (n - k) / n**2, lambda k, n: 1 - (2 * k / n - 1) ** 2],
    wrong=[
        (lambda k, n: n, "number of tokens"),
        (lambda k, n: k * (n - k) / n**2, "four"),
        (lambda k, n: 2 * k * (n - k) / n**2, "half of it"),
        (lambda k, n: 1.0, "equal groups"),
        (lambda k, n: k / n, "both groups"),
        (lambda k, n: 4 * k * (n - k) / n, "n"),
        (lambda k, n: k + n, ""),
    ],
    malformed=3,
)
def groups(answer):
    def truth(k, n):
        return 4 * k * (n - k) / n**2

    slips = (
        (truth, None),
        (lambda k, n: truth(k, n) / 4, "a factor of four is missing: the two scores of a row differ by 2a²."),
        (lambda k, n: truth(k, n) / 2, "half of it: the half-gap is a half of what two averages differ."),
        (lambda k, n: 1.0, "this is right for equal groups only; what if one token stands against fifteen?"),
        (lambda k, n: k / n, "this is the weight of one group; both groups count, and exchange."),
        (lambda k, n: truth(k, n) * n, "n too often: weights are shares of n, and there are two of them."),
        (lambda k, n: n, "the number of tokens does not count: eight and eight behave like one and one."),
    )
    for slip, said in slips:
        if _cases(answer, slip):
            return said
    return UNKNOWN


@exercise(
    right=[0.983, 0.9828],
    wrong=[
        (1, "unequal"),
        (0.96, "small"),
        (0.762, "bound"),
        (1.497, "divide"),
        (0.748, "half-gap"),
        (0.7485, "half-gap"),
        (0.95, "three tokens"),
        (0.3, ""),
    ],
    malformed="all",
)
def unbiased(answer):
    share = number(answer)

    def left(tokens):
        """What is left of the bound without the bias, the bound as a share, and the new diameter."""
        layer, x = extreme_layer(tokens, 1.0, 1.0, 2.0)
        plain = SelfAttention(w_q=layer.w_q, w_k=layer.w_k, w_v=layer.w_v, w_o=layer.w_o)
        bound, new = layer_share(layer, diameter(x)).item(), diameter(plain(x)).item()
        return new / (2 * bound), bound, new

    (truth, bound, new), (three, _, _) = left(5), left(3)
    said = (
        (truth, None),
        (1, "without the bias the groups are unequal at the midpoint, and something is lost."),
        (0.96, "this is 4k(n-k)/n², the share for a small half-gap; here a = 1."),
        (bound, "this is the bound itself, as a share of the diameter; what part of it is left?"),
        (new, "this is the new diameter: divide it by the bound."),
        (new / 2, "this is the new half-gap: divide the new diameter by the bound."),
        (three, "this is for three tokens; the exercise has five."),
    )
    for value, words in said:
        if close(share, value):
            return words
    return UNKNOWN


@exercise(
    right=[10, 10.0],
    wrong=[
        (9, "one too few"),
        (9.096, "whole"),
        (21855, "triples"),
        (15, "square"),
        (11, "one too many"),
        (8, ""),
    ],
    malformed="ten",
)
def decimals(answer):
    layers = number(answer)
    start = -math.log10(0.9)
    needed = math.log(1000 / start, 3)
    if layers == math.ceil(needed):
        return None
    if close(layers, needed):
        return "right, but the answer is a whole number of layers."
    if math.isclose(layers, 1000 / start, rel_tol=1e-3):
        return "this counts as if each layer added the same number of decimals; their number triples."
    if layers == math.ceil(math.log(1000 / start, 2)):
        return "this doubles the exponent, as if a layer squared; it cubes."
    if layers == math.ceil(needed) - 1:
        return "one too few: rounded down, or a natural logarithm of 0.9 against a decimal one of the goal."
    if layers == math.ceil(needed) + 1:
        return "one too many: 3^L counts from L = 0."
    return UNKNOWN


@exercise(
    right=[(700, 0.099), (1e6, 0.05), (6.2, 0.999)],
    wrong=[
        ((500, 0.1), "half-gap"),
        ((10, 2), "below 1"),
        ((-700, 0.099), "positive"),
        ((0.099, 700), "order"),
        ((1.522, 0.1), "falls"),
        ((math.inf, 0.1), "finite"),
    ],
    malformed=700,
)
def grow(answer):
    omega, d = (number(value) for value in pair_of(answer, "(omega, d)"))
    if not (0 < omega < math.inf and 0 < d < math.inf):
        return "both must be positive and finite: omega is a size, d a distance."
    if omega < 1 and d > 1:
        return "these look like d and omega: the order is (omega, d)."
    if d >= 1:
        return "the diameter must be below 1: that is the point."
    if 1.1 * math.tanh(omega * d**2 / 4) > 1:
        return None
    if 1.1 * math.tanh(omega * d**2) > 1:
        return "this pair falls: u is a quarter of omega d², as if d were the half-gap it was taken without."
    return "this pair falls: 1.1 times the hyperbolic tangent of omega d²/4 must exceed 1."
