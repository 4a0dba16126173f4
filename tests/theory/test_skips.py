"""Bounds with a skip against exact residuals, mpmath and brute force; closed forms against simulation."""

import itertools
import math
from dataclasses import replace

import mpmath
import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.exact.state import ResidualState
from ranklib.measures.tokens import mean_cosine
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.paper.constants import f_lambda, f_slope, x_star
from ranklib.paper.counterexamples import skip_corollary
from ranklib.paper.depth import beta
from ranklib.paper.least import residual_size_exact
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.paper.sizes import weight_norms
from ranklib.theory.skips import (
    check_norms,
    check_slow_decay,
    check_step,
    cosine_with_skips,
    ledgers,
    skip_maximum,
    slow_law,
)

F64 = torch.float64
ONE = torch.ones(1, 1, 1, dtype=F64)


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def generator(seed):
    return torch.Generator().manual_seed(seed)


def draw(seed, size=None, skip=True):
    """A layer of one to three heads with biases, and 7 tokens of 5 features, small enough for a bound."""
    g = generator(seed)
    attention = SelfAttention.random(5, 1 + seed % 3, dim_qk=3, dim_v=2, generator=g, biases=True, scale=0.7)
    size = 10 ** (-0.3 - 1.5 * torch.rand(1, generator=g, dtype=F64)) if size is None else size
    return attention, size * torch.randn(7, 5, generator=g, dtype=F64), g


def pair_layer(w, v):
    return Layer(SelfAttention(w_q=w * ONE, w_k=ONE, w_v=v * ONE, w_o=ONE))


def pair(a):
    return torch.tensor([[a], [-a]], dtype=F64)


def test_ledgers_are_sums_over_heads():
    for seed in range(6):
        attention, _, _ = draw(seed)
        rho = torch.tensor(0.1 + seed, dtype=F64)
        s_1 = s_inf = 0
        for w_q, w_k, w in zip(attention.w_q, attention.w_k, attention.w, strict=True):
            size = max_col_sum(w_q @ w_k.T) / 3**0.5 * rho**2
            s_1 += f_lambda(size) * max_col_sum(w)
            s_inf += 2 * torch.tanh(size / 2) * max_row_sum(w)
        torch.testing.assert_close(ledgers(attention, rho), (s_1, s_inf))
        assert ledgers(attention, 0.0)[0] == 0


@pytest.mark.parametrize("skip", [1.0, -1.0, 0.4, 2.5, 0.0])
def test_each_norm_about_any_centre(skip):
    for seed in range(6):
        attention, x, g = draw(seed)
        centre = x.mean(0) + x.abs().max() * torch.randn(5, generator=g, dtype=F64)
        found = check_norms(attention, x, centre, skip)
        assert all(sides.holds and sides.measured[0] == sides.measured[1] for sides in found.values())
        # the measured sizes are those of X' about some row
        after = skip * x + attention(x)
        f, g_sum = found["1"].measured[0], found["inf"].measured[0]
        assert residual_size_exact(after, 1e-6).lower ** 2 <= f * g_sum * (1 + 1e-6)


def test_norms_are_those_of_the_output_about_one_row():
    attention, x, _ = draw(4)
    weights = {"w_q": attention.w_q, "w_k": attention.w_k, "w_v": 0 * attention.w_v, "w_o": attention.w_o}
    still = SelfAttention(**weights, b_o=torch.ones(5).double())  # attention adds its bias alone
    found = check_norms(still, x, x[2])
    assert found["1"].lower == found["1"].upper == pytest.approx(max_col_sum(x - x[2]).item(), rel=1e-12)
    assert found["inf"].measured[0] == pytest.approx(max_row_sum(x - x[2]).item(), rel=1e-12)


@pytest.mark.parametrize("skip", [1.0, -1.0, 0.4, 2.5])
def test_one_step_between_its_bounds_by_exact_residuals(skip):
    told = 0
    for seed in range(5):
        attention, x, _ = draw(seed)
        found = check_step(attention, x, skip)
        before, after = residual_size_exact(x), residual_size_exact(skip * x + attention(x))
        assert found.measured[0] <= after.upper * (1 + 1e-9)
        assert after.lower <= found.measured[1] * (1 + 1e-9)
        s_1, s_inf = (s.item() for s in ledgers(attention, before.lower))
        size = abs(skip)
        lower = math.sqrt(max(size - s_1, 0) * max(size - s_inf, 0)) * before.lower
        upper = math.sqrt((size + s_1) * (size + s_inf)) * before.lower
        assert lower <= after.upper * (1 + 1e-6) and after.lower <= upper * (1 + 1e-6)
        assert found.lower <= lower * (1 + 1e-6) and upper <= found.upper * (1 + 1e-6)
        assert found.holds and min(found.slack, found.slack_below) >= 1 - 1e-9
        told += lower > 0
    assert told >= 2


