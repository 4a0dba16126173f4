"""The exercises of ``attention-and-residual``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, matrix, number, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.theory.sizes import diameter

ONE = torch.ones(1, 1, 1, dtype=F64)


@exercise(
    right=[0.881, 0.88, 1 / (1 + math.exp(-2))],
    wrong=[
        (1 / (1 + math.exp(-1)), "differ by 2"),
        (math.tanh(1), "lands"),
        (0.119, "other token"),
        (0.5, "equal scores"),
        (math.e, "sum to one"),
        (math.e**2, "sum to one"),
        (0.9, "three digits"),
        (0.3, ""),
        (math.nan, "sum to one"),
    ],
    malformed="most",
)
def own_weight(answer):
    pair = torch.tensor([[1.0], [-1.0]], dtype=F64)
    p = SelfAttention(w_q=ONE, w_k=ONE, w_v=ONE, w_o=ONE).attention(pair).detach()[0]
    slips = {
        math.tanh(1): "this is where the first token lands, its weight minus the other's.",
        1 / (1 + math.exp(-1)): "the scores are 1 and -1: they differ by 2, not by 1.",
        float(p[0, 1]): "this is the weight of the other token.",
        0.5: "weights of one half belong to equal scores; these are 1 and -1.",
        0.9: "this is rounded too far: give three digits.",
    }
    if close(answer, float(p[0, 0])):
        return None
    if not 0 <= number(answer) <= 1:
        return "weights lie between 0 and 1 and sum to one: divide by the sum of the exponentials."
    return next((said for slip, said in slips.items() if close(answer, slip)), UNKNOWN)


@exercise(
    right=[(0, 1), [0.0, 1.0]],
    wrong=[
        ((0, 2), "whatever w is"),
        ((1, 0), "where the tokens go"),
        ((0, 0), "tokens 1 and 2 listen"),
        ((2, 1), "plain mean"),
        ((2, 2), "plain mean"),
        ((0, 0.85), "w = 1"),
        ((0, 0.5), ""),
    ],
    malformed=1,
)
def flat_and_sharp(answer):
    flat, sharp = map(number, pair_of(answer, "of numbers"))
    line = torch.tensor([[0.0], [1.0], [2.0]], dtype=F64)
    truth = [
        diameter(SelfAttention(w_q=w * ONE, w_k=ONE, w_v=ONE, w_o=ONE)(line)).item() for w in (0.0, 1.0, 60.0)
    ]
    if close(flat, truth[0]) and close(sharp, truth[2]):
        return None
    if close(flat, 1):
        return "for w = 0 all tokens go to 1: that is where the tokens go, not how far apart they are."
    if not close(flat, truth[0]):
        return "for w = 0 all scores are 0: each token receives the plain mean, so all receive the same."
    if close(sharp, 2):
        return "the token at 0 has the scores 0, 0, 0 whatever w is: it does not stay where it is."
    if close(sharp, 0):
        return "tokens 1 and 2 listen to token 2 only, but the token at 0 has three equal scores."
    if close(sharp, 0.85) or close(sharp, truth[1]):
        return "this is the diameter for w = 1; ask what happens as w grows."
    return UNKNOWN


@exercise(
    right=[
        lambda b_o, w_o, b_v: b_o + (b_v[:, None] @ w_o).sum(0)[0],
        lambda b_o, w_o, b_v: b_o + torch.einsum("hv,hvd->d", b_v, w_o),
    ],
    wrong=[
        (lambda b_o, w_o, b_v: b_o, "value biases"),
        (lambda b_o, w_o, b_v: torch.cat([b_o, b_o]), "summed"),
        (lambda b_o, w_o, b_v: torch.einsum("hv,hvd->d", b_v, w_o), "output bias"),
        (lambda b_o, w_o, b_v: b_o + torch.einsum("hv,hvd->hd", b_v, w_o).mean(0), "mean of the heads"),
        (lambda b_o, w_o, b_v: b_o + b_v.sum(0)[:5] @ w_o.sum(0)[:5], "own output matrix"),
        (lambda b_o, w_o, b_v: 2 * b_o + torch.einsum("hv,hvd->d", b_v, w_o), "once a layer"),
        (lambda b_o, w_o, b_v: b_v, "summed"),
        (lambda b_o, w_o, b_v: 3 * b_o, ""),
    ],
    malformed=3,
)
def bias(answer):
    g = torch.Generator().manual_seed(0)
    layer = SelfAttention.random(dim=5, heads=2, dim_qk=3, dim_v=7, generator=g, biases=True)
    b_o, w_o, b_v = (p.detach() for p in (layer.b_o, layer.w_o, layer.b_v))
    got = call(answer, b_o, w_o, b_v)
    if not isinstance(got, torch.Tensor) or got.numel() != b_o.numel():
        return "concatenated what is summed: the heads' bias rows add up into one row of width dim."
    heads = torch.einsum("hv,hvd->hd", b_v, w_o)
    mixed = b_v.sum(0)[:5] @ w_o.sum(0)[:5], b_v.sum(0) @ w_o.sum(0)
    slips = [
        (
            b_o,
            "the value biases vanished: P 1 = 1 keeps them, so each reaches the output through its own W_O.",
        ),
        (heads.sum(0), "the output bias is missing: it joins the heads' rows."),
        (b_o + heads.mean(0), "this takes the mean of the heads; a layer adds them."),
        *(
            (b_o + m, "each head's bias goes through its own output matrix before the heads add.")
            for m in mixed
        ),
        (2 * b_o + heads.sum(0), "the output bias is added once a layer, not once a head."),
    ]
    said = [(b_o + heads.sum(0), None), *slips]
    return next((s for row, s in said if torch.allclose(got.reshape(-1).to(F64), row)), UNKNOWN)


@exercise(
    right=[
        [[0, 0], [3, 4], [1.5, 2]],
        torch.tensor([[5.0, 0.0], [0.0, 0.0], [1.0, 0.0]]),
        [[3.54, 3.54], [0, 0], [1, 1]],
    ],
    wrong=[
        ([[1, 2], [1, 2], [1, 2]], "equal"),
        ([[3, 4], [3, 4], [0, 0]], "two tokens are equal"),
        ([[1, 2], [3, 4], [5, 6]], "rank is not one"),
        ([[0, 0], [0, 0], [0, 0]], "rank is zero"),
        ([[3, 4], [6, 8], [-3, -4]], "diameter is 15"),
        ([[0, 0], [2, 3], [1, 1.5]], "sum of absolute"),
        ([[3, 4], [1, 4 / 3], [1.5, 2]], "length"),
    ],
    malformed=[[1, 2]],
)
def rank_one(answer):
    x = matrix(answer, rows=3, columns=2)
    if not x.any():
        return "the rank is zero: give rows that are not zero."
    if not diameter(x):
        return "rank one does not mean equal rows: these rows are equal, so the diameter is 0."
    if torch.linalg.matrix_rank(x, rtol=1e-9) != 1:
        return "the rank is not one: every row must be a multiple of one and the same row."
    if torch.pdist(x).min() < 1e-9:
        return "two tokens are equal; choose three different multiples."
    size = diameter(x).item()
    if close(size, 5):
        return None
    if close(diameter(x, "l1").item(), 5):
        return "the sum of absolute differences is 5; the distance is the root of the sum of squares."
    if close(x.norm(dim=1).max().item(), 5):
        return f"the longest row has length 5, but the diameter, the largest difference, is {size:.3g}."
    return f"the rank is one, but the diameter is {size:.3g}."


@exercise(
    right=[(2, 8), [2.0, 8.0]],
    wrong=[
        ((0, 8), "cannot cancel"),
        ((3, 8), "from below"),
        ((5, 8), "from below"),
        ((2, 5), "can be 8"),
        ((-2, 8), "never negative"),
        ((8, 2), "smallest first"),
        ((3, 5), "sum"),
        ((1, 7), ""),
    ],
    malformed=8,
)
def two_diameters(answer):
    least, most = map(number, pair_of(answer, "of numbers"))
    truth = []
    for sign in (-1, 1):  # two tokens on a line, the second pair turned round or not
        x, y = (torch.tensor([[d / 2], [-d / 2]], dtype=F64) for d in (3.0, 5.0))
        truth.append(diameter(x + sign * y).item())
    if close(least, truth[0]) and close(most, truth[1]):
        return None
    if close(least, truth[1]) and close(most, truth[0]):
        return "give the smallest first."
    if least < 0:
        return "a diameter is never negative: which of the two is larger, and by how much?"
    if close(most, truth[1]):
        if close(least, 0):
            return "a diameter of 3 cannot cancel one of 5: write Y as (X + Y) - X."
        if close(least, 3) or close(least, 5):
            return "opposite differences cancel in part: rule (c) also bounds the sum from below."
        return UNKNOWN
    if close(least, truth[0]):
        return "the largest value can be 8: let the differences of X and Y point the same way."
    if close(least, 3) and close(most, 5):
        return "these are the diameters themselves; the sum can lie outside of both."
    return UNKNOWN


@exercise(
    right=[[1.3, -0.7, -0.7], (0.7, 0.7, -1.3), torch.tensor([[1.35], [-0.65], [-0.65]])],
    wrong=[
        ([1, -1, -1], "outweigh"),
        ([0, 1, 2], "one sign"),
        ([1, 0, -1], "in the middle"),
        ([1, 1, 1], "diameter is 0"),
        ([2, -2, -2], "diameter is 4"),
        ([1.7, -0.3, -0.3], "too far"),
        ([0.6, -1.4, -1.4], "other way"),
    ],
    malformed=[1, -1],
)
def hold_apart(answer):
    nested = isinstance(answer, torch.Tensor) or any(isinstance(v, list | tuple) for v in _items(answer))
    x = matrix(answer if nested else [[v] for v in _items(answer)], rows=3, columns=1)
    size = diameter(x).item()
    if not close(size, 2):
        return f"the diameter is {size:.3g}; choose tokens of diameter 2."
    new = diameter(SelfAttention(w_q=ONE, w_k=ONE, w_v=ONE, w_o=ONE)(x)).item()
    after = f"after the layer the diameter is {new:.3g}."
    if new >= 1.5:
        return None
    low, middle, high = x[:, 0].sort().values.tolist()
    if low >= 0 or high <= 0:
        return f"all tokens have one sign and prefer the same key; {after}"
    if min(middle - low, high - middle) > 0.2:
        return f"a token in the middle draws both ends to it; {after}"
    single = high if middle < 0 else -low  # how far from zero the token stands that is alone
    if single < 0.95:
        return f"shift all tokens the other way: the two are preferred even more now; {after}"
    if single > 1.5:
        return f"shifted too far: the single token is preferred by all; {after}"
    return f"two tokens at one end outweigh one at the other; shift all three until the ends balance; {after}"


def _items(answer):
    if not isinstance(answer, list | tuple | torch.Tensor) or len(answer) != 3:
        raise Form("three numbers")
    return answer
