"""Self-attention against torch's own module and its formula, with gradients, batches and transforms."""

import itertools

import jaxtyping
import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from ranklib.model.attention import SelfAttention
from ranklib.model.softmax import attention_matrix, causal_mask, pruned_scores, scores, window_mask

BATCH, TOKENS, DIM, HEADS, DIM_QK, DIM_V = 2, 5, 7, 3, 11, 13
SEEDS = range(8)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed, dtype=torch.float64):
    return torch.randn(*shape, generator=generator(seed), dtype=dtype)


def close(a, b, tol=1e-12):
    return torch.allclose(a, b, rtol=0, atol=tol)


def random_attention(seed, biases=True):
    sizes = DIM, HEADS, DIM_QK, DIM_V
    return SelfAttention.random(*sizes, generator=generator(seed), biases=biases)


MASKS = {
    "none": None,
    "causal": causal_mask(TOKENS),
    "window": window_mask(TOKENS, 2),
    "causal window": window_mask(TOKENS, 1, causal=True),
}


def torch_module(seed, bias=True, batch_first=True, dim=6, heads=3):
    module = nn.MultiheadAttention(dim, heads, bias=bias, batch_first=batch_first, dtype=torch.float64)
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=50 * seed + i))
    return module


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_from_torch_gives_the_same_output_and_weights(mask, bias, batch_first):
    for seed in SEEDS:
        module = torch_module(seed, bias, batch_first)
        attention, x = SelfAttention.from_torch(module), randn(BATCH, TOKENS, 6, seed=seed)
        allowed = MASKS[mask]
        y = x if batch_first else x.transpose(0, 1)
        options = {"attn_mask": None if allowed is None else ~allowed, "average_attn_weights": False}
        wanted, weights = module(y, y, y, **options)
        assert close(attention(x, allowed), wanted if batch_first else wanted.transpose(0, 1))
        assert close(attention.attention(x, allowed), weights)


def test_from_torch_copies():
    module = torch_module(0)
    attention = SelfAttention.from_torch(module)
    before = attention.w_q.detach().clone()
    with torch.no_grad():
        module.in_proj_weight.zero_()
    assert torch.equal(attention.w_q, before)


@pytest.mark.parametrize("biases", [True, False])
def test_forward_is_the_formula_head_by_head(biases):
    """sum_h P_h X W_h + 1 bias^T, and the layer with every bias where it stands."""
    for seed in SEEDS:
        layer, x = random_attention(seed, biases), randn(TOKENS, DIM, seed=seed)
        formula = torch.zeros(TOKENS, DIM).double()
        heads = torch.zeros(TOKENS, DIM).double()
        for h in range(HEADS):
            p = layer.attention(x)[h]
            formula = formula + p @ x @ layer.w_v[h] @ layer.w_o[h]
            assert close(layer.w[h], layer.w_v[h] @ layer.w_o[h])
            assert close(layer.w_qk[h], layer.w_q[h] @ layer.w_k[h].T)
            heads = heads + p @ (x @ layer.w_v[h] + (layer.b_v[h] if biases else 0)) @ layer.w_o[h]
        assert close(layer(x), formula + layer.bias)
        assert close(layer(x), heads + (layer.b_o if biases else 0))


def test_every_subset_of_biases():
    weights = dict(random_attention(0).named_parameters())
    x = randn(TOKENS, DIM, seed=1)
    zero = {name: torch.zeros_like(value) for name, value in weights.items() if name.startswith("b_")}
    for kept in itertools.product([False, True], repeat=4):
        chosen = {name: value for name, value in weights.items() if name.startswith("w_")}
        full = dict(chosen)
        for name, keep in zip(zero, kept, strict=True):
            full[name] = weights[name] if keep else zero[name]
            if keep:
                chosen[name] = weights[name]
        assert close(SelfAttention(**chosen)(x), SelfAttention(**full)(x))


def test_leading_axes_are_batch():
    layer, x = random_attention(0), randn(2, 3, TOKENS, DIM, seed=1)
    got, p = layer(x), layer.attention(x)
    assert p.shape == (2, 3, HEADS, TOKENS, TOKENS)
    for i, j in itertools.product(range(2), range(3)):
        assert close(got[i, j], layer(x[i, j]))
        assert close(p[i, j], layer.attention(x[i, j]))


def test_methods_agree_with_the_functions():
    for seed in SEEDS:
        layer, x = random_attention(seed), randn(BATCH, TOKENS, DIM, seed=seed)
        for h in range(HEADS):
            given = x, layer.w_q[h], layer.w_k[h], layer.b_q[h], layer.b_k[h]
            assert close(layer.scores(x)[:, h], scores(*given))
            assert close(layer.pruned_scores(x)[:, h], pruned_scores(*given))
        assert close(layer.attention(x), attention_matrix(layer.scores(x)))