def test_both_sides_become_equal_for_small_tokens():
    for seed in range(3):
        attention, x, _ = draw(seed, 1e-4)
        found = check_step(attention, x, tol=1e-4)
        assert found.upper / found.lower < 1.0003


@pytest.mark.parametrize("spread", [1e-6, 1e-13])
def test_one_step_sees_a_residual_near_the_rounding_of_the_tokens(spread):
    for seed in range(6):
        attention, noise, _ = draw(seed, spread)
        for tokens in (2, 7):
            assert check_step(attention, 3 + noise[:tokens]).holds


def test_a_wrong_size_is_noticed():
    found = check_step(*draw(0, 1e-2)[:2])
    assert not replace(
        found, log10_measured=(found.log10_bounds[1] + 0.01, found.log10_bounds[1] + 0.02)
    ).holds
    assert not replace(
        found, log10_measured=(found.log10_bounds[0] - 0.02, found.log10_bounds[0] - 0.01)
    ).holds


@pytest.mark.parametrize("w, v", [(1.0, -1.0), (0.3, -2.0), (2.0, 0.5)])
def test_slow_decay_of_the_pair_against_mpmath(w, v):
    a = 0.25 / math.sqrt(max(1, w * abs(v) * 4))
    layer = pair_layer(w, v)
    found = check_slow_decay(Network([layer] * (40 if v < 0 else 10)), pair(a))
    assert found.k == pytest.approx(2 * w * abs(v), rel=1e-14)
    with mpmath.workdps(40):
        b = mpmath.mpf(a)
        for low, high in (state.log10_measured for state in found.states):
            truth = float(mpmath.log10(mpmath.sqrt(2) * b))
            assert low <= truth + 1e-11 and truth - 1e-11 <= high and high - low < 1e-10
            b *= 1 + v * mpmath.tanh(w * b * b)
    assert found.holds and not found.fails
    if v < 0:  # the order is right: the truth is at most twice the bound
        low, high = found.states[-1].log10_bounds[0], found.states[-1].log10_measured[0]
        assert low < high < low + math.log10(2)
    else:  # and so is that of the growth
        assert found.states[-1].log10_measured[0] > found.states[0].log10_measured[0] + 0.01


def test_slow_decay_far_below_float64_against_mpmath():
    start = ResidualState(torch.full((1,), 3.0, dtype=F64), pair(0.5), -1500)
    found = check_slow_decay(Network([pair_layer(1.0, -1.0)] * 3), start)
    with mpmath.workdps(950):
        a, w = mpmath.mpf(2) ** -1501, mpmath.mpf(1)
        x = [mpmath.mpf(3) + a, mpmath.mpf(3) - a]
        for low, high in (state.log10_measured for state in found.states):
            truth = float(mpmath.log10((x[0] - x[1]) / mpmath.sqrt(2)))
            assert abs(low - truth) < 1e-10 and abs(high - truth) < 1e-10
            weights = [1 / (1 + mpmath.exp(-w * row * (x[0] - x[1]))) for row in x]
            x = [row - (x[1] + p * (x[0] - x[1])) for row, p in zip(x, weights, strict=True)]
    assert (
        found.holds
        and not found.fails
        and found.states[-1].log10_bounds[0] == pytest.approx(found.states[0].log10_bounds[0], abs=1e-12)
    )


@pytest.mark.slow
def test_slow_decay_of_random_networks():
    for seed in range(5):
        g = generator(seed)
        network = Network.random(6, 5, 1 + 4 * (seed % 2), generator=g, biases=True)
        x = 0.01 * torch.randn(7, 5, generator=g, dtype=F64)
        found = check_slow_decay(network, x)
        assert found.holds and not found.fails and found.states[-1].log10_bounds[1] < math.inf
        k = max(
            float((q * (w_1 + w_inf)).sum())
            for q, w_1, w_inf in (weight_norms(layer.attention) for layer in network.layers)
        )
        assert found.k == pytest.approx(k, rel=1e-12)
        rho = 10 ** found.states[0].log10_measured[0]
        assert found.states[-1].log10_bounds[0] == pytest.approx(
            math.log10(1 / math.sqrt(1 / rho**2 + 12 * k)), abs=1e-12
        )
        exact = residual_size_exact(network(x), 1e-6)
        assert (
            found.states[-1].log10_bounds[0] <= math.log10(exact.upper)
            and math.log10(exact.lower) <= found.states[-1].log10_bounds[1]
        )


