"""Skip, MLP, LayerNorm, positions, masks and the whole block: 100,000 random cases each, and the sharp ones."""

import doctest
import math

import pytest
import torch
from torch import nn

import ranklib.theory.block
from plain import import_plain, raises_its_own_message
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer
from ranklib.model.softmax import attention_matrix, causal_mask
from ranklib.theory.block import (
    bound_block,
    bound_skip,
    mask_contraction,
    mlp_size,
    norm_size,
    position_range,
)
from ranklib.theory.diameters import layer_share, tilt_range
from ranklib.theory.sizes import NORMS, diameter

F64 = torch.float64
CASES = 100_000
BATCH = 2500


def normal(generator, *shape, low=-0.7, high=0.5):
    decade = low + (high - low) * torch.rand(
        shape[0], *[1] * (len(shape) - 1), generator=generator, dtype=F64
    )
    return torch.randn(shape, generator=generator, dtype=F64) * 10**decade


def whole(generator, low, high):
    return int(torch.randint(low, high, (), generator=generator))


def top(w):
    return torch.linalg.svdvals(w)[..., 0]


class Batch:
    """Random tokens and heads of one shape, with the parts of the theorem computed by plain formulas."""

    def __init__(self, generator):
        self.n, d, heads, k = (whole(generator, *pair) for pair in ((2, 7), (2, 6), (1, 3), (1, 4)))
        self.dim = d
        self.x = normal(generator, BATCH, self.n, d, low=-1) + normal(generator, BATCH, 1, d)
        self.w_q, self.w_k = (normal(generator, BATCH, heads, d, k) for _ in range(2))
        self.w, self.b_q = normal(generator, BATCH, heads, d, d), normal(generator, BATCH, heads, k)
        self.root = k**0.5

    def scores(self, x):
        return (x[:, None] @ self.w_q + self.b_q[..., None, :]) @ (x[:, None] @ self.w_k).mT / self.root

    def attend(self, x, bias=0.0, mask=None):
        s = self.scores(x) + bias
        s = s if mask is None else s.masked_fill(~mask, -torch.inf)
        return (s.softmax(-1) @ x[:, None] @ self.w).sum(1)

    def share(self, d, b=0.0, m=0.0):
        omega = top(self.w_q @ self.w_k.mT) / self.root
        tilt = ((b + omega * d[:, None] ** 2) / 4).tanh()
        return (top(self.w) * (m + tilt).clamp(max=1)).sum(-1)


