"""The exercises of ``many-heads``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, close, exercise, number, pair_of
from ranklib.model.attention import SelfAttention


@exercise(
    right=[0.375, 6 / 16],
    wrong=[
        (0.5, "odd"),
        (0.0625, "one order"),
        (0.125, "all four"),
        (0.875, "two also"),
        (0.625, "the others"),
        (6, "probability"),
        (0.3, ""),
    ],
    malformed="3/8",
)
def signs(answer):
    p, heads = number(answer), 4
    if p > 1:
        return "a probability is at most 1: divide by the number of all sign patterns."
    truth = math.comb(heads, heads // 2) / 2**heads
    slips = (
        (truth, None),
        (
            0.5,
            "with four signs the sum is never odd: it is 0, 2 or 4 in size, and these are not equally likely.",
        ),
        (1 / 16, "this counts one order of two plus and two minus; there are more."),
        (2 / 16, "this is where all four agree: that pair flies apart from far away."),
        (14 / 16, "a sum of two also has an edge: collapse from every start needs a sum of at most 1."),
        (1 - truth, "these are the others: the sums that have an edge."),
    )
    return next((said for value, said in slips if close(p, value)), UNKNOWN)


@exercise(
    right=[21, 21.0],
    wrong=[
        (2.1, "divide"),
        (0.1, "truth"),
        (10, "both heads"),
        (11, "both heads"),
        (1, "cancel"),
        (-21, "sizes"),
        (1 / 21, "other way"),
        (5, ""),
    ],
    malformed="21",
)
def opposite(answer):
    v, w = (1, -1), (1, 1.1)
    bound = sum(abs(a * b) for a, b in zip(v, w, strict=True))
    truth = abs(sum(a * b for a, b in zip(v, w, strict=True)))
    slips = (
        (bound / truth, None),
        (bound, "this is the constant of the bound; divide it by that of the truth."),
        (truth, "this is the constant of the truth; the bound divided by it is asked."),
        (1 / truth, "the bound has both heads: 1 and 1.1 add up."),
        (1.1 / truth, "the bound has both heads: 1 and 1.1 add up."),
        (1, "the heads have opposite values: the truth nearly cancels, the bound does not."),
        (-bound / truth, "a factor of sizes: take the absolute value."),
        (truth / bound, "the other way round: the bound is the larger one."),
    )
    return next((said for value, said in slips if close(answer, value)), UNKNOWN)


@exercise(
    right=[160, 160.0],
    wrong=[
        (162, "last"),
        (80, "two powers"),
        (81, "two powers"),
        (0, "alike"),
        (484, "243"),
        (8, "not a factor"),
        (-160, "first"),
        (100, ""),
    ],
    malformed="160",
)
def first_layer(answer):
    depth, power = 5, 2
    first, last = power * 3 ** (depth - 1), power
    slips = (
        (first - last, None),
        (first, "right for the first place; but also as the last layer it counts once."),
        ((first - last) / 2, "100 is two powers of ten."),
        (first / 2, "100 is two powers of ten, and as the last layer it counts once."),
        (0, "the layers do not count alike: all later ones cube what an early one did."),
        (power * (3**depth - 1), "one layer too many: the first of five is cubed by four, 81 and not 243."),
        (power * (depth - 1), "a cube is a power, not a factor: the exponent triples with each later layer."),
        (last - first, "the strong layer allows more if it comes first."),
    )
    return next((said for value, said in slips if close(answer, value)), UNKNOWN)


@exercise(
    right=[(9, 3), [9.0, 3.0]],
    wrong=[
        ((3, 9), "order"),
        ((9, 9), "largest"),
        ((9, 1), "nine tilts"),
        ((9, 27), "largest"),
        ((1, 1), "nine heads"),
        ((9, 81), "root"),
        ((3, 3), "lengths"),
        ((5, 2), ""),
    ],
    malformed=9,
)
def own_features(answer):
    heads = 9
    total, stacked = (number(value) for value in pair_of(answer, "of multiples of u"))
    tall = torch.eye(heads, dtype=F64)  # head h sends its one direction to its own feature
    size = torch.linalg.matrix_norm(tall, 2).item() * math.sqrt(heads)
    widest = "the stacked matrix has the largest of the norms of its separate heads, not more."
    slips = (
        ((heads, size), None),
        ((size, heads), "the other order: the theorem first."),
        ((1, stacked), "the theorem adds the nine heads."),
        ((size, stacked), "the theorem adds lengths, nine times u; only the stacked heads have a root."),
        ((heads, 1), "the stacked matrix has the norm 1, but there are nine tilts: their root counts."),
        ((heads, heads**2), "take the root of the sum of nine squares."),
        ((heads, heads), widest),
        ((heads, heads * size), widest),
    )
    for pair, said in slips:
        if close(total, pair[0]) and close(stacked, pair[1]):
            return said
    return UNKNOWN


@exercise(
    right=[(0.7071, 1), (2**-0.5, 1.0), (0.707, 1)],
    wrong=[
        ((0.5, 1), "root"),
        ((0.7071, 0.7071), "two things"),
        ((1.4142, 1), "divided"),
        ((1, 0.7071), "order"),
        ((1, 1), "not in omega"),
        ((0.7071, 2**0.5), "nothing"),
        ((2, 3), ""),
    ],
    malformed=1,
)
def wider(answer):
    one = torch.ones(1, 1, 1, dtype=F64)
    x = torch.tensor([[1.0], [-1.0]], dtype=F64)

    def score(w_qk, dim_qk):
        w_k = torch.zeros(1, 1, dim_qk, dtype=F64)
        w_k[..., 0] = 1
        return SelfAttention(w_q=w_qk * w_k, w_k=w_k, w_v=one, w_o=one).scores(x)[0, 0, 0].item()

    before = score(1.0, 2)
    first, second = score(1.0, 4) / before, score(2**0.5, 4) / before
    got = [number(value) for value in pair_of(answer, "of factors")]
    slips = (
        ((first, second), None),
        ((first**2, second), "forgot the root: scores are divided by the root of d_qk."),
        ((1 / first, second), "it is divided by the root of 2: a wider head has smaller scores."),
        ((second, first), "the other order: (i) keeps W_QK itself."),
        ((1, 1), "W_QK is kept in (i), but it is not in omega alone: the division by the root of d_qk is."),
        (
            (first, first),
            "changed two things at once: (i) keeps W_QK, (ii) lets it grow with the root of d_qk.",
        ),
        ((first, 1 / first), "in (ii) the quotient is kept, and omega is its norm: nothing changes."),
    )
    return next(
        (said for pair, said in slips if all(close(a, b) for a, b in zip(got, pair, strict=True))), UNKNOWN
    )


@exercise(
    right=[(16, -10, 1), [-32, 20, -2]],
    wrong=[
        ((5, -4, 1), "first three"),
        ((2, -1, 0), "order 7"),
        ((1, 1, 1), "order 3"),
        ((0, 0, 0), "nothing"),
        ((0, 2, -1), "order 7"),
        ((16, 10, 1), "order 3"),
        ((math.inf, 1, 1), "finite"),
    ],
    malformed=16,
)
def order_eleven(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise Form("three numbers")
    v, w = [number(value) for value in answer], (1, 2, 4)
    if not all(map(math.isfinite, v)):
        return "the values must be finite."
    if not any(v):
        return "values of zero make a head that does nothing; find others."
    moments = [sum(a * b**k for a, b in zip(v, w, strict=True)) for k in (1, 3)]
    zero = 1e-6 * max(map(abs, v))
    if all(abs(m) <= zero for m in moments):
        return None
    if abs(moments[0]) <= zero:
        return "this has order 7: the sum of v w³ must vanish as well."
    if abs(v[0] + 2 * v[1] + 3 * v[2]) <= zero:
        return "these are for the first three whole numbers; here w = (1, 2, 4)."
    return "this has order 3, as almost every choice has: the sum of v w must vanish, to begin with."