def test_slow_decay_says_where_a_hypothesis_fails():
    quiet, loud = pair_layer(0.01, -1.0), pair_layer(40.0, -0.01)
    found = check_slow_decay(Network([quiet, quiet, loud, quiet]), pair(0.5))
    assert (
        found.fails == [3]
        and not found.states[3].hypotheses["lam"].holds
        and found.states[3].hypotheses["k"].holds
    )
    assert [state.lower > 0 for state in found.states] == [True, True, True, False, False]
    assert [state.upper for state in found.states[3:]] == [math.inf, math.inf]
    assert [state.applies for state in found.states] == [True, True, True, False, False]
    assert not found.states[0].hypotheses and found.holds
    crush = check_slow_decay(Network([pair_layer(-1.0, 1.0)] * 2), pair(math.sqrt(5)))
    assert (
        crush.fails == [1]
        and crush.holds
        and crush.states[1].log10_measured[1] < crush.states[0].log10_measured[0] - 4
    )


def test_the_hypothesis_at_the_start_is_enough():
    enough = 0
    for seed in range(20):
        g = generator(seed)
        network = Network.random(3, 3, generator=g)
        size = 10 ** (-2.5 * torch.rand(1, generator=g, dtype=F64) - 0.5)
        found = check_slow_decay(network, size * torch.randn(2, 3, generator=g, dtype=F64))
        assert found.holds
        if found.at_start.holds:
            assert not found.fails and found.states[-1].log10_bounds[1] < math.inf
            enough += 1
    assert 3 < enough < 17
    top = check_slow_decay(Network([pair_layer(1.0, 1.0)] * 3), pair(0.2))
    needed = 2 * 3 + max(4, 2 / x_star())
    assert top.at_start.value == pytest.approx(0.08 * needed, rel=1e-9)


def test_without_values_nothing_changes():
    found = check_slow_decay(Network([pair_layer(7.0, 0.0)] * 3), pair(1e-3))
    assert (
        found.k == 0
        and found.states[-1].log10_bounds[0] == found.states[0].log10_bounds[0]
        and found.states[-1].log10_bounds[1] == found.states[0].log10_bounds[1]
    )


def test_slow_law_against_mpmath():
    for k, log10_rho, depth in ((2.0, -1.0, 10), (0.3, -400.0, 7), (1e-5, 1.5, 30), (3.0, -0.2, 0)):
        with mpmath.workdps(30):
            rho = mpmath.mpf(10) ** log10_rho
            below, above = 1 / rho**2 + 2 * k * depth, 1 / rho**2 - k * depth
            truth = [float(-mpmath.log10(side) / 2) for side in (below, above)]
        assert slow_law(k, log10_rho, depth) == pytest.approx(truth, rel=1e-13)
    assert slow_law(1.0, 0.0, 1)[1] == math.inf and slow_law(1.0, 200.0, 1)[0] == -math.inf


def test_the_maximum_is_the_worst_order_of_doubling_and_cubing():
    for c, rho in ((0.3, 0.5), (2.0, 0.9), (4.0, 0.1), (0.01, 3.0)):
        for depth in range(6):
            with mpmath.workdps(30):
                sizes = []
                for order in itertools.product((False, True), repeat=depth):
                    u = mpmath.mpf(rho)
                    for cube in order:
                        u = 2 * c * u**3 if cube else 2 * u
                    sizes.append(float(mpmath.log10(u)))
            assert skip_maximum(c, rho, depth) == pytest.approx(max(sizes), rel=1e-12, abs=1e-12)
            assert skip_maximum(c, rho, depth) >= math.log10(2**depth * rho) - 1e-12
    assert (
        skip_maximum(0.0, 0.5, 3) == pytest.approx(math.log10(4)) and skip_maximum(1.0, 0.0, 3) == -math.inf
    )
    assert math.isfinite(skip_maximum(0.1, 0.1, 600))


def test_the_repaired_maximum_on_random_networks():
    counted = 0
    for seed in range(6):
        g = generator(seed)
        network = Network.random(3, 5, 1, generator=g, scale=0.6)
        x = 0.5 * torch.randn(3, 5, generator=g, dtype=F64)
        states = [residual_size_exact(state, 1e-6) for state in network.trace(x)]
        sizes = [
            float(weight_norms(l.attention)[0].max() * s.upper**2) for l, s in zip(network.layers, states)
        ]
        if max(sizes) > 4.13:
            continue
        counted += 1
        weights = beta(network)
        c = 4 * max(weights.one, weights.inf) * weights.heads / weights.dim_qk**0.5
        for depth, state in enumerate(states):
            assert math.log10(state.lower) <= skip_maximum(c, float(states[0].upper), depth) + 1e-9
    assert counted >= 2 and f_slope(torch.tensor(4.13).double()) <= 4 < f_slope(torch.tensor(4.15).double())


