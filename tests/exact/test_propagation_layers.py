"""Propagation under masks and through whole layers, against the definition in mpmath."""

import math

import jaxtyping
import mpmath as mp
import pytest
import torch
from torch import nn

from ranklib.exact.propagation import propagate, propagate_layer, trajectory
from ranklib.exact.state import ResidualState
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import causal_mask, window_mask
from tests.exact.by_definition import (
    DIM,
    HEADS,
    TOKENS,
    WIDTH,
    common_error,
    exact_tokens,
    generator,
    layer_by_definition,
    pair_attention,
    random_attention,
    random_layer,
    random_state,
    residual_error,
    whole_layer_by_definition,
)


def random_mask():
    mask = torch.rand(HEADS, TOKENS, TOKENS, generator=generator(7)) < 0.5
    return mask | torch.eye(TOKENS, dtype=torch.bool).roll(1, 0)


MASKS = {
    "causal": causal_mask(TOKENS),
    "window": window_mask(TOKENS, 1),
    "causal window": window_mask(TOKENS, 1, causal=True),
    "random, one per head": random_mask(),
    "everything": torch.ones(TOKENS, TOKENS, dtype=torch.bool),
    "padding": torch.tensor([True, False, True, True, False]),
}
CUBIC = ("everything", "padding")


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("exponent", [0, -2, -25, -537, -4983])
def test_one_masked_layer_is_exact_to_rounding_at_every_size(name, exponent):
    mask = MASKS[name]
    if name in CUBIC:
        exponent //= 3
    for seed in range(2 if exponent > -100 else 1):
        state, attention = random_state(seed, exponent), random_attention(seed)
        with mp.workdps(60 + int(0.302 * (3 if name in CUBIC else 1) * abs(exponent))):
            wanted = layer_by_definition(exact_tokens(state), attention, mask=mask)
            got = propagate(state, attention, mask=mask)
            assert residual_error(got, wanted) < 1e-14, seed
            assert common_error(got, wanted) < 1e-14, seed
            order = 3 if name in CUBIC else 1
            assert exponent > -100 or abs(got.exponent - order * exponent) < 30


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("offset, limit", [(30.0, 1e-13), (300.0, 1e-12)])
def test_masks_on_a_base_that_is_nearly_one_hot(name, offset, limit):
    """Rows whose masks differ in light keys only differ by as little, and some masks drop the heavy key."""
    for seed in range(2):
        state = random_state(seed, -25, offset * 2.0**25)
        attention = random_attention(seed, heads=HEADS, biases=False)
        with mp.workdps(int(60 + 3 * offset)):
            wanted = layer_by_definition(exact_tokens(state), attention, mask=MASKS[name])
            assert residual_error(propagate(state, attention, mask=MASKS[name]), wanted) < limit


def test_rows_that_differ_by_a_light_key_only():
    """Key 2 weighs e^-75, and only it tells row 0 from the others: R' is that small, and exact."""
    residual = torch.tensor([[0.5], [0.25], [-0.75]]).double()
    state = ResidualState(torch.tensor([60.0 * 2.0**200], dtype=torch.float64), residual, -200)
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1]]).bool()
    with mp.workdps(300):
        wanted = layer_by_definition(exact_tokens(state), pair_attention(), mask=mask)
        got = propagate(state, pair_attention(), mask=mask)
        assert residual_error(got, wanted) < 1e-13
    assert got.log10_size() - state.log10_size() < -30


def test_rows_that_drop_all_heavy_keys():
    """Keys 0 and 1 outweigh the rest by e^47; of rows 1 and 2 only the plain average is exact."""
    residual = torch.tensor([[0.5], [0.49], [-0.75], [-0.3]]).double()
    state = ResidualState(torch.tensor([60.0 * 2.0**200], dtype=torch.float64), residual, -200)
    mask = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 1]]).bool()
    with mp.workdps(300):
        wanted = layer_by_definition(exact_tokens(state), pair_attention(), mask=mask)
        assert residual_error(propagate(state, pair_attention(), mask=mask), wanted) < 1e-13


def test_eight_causal_layers_collapse_geometrically():
    layers = [random_attention(i) for i in range(8)]
    states = trajectory(random_state(0, -200), layers, mask=MASKS["causal"])
    assert all(-10 < a.exponent - b.exponent < 10 for a, b in zip(states, states[1:]))
    with mp.workdps(120):
        x = exact_tokens(states[0])
        for state, attention in zip(states[1:], layers, strict=True):
            x = layer_by_definition(x, attention, mask=MASKS["causal"])
            assert residual_error(state, x) < 1e-13


@pytest.mark.parametrize("exponent", [0, -60, -3000])
def test_the_causal_pair_in_closed_form(exponent):
    """Row 0 stays at v x_0, and x_1 - x_0 is multiplied by v P_11, P_11 = sigmoid(w x_1 (x_1 - x_0))."""
    w, v = -1.5, 0.75
    state = ResidualState(torch.tensor([0.5]).double(), torch.tensor([[0.5], [-0.5]]).double(), exponent)
    after = propagate(state, pair_attention(w, v), mask=causal_mask(2))
    with mp.workdps(2000):
        x = exact_tokens(state)
        weight = 1 / (1 + mp.exp(-w * x[1] * (x[1] - x[0])))
        y = exact_tokens(after)
        assert abs((y[1] - y[0]) / (v * weight * (x[1] - x[0])) - 1) < 1e-14
        assert abs(y[0] / (v * x[0]) - 1) < 1e-14


