"""Layers and networks against torch's encoder layer and against a loop written out by hand."""

import itertools

import jaxtyping
import pytest
import torch
from torch import nn

from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import causal_mask, window_mask

BATCH, TOKENS, DIM, HEADS, MLP_DIM, DEPTH = 2, 5, 6, 3, 11, 3
NORMS = ("none", "post", "pre")
SWITCHES = list(itertools.product([True, False], [True, False], [True, False], NORMS))
SWITCH_NAMES = "skip, mlp_skip, mlp, norm"


def generator(seed):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def close(a, b, tol=1e-12):
    return torch.allclose(a, b, rtol=0, atol=tol)


def randomised(module, seed):
    """Every parameter, the gains and biases of LayerNorm too, away from its initial value."""
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.add_(0.3 * randn(*parameter.shape, seed=100 * seed + i))
    return module


def random_network(seed, norm="post", **options):
    options = {"depth": DEPTH, "dim": DIM, "heads": HEADS, "mlp_dim": MLP_DIM, "biases": True} | options
    return randomised(Network.random(**options, norm=norm, generator=generator(seed)), seed)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu", nn.GELU(approximate="tanh")])
@pytest.mark.parametrize("bias", [True, False])
def test_from_torch_gives_the_same_output(norm_first, activation, bias):
    for seed in range(5):
        options = {"activation": activation, "norm_first": norm_first, "bias": bias, "dtype": torch.float64}
        module = nn.TransformerEncoderLayer(DIM, HEADS, MLP_DIM, dropout=0, batch_first=True, **options)
        randomised(module, seed)
        x = randn(BATCH, TOKENS, DIM, seed=seed)
        layer = Layer.from_torch(module)
        assert close(layer(x), module(x))
        for mask in (causal_mask(TOKENS), window_mask(TOKENS, 1)):
            assert close(layer(x, mask), module(x, src_mask=~mask))


def test_from_torch_accepts_dropout_in_eval_mode_and_any_epsilon():
    module = nn.TransformerEncoderLayer(
        DIM, HEADS, MLP_DIM, dropout=0.5, layer_norm_eps=0.1, batch_first=True, dtype=torch.float64
    )
    randomised(module, 0).eval()
    x = randn(BATCH, TOKENS, DIM, seed=0)
    assert close(Layer.from_torch(module)(x), module(x))


def test_from_torch_copies():
    module = nn.TransformerEncoderLayer(DIM, HEADS, MLP_DIM, dropout=0, dtype=torch.float64)
    layer, x = Layer.from_torch(module), randn(TOKENS, DIM, seed=0)
    before = layer(x)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    assert torch.equal(layer(x), before)


def by_hand(layers, x, skip, mlp_skip, mlp, norm, mask=None):
    """The documented formulas, one case after the other."""
    trace = [x]
    for layer in layers:
        if norm == "post":
            x = layer.norm_1(skip * x + layer.attention(x, mask))
            x = layer.norm_2(mlp_skip * x + layer.mlp(x)) if mlp else x
        elif norm == "pre":
            x = skip * x + layer.attention(layer.norm_1(x), mask)
            x = mlp_skip * x + layer.mlp(layer.norm_2(x)) if mlp else x
        else:
            x = skip * x + layer.attention(x, mask)
            x = mlp_skip * x + layer.mlp(x) if mlp else x
        trace.append(x)
    return trace


@pytest.mark.parametrize(SWITCH_NAMES, SWITCHES)
@pytest.mark.parametrize("mask", [None, causal_mask(TOKENS)])
def test_every_combination_of_switches(skip, mlp_skip, mlp, norm, mask):
    for seed in range(3):
        network, x = random_network(seed), randn(BATCH, TOKENS, DIM, seed=seed)
        switched = network.switched(skip=skip, mlp_skip=mlp_skip, mlp=mlp, norm=norm)
        wanted = by_hand(network.layers, x, skip, mlp_skip, mlp, norm, mask)
        got = switched.trace(x, mask)
        assert len(got) == DEPTH + 1 and torch.equal(got[0], x)
        assert all(close(a, b) for a, b in zip(got, wanted, strict=True))
        assert torch.equal(switched(x, mask), got[-1])


