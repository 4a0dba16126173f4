"""Propagation against the definition in mpmath, with as many digits as the residual needs."""

import math

import jaxtyping
import mpmath as mp
import pytest
import torch

from ranklib.exact.propagation import propagate, trajectory
from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention
from tests.exact.by_definition import (
    DIM,
    DIM_QK,
    HEADS,
    TOKENS,
    centred,
    common_error,
    exact_tokens,
    generator,
    layer_by_definition,
    pair_attention,
    random_attention,
    random_state,
    residual_error,
)


def one_layer_errors(state, attention, skip=False, digits=60):
    with mp.workdps(digits + int(0.91 * abs(state.exponent))):  # the cube of 2^e: 3 log10(2) = 0.903
        wanted = layer_by_definition(exact_tokens(state), attention, skip)
        got = propagate(state, attention, skip)
        return residual_error(got, wanted), common_error(got, wanted)


def logit_spread(state, attention):
    s = attention.scores(state.dense()).detach()
    return float((s.max(-1).values - s.min(-1).values).max())


# Residuals from 1 to 1e-1500; near -511 the square of 2^e leaves float64, below the first order is exact.
SEEDS = {0: 4, -1: 4, -2: 4, -7: 2, -25: 2, -170: 2, -505: 1, -513: 1, -537: 1, -4983: 1}


@pytest.mark.parametrize("exponent", SEEDS)
@pytest.mark.parametrize("heads, biases", [(1, False), (HEADS, True)])
def test_one_layer_is_exact_to_rounding_at_every_size(exponent, heads, biases):
    for seed in range(SEEDS[exponent]):
        errors = one_layer_errors(random_state(seed, exponent), random_attention(seed, heads, biases))
        assert max(errors) < 4e-15, (seed, errors)


@pytest.mark.parametrize("exponent", [0, -7, -170, -537])
@pytest.mark.parametrize("skip", [True, 0.5, -1.0, 1e-3])
def test_one_layer_with_a_skip_of_any_strength(exponent, skip):
    for seed in range(2):
        errors = one_layer_errors(random_state(seed, exponent), random_attention(seed), skip)
        assert max(errors) < 4e-15, (seed, errors)


def base_gap(state, attention):
    """How far the largest key-only score leads the second, for a single head without biases."""
    key = state.mantissa @ (attention.w_qk[0].detach().mT @ state.common) / math.sqrt(DIM_QK)
    top = (key * 2.0**state.exponent).sort().values
    return float(top[-1] - top[-2])


@pytest.mark.parametrize("exponent", [0, -25, -170])
@pytest.mark.parametrize("offset", [30.0, 1000.0])
def test_a_base_that_is_nearly_one_hot(exponent, offset):
    """The small weights of the base carry the result; they have an exponent of their own."""
    gaps = []
    for seed in range(8):
        state = random_state(seed, exponent, offset * 2.0**-exponent)
        attention = random_attention(seed, heads=1, biases=False)
        assert one_layer_errors(state, attention, digits=400)[0] < 1e-15 * (1 + offset)
        gaps.append(base_gap(state, attention))
    assert max(gaps) > 0.4 * offset