@pytest.mark.parametrize("m, w", [(7, 0.3), (577, 0.05), (1000, 0.05), (31, 0.002)])
def test_the_skip_corollary_against_the_dense_layer(m, w):
    x, attention, facts = skip_corollary(m, w)
    after = x + attention(x)
    exact = composite(after - after.mean(0)).item()  # two tokens: the midpoint is a best centre
    assert facts["output"] == pytest.approx(exact, rel=1e-12)
    c = beta(Network([Layer(attention)])).c
    assert 2 * c == pytest.approx(1, rel=1e-12)
    printed = 10 ** skip_maximum(c, facts["rho"], 1)
    assert printed == pytest.approx(2 * facts["rho"], rel=1e-12)
    assert facts["ratio"] == pytest.approx(exact / printed, rel=1e-12)
    assert (facts["ratio"] > 1) == (m in (577, 1000))
    assert check_step(attention, x).holds


def test_the_skip_corollary_starts_at_577():
    first = skip_corollary(1).facts["first"]
    before, at = (skip_corollary(m, 1e-4).facts["ratio"] for m in (first - 1, first))
    assert before <= 1 < at and first == 577


def test_the_cosine_against_its_recursion():
    for n, branch, skip, start in (
        (3, 1.0, 1.0, 0.0),
        (7, 0.3, 1.0, 0.2),
        (5, 1.0, 2.0, -0.2),
        (2, 2.0, -0.5, -1.0),
    ):
        inner, mean = start, (1 + (n - 1) * start) / n
        size = 1.0
        for depth in range(9):
            got = cosine_with_skips(n, depth, branch=branch, skip=skip, start=start)
            assert got == pytest.approx(inner / size, abs=1e-12)
            inner, size = (skip**2 * g + branch**2 * mean for g in (inner, size))
            mean *= skip**2 + branch**2
    assert cosine_with_skips(5, 10**6) == 1 and cosine_with_skips(5, 7, branch=0) == 0


def test_the_cosine_against_a_simulation():
    n, d, depth = 11, 512, 6
    got = []
    for seed in range(4):
        g = generator(seed)
        x = torch.randn(n, d, generator=g, dtype=F64)
        for _ in range(depth):
            w = torch.randn(d, d, generator=g, dtype=F64) / d**0.5
            x = x + (x.mean(0) @ w)
        got.append(mean_cosine(x).item())
    assert sum(got) / 4 == pytest.approx(cosine_with_skips(n, depth), abs=0.02)


def test_scaled_branches_have_a_limit():
    limit = (math.e - 1) / 32 / (1 + (math.e - 1) / 32)
    values = [cosine_with_skips(32, depth, branch=depth**-0.5) for depth in (1, 10, 100, 10**6)]
    assert values == sorted(values) and values[-1] == pytest.approx(limit, rel=1e-5)


def test_errors_say_what_to_do():
    plain = import_plain("ranklib.theory.skips")
    network = plain.Network.random(2, 4, generator=generator(0), mlp_dim=3)
    x = torch.randn(3, 4, dtype=F64, generator=generator(1))
    attention = network.layers[0].attention
    both = (TypeError, ValueError)
    cases = [
        (ValueError, plain.check_slow_decay, (network, x)),
        (ValueError, plain.check_slow_decay, (network.switched(mlp=False, skip=0.5), x)),
        (TypeError, plain.check_slow_decay, (attention, x)),
        (TypeError, plain.check_step, (network, x)),
        (both, plain.check_step, (attention, x[None])),
        (both, plain.check_step, (attention, x / 0)),
        (both, plain.check_step, (attention, x, math.nan)),
        (ValueError, plain.check_norms, (attention, x, x)),
        (ValueError, plain.ledgers, (attention, -1.0)),
        (TypeError, plain.skip_maximum, (1.0, 1.0, 2.5)),
        (ValueError, plain.skip_maximum, (1.0, 1.0, 601)),
        (ValueError, plain.skip_maximum, (-1.0, 1.0, 3)),
        (ValueError, plain.slow_law, (math.nan, 1.0, 3)),
        (ValueError, plain.slow_law, (1.0, 1.0, -3)),
        (ValueError, plain.cosine_with_skips, (1, 3)),
        (ValueError, plain.cosine_with_skips, (5, 3, 1.0, 0.0)),
        (ValueError, plain.cosine_with_skips, (5, 3, math.inf)),
        (ValueError, plain.cosine_with_skips, (5, 3, 1.0, 1.0, -0.5)),
    ]
    for kind, function, arguments in cases:
        raises_its_own_message(kind, function, *arguments)
