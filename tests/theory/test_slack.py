"""What the proof of the diameter theorem gives away: closed forms step by step, plain loops, and no size too small."""

import doctest
import math

import pytest
import torch

import ranklib.theory.slack
from plain import import_plain, raises_its_own_message
from ranklib.exact.propagation import propagate, propagate_layer
from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.theory.block import norm_size, position_range
from ranklib.theory.diameters import extreme_layer, layer_share
from ranklib.theory.sizes import diameter, log10_diameter, score_size, value_size
from ranklib.theory.slack import PROOF_STEPS, measure_slack, measure_slacks, typical_sizes

F64 = torch.float64
PAIR = torch.tensor([[0.5, 0.0], [-0.5, 0.0]], dtype=F64)


def heads(w_qk, w):
    """Heads with these W_QK (before the root) and W."""
    w_qk, w = torch.tensor(w_qk, dtype=F64), torch.tensor(w, dtype=F64)
    eye = torch.eye(w.shape[-1], dtype=F64).expand_as(w)
    return SelfAttention(w_q=w_qk * w.shape[-1] ** 0.5, w_k=eye, w_v=w, w_o=eye)


def random_layer(seed, norm="none"):
    g = torch.Generator().manual_seed(seed)
    options = {"norm": norm, "skip": False, "biases": True, "scale": 1.0 + seed % 3}
    layer = Layer.random(6, 1 + seed % 3, generator=g, **options)
    return layer, torch.randn(2 + seed % 5, 6, generator=g, dtype=F64)


@pytest.mark.parametrize("tokens,d", [(2, 1.0), (5, 0.3), (9, 2.0)])
def test_the_extreme_case_loses_nothing(tokens, d):
    found = measure_slack(*extreme_layer(tokens, omega=2.0, nu=3.0, d=d))
    assert found.lost.abs().max() < 1e-8
    assert math.isclose(found.bound, math.log10(3 * math.tanh(d * d / 2) * d), abs_tol=1e-9)


def test_scores_that_miss_the_largest_direction_lose_in_the_first_step():
    found = measure_slack(heads([[[1.0, 0], [0, 5]]], [[[1.0, 0], [0, 1]]]), PAIR)
    wanted = math.log10(math.tanh(5 / 4) / math.tanh(1 / 4))
    assert torch.allclose(found.lost, torch.tensor([wanted, 0, 0, 0, 0, 0], dtype=F64), atol=1e-9)


def test_an_unbalanced_base_loses_in_the_softmax_step():
    layer, x = extreme_layer(5, omega=1.0, nu=1.0, d=2.0)
    bare = SelfAttention(w_q=layer.w_q, w_k=layer.w_k, w_v=layer.w_v, w_o=layer.w_o)
    lost = dict(zip(PROOF_STEPS, measure_slack(bare, x).lost.tolist(), strict=True))
    p = [2 * math.exp(s) / (2 * math.exp(s) + 3 * math.exp(-s)) for s in (1, -1)]
    assert math.isclose(lost["softmax"], math.log10(math.tanh(1.0) / (p[0] - p[1])), abs_tol=1e-9)
    assert abs(sum(lost.values()) - lost["softmax"]) < 1e-9


def test_weights_that_move_between_near_tokens_lose_in_the_averages_step():
    # Two queries whose keys differ by 0.2 in what is scored, beside a third token far away that is not scored.
    x = torch.tensor([[0.1, 0.0], [-0.1, 0.0], [0.0, 50.0]], dtype=F64)
    head = heads([[[1.0, 0], [0, 0]]], [[[1.0, 0], [0, 0]]])
    lost = dict(zip(PROOF_STEPS, measure_slack(head, x).lost.tolist(), strict=True))
    p = (x[:, :1] @ x[:, :1].T).softmax(-1)
    tv = (p[0] - p[1]).abs().sum() / 2
    wanted = tv * diameter(x) / diameter(p @ x)
    assert math.isclose(lost["averages"], float(wanted.log10()), rel_tol=1e-9) and lost["averages"] > 2


def test_values_that_miss_the_largest_direction_lose_in_the_fourth_step():
    found = measure_slack(heads([[[1.0, 0], [0, 1]]], [[[1.0, 0], [0, 5]]]), PAIR)
    assert torch.allclose(found.lost, torch.tensor([0, 0, 0, math.log10(5), 0, 0], dtype=F64), atol=1e-9)