def worst_quotient(compare, seed):
    """The largest measured / bound over 100,000 cases; ``compare`` gives both for a batch."""
    generator, worst = torch.Generator().manual_seed(seed), 0.0
    for _ in range(CASES // BATCH):
        batch = Batch(generator)
        measured, bound = compare(batch, diameter(batch.x), generator)
        seen = bound > 1e-5
        worst = max(worst, (measured / bound)[seen].max().item())
    return worst


def skip_above(batch, d, generator):
    alpha = normal(generator, BATCH, 1, 1)
    after = diameter(alpha * batch.x + batch.attend(batch.x))
    return after, (alpha[:, 0, 0].abs() + batch.share(d)) * d


def skip_below(batch, d, generator):
    alpha = normal(generator, BATCH, 1, 1, high=1.5)
    after = diameter(alpha * batch.x + batch.attend(batch.x))
    return (alpha[:, 0, 0].abs() - batch.share(d)).clamp(min=0) * d, after


def positions(batch, d, generator):
    bias = normal(generator, BATCH, 1, batch.n, batch.n)
    return diameter(batch.attend(batch.x, bias)), batch.share(d, position_range(bias)) * d


def masks(batch, d, generator):
    mask = torch.rand(batch.n, batch.n, generator=generator) < 0.6
    mask |= torch.eye(batch.n, dtype=torch.bool)
    m = mask_contraction(batch.scores(batch.x), mask)
    return diameter(batch.attend(batch.x, mask=mask)), batch.share(d, m=m) * d


def mlp(batch, d, generator):
    w_1, w_2 = normal(generator, BATCH, batch.dim, 7), normal(generator, BATCH, 7, batch.dim)
    after = diameter((batch.x @ w_1 + normal(generator, BATCH, 1, 7)).relu() @ w_2)
    return after, top(w_1) * top(w_2) * d


def layernorm(batch, d, generator):
    module = nn.LayerNorm(batch.dim, eps=1e-3, dtype=F64)
    return diameter(module(batch.x)), norm_size(module, batch.x) * d


def rmsnorm(batch, d, generator):
    module = nn.RMSNorm(batch.dim, eps=1e-3, dtype=F64)
    return diameter(module(batch.x)), norm_size(module, batch.x) * d


def block(batch, d, generator):
    module = nn.LayerNorm(batch.dim, eps=1e-3, dtype=F64)
    w_1, w_2 = normal(generator, BATCH, batch.dim, 7), normal(generator, BATCH, 7, batch.dim)
    first = norm_size(module, batch.x)
    middle = batch.x + batch.attend(module(batch.x))
    second = norm_size(module, middle)
    after = middle + (module(middle) @ w_1).relu() @ w_2
    bound = (1 + top(w_1) * top(w_2) * second) * (1 + batch.share(first * d) * first) * d
    return diameter(after), bound


@pytest.mark.slow
@pytest.mark.parametrize(
    "compare,close",
    [
        (skip_above, 0.99),
        (skip_below, 0.99),
        (positions, 0.9),
        (masks, 0.9),
        (mlp, 0.8),
        (layernorm, 0.99),
        (rmsnorm, 0.99),
        (block, 0.5),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_each_part_on_100_000_random_cases(compare, close):
    worst = worst_quotient(compare, seed=17)
    assert close < worst <= 1 + 1e-9


def test_the_skip_is_attained_from_both_sides():
    """The pair on a line: alpha + tanh and alpha - tanh."""
    one = torch.ones(1, 1, 1, dtype=F64)
    x = torch.tensor([[0.4], [-0.4]], dtype=F64)
    for sign in (1, -1):
        attention = SelfAttention(w_q=one, w_k=one, w_v=sign * one, w_o=one)
        found, after = bound_skip(attention, 0.8, skip=1.5), diameter(1.5 * x + attention(x)).item()
        reached = found.upper if sign > 0 else found.lower
        assert abs(after / reached - 1) < 1e-12


def test_positions_and_masks_are_attained():
    one = torch.ones(1, 1, 1, dtype=F64)
    tiny = torch.tensor([[1e-6], [-1e-6]], dtype=F64)
    for b in (0.3, 2.0):  # two rows tilted by +-b/2 about equal weights
        bias = torch.tensor([[b / 4, -b / 4], [-b / 4, b / 4]], dtype=F64)
        p = attention_matrix(bias)
        assert abs(position_range(bias).item() - b) < 1e-12
        assert abs((diameter(p @ tiny) / diameter(tiny)).item() / math.tanh(b / 4) - 1) < 1e-9
    attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    m = mask_contraction(attention.scores(tiny), causal_mask(2))
    share = layer_share(attention, diameter(tiny), contraction=m[0].item())
    assert abs((diameter(attention(tiny, causal_mask(2))) / diameter(tiny) / share).item() - 1) < 1e-6


def test_norms_are_attained_on_two_close_tokens_of_least_deviation():
    x = torch.tensor([[1.0, -1.0, 0.0], [1.0, -1.0, 1e-6]], dtype=F64)
    for module in (nn.LayerNorm(3, eps=0.0, dtype=F64), nn.RMSNorm(3, eps=1e-30, dtype=F64)):
        turned = x - x.mean(-1, keepdim=True)
        quotient = diameter(module(turned)) / (norm_size(module, turned) * diameter(turned))
        assert 1 - 1e-6 < quotient.item() <= 1 + 1e-9


def test_the_gain_multiplies_and_the_smaller_deviation_decides():
    module = nn.LayerNorm(2, eps=0.0, dtype=F64)
    module.weight.data.copy_(torch.tensor([2.0, -3.0]))
    x = torch.tensor([[3.0, 1.0], [0.5, -0.5]], dtype=F64)  # deviations 1 and 1/2
    assert abs(norm_size(module, x).item() - 6.0) < 1e-12


def test_mlp_sizes_in_three_norms():
    generator = torch.Generator().manual_seed(4)
    network = nn.Sequential(nn.Linear(4, 9), nn.GELU(), nn.Linear(9, 4)).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=F64))
        x = torch.randn(500, 2, 4, generator=generator, dtype=F64)
        for norm in NORMS:
            quotient = diameter(network(x), norm) / diameter(x, norm) / mlp_size(network, norm)
            assert 0.05 < quotient.max() <= 1


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("mlp_dim", [None, 8])
def test_the_block_lies_between_its_bounds(norm, mlp_dim):
    promised = 0
    for seed in range(60):
        generator = torch.Generator().manual_seed(seed)
        layer = Layer.random(6, 2, generator=generator, mlp_dim=mlp_dim, norm=norm, scale=0.3, biases=True)
        x = torch.randn(5, 6, generator=generator, dtype=F64)
        m = mask_contraction(layer.attention.scores(layer.norm_1(x) if norm == "pre" else x), causal_mask(5))
        for mask, parts in ((None, {}), (causal_mask(5), {"contraction": m.detach()})):
            found = bound_block(layer, x, mask, **parts)
            after = diameter(layer(x, mask)).item()
            assert found.lower <= after * (1 + 1e-9) and after <= found.upper * (1 + 1e-9)
            promised += found.lower > 0
    assert promised > 0 or norm == "post"


def test_rotary_scores_are_covered_by_their_own_tilt():
    """Any score matrix: diam(P X) <= tanh(T / 4) diam X with T = tilt_range."""
    generator = torch.Generator().manual_seed(8)
    s = normal(generator, 5000, 6, 6, low=-1, high=1)
    x = torch.randn(5000, 6, 3, generator=generator, dtype=F64)
    quotient = diameter(s.softmax(-1) @ x) / ((tilt_range(s) / 4).tanh() * diameter(x))
    assert 0.5 < quotient.max() <= 1


@pytest.mark.parametrize(
    "kind,call",
    [
        (ValueError, lambda m, a, layer: m.bound_skip(a, 1.0, skip=math.nan)),
        (ValueError, lambda m, a, layer: m.bound_skip(a, -1.0)),
        (ValueError, lambda m, a, layer: m.bound_skip(a, 1.0, norm="l3")),
        (TypeError, lambda m, a, layer: m.mlp_size(torch.ones(2))),
        (TypeError, lambda m, a, layer: m.mlp_size(nn.Sequential(nn.Softmax(-1)))),
        (TypeError, lambda m, a, layer: m.norm_size(nn.BatchNorm1d(2), torch.ones(2, 2))),
        (ValueError, lambda m, a, layer: m.norm_size(nn.LayerNorm(2, eps=0.0), torch.ones(2, 2))),
        (ValueError, lambda m, a, layer: m.norm_size(nn.LayerNorm(3), torch.ones(2, 2))),
        (ValueError, lambda m, a, layer: m.position_range(torch.tensor([[-math.inf, 0.0], [0.0, 0.0]]))),
        (ValueError, lambda m, a, layer: m.mask_contraction(torch.zeros(2, 3), torch.ones(2, 3).bool())),
        (ValueError, lambda m, a, layer: m.mask_contraction(torch.zeros(2, 2), torch.eye(3).bool())),
        (ValueError, lambda m, a, layer: m.mask_contraction(torch.zeros(2, 2), torch.zeros(2, 2).bool())),
        (TypeError, lambda m, a, layer: m.mask_contraction(torch.zeros(2, 2), torch.ones(2, 2))),
        (TypeError, lambda m, a, layer: m.bound_block(a, torch.ones(2, 6).double())),
        (ValueError, lambda m, a, layer: m.bound_block(layer, torch.ones(1, 2, 6).double())),
        (ValueError, lambda m, a, layer: m.bound_block(layer, torch.full((2, 6), math.nan).double())),
    ],
)
def test_bad_input_is_refused(kind, call):
    plain = import_plain("ranklib.theory.block")
    generator = torch.Generator().manual_seed(0)
    layer = plain.Layer.random(6, 2, generator=generator)
    raises_its_own_message(kind, call, plain, layer.attention, layer)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.theory.block)
    assert found.failed == 0 and found.attempted > 8
