"""The exercises of ``where-it-breaks``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, number, pair_of
from ranklib.model.attention import SelfAttention
from ranklib.paper.centres import mean_centre, residual_about
from ranklib.paper.counterexamples import four_tokens
from ranklib.paper.least import residual_size
from ranklib.paper.movers import Movers, clean_movers, pocket_family
from ranklib.paper.norms import composite
from ranklib.paper.sizes import layer_sizes, oscillation_of_scores
from ranklib.paper.special_queries import best_ratios, best_specials


@exercise(
    right=[(0.923, 138999, False)],
    wrong=[
        ((0.857, 138999, False), "14,000"),
        ((0.923, 139000, False), "twice"),
        ((0.923, 138999, True), ""),
    ],
    malformed=3,
)
def thousand(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise Form("three values: a share, a total, True or False")
    share, total, refuted = answer
    family = Movers(1000, 5000, 12000, 126000)
    (_, (mover, other, own), (stayer, _, _)) = family.rows
    column, row = family.movers * (stayer - mover), stayer - mover + own - other
    truth = math.sqrt(column * row) > family.printed
    if close(share, 12000 / 14000):
        return "kept the sum 14,000 of two thousand movers: now the weights sum to 13,000."
    if close(share, float(stayer)) and number(total) == float(1 / other) and refuted is truth:
        return None
    if number(total) == float(1 / other) + 1:
        return "counted the mover twice: its weight 1 is replaced by the gain."
    return UNKNOWN


@exercise(
    right=[("oscillation", 11.74), ("oscillation", 11.744)],
    wrong=[(("tokens", 6001), "blamed n"), (("oscillation", 1.256), ""), (("values", 11.74), "")],
    malformed=11.74,
)
def which(answer):
    name, value = pair_of(answer, "of a name and a number")
    small = Movers(3, 5, 12, 126000, 1).instance()  # the range does not depend on how many tokens there are
    centre = torch.zeros(4, dtype=F64)
    truth = float(oscillation_of_scores(small.attention, small.x, centre))
    if name == "oscillation":
        return None if close(value, truth) else UNKNOWN
    if name == "tokens":
        return "blamed n: the lemma asks nothing of the number of tokens."
    return UNKNOWN


@exercise(
    right=[lambda family: family._replace(stayers=family.stayers + 1)],
    wrong=[
        (lambda family: family._replace(movers=family.movers + 1), "added a mover"),
        (lambda family: family, "not one"),
    ],
    malformed=3,
)
def onemore(answer):
    for family in (clean_movers(1636), pocket_family()._replace(eta=0), clean_movers(5000, one_number=True)):
        more = call(answer, family)
        if not isinstance(more, Movers):
            raise Form("a function from a family to a family")
        if more.tokens != family.tokens + 1:
            return f"the new family has {more.tokens - family.tokens} tokens more, not one."
        if more.movers != family.movers:
            return "added a mover: that changes everybody's weights. Another kind of token changes nobody's."
        if more.ratio < family.ratio:
            return UNKNOWN
    return None


@exercise(
    right=[0.1, -0.4, 0.496],
    wrong=[(1.0, "one size"), (0, "differ"), (0.5, "one size")],
    malformed="small",
)
def notquite(answer):
    a = number(answer)
    if not a or not math.isfinite(a):
        return "the tokens must differ: at a = 0 both sides are 0."
    if abs(a) < 1e-5:
        return "right in theory, but too small to be measured; take a larger one."
    if abs(a) > 20:
        return "so large that the exponentials overflow, and the softmax no longer moves; take a small one."
    one = torch.ones(1, 1, 1, dtype=F64)
    layer = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    x = torch.tensor([[a], [-a]], dtype=F64)
    sizes, y = layer_sizes(layer, x), layer(x)
    ratio = composite(residual_about(y, mean_centre(y))).item() / (sizes.lam[0] * sizes.rho).item()
    return None if ratio > 0.49 else f"tested one size: here it is {ratio:.3f}. How does it depend on a?"


EYE = torch.eye(4, 2, dtype=torch.float64)


@exercise(
    right=[
        tuple(four_tokens(0.01)[:2]),
        tuple(four_tokens(0.01, tokens=3)[:2]),
        tuple(best_specials(61).instance()[:2]),
    ],
    wrong=[
        ((EYE, four_tokens(3.0).attention), "95 percent"),
        ((EYE, four_tokens(0.5).attention), "about the mean"),
    ],
    malformed=3,
)
def leader(answer):
    x, layer = pair_of(answer, "of tokens and a layer")
    if not isinstance(x, torch.Tensor) or not isinstance(layer, SelfAttention):
        raise Form("a pair of a tensor and a rl.SelfAttention")
    if x.ndim != 2 or x.dtype != F64 or not 3 <= len(x) <= 64 or layer.dims.heads != 1:
        raise Form("3 to 64 tokens in float64, and a layer with one head")
    with torch.no_grad():
        y = layer(x)
        sizes = layer_sizes(layer, x, residual_size(x, 1e-3).centre)
        scale = float(sizes.lam[0] * sizes.rho * sizes.w[0])
        if scale == 0:
            return "the right side is 0: nothing to compare."
        target = 0.95 * best_ratios((len(x),))[len(x)]
        if float(residual_size(y, 1e-3).lower) / scale >= target:
            return None
        if float(composite(residual_about(y, mean_centre(y)))) / scale >= target:
            return "measured about the mean: another centre of the output is better."
    return f"the quotient stays below {target:.3f}, 95 percent of the table's entry."
