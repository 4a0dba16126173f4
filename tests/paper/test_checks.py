"""What a check of a layer or a network measures, reports and refuses."""

import math

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Network
from ranklib.paper.bounds import BOUNDS, Hypothesis, bound_value
from ranklib.paper.checks import check_layer, check_network, measure_layer
from ranklib.paper.constants import x_star
from ranklib.paper.counterexamples import two_heads
from ranklib.paper.least import residual_size, residual_size_exact
from ranklib.paper.sizes import layer_sizes


def rng(seed):
    return torch.Generator().manual_seed(seed)


def gauss(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def attention_of(generator, dim, heads=1, dim_qk=3, scale=1.0, dim_v=2):
    return SelfAttention.random(dim, heads, dim_qk, dim_v, generator=generator, scale=scale, biases=True)


def test_check_measures_the_residual_of_the_output():
    for seed in range(6):
        generator = rng(seed)
        attention = attention_of(generator, 5, heads=2)
        x = gauss(generator, 7, 5) + 2
        found, exact = check_layer(attention, x, "separate_many_heads"), residual_size_exact(attention(x))
        lower, upper = found.measured
        assert lower <= exact.upper * (1 + 1e-9) and exact.lower * (1 - 1e-9) <= upper < lower * 1.0011
        assert found.holds and found.certified and found.applies
        assert abs(found.upper - bound_value("separate_many_heads", found.sizes).item()) < 1e-9 * found.upper
        assert found.slack == pytest.approx(found.upper / upper)
        best = residual_size_exact(x)
        assert best.lower * (1 - 1e-9) <= found.sizes.rho <= best.upper * 1.0011
        centred = check_layer(attention, x, "separate_many_heads", centre=gauss(generator, 5))
        assert centred.holds and centred.sizes.rho > found.sizes.rho


def test_hypotheses_are_reported_false_where_they_fail():
    generator = rng(4)
    x = 3 * gauss(generator, 7, 5)
    several = check_layer(attention_of(generator, 5, heads=2), x, "two_tokens")
    assert several.hypotheses == {"heads": (2, 1, False), "tokens": (7, 2, False)} and not several.applies
    assert all(isinstance(hypothesis, Hypothesis) for hypothesis in several.hypotheses.values())
    wild = check_layer(attention_of(generator, 5, scale=3.0), x, "printed_one_layer")
    value, limit, holds = wild.hypotheses["osc"]
    assert limit == x_star() < value and not holds and not wild.applies
    assert value == wild.sizes.osc.max()
    four = check_layer(attention_of(generator, 5, scale=3.0), x, "constant_four")
    assert not four.hypotheses["osc"].holds and not four.hypotheses["lam"].holds
    assert four.hypotheses["tokens"].holds and four.applies, "one of three is enough"
    many = 3 * gauss(generator, 2300, 5)
    sizes = layer_sizes(attention_of(generator, 5, scale=3.0), many)
    assert not BOUNDS["constant_four"].applies(sizes)
    calm = check_layer(attention_of(generator, 5, scale=0.1), x, "printed_one_layer")
    assert calm.applies and calm.holds


def test_printed_bound_for_many_heads_breaks_at_64514_outputs():
    # The hypothesis on the scores holds; the one on the shapes does not.
    for m, holds in ((64513, True), (64514, False), (65536, False)):
        x, attention, facts = two_heads(m, w=1e-5)
        found = check_layer(attention, x, "printed_many_heads")
        assert found.holds is holds and found.certified, m
        assert found.hypotheses["osc"].holds and not found.hypotheses["shape"].holds and not found.applies
        assert found.hypotheses["shape"].value == pytest.approx(m)
        assert 1 / found.slack == pytest.approx(facts["ratio"], rel=1e-9)
        assert check_layer(attention, x, "separate_many_heads").holds


def test_equal_tokens_leave_nothing():
    attention = attention_of(rng(5), 5)
    found = check_layer(attention, torch.ones(3, 5, dtype=torch.float64), "unconditional")
    assert found.upper == 0 and found.measured == (0, 0) and found.holds and found.slack == math.inf


def test_network_is_checked_at_every_layer_far_below_rounding():
    for seed, heads in ((0, 1), (1, 3)):
        generator = rng(seed)
        network = Network.random(7, 6, heads, skip=False, generator=generator)
        found = check_network(network, 0.5 * gauss(generator, 5, 6), "separate_many_heads")
        assert len(found) == 7 and all(layer.holds and layer.certified and layer.applies for layer in found)
        assert found[-1].log10_measured[1] < -400 and found[-1].measured == (0, 0)
        for before, after in zip(found, found[1:]):
            assert abs(before.log10_measured[1] - after.sizes.log10_rho.item()) < 1e-3
        assert found[-1].log10_bounds[1] - 3 * found[-1].sizes.log10_rho.item() < 3, "cubic at any depth"


def test_network_with_skip_is_checked_branch_by_branch():
    generator = rng(6)
    network = Network.random(3, 5, skip=True, generator=generator, scale=0.5)
    x = gauss(generator, 7, 5)
    states = network.trace(x)
    for layer, state, found in zip(network.layers, states, check_network(network, x)):
        branch = residual_size(layer.attention(state))
        assert abs(math.log10(branch.upper) - found.log10_measured[1]) < 1e-3 and found.holds


def test_measure_layer_of_a_state_and_of_its_tokens_agree():
    generator = rng(7)
    attention, x = attention_of(generator, 5), gauss(generator, 7, 5)
    assert measure_layer(attention, x) == measure_layer(attention, ResidualState.of(x))


def test_bad_layers_tokens_and_names_say_what_was_expected():
    attention, network = attention_of(rng(12), 5), Network.random(2, 5, mlp_dim=3, generator=rng(12))
    x = gauss(rng(12), 7, 5)
    for call in (
        lambda: check_layer(attention, x, "best"),
        lambda: check_layer(attention, ResidualState.of(x), centre=x[0]),
        lambda: check_layer(attention, x, tol=-1e-3),
        lambda: check_layer(attention, x * math.nan),
        lambda: check_network(network, x),
    ):
        raises_its_own_message(ValueError, call)
    plain = import_plain("ranklib.paper.checks")
    for call in (lambda: plain.check_layer(None, x), lambda: plain.check_network(None, x)):
        raises_its_own_message(TypeError, call)
