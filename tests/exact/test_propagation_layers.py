"""Propagation under masks and through whole layers, against the definition in mpmath."""

import math

import jaxtyping
import mpmath as mp
import pytest
import torch
from torch import nn

from ranklib.exact.difference import through
from ranklib.exact.propagation import ResidualState, propagate, propagate_layer, trajectory
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import causal_mask, window_mask
from test_propagation import (
    DIM,
    HEADS,
    TOKENS,
    centred,
    common_error,
    exact,
    exact_tokens,
    generator,
    layer_by_definition,
    pair_attention,
    random_attention,
    random_state,
    residual_error,
)

WIDTH = 11


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


def map_entries(x, function):
    return mp.matrix([[function(x[i, j]) for j in range(x.cols)] for i in range(x.rows)])


def module_by_definition(module, x):
    if isinstance(module, nn.Sequential):
        for part in module:
            x = module_by_definition(part, x)
        return x
    if isinstance(module, nn.Linear):
        return x * exact(module.weight).T + mp.ones(x.rows, 1) * exact(module.bias).T
    if isinstance(module, nn.ReLU):
        return map_entries(x, lambda z: max(z, mp.mpf(0)))
    if isinstance(module, nn.GELU):
        return map_entries(x, exact_gelu if module.approximate == "none" else tanh_gelu)
    out = mp.zeros(x.rows, x.cols)
    for i in range(x.rows):
        mean = mp.fsum(x[i, :]) / x.cols
        root = mp.sqrt(mp.fsum((z - mean) ** 2 for z in x[i, :]) / x.cols + mp.mpf(module.eps))
        for j in range(x.cols):
            gain, bias = mp.mpf(module.weight[j].item()), mp.mpf(module.bias[j].item())
            out[i, j] = gain * (x[i, j] - mean) / root + bias
    return out


def exact_gelu(z):
    return z * mp.erfc(-z / mp.sqrt(2)) / 2


def tanh_gelu(z):
    return z * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (z + mp.mpf(0.044715) * z**3))) / 2


def whole_layer_by_definition(layer, x, mask=None):
    norm = layer.norm
    inner = module_by_definition(layer.norm_1, x) if norm == "pre" else x
    x = mp.mpf(layer.skip) * x + layer_by_definition(inner, layer.attention, mask=mask)
    x = module_by_definition(layer.norm_1, x) if norm == "post" else x
    if layer.mlp is None:
        return x
    inner = module_by_definition(layer.norm_2, x) if norm == "pre" else x
    x = mp.mpf(layer.mlp_skip) * x + module_by_definition(layer.mlp, inner)
    return module_by_definition(layer.norm_2, x) if norm == "post" else x


def random_layer(seed, **options):
    options = {"mlp_dim": WIDTH, "biases": True} | options
    approximate = options.pop("approximate", "none")
    layer = Layer.random(DIM, generator=generator(seed), **options)
    with torch.no_grad():
        for norm in (layer.norm_1, layer.norm_2):
            for parameter in () if norm is None else norm.parameters():
                parameter.add_(torch.randn(DIM, generator=generator(seed + 50), dtype=torch.float64) / 3)
    if layer.mlp is not None and isinstance(layer.mlp[1], nn.GELU):
        layer.mlp[1].approximate = approximate
    return layer


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
        assert abs((y[1] - y[0]) / (v * weight * (x[1] - x[0])) - 1) < 1e-15
        assert abs(y[0] / (v * x[0]) - 1) < 1e-15


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


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_difference_of_every_size(approximate):
    """Relative to |t| + |difference| everywhere, and to the difference itself away from its zero."""
    function = exact_gelu if approximate == "none" else tanh_gelu
    a = torch.tensor([-30.0, -9.0, -4.0, -1.3, -0.75, -0.1, 0.0, 1e-9, 0.3, 2.0, 7.0, 40.0]).double()
    sizes = [2.0**-k for k in (0, 1, 2, 5, 20, 300)] + [3.0, 17.0, 90.0]
    steps = torch.tensor([[sign * size] * len(a) for size in sizes for sign in (1, -1)]).double()
    for t in steps:
        row, mantissa, exponent = through(nn.GELU(approximate), a, t[None], 0)
        with mp.workdps(160):
            for j in range(len(a)):
                z, step = mp.mpf(a[j].item()), mp.mpf(t[j].item())
                wanted = function(z + step) - function(z)
                got = mp.mpf(mantissa[0, j].item()) * mp.mpf(2) ** exponent
                assert abs(got - wanted) <= 4e-16 * (abs(step) + abs(wanted))
                if z > -10 and abs(wanted) > abs(step) / 10**30 and not -1.4 < z < -0.5:
                    assert abs(got - wanted) <= 2e-14 * abs(wanted), (float(z), float(step))