def test_heads_that_cancel_lose_in_the_fifth_step():
    eye = [[1.0, 0], [0, 1]]
    found = measure_slack(heads([eye, eye], [eye, [[-0.5, 0], [0, -0.5]]]), PAIR)
    assert torch.allclose(found.lost, torch.tensor([0, 0, 0, 0, math.log10(3), 0], dtype=F64), atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_every_line_is_what_a_plain_loop_gives(seed):
    layer, x = random_layer(seed, "post" if seed % 2 else "none")
    attention = layer.attention.requires_grad_(False)
    p, w, d = attention.attention(x), attention.w, float(diameter(x))
    scores, nu = attention.scores(x), value_size(attention)
    lines = [float(layer_share(attention, diameter(x))) * d, 0.0, 0.0, 0.0, 0.0]
    for h in range(len(p)):
        pairs = [(i, k) for i in range(len(x)) for k in range(len(x))]
        gaps = [scores[h, i] - scores[h, k] for i, k in pairs]
        tilt = max(float(gap.max() - gap.min()) for gap in gaps)
        tv = max(float((p[h, i] - p[h, k]).abs().sum() / 2) for i, k in pairs)
        averages = diameter(p[h] @ x)
        add = [math.tanh(tilt / 4) * d * nu[h], tv * d * nu[h], averages * nu[h], diameter(p[h] @ x @ w[h])]
        lines[1:] = [line + float(a) for line, a in zip(lines[1:], add, strict=True)]
    lines.append(float(diameter(attention(x))))
    if layer.norm == "post":
        lines = [line * float(norm_size(layer.norm_1, attention(x))) for line in lines]
    lines.append(float(diameter(layer(x))))
    wanted = torch.tensor(lines, dtype=F64).log10()
    found = measure_slack(layer, x)
    assert torch.allclose(found.lost, -wanted.diff(), atol=1e-7)
    assert math.isclose(found.bound, wanted[0], abs_tol=1e-9)
    assert math.isclose(found.after, wanted[-1], abs_tol=1e-7)
    assert torch.allclose(10**found.scores, score_size(attention) * d * d / 4)


def test_no_step_gives_less_than_nothing_and_they_add_up():
    for seed in range(60):
        layer, x = random_layer(seed, "post" if seed % 2 else "none")
        found = measure_slack(layer, x)
        assert found.lost.min() > -1e-9
        assert math.isclose(float(found.lost.sum()), found.bound - found.after, abs_tol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_position_terms_enter_the_bound_and_the_layer(seed):
    layer, x = random_layer(seed, "post")
    attention, g = layer.attention, torch.Generator().manual_seed(seed)
    terms = torch.randn(attention.dims.heads, len(x), len(x), generator=g, dtype=F64)
    out = (((attention.scores(x) + terms).softmax(-1) @ x) @ attention.w).sum(0) + attention.bias
    normed = measure_slack(layer, x, terms)
    assert math.isclose(normed.after, float(diameter(layer.norm_1(out)).log10()), abs_tol=1e-9)
    assert math.isclose(normed.stretch, float(norm_size(layer.norm_1, out)), rel_tol=1e-9)
    found = measure_slack(attention, x, terms)
    share = layer_share(attention, diameter(x), position_range=position_range(terms))
    assert math.isclose(found.bound, float((share * diameter(x)).log10()), abs_tol=1e-9)
    assert math.isclose(found.after, float(diameter(out).log10()), abs_tol=1e-9)
    assert found.lost.min() > -1e-9
    zero = measure_slack(attention, x, torch.zeros_like(terms))
    assert torch.allclose(zero.lost, measure_slack(attention, x).lost, atol=1e-7)


def test_far_below_floats_the_steps_are_those_of_the_leading_order():
    layer, x = random_layer(5, "post")
    near = ResidualState.of(1 + 1e-4 * x)
    far = ResidualState(near.common, near.mantissa, near.exponent - 4000)
    one, two = measure_slack(layer, near), measure_slack(layer, far)
    assert (one.lost - two.lost).abs().max() < 1e-2
    assert two.before < -1200 and two.after < 3 * two.before + 10
    assert math.isclose(float(two.lost.sum()), two.bound - two.after, abs_tol=1e-6)


def test_a_network_is_measured_at_the_states_of_exact_propagation():
    layers = [random_layer(seed)[0].attention for seed in (0, 3, 6, 9, 12, 15)]
    x = 0.3 * random_layer(4)[1]
    found, state = measure_slacks(layers, x), ResidualState.of(x)
    for slack, layer in zip(found, layers, strict=True):
        assert math.isclose(slack.before, log10_diameter(state), rel_tol=1e-9)
        state = propagate(state, layer)
        assert math.isclose(slack.after, log10_diameter(state), rel_tol=1e-9)
    normed, state = [random_layer(seed, "post")[0] for seed in (1, 4, 7, 10)], ResidualState.of(x)
    for slack, layer in zip(measure_slacks(normed, x), normed, strict=True):
        state = propagate_layer(state, layer)
        assert math.isclose(slack.after, log10_diameter(state), rel_tol=1e-9)
    network = Network(Layer(layer, skip=False) for layer in layers)
    assert [s.after for s in measure_slacks(network, x)] == [s.after for s in found]


def test_float32_is_measured_in_float64_and_left_as_it_was():
    attention = SelfAttention.random(4, generator=torch.Generator().manual_seed(0), dtype=torch.float32)
    measure_slack(attention, torch.eye(4))
    assert attention.w_q.dtype == torch.float32


@pytest.mark.parametrize("seed", range(4))
def test_typical_sizes_are_root_mean_squares_over_random_directions(seed):
    g = torch.Generator().manual_seed(seed)
    attention = SelfAttention.random(6, 2, generator=g, scale=2.0)
    u, v = torch.nn.functional.normalize(torch.randn(2, 40_000, 6, generator=g, dtype=F64), dim=-1)
    scores, values = typical_sizes(attention)
    seen = torch.einsum("ni,hij,nj->hn", u, attention.w_qk, v).square().mean(-1).sqrt() / 3**0.5
    assert torch.allclose(seen, scores, rtol=0.03)
    assert torch.allclose((u @ attention.w).square().sum(-1).mean(-1).sqrt(), values, rtol=0.03)
    assert (score_size(attention) / scores >= 6**0.5).all()
    share = value_size(attention) / values
    assert (share >= 1).all() and (share <= 6**0.5).all()


def test_an_isometry_and_a_single_direction_are_the_two_ends():
    eye, line = torch.eye(9, dtype=F64)[None], torch.zeros(1, 9, 9, dtype=F64)
    line[0, 2, 4] = 3.0
    for w_v, share in ((eye, 1.0), (line, 3.0)):
        attention = SelfAttention(w_q=eye, w_k=eye, w_v=w_v, w_o=eye)
        scores, values = typical_sizes(attention)
        assert math.isclose(score_size(attention) / scores, 3.0)
        assert math.isclose(value_size(attention) / values, share)


def plain(m):
    """Attention of the unchecked copy of the library."""
    return m.SelfAttention.random(4, generator=torch.Generator().manual_seed(0))


def silent(m):
    """Attention that gives every token the same output."""
    return m.SelfAttention(**{f"w_{name}": torch.zeros(1, 4, 4).double() for name in "qkvo"})


@pytest.mark.parametrize(
    "kind,call",
    [
        (TypeError, lambda m: m.measure_slack(torch.eye(4), torch.eye(4))),
        (ValueError, lambda m: m.measure_slack(m.Layer(plain(m)), torch.eye(4))),
        (
            ValueError,
            lambda m: m.measure_slack(m.Layer(plain(m), torch.nn.Linear(4, 4), skip=False), torch.eye(4)),
        ),
        (ValueError, lambda m: m.measure_slack(plain(m), torch.ones(3, 4))),
        (ValueError, lambda m: m.measure_slack(plain(m), torch.eye(5))),
        (ValueError, lambda m: m.measure_slack(plain(m), torch.full((2, 4), math.nan))),
        (ValueError, lambda m: m.measure_slack(plain(m), torch.eye(4), torch.zeros(4, 4).double())),
        (
            ValueError,
            lambda m: m.measure_slack(plain(m), torch.eye(4), torch.full((1, 4, 4), -math.inf).double()),
        ),
        (ValueError, lambda m: m.measure_slack(silent(m), torch.eye(4))),
        (TypeError, lambda m: m.typical_sizes(torch.eye(4))),
    ],
)
def test_bad_input_is_refused(kind, call):
    raises_its_own_message(kind, call, import_plain("ranklib.theory.slack"))


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.theory.slack)
    assert found.failed == 0 and found.attempted >= 8