def test_masks_broadcast_over_heads_and_batch():
    layer, x = random_attention(0), randn(BATCH, TOKENS, DIM, seed=0)
    heads = torch.stack([causal_mask(TOKENS), window_mask(TOKENS, 1), window_mask(TOKENS, 4)])
    keys = torch.tensor([True, True, False, True, False])
    for h in range(HEADS):
        assert close(layer.attention(x, heads)[:, h], layer.attention(x, heads[h])[:, h])
    assert (layer.attention(x, keys)[..., ~keys] == 0).all()
    padding = torch.stack([keys, torch.ones(TOKENS, dtype=torch.bool)])[:, None, None]
    assert close(layer(x, padding)[0], layer(x[0], keys)) and close(layer(x, padding)[1], layer(x[1]))


@pytest.mark.parametrize("w, v", [(1.0, 1.0), (0.5, -2.0), (-3.0, 1.25)])
def test_two_tokens_on_a_line(w, v):
    """x_i -> v (m + a tanh(w a x_i))."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    layer = SelfAttention(w_q=w * one, w_k=one, w_v=v * one, w_o=one)
    for m, a in itertools.product((0.0, 0.5, 2.0), (0.1, 1.0, 1.7)):
        x = torch.tensor([[m + a], [m - a]], dtype=torch.float64)
        assert close(layer(x), v * (m + a * torch.tanh(w * a * x)), 1e-13)


def test_permutation_equivariance():
    for seed in SEEDS:
        layer, x = random_attention(seed), randn(BATCH, TOKENS, DIM, seed=seed)
        order = torch.randperm(TOKENS, generator=generator(seed))
        assert close(layer(x[:, order]), layer(x)[:, order])
        assert close(layer.attention(x[:, order]), layer.attention(x)[..., order, :][..., order])
    assert not close(layer(x[:, order], causal_mask(TOKENS)), layer(x, causal_mask(TOKENS))[:, order], 1e-3)


@pytest.mark.parametrize("mask", MASKS)
def test_gradients(mask):
    layer, x = random_attention(0), randn(TOKENS, DIM, seed=1).requires_grad_()
    assert torch.autograd.gradcheck(lambda y: layer(y, MASKS[mask]), (x,))
    layer(x, MASKS[mask]).square().sum().backward()
    for name, parameter in layer.named_parameters():
        assert torch.isfinite(parameter.grad).all()
        vanishes = name == "b_k"  # the key bias drops out of the attention
        assert vanishes == (parameter.grad.abs().max() < 1e-10), name


def test_stacked_networks_under_vmap():
    layers, x = [random_attention(seed) for seed in range(3)], randn(BATCH, TOKENS, DIM, seed=9)
    parameters, buffers = torch.func.stack_module_state(layers)

    def call(p, b, y):
        return torch.func.functional_call(layers[0], (p, b), (y,))

    def loss(p, b, y):
        return call(p, b, y).square().sum()

    got = torch.func.vmap(call, (0, 0, None))(parameters, buffers, x)
    gradients = torch.func.vmap(torch.func.grad(loss), (0, 0, None))(parameters, buffers, x)
    for i, layer in enumerate(layers):
        assert close(got[i], layer(x))
        layer(x).square().sum().backward()
        for name, parameter in layer.named_parameters():
            assert close(gradients[name][i], parameter.grad, 1e-10)
    bad = x.clone()
    bad[1, 2, 3] = torch.nan
    for transform in (lambda f: f, torch.func.grad):
        with pytest.raises(ValueError, match="x: expected finite entries"):
            torch.func.vmap(transform(loss), (None, None, 0))(dict(layers[0].named_parameters()), {}, bad)


def test_forward_mode_derivatives():
    layer, x, direction = random_attention(0), randn(TOKENS, DIM, seed=1), randn(TOKENS, DIM, seed=2)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, direction))).tangent
    wanted = torch.autograd.functional.jacobian(layer, x).flatten(2).flatten(0, 1) @ direction.flatten()
    assert close(tangent.flatten(), wanted)


def test_random_follows_its_generator_and_its_law():
    first, again, other = (random_attention(seed) for seed in (3, 3, 4))
    assert torch.equal(first.w_q, again.w_q) and not torch.equal(first.w_q, other.w_q)
    state = torch.random.get_rng_state()
    wide = SelfAttention.random(101, 2, 97, 103, generator=generator(0), scale=3.0, biases=True)
    assert torch.equal(torch.random.get_rng_state(), state)
    drawn = torch.randn(2, 101, 97, generator=generator(0), dtype=torch.float64)
    assert close(wide.w_q, 3 / 101**0.5 * drawn)
    for name, value in wide.named_parameters():
        deviation = 3 / 101**0.5
        assert abs(value.std() / deviation - 1) < 5 / (2 * value.numel()) ** 0.5, name
        assert abs(value.mean()) < 5 * deviation / value.numel() ** 0.5
    assert wide.dims == (2, 101, 97, 103)
    assert SelfAttention.random(6, 3, generator=generator(0), dtype=torch.float32).w_q.dtype == torch.float32
    assert SelfAttention.random(6, 3, generator=generator(0)).b_q is None


def test_float32_follows_float64():
    high = random_attention(0)
    low = SelfAttention(**{name: value.float() for name, value in high.named_parameters()})
    x = randn(TOKENS, DIM, seed=0)
    assert low(x.float()).dtype == torch.float32
    assert close(low(x.float()).double(), high(x), 1e-4)


X, W = randn(TOKENS, DIM, seed=0), randn(DIM, DIM_QK, seed=1)
S, LAYER = randn(TOKENS, TOKENS, seed=2), random_attention(0)
PARTS = dict(LAYER.named_parameters())
HOLE = window_mask(TOKENS, 1) & (torch.arange(TOKENS)[:, None] != 2)
NAN = X.clone()
NAN[1, 2] = torch.nan


def from_torch_with(**options):
    return SelfAttention.from_torch(nn.MultiheadAttention(6, 2, **options))


BAD = [
    (lambda: LAYER(X.long()), TypeError, "x: expected a floating-point dtype"),
    (lambda: LAYER(X.float()), TypeError, "x: expected torch.float64"),
    (lambda: LAYER(NAN), ValueError, "x: expected finite entries, got 1"),
    (lambda: LAYER(X.T), ValueError, "x: expected .*tokens, 7"),
    (lambda: LAYER(X[0]), ValueError, "x: expected .*tokens, 7"),
    (lambda: LAYER(X[:0]), ValueError, "x: expected .*at least one token"),
    (lambda: LAYER(1e200 * X), ValueError, "scores: expected finite"),
    (lambda: LAYER(X, HOLE), ValueError, "mask: expected at least one allowed key"),
    (lambda: LAYER.pruned_scores(NAN), ValueError, "x: expected finite"),
    (lambda: SelfAttention(**PARTS | {"w_v": PARTS["w_o"]}), ValueError, "w_v: expected .*heads, dim, dim_v"),
    (lambda: SelfAttention(**PARTS | {"w_q": X}), ValueError, "w_q: expected three axes"),
    (lambda: SelfAttention(**PARTS | {"b_o": X[0, :5]}), ValueError, "b_o: expected .*7"),
    (lambda: SelfAttention(**PARTS | {"b_v": PARTS["b_q"]}), ValueError, "b_v: expected .*13"),
    (lambda: SelfAttention(**PARTS | {"w_k": None}), TypeError, "w_k: expected a torch tensor"),
    (lambda: SelfAttention(**PARTS | {"w_k": PARTS["w_k"].float()}), TypeError, "w_k: expected torch.fl"),
    (lambda: SelfAttention(**PARTS | {"b_k": PARTS["b_k"] / 0}), ValueError, "b_k: expected finite"),
    (lambda: SelfAttention.random(7, 3, generator=generator(0)), ValueError, "heads: expected a divisor"),
    (lambda: SelfAttention.random(7, 0, generator=generator(0)), ValueError, "heads: expected at least 1"),
    (lambda: SelfAttention.random(7, 1, 0, generator=generator(0)), ValueError, "dim_qk: expected at least"),
    (lambda: SelfAttention.random(7, scale=-1.0, generator=generator(0)), ValueError, "scale: expected"),
    (lambda: SelfAttention.from_torch(nn.Linear(2, 3)), TypeError, "module: expected MultiheadAttention"),
    (lambda: from_torch_with(kdim=5), ValueError, "module: expected the same size"),
    (lambda: from_torch_with(add_bias_kv=True), ValueError, "module: expected no add_bias_kv"),
    (lambda: from_torch_with(add_zero_attn=True), ValueError, "module: expected no add_bias_kv, no add_zero"),
    (lambda: from_torch_with(dropout=0.5), ValueError, "module: expected no dropout"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    """Without the shape checks of the tests, as a user has it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