@pytest.mark.parametrize("exponent", [2, -3, -90, -5000])
def test_relu_difference_on_both_sides_of_the_kink(exponent):
    unit = 2.0**exponent
    row = torch.tensor([1.0, -1.0, 0.0, 0.25 * unit, -0.25 * unit]).double()
    residual = torch.tensor([[0.5] * 5, [-0.5] * 5, [0.125] * 5]).double()
    after, mantissa, e = through(nn.ReLU(), row, residual, exponent)
    with mp.workdps(1700):
        a, t = exact(row), exact(residual) * mp.mpf(2) ** exponent
        for i in range(3):
            for j in range(5):
                wanted = max(a[j] + t[i, j], mp.mpf(0)) - max(a[j], mp.mpf(0))
                assert mp.mpf(mantissa[i, j].item()) * mp.mpf(2) ** e == wanted
    assert torch.equal(after, row.relu())


def test_equal_rows_stay_equal_exactly():
    x = torch.randn(1, DIM, generator=generator(0), dtype=torch.float64).expand(TOKENS, DIM)
    for options in SWITCHES:
        layer = random_layer(0, **options)
        for mask in (None, MASKS["causal"]):
            state = propagate_layer(ResidualState.of(x), layer, mask)
            assert state.log10_size() == -math.inf
            assert torch.allclose(state.dense(), layer(x, mask), rtol=0, atol=1e-13)


def minor(x):
    """The determinant of two rows and columns over the squared norm: 0 for rank one."""
    return float(abs(x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0]) / mp.norm(x, 2) ** 2)


def test_directions_far_below_the_leading_one_are_lost():
    """After five cubic layers the second direction is far below 1e-16 of the first: rounding replaces it."""
    layers = [random_attention(i, heads=1) for i in range(5)]
    states = trajectory(random_state(0, -4), layers)
    with mp.workdps(700):
        x = exact_tokens(states[0])
        for attention in layers:
            x = layer_by_definition(x, attention)
        assert residual_error(states[-1], x) < 1e-12
        assert minor(centred(x)) < 1e-25
        assert 1e-19 < minor(exact(states[-1].mantissa)) < 1e-14


def test_what_layer_norm_removes_is_lost():
    """Of a residual along the common row eps alone leaves something, here about 1e-12 of what came in."""
    norm = nn.LayerNorm(DIM, eps=1e-12, dtype=torch.float64)
    row = torch.randn(DIM, generator=generator(0), dtype=torch.float64)
    for direction, low, high in ((row, 1e-8, 10.0), (row.flip(0), 0.0, 1e-14)):
        state = ResidualState(row, torch.tensor([[0.3], [-0.3]]).double() * direction, -50)
        with mp.workdps(80):
            wanted = module_by_definition(norm, exact_tokens(state))
            got = ResidualState(*through(norm, state.common, state.mantissa, state.exponent))
            assert low <= residual_error(got, wanted) < high


def test_layer_norm_without_spread_in_the_common_row():
    norm = nn.LayerNorm(2, eps=0.0, dtype=torch.float64)
    residual = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).double()
    row, mantissa, e = through(norm, torch.zeros(2).double(), residual, -9)
    assert row.tolist() == [0, 0] and (mantissa * 2.0**e).tolist() == [[1, -1], [-1, 1]]


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
    (lambda: through(nn.LayerNorm(3), ROW, PAIR, 0), ValueError, "module: expected LayerNorm over"),
    (lambda: through(nn.LayerNorm(2, eps=0), ROW, PAIR, 0), ValueError, "module: expected eps > 0"),
    (lambda: through(nn.ReLU(), ROW, PAIR * torch.nan, 0), ValueError, "mantissa: expected finite"),
    (lambda: through(nn.ReLU(), ROW, PAIR, 400), ValueError, "exponent: expected a residual up to"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