SWITCHES = [
    dict(skip=True, mlp_dim=None, norm="post"),
    dict(skip=False, mlp_dim=None, norm="pre"),
    dict(skip=False, mlp_skip=False),
    dict(skip=0.5, mlp_skip=-1.0, activation="gelu"),
    dict(skip=True, mlp_skip=True, activation="gelu", norm="post"),
    dict(skip=True, mlp_skip=True, activation="relu", norm="pre"),
    dict(skip=False, mlp_skip=True, activation="gelu", approximate="tanh", norm="pre"),
    dict(skip=False, mlp_skip=False, activation="gelu", approximate="tanh", norm="post", heads=7),
]


def name_of(options):
    return " ".join(f"{key}={value}" for key, value in options.items())


@pytest.mark.parametrize("options", SWITCHES, ids=name_of)
@pytest.mark.parametrize("exponent", [1, -3, -300])
@pytest.mark.parametrize("masked", [False, True])
def test_one_whole_layer_is_exact_to_rounding(options, exponent, masked):
    mask = MASKS["causal"] if masked else None
    state, layer = random_state(0, exponent), random_layer(0, **options)
    with mp.workdps(60 + int(0.91 * abs(exponent))):
        wanted = whole_layer_by_definition(layer, exact_tokens(state), mask)
        got = propagate_layer(state, layer, mask)
        errors = residual_error(got, wanted), common_error(got, wanted)
    assert max(errors) < 2e-14, errors


@pytest.mark.parametrize("options", SWITCHES, ids=name_of)
def test_a_network_agrees_with_its_forward_pass_where_float64_resolves(options):
    network = Network([random_layer(i, **options) for i in range(3)])
    x = torch.randn(TOKENS, DIM, generator=generator(0), dtype=torch.float64)
    for mask in (None, MASKS["window"], MASKS["random, one per head"][:1]):
        states = trajectory(ResidualState.of(x), network, mask=mask)
        for state, wanted in zip(states, network.trace(x, mask), strict=True):
            assert torch.allclose(state.dense(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("options", [SWITCHES[2], SWITCHES[4], SWITCHES[6]], ids=name_of)
def test_a_deep_network_far_below_rounding(options):
    """1e-12 a layer; the pure part loses its order three a layer, so four layers start at 2^-20."""
    network = Network([random_layer(i, **options) for i in range(4)])
    states = trajectory(random_state(0, -20), list(network.layers))
    with mp.workdps(int(60 - min(state.log10_size() for state in states))):
        x = exact_tokens(states[0])
        for depth, (state, layer) in enumerate(zip(states[1:], network.layers, strict=True), start=1):
            x = whole_layer_by_definition(layer, x)
            assert residual_error(state, x) < 1e-12 * depth


def test_equal_rows_stay_equal_exactly():
    x = torch.randn(1, DIM, generator=generator(0), dtype=torch.float64).expand(TOKENS, DIM)
    for options in SWITCHES:
        layer = random_layer(0, **options)
        for mask in (None, MASKS["causal"]):
            state = propagate_layer(ResidualState.of(x), layer, mask)
            assert state.log10_size() == -math.inf
            assert torch.allclose(state.dense(), layer(x, mask), rtol=0, atol=1e-13)


STATE = random_state(0, -3)
LAYER = Layer.random(DIM, generator=generator(0), mlp_dim=WIDTH)
NO_ROW = torch.ones(TOKENS, TOKENS).bool().tril(-1)
ROW, PAIR = torch.ones(2).double(), torch.tensor([[0.5, 0.5], [-0.5, -0.5]]).double()


def with_mlp(module):
    return Layer(LAYER.attention, nn.Sequential(module))


BAD = [
    (lambda: propagate(STATE, LAYER.attention, mask=NO_ROW), ValueError, "mask: expected at least one"),
    (lambda: propagate(STATE, LAYER.attention, mask=NO_ROW.double()), TypeError, "mask: expected dtype bool"),
    (lambda: propagate(STATE, LAYER.attention, mask=NO_ROW[:3]), ValueError, "mask: expected a shape"),
    (lambda: propagate_layer(STATE, LAYER, NO_ROW), ValueError, "mask: expected at least one"),
    (lambda: propagate_layer(STATE, LAYER.attention), TypeError, "layer: expected Layer"),
    (lambda: propagate_layer(PAIR, LAYER), TypeError, "state: expected ResidualState"),
    (lambda: propagate_layer(ResidualState.of(PAIR), LAYER), ValueError, "state: expected .*7"),
    (lambda: trajectory(STATE, [LAYER], skip=True), ValueError, "skip: expected none.*switched"),
    (lambda: propagate_layer(STATE, with_mlp(nn.SiLU())), TypeError, "module: expected one of .*got SiLU"),
    (lambda: propagate_layer(STATE, with_mlp(nn.Dropout())), ValueError, "module: expected no dropout"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
