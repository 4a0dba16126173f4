"""Every bound against random, adversarial and extreme instances, and every sharp constant from below."""

import math

import mpmath
import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.exact.propagation import ResidualState
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import score_parts
from ranklib.paper.bounds import (
    BOUNDS,
    Hypothesis,
    bound_value,
    lam,
    layer_sizes,
    osc,
    osc_row,
    oscillation_of_scores,
)
from ranklib.paper.checks import check_layer, check_network, measure_layer
from ranklib.paper.constants import (
    const_osc,
    const_osc_heads,
    f_lambda,
    f_slope,
    g_lambda,
    g_slope,
    kappa,
    memorable,
    middle,
    shape_limit,
    vartheta,
    x_star,
)
from ranklib.paper.counterexamples import four_tokens, two_heads
from ranklib.paper.depth import beta, contraction, converges, printed_depth, proved_depth
from ranklib.paper.least import residual_size, residual_size_exact
from ranklib.paper.norms import composite, max_col_sum, max_row_sum

ROUNDING = 1 + 1e-11
SIZES = torch.cat([torch.logspace(-18, 2, 400), torch.zeros(1)]).double()


def rng(seed):
    return torch.Generator().manual_seed(seed)


def gauss(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


# --- scalars ---------------------------------------------------------------------------------------------


def exact_kappa(t):
    return mpmath.expm1(t) / t if t else mpmath.mpf(1)


def exact_f(t):
    return mpmath.expm1(t) / 2 + t * mpmath.tanh(t / 2)


FORMULAS = {
    kappa: exact_kappa,
    vartheta: lambda t: mpmath.tanh(t / 4) / (t / 4) if t else mpmath.mpf(1),
    const_osc: lambda t: mpmath.sqrt(
        (exact_kappa(t) / 2 + mpmath.tanh(t / 4)) * (mpmath.tanh(t / 4) / (t / 4) if t else 1)
    ),
    const_osc_heads: lambda t: mpmath.sqrt(exact_kappa(t) / 2 + mpmath.tanh(t / 4)),
    f_lambda: exact_f,
    f_slope: lambda t: exact_f(t) / t if t else mpmath.mpf(1) / 2,
    g_lambda: lambda t: mpmath.sqrt(2 * exact_f(t) * mpmath.tanh(t / 2)),
    g_slope: lambda t: mpmath.sqrt(2 * exact_f(t) * mpmath.tanh(t / 2)) / t if t else 1 / mpmath.sqrt(2),
    middle: lambda t: mpmath.expm1(t) / mpmath.sqrt(1 + mpmath.exp(-t)),
    memorable: lambda t: mpmath.expm1(t),
}


@pytest.mark.parametrize("function", FORMULAS, ids=lambda f: f.__name__)
def test_scalars_are_accurate_from_0_to_large(function):
    found = function(SIZES.reshape(1, -1, 1))
    assert found.shape == (1, len(SIZES), 1) and found.dtype == torch.float64
    with mpmath.workdps(40):
        for t, value in zip(SIZES.tolist(), found.flatten().tolist()):
            expected = FORMULAS[function](mpmath.mpf(t))
            assert abs(value - expected) <= 4e-15 * abs(expected), (t, value, expected)


def test_kappa_takes_negative_arguments():
    t = -SIZES
    torch.testing.assert_close(kappa(t), t.exp() * kappa(-t), rtol=1e-13, atol=0)


def test_identity_of_kappa_and_vartheta_is_exact():
    left, right = kappa(SIZES) * vartheta(SIZES), kappa(SIZES / 2).square()
    torch.testing.assert_close(left, right, rtol=1e-14, atol=0)
    assert not torch.allclose(0.99 * left, right, rtol=1e-3)


def test_the_forms_are_ordered_and_increase():
    g, mid, last = g_lambda(SIZES), middle(SIZES), memorable(SIZES)
    assert (g <= mid * ROUNDING).all() and (mid <= last * ROUNDING).all()
    grid = torch.linspace(1e-3, 40, 100_000, dtype=torch.float64)
    for rising in (f_slope, g_slope, const_osc, const_osc_heads):
        assert (rising(grid).diff() > 0).all(), rising
    assert (vartheta(grid).diff() < 0).all()
    old = torch.minimum(grid.exp() / 2, kappa(grid))
    assert (const_osc(grid) <= (old * vartheta(grid)).sqrt() * ROUNDING).all()


def test_overflow_says_nothing_and_is_no_number():
    big = torch.tensor([1000.0], dtype=torch.float64)
    assert all(f(big).isposinf().all() for f in (kappa, const_osc, f_lambda, g_slope, memorable))


def test_x_star_is_the_root():
    with mpmath.workdps(30):
        root = mpmath.findroot(lambda x: mpmath.exp(x) - 1 - 2 * x, 1.25)
        assert abs(root - x_star()) < 1e-15
    assert abs(number(kappa, x_star()) - 2) < 1e-14


def number(function, value):
    return function(torch.tensor(value, dtype=torch.float64)).item()


def test_where_the_constant_four_is_proved():
    assert number(g_slope, 6.5) < 4 < number(g_slope, 6.503) and number(g_lambda, 6.5) < 26
    assert number(const_osc, 5.62) < 4 < number(const_osc, 5.63)
    assert number(const_osc_heads, 5.033) < 4 < number(const_osc_heads, 5.034)
    assert number(f_slope, 5.02) ** 0.5 < 4 < number(f_slope, 5.03) ** 0.5
    assert 676**0.5 <= 4 * 6.5 < 677**0.5
    assert BOUNDS["constant_four"].any_of == {"lam": 6.5, "osc": 5.62, "tokens": 676}
    assert abs(number(const_osc, 1.256) - 1.1236) < 1e-4 and number(const_osc, 0.0) == 0.5**0.5
    theta, factor = shape_limit() ** 0.25, number(const_osc_heads, x_star())
    assert abs(factor * (theta + 1 / theta) / 2 - 4) < 1e-12


# --- the inequalities ------------------------------------------------------------------------------------


def spread(e, log_p, r):
    """(P - 1 p^T) R, by expm1 and without a small difference of large numbers."""
    p = log_p.exp()[..., None, :]
    shift = torch.where(e.abs() < 0.5, p * e.clamp(-1, 1).expm1(), p * (e.exp() - 1)).sum(-1, keepdim=True)
    return (p * (e - shift.log1p()).expm1()) @ r


def instance(generator, batch, heads, tokens, dim, lam_range=(-9, 1.1)):
    """Random R, W_QK, W, p: sparse or dense, balanced or not, with Lambda over ten orders of magnitude."""
    keep = torch.rand(batch, tokens, dim, generator=generator) < torch.rand(batch, 1, 1, generator=generator)
    r = gauss(generator, batch, tokens, dim) * keep * gauss(generator, batch, tokens, 1).exp()
    r[:, 0, 0] += 1e-3
    w_qk = gauss(generator, batch, heads, dim, dim)
    low, high = lam_range
    lam_h = 10 ** (low + (high - low) * torch.rand(batch, heads, dtype=torch.float64, generator=generator))
    w_qk *= (lam_h / max_col_sum(w_qk) / composite(r).square()[:, None])[..., None, None]
    scale = 10 ** gauss(generator, batch, heads, 1, 1)
    w = gauss(generator, batch, heads, dim, dim) * scale
    peaked = 20 * torch.rand(batch, 1, 1, generator=generator)
    return r, w_qk, w, (peaked * gauss(generator, batch, heads, tokens)).log_softmax(-1)


def quotients(r, w_qk, w, log_p):
    """Left over right side of each proved inequality, for the head 0 or for all of them."""
    rows = r[:, None]
    e = rows @ w_qk @ rows.mT
    change = spread(e, log_p, rows) @ w
    rho, lam_h, osc_h = composite(r), max_col_sum(w_qk) * composite(r).square()[:, None], osc(e)
    col, row = max_col_sum(w), max_row_sum(w)
    one, size = composite(change[:, 0]), rho * composite(w[:, 0])
    lam_1, osc_1 = lam_h[:, 0], osc_h[:, 0]
    s_1, s_inf = (f_lambda(lam_h) * col).sum(-1), (2 * (lam_h / 2).tanh() * row).sum(-1)
    widest = const_osc_heads(osc_h.amax(-1)) * ((lam_h * col).sum(-1) * (lam_h * row).sum(-1)).sqrt()
    averaged = (log_p[:, 0, None] + e[:, 0]).softmax(-1) @ r @ w[:, 0]
    return {
        "unconditional": one / (g_lambda(lam_1) * size),
        "middle": one / (middle(lam_1) * size),
        "memorable": one / (memorable(lam_1) * size),
        "small_oscillation": one / (const_osc(osc_1) * lam_1 * size),
        "sqrt_tokens": composite(averaged) / (r.shape[-2] ** 0.5 * size),
        "separate_many_heads": composite(change.sum(1)) / (rho * (s_1 * s_inf).sqrt()),
        "small_oscillation_many_heads": composite(change.sum(1)) / (rho * widest),
    }


@pytest.mark.parametrize("tokens,dim,heads", [(2, 3, 2), (3, 2, 1), (5, 3, 2), (7, 11, 3), (13, 5, 1)])
def test_proved_bounds_hold_on_thousands_of_random_instances(tokens, dim, heads):
    for seed in range(5):
        found = quotients(*instance(rng(seed), 1000, heads, tokens, dim))
        for name, quotient in found.items():
            assert quotient.isfinite().all(), name
            assert quotient.max() <= ROUNDING, (name, quotient.max())


@pytest.mark.parametrize("name", ["unconditional", "small_oscillation", "separate_many_heads"])
def test_proved_bounds_hold_along_an_adversarial_search_from_the_sharp_example(name):
    generator = rng(7)
    best = list(instance(generator, 64, 1, 4, 2, (-4, 0.8)))
    x, attention, _ = four_tokens(1.0)
    best[0][:32], best[2][:32] = x, attention.w.detach()
    sizes = torch.logspace(-4, 0.5, 32).double()
    best[1][:32] = sizes[:, None, None, None] * torch.tensor([[1.0, -1.0], [0.0, 0.0]])
    best[3][:32] = torch.tensor([0.0, 0.0, -40.0, -40.0]).double().log_softmax(-1)
    score = quotients(*best)[name]
    assert score[:32].max() > 0.9999, "the search starts where nothing is left to win"
    for step in range(100):
        size = 0.5 * 0.9**step
        trial = [p + size * gauss(generator, *p.shape) * p.abs().amax(-1, keepdim=True) for p in best]
        trial[3] = trial[3].log_softmax(-1)
        found = quotients(*trial)[name]
        assert found.max() <= ROUNDING
        better = found > score
        best = [torch.where(better.reshape(-1, *[1] * (p.ndim - 1)), t, p) for t, p in zip(trial, best)]
        score = torch.maximum(score, found)
    assert (score[32:] > quotients(*instance(rng(7), 64, 1, 4, 2, (-4, 0.8)))[name][32:]).all()


def attention_of(generator, dim, heads=1, dim_qk=3, scale=1.0, dim_v=2):
    return SelfAttention.random(dim, heads, dim_qk, dim_v, generator=generator, scale=scale, biases=True)


def test_two_tokens_hold_on_thousands_of_layers_and_are_attained():
    for seed in range(40):
        generator = rng(seed)
        attention = attention_of(generator, 5, scale=2.0)
        x = gauss(generator, 100, 2, 5) + 3 * gauss(generator, 100, 1, 5)
        y = attention(x)
        exact = composite(y - y.mean(-2, keepdim=True))
        assert (exact <= bound_value("two_tokens", layer_sizes(attention, x)) * (1 + 1e-9)).all()
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    for a in (1e-3, 0.5, 1.0, 2.0):
        attention = SelfAttention(w_q=0.7 * one, w_k=one, w_v=3 * one, w_o=one)
        found = check_layer(attention, torch.tensor([[a], [-a]], dtype=torch.float64), "two_tokens")
        assert found.holds and abs(found.slack - 1) < 1e-9
        assert found.measured[0] > 0.99 * found.bound, "1 % smaller would be false"
        truth = 3 * a * math.tanh(0.7 * a * a) * 2**0.5
        assert abs(found.bound / truth - 1) < 1e-12


@pytest.mark.parametrize("name", ["small_oscillation", "unconditional", "separate_many_heads", "middle"])
def test_one_over_root_two_is_sharp(name):
    found = check_layer(*reversed(four_tokens(1e-6)[:2]), name, tol=1e-5)
    assert found.holds and found.certified
    assert 1 <= found.slack < 1.0001 and found.measured[0] > 0.99 * found.bound


def test_total_variation_is_sharp_for_two_points():
    spread_of_e = torch.linspace(0.01, 12, 200, dtype=torch.float64)
    q = 1 / (1 + (spread_of_e / 2).exp())
    log_p = torch.stack([q.log(), (1 - q).log()], -1)
    tilted = (log_p + torch.stack([spread_of_e, 0 * q], -1)).softmax(-1)
    variation = (tilted - log_p.exp()).abs().sum(-1) / 2
    bound = vartheta(spread_of_e) * spread_of_e / 4
    torch.testing.assert_close(variation, bound, rtol=1e-12, atol=0)
    assert (variation > 0.99 * bound).all()


# --- sizes and the table ---------------------------------------------------------------------------------


def test_sizes_follow_their_definitions_about_any_centre():
    generator = rng(1)
    attention = attention_of(generator, 5, heads=2)
    x, centre = gauss(generator, 11, 7, 5), gauss(generator, 11, 5)
    sizes = layer_sizes(attention, x, centre)
    r = x - centre[:, None]
    e, _ = score_parts(x[:, None], centre[:, None], attention.w_q, attention.w_k, attention.b_q)
    assert sizes.osc.shape == (11, 2) and sizes.tokens == 7
    torch.testing.assert_close(sizes.osc, e.amax(-1).sub(e.amin(-1)).amax(-1))
    torch.testing.assert_close(osc_row(e).amax(-1), osc(e))
    torch.testing.assert_close(sizes.rho, composite(r))
    torch.testing.assert_close(sizes.log10_rho, composite(r).log10())
    q = max_col_sum(attention.w_qk) / 3**0.5
    torch.testing.assert_close(sizes.lam, q * composite(r).square()[:, None])
    torch.testing.assert_close(lam(attention, composite(r)), sizes.lam)
    torch.testing.assert_close(sizes.w_1, max_col_sum(attention.w))
    torch.testing.assert_close(sizes.w_inf, max_row_sum(attention.w))
    assert (e.abs().amax((-2, -1)) <= sizes.lam * ROUNDING).all() and (sizes.osc <= 2 * sizes.lam).all()
    about_mean = layer_sizes(attention, x, x.mean(-2)).osc
    torch.testing.assert_close(oscillation_of_scores(attention, x), about_mean)
    assert not torch.allclose(about_mean, sizes.osc)


def test_the_table_evaluates_the_printed_formulas():
    generator = rng(2)
    attention = attention_of(generator, 5, dim_qk=7, scale=0.5)
    x = gauss(generator, 3, 2, 5)
    s = layer_sizes(attention, x)
    l, d, size = s.lam[:, 0], s.osc[:, 0], s.rho * composite(attention.w)[0]
    expected = {
        "printed_one_layer": 4 * l * size,
        "constant_four": 4 * l * size,
        "small_oscillation": const_osc(d) * l * size,
        "unconditional": g_lambda(l) * size,
        "middle": middle(l) * size,
        "memorable": memorable(l) * size,
        "sqrt_tokens": 2**0.5 * size,
        "two_tokens": (l / 2).tanh() * size,
        "printed_many_heads": 4 * beta(Network([Layer(attention)])).printed / 7**0.5 * s.rho**3,
        "separate_many_heads": g_lambda(l) * size,
        "small_oscillation_many_heads": const_osc_heads(d) * l * size,
    }
    assert expected.keys() == BOUNDS.keys()
    for name, value in expected.items():
        torch.testing.assert_close(bound_value(name, s), value)
    torch.testing.assert_close(contraction(attention, s.rho), g_lambda(l) * composite(attention.w)[0])


def test_many_heads_add_column_and_row_sums_separately():
    generator = rng(3)
    attention = attention_of(generator, 5, heads=3)
    s = layer_sizes(attention, gauss(generator, 7, 5))
    s_1 = (f_lambda(s.lam) * max_col_sum(attention.w)).sum()
    s_inf = (2 * (s.lam / 2).tanh() * max_row_sum(attention.w)).sum()
    torch.testing.assert_close(bound_value("separate_many_heads", s), s.rho * (s_1 * s_inf).sqrt())
    torch.testing.assert_close(contraction(attention, s.rho), (s_1 * s_inf).sqrt())
    q = max_col_sum(attention.w_qk) / 3**0.5
    printed = 12 * (q * composite(attention.w)).max() * s.rho**3
    torch.testing.assert_close(bound_value("printed_many_heads", s), printed)


def test_a_head_without_weights_costs_nothing_even_where_the_others_overflow():
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    for zero in ("w_q", "w_v"):
        weights = {name: one for name in ("w_q", "w_k", "w_v", "w_o")} | {zero: 0 * one}
        sizes = layer_sizes(SelfAttention(**weights), 1e3 * torch.eye(3, 1).double())
        for name in BOUNDS.keys() - {"sqrt_tokens"}:
            assert bound_value(name, sizes) == 0, (zero, name)


# --- checks ----------------------------------------------------------------------------------------------


def test_check_measures_the_residual_of_the_output():
    for seed in range(6):
        generator = rng(seed)
        attention = attention_of(generator, 5, heads=2)
        x = gauss(generator, 7, 5) + 2
        found, exact = check_layer(attention, x, "separate_many_heads"), residual_size_exact(attention(x))
        lower, upper = found.measured
        assert lower <= exact.upper * (1 + 1e-9) and exact.lower * (1 - 1e-9) <= upper < lower * 1.0011
        assert found.holds and found.certified and found.applies
        assert abs(found.bound - bound_value("separate_many_heads", found.sizes).item()) < 1e-9 * found.bound
        assert found.slack == pytest.approx(found.bound / upper)
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
    many = torch.cat([3 * gauss(generator, 700, 5)])
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
    assert found.bound == 0 and found.measured == (0, 0) and found.holds and found.slack == math.inf


def test_network_is_checked_at_every_layer_far_below_rounding():
    for seed, heads in ((0, 1), (1, 3)):
        generator = rng(seed)
        network = Network.random(7, 6, heads, skip=False, generator=generator)
        found = check_network(network, 0.5 * gauss(generator, 5, 6), "separate_many_heads")
        assert len(found) == 7 and all(layer.holds and layer.certified and layer.applies for layer in found)
        assert found[-1].log10_upper < -400 and found[-1].measured == (0, 0)
        for before, after in zip(found, found[1:]):
            assert abs(before.log10_upper - after.sizes.log10_rho.item()) < 1e-3
        assert found[-1].log10_bound - 3 * found[-1].sizes.log10_rho.item() < 3, "cubic at any depth"


def test_network_with_skip_is_checked_branch_by_branch():
    generator = rng(6)
    network = Network.random(3, 5, skip=True, generator=generator, scale=0.5)
    x = gauss(generator, 7, 5)
    states = network.trace(x)
    for layer, state, found in zip(network.layers, states, check_network(network, x)):
        branch = residual_size(layer.attention(state))
        assert abs(math.log10(branch.upper) - found.log10_upper) < 1e-3 and found.holds


def test_measure_layer_of_a_state_and_of_its_tokens_agree():
    generator = rng(7)
    attention, x = attention_of(generator, 5), gauss(generator, 7, 5)
    assert measure_layer(attention, x) == measure_layer(attention, ResidualState.of(x))


# --- depth -----------------------------------------------------------------------------------------------


def test_printed_depth_is_the_unrolled_recursion():
    generator = rng(8)
    c = torch.rand(11, dtype=torch.float64, generator=generator) * 3
    rho = torch.rand(11, dtype=torch.float64, generator=generator)
    expected = rho.clone()
    for depth in range(5):
        torch.testing.assert_close(printed_depth(c, rho, depth), expected.log10(), rtol=1e-12, atol=1e-10)
        expected = c * expected**3
    assert printed_depth(0.25, 2.0, 600).item() == math.log10(2), "c rho^2 = 1 stays where it is"
    assert printed_depth(1.0, 0.0, 3) == -math.inf and printed_depth(0.0, 0.5, 0) == math.log10(0.5)


def test_convergence_depends_on_c_rho_squared_alone():
    for c, rho in ((0.5, 1.0), (8.0, 0.25), (0.9, 2.0), (0.01, 11.0), (100.0, 0.099)):
        found = converges(c, rho)
        assert found == (c * rho**2, 1.0, c * rho**2 < 1)
        assert found.holds == (printed_depth(c, rho, 12) < printed_depth(c, rho, 11)).item()


def test_beta_is_the_largest_product():
    generator = rng(9)
    network = Network.random(3, 6, 2, skip=False, generator=generator)
    found = beta(network)
    weights = [(max_col_sum(a.w_qk), a.w) for a in (layer.attention for layer in network.layers)]
    for norm, value in ((composite, found.printed), (max_col_sum, found.one), (max_row_sum, found.inf)):
        assert value == pytest.approx(max((q * norm(w)).max().item() for q, w in weights))
    assert found.c == pytest.approx(4 * found.printed * 2 / 3**0.5)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_proved_depth_holds_on_random_networks_with_exact_propagation(heads):
    for seed in range(2):
        generator = rng(seed)
        network = Network.random(4, 6, heads, skip=False, generator=generator)
        x = gauss(generator, 5, 6)
        rho = residual_size(x).upper.item()
        shrink = 1.0
        while not proved_depth(network, rho * shrink).applies:
            shrink /= 1.2
        bounds = proved_depth(network, rho * shrink)
        assert bounds.hypotheses["c rho^2"].value > 0.4 and len(bounds.log10) == 5
        found = check_network(network, x * shrink, "separate_many_heads", tol=1e-2)
        for layer, bound in zip(found, bounds.log10[1:]):
            assert layer.log10_upper <= bound


def test_proved_depth_uses_the_constants_of_the_theorem():
    generator = rng(10)
    for heads in (1, 2):
        network = Network.random(3, 6, heads, skip=False, generator=generator)
        largest = max(lam(layer.attention, 0.5).max().item() for layer in network.layers)
        weights, root = beta(network), (6 / heads) ** 0.5
        if heads == 1:
            c = number(g_lambda, largest) / largest * weights.printed / root
        else:
            c = math.sqrt(number(f_lambda, largest) / largest * weights.one * weights.inf) * 2 / root
        assert proved_depth(network, 0.5).c == pytest.approx(c)


def test_proved_depth_reports_what_it_does_not_cover():
    generator = rng(11)
    network = Network.random(2, 6, mlp_dim=5, norm="post", skip=True, generator=generator)
    found = proved_depth(network, 10.0)
    expected = {"skip": False, "mlp": False, "norm": False, "c rho^2": False}
    assert {name: h.holds for name, h in found.hypotheses.items()} == expected and not found.applies
    bare = proved_depth(network.switched(skip=False, mlp=False, norm="none"), 0.1)
    assert bare.hypotheses["skip"].holds and bare.hypotheses["mlp"].holds and bare.hypotheses["norm"].holds


# --- bad input -------------------------------------------------------------------------------------------


def test_bad_input_never_gives_a_number():
    constants = import_plain("ranklib.paper.constants")
    one = torch.ones(1, dtype=torch.float64)
    for function in FORMULAS:
        plain = getattr(constants, function.__name__)
        raises_its_own_message(TypeError, plain, torch.ones(1, dtype=torch.int64))
        raises_its_own_message(TypeError, plain, 1.0)
        raises_its_own_message(ValueError, plain, one * math.nan)
        raises_its_own_message(ValueError, plain, one * math.inf)
        if function is not kappa:
            raises_its_own_message(ValueError, plain, -one)


def test_bad_layers_tokens_and_names_say_what_was_expected():
    attention, network = attention_of(rng(12), 5), Network.random(2, 5, mlp_dim=3, generator=rng(12))
    x = gauss(rng(12), 7, 5)
    for call in (
        lambda: bound_value("best", layer_sizes(attention, x)),
        lambda: check_layer(attention, x, "best"),
        lambda: check_layer(attention, ResidualState.of(x), centre=x[0]),
        lambda: check_layer(attention, x, tol=-1e-3),
        lambda: check_layer(attention, x * math.nan),
        lambda: layer_sizes(attention, x * math.inf),
        lambda: check_network(network, x),
        lambda: lam(attention, -1.0),
        lambda: lam(attention, math.nan),
        lambda: contraction(attention, math.inf),
        lambda: osc(x * math.nan),
        lambda: osc_row(x[:, :0]),
        lambda: printed_depth(-1.0, 1.0, 1),
        lambda: printed_depth(1.0, math.nan, 1),
        lambda: printed_depth(1.0, 1.0, -1),
        lambda: printed_depth(1.0, 1.0, 601),
        lambda: converges(math.inf, 1.0),
        lambda: proved_depth(network, -1.0),
        lambda: beta(Network([Layer(attention_of(rng(1), 5, heads=h)) for h in (1, 2)])),
    ):
        raises_its_own_message(ValueError, call)


def test_wrong_kinds_are_refused_without_the_shape_checker():
    bounds, checks = import_plain("ranklib.paper.bounds"), import_plain("ranklib.paper.checks")
    depth = import_plain("ranklib.paper.depth")
    x = gauss(rng(13), 7, 5)
    for call in (
        lambda: bounds.lam(None, 1.0),
        lambda: bounds.layer_sizes(None, x),
        lambda: bounds.bound_value("unconditional", None),
        lambda: depth.contraction(None, 1.0),
        lambda: bounds.osc(torch.ones(3, 3, dtype=torch.int64)),
        lambda: checks.check_layer(None, x),
        lambda: checks.check_network(None, x),
        lambda: depth.beta(None),
        lambda: depth.printed_depth(1.0, 1.0, 1.5),
        lambda: depth.printed_depth(1.0, torch.ones(1, dtype=torch.int64), 1),
    ):
        raises_its_own_message(TypeError, call)