def test_the_switches_all_differ():
    """Otherwise the comparison by hand could not see a switch that is ignored."""
    network, x = random_network(0), randn(TOKENS, DIM, seed=0)
    outputs = []
    for skip, mlp_skip, mlp, norm in SWITCHES:
        if mlp or mlp_skip:  # without the MLP its skip has no meaning
            outputs.append(network.switched(skip=skip, mlp_skip=mlp_skip, mlp=mlp, norm=norm)(x))
    for a, b in itertools.combinations(outputs, 2):
        assert (a - b).abs().max() > 1e-6
    bare = network.switched(mlp=False)
    assert torch.equal(bare(x), bare.switched(mlp_skip=False)(x))


@pytest.mark.parametrize("name, value", [("skip", 0), ("mlp_skip", False), ("norm", "pre"), ("mlp", False)])
def test_one_switch_leaves_the_others(name, value):
    network, x = random_network(1), randn(TOKENS, DIM, seed=1)
    before = {"skip": True, "mlp_skip": True, "mlp": True, "norm": "post"}
    wanted = by_hand(network.layers, x, **before | {name: value})[-1]
    assert close(network.switched(**{name: value})(x), wanted)
    assert close(network(x), by_hand(network.layers, x, **before)[-1])


def test_switched_shares_its_parameters():
    network, x = random_network(0), randn(TOKENS, DIM, seed=0)
    bare = network.switched(skip=False, norm="none")
    before = bare(x)
    assert {id(p) for p in bare.parameters()} == {id(p) for p in network.parameters()}
    with torch.no_grad():
        network.layers[0].attention.w_v.mul_(2)
    assert not close(bare(x), before, 1e-3)


@pytest.mark.parametrize("norm", NORMS)
def test_a_skip_may_have_a_strength(norm):
    network, x = random_network(0), randn(TOKENS, DIM, seed=0)
    got = network.switched(skip=0.3, mlp_skip=-2, norm=norm)(x)
    assert close(got, by_hand(network.layers, x, 0.3, -2, True, norm)[-1])


@pytest.mark.parametrize(SWITCH_NAMES, SWITCHES)
def test_equal_rows_stay_equal(skip, mlp_skip, mlp, norm):
    for seed in range(3):
        network = random_network(seed).switched(skip=skip, mlp_skip=mlp_skip, mlp=mlp, norm=norm)
        x = randn(BATCH, 1, DIM, seed=seed).expand(BATCH, TOKENS, DIM)
        for mask in (None, causal_mask(TOKENS)):
            for y in network.trace(x, mask):
                assert close(y, y[:, :1].expand_as(y))


@pytest.mark.parametrize("norm", NORMS)
def test_permutation_equivariance_without_a_mask(norm):
    for seed in range(3):
        network, x = random_network(seed, norm), randn(BATCH, TOKENS, DIM, seed=seed)
        order = torch.randperm(TOKENS, generator=generator(seed))
        assert close(network(x[:, order]), network(x)[:, order])


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_reach_every_parameter_that_matters(norm):
    network = random_network(0, norm, depth=2, scale=0.3)
    x = randn(TOKENS, DIM, seed=1).requires_grad_()
    (network(x) * randn(TOKENS, DIM, seed=2)).sum().backward()
    assert torch.isfinite(x.grad).all() and x.grad.abs().max() > 1e-6
    for name, parameter in network.named_parameters():
        assert torch.isfinite(parameter.grad).all()
        assert name.endswith("b_k") or parameter.grad.abs().max() > 1e-8, name
    assert torch.autograd.gradcheck(network, (x,))


def test_networks_under_vmap():
    networks, x = [random_network(seed) for seed in range(3)], randn(BATCH, TOKENS, DIM, seed=0)
    parameters, buffers = torch.func.stack_module_state(networks)

    def call(p, b):
        return torch.func.functional_call(networks[0], (p, b), (x,))

    got = torch.func.vmap(call)(parameters, buffers)
    for y, network in zip(got, networks, strict=True):
        assert close(y, network(x))