def test_weights_of_the_base_may_underflow():
    """p = (1, exp(-2000)): the residual is far below the range of float64, and known to 13 digits."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    state = ResidualState.of(torch.tensor([[1001.0], [999.0]]).double())
    with mp.workdps(5000):
        wanted = layer_by_definition(exact_tokens(state), attention)
        assert residual_error(propagate(state, attention), wanted) < 1e-12
    assert propagate(state, attention).log10_size() < -850


def test_large_logits_cost_their_size_in_rounding():
    spreads = []
    for seed in range(8):
        state, attention = random_state(seed, 1, offset=0.1), random_attention(seed, scale=10.0)
        spread = logit_spread(state, attention)
        spreads.append(spread)
        assert one_layer_errors(state, attention, digits=400)[0] < 1e-15 * (1 + spread)
    assert max(spreads) > 100


def test_rows_with_small_and_large_scores_together():
    """One far token makes some rows of E large while the others stay tiny."""
    for seed in range(8):
        g = torch.Generator().manual_seed(seed)
        x = 1e-4 * torch.randn(TOKENS, DIM, generator=g, dtype=torch.float64)
        x[2] += 3 * torch.randn(DIM, generator=g, dtype=torch.float64)
        attention = random_attention(seed, scale=2.0)
        assert one_layer_errors(ResidualState.of(x), attention)[0] < 1e-14


@pytest.mark.parametrize(
    "heads, biases, exponent, seed",
    [(1, False, 2, 2), (1, False, 2, 3), (HEADS, True, 1, 0)],
)
def test_eight_layers(heads, biases, exponent, seed):
    layers = [random_attention(10 * seed + i, heads, biases) for i in range(8)]
    states = trajectory(random_state(seed, exponent), layers)
    assert states[-1].log10_size() < -690
    with mp.workdps(int(40 - states[-1].log10_size())):
        x = exact_tokens(states[0])
        for state, attention in zip(states[1:], layers, strict=True):
            x = layer_by_definition(x, attention)
            assert residual_error(state, x) < 1e-11
        size = centred(x).apply(abs)
        columns = max(mp.fsum(size[:, j]) for j in range(DIM))
        rows = max(mp.fsum(size[i, :]) for i in range(TOKENS))
        assert abs(float(mp.log10(columns * rows) / 2) - states[-1].log10_size()) < 1e-10


def test_eight_layers_with_skip():
    layers = [random_attention(i) for i in range(8)]
    states = trajectory(random_state(0, -1), layers, skip=True)
    with mp.workdps(60):
        x = exact_tokens(states[0])
        for state, attention in zip(states[1:], layers, strict=True):
            x = layer_by_definition(x, attention, 1)
            assert residual_error(state, x) < 1e-13


def test_the_two_token_orbit():
    """a <- a tanh(a^2) in closed form; a = 1 gives log10 a = -10.8, -32.5, -97.5 at layers 5, 6, 7."""
    state = ResidualState.of(torch.tensor([[1.0], [-1.0]]))
    states = trajectory(state, [pair_attention()] * 10)
    logs = [s.log10_size() - math.log10(2) / 2 for s in states]  # the composite of (a, -a) is sqrt(2) a
    with mp.workdps(60):
        a = mp.mpf(1)
        for layer in range(11):
            assert abs(logs[layer] - float(mp.log10(a))) < 1e-11 * 3**layer / 3**10 + 1e-13 * abs(logs[layer])
            a = a * mp.tanh(a * a)
    assert [round(value, 1) for value in logs[5:8]] == [-10.8, -32.5, -97.5]


@pytest.mark.parametrize("w, v", [(1.0, 2.0), (-3.0, 0.5), (0.25, -1.5)])
def test_the_two_token_formula_with_an_offset(w, v):
    """x_i -> v (m + a tanh(w a x_i)), half-gap v a (tanh(w a (m + a)) - tanh(w a (m - a))) / 2."""
    for m, a in ((0.5, 1.0), (2.0, 0.01), (-1.0, 1e-6)):
        x = torch.tensor([[m + a], [m - a]], dtype=torch.float64)
        state = propagate(ResidualState.of(x), pair_attention(w, v))
        got = state.mantissa[:, 0] * 2.0**state.exponent
        with mp.workdps(60):
            high, low = mp.mpf(m + a), mp.mpf(m - a)
            middle, half = (high + low) / 2, (high - low) / 2
            new = [v * (middle + half * mp.tanh(w * half * x)) for x in (high, low)]
            wanted = float((new[0] - new[1]) / 2)
        assert abs(float(got[0]) - wanted) < 1e-12 * abs(wanted)
        assert abs(float(got.sum())) < 1e-14 * abs(wanted)


@pytest.mark.parametrize("skip", [False, True])
def test_dense_agrees_with_the_layer_where_float64_resolves(skip):
    for seed in range(8):
        x = torch.randn(TOKENS, DIM, generator=generator(seed), dtype=torch.float64)
        attention = random_attention(seed)
        state = ResidualState.of(x)
        assert torch.allclose(state.dense(), x, rtol=0, atol=1e-15)
        wanted = attention(x) + (x if skip else 0)
        assert torch.allclose(propagate(state, attention, skip).dense(), wanted, rtol=0, atol=1e-13)


def test_other_dtypes_are_computed_in_float64():
    x = torch.randn(TOKENS, DIM, generator=generator(0), dtype=torch.float32)
    low = SelfAttention.random(DIM, generator=generator(1), dtype=torch.float32)
    high = SelfAttention(**{name: value.double() for name, value in low.named_parameters()})
    got = propagate(ResidualState.of(x), low)
    wanted = propagate(ResidualState.of(x.double()), high)
    assert got.exponent == wanted.exponent and torch.equal(got.mantissa, wanted.mantissa)


def test_equal_rows_stay_equal_exactly():
    x = torch.randn(1, DIM, generator=generator(0), dtype=torch.float64).expand(TOKENS, DIM)
    attention = random_attention(1)
    for skip in (False, True):
        state = propagate(ResidualState.of(x), attention, skip)
        assert not state.mantissa.any() and state.log10_size() == -math.inf
        wanted = attention(x) + (x if skip else 0)
        assert torch.allclose(state.dense(), wanted, rtol=0, atol=1e-14)


def test_heads_that_cancel_leave_the_skip():
    one = random_attention(0, heads=1, biases=False)
    both = {name: getattr(one, name).repeat(2, 1, 1) for name in ("w_q", "w_k", "w_v", "w_o")}
    both["w_o"][1] *= -1
    state = random_state(0, -3)
    got = propagate(state, SelfAttention(**both), skip=True)
    assert got.exponent == state.exponent
    assert torch.allclose(got.mantissa, state.mantissa, rtol=0, atol=1e-14)
    gone, alone = propagate(state, SelfAttention(**both)), propagate(state, one)
    assert gone.log10_size() < alone.log10_size() - 13  # two heads in one product: zero up to rounding


def test_the_state_is_normalised():
    for seed in range(5):
        for exponent in (3, -40, -3000):
            state = propagate(random_state(seed, exponent), random_attention(seed))
            assert 0.5 <= state.mantissa.abs().max() < 1
            assert state.mantissa.mean(0).abs().max() < 1e-15


ROW, PAIR = torch.ones(1).double(), torch.tensor([[0.5], [-0.5]]).double()
BAD = [
    (lambda: propagate(PAIR, pair_attention()), TypeError, "state: expected ResidualState"),
    (lambda: propagate(ResidualState.of(PAIR), torch.nn.Identity()), TypeError, "attention: expected Self"),
    (lambda: propagate(ResidualState.of(PAIR), random_attention(0)), ValueError, "state: expected .*7"),
    (lambda: propagate(ResidualState.of(PAIR), pair_attention(), torch.nan), ValueError, "skip: expected"),
    (lambda: propagate(ResidualState(ROW, PAIR, 99), pair_attention()), ValueError, "state: expected scores"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    """Without the shape checks of the tests, as a user has it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