@pytest.mark.parametrize("activation, kind", [("relu", nn.ReLU), ("gelu", nn.GELU)])
def test_random_follows_its_generator_and_its_law(activation, kind):
    options = {"mlp_dim": 97, "activation": activation, "scale": 2.0, "norm": "pre"}
    state = torch.random.get_rng_state()
    layer = Layer.random(101, generator=generator(0), biases=True, **options)
    assert torch.equal(torch.random.get_rng_state(), state)
    first, middle, last = layer.mlp
    assert type(middle) is kind and first.weight.shape == (97, 101) and last.weight.shape == (101, 97)
    drawn = (layer.attention.w_q, 101), (first.weight, 101), (last.weight, 97), (first.bias, 101)
    for value, fan_in in drawn:
        deviation = 2 / fan_in**0.5
        assert abs(value.std() / deviation - 1) < 5 / (2 * value.numel()) ** 0.5
        assert abs(value.mean()) < 5 * deviation / value.numel() ** 0.5
    assert not Layer.random(101, generator=generator(0), **options).mlp[0].bias.any()
    again = Layer.random(101, generator=generator(0), biases=True, **options)
    assert all(torch.equal(a, b) for a, b in zip(layer.parameters(), again.parameters(), strict=True))
    network = Network.random(2, 7, generator=generator(0))
    assert not torch.equal(network.layers[0].attention.w_q, network.layers[1].attention.w_q)
    low = Network.random(2, 6, 3, generator=generator(0), mlp_dim=5, norm="post", dtype=torch.float32)
    assert {p.dtype for p in low.parameters()} == {torch.float32}
    assert low(randn(TOKENS, DIM, seed=0).float()).dtype == torch.float32


def test_pure_attention_collapses_and_the_skip_does_not():
    network, x = random_network(0, "none", depth=6), randn(TOKENS, DIM, seed=0)

    def spread(y):
        return (y - y.mean(0)).norm() / y.norm()

    assert spread(network.switched(skip=False, mlp=False)(x)) < 1e-9
    assert spread(network.switched(mlp=False)(x)) > 1e-2


ATTENTION = SelfAttention.random(DIM, generator=generator(0))
LAYER = Layer.random(DIM, generator=generator(0))
X = randn(TOKENS, DIM, seed=0)
NAN = X.clone()
NAN[1, 2] = torch.nan


def normed():
    return random_network(0, "pre")


def encoder_layer(**options):
    return Layer.from_torch(nn.TransformerEncoderLayer(DIM, HEADS, MLP_DIM, **{"dropout": 0} | options))


BAD = [
    (lambda: Layer(nn.Identity()), TypeError, "attention: expected SelfAttention, got Identity"),
    (lambda: Layer(ATTENTION, norm="batch"), ValueError, "norm: expected one of .*'batch'"),
    (lambda: Layer(ATTENTION, norm="pre"), ValueError, "norm_1: expected a module"),
    (lambda: Layer(ATTENTION, nn.Identity(), norm="post", norm_1=nn.Identity()), ValueError, "norm_2: expe"),
    (lambda: Layer(ATTENTION, skip=torch.nan), ValueError, "skip: expected a finite number"),
    (lambda: Layer(ATTENTION, mlp_skip=torch.inf), ValueError, "mlp_skip: expected a finite number"),
    (lambda: Layer.random(DIM, generator=generator(0), mlp_dim=0), ValueError, "mlp_dim: expected at least"),
    (lambda: Layer.random(DIM, generator=generator(0), scale=0.0), ValueError, "scale: expected a positive"),
    (lambda: random_network(0, activation="tanh"), ValueError, "activation: expected one of"),
    (lambda: LAYER.switched(mlp=True), ValueError, "mlp: expected False or None"),
    (lambda: LAYER.switched(norm="post"), ValueError, "norm_1: expected a module"),
    (lambda: Network([]), ValueError, "layers: expected at least one"),
    (lambda: Network([nn.Identity()]), TypeError, "layers: expected Layer"),
    (lambda: Network([LAYER, Layer.random(7, generator=generator(0))]), ValueError, "one dim, got .6, 7"),
    (lambda: Network.random(0, DIM, generator=generator(0)), ValueError, "depth: expected at least 1"),
    (lambda: encoder_layer(dropout=0.1), ValueError, "module: expected no dropout"),
    (lambda: encoder_layer(activation=torch.tanh), ValueError, "module: expected activation relu or gelu"),
    (lambda: Layer.from_torch(nn.Identity()), TypeError, "module: expected TransformerEncoderLayer"),
    (lambda: LAYER(NAN), ValueError, "x: expected finite entries, got 1"),
    (lambda: normed()(NAN), ValueError, "x: expected finite entries, got 1"),
    (lambda: normed()(X.long()), TypeError, "x: expected a floating-point dtype"),
    (lambda: normed()(X.float()), TypeError, "x: expected torch.float64"),
    (lambda: normed()(X.T), ValueError, "x: expected .*tokens, 6"),
    (lambda: normed().trace(X, ~causal_mask(TOKENS)), ValueError, "mask: expected at least one"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    """Without the shape checks of the tests, as a user has it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
