"""Every bound against random, adversarial and extreme instances, and every sharp constant from below."""

import math

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.exact.propagation import ResidualState
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import score_parts
from ranklib.paper.bounds import BOUNDS, bound_value
from ranklib.paper.checks import check_layer, check_network
from ranklib.paper.constants import (
    const_osc,
    const_osc_heads,
    f_lambda,
    g_lambda,
    memorable,
    middle,
)
from ranklib.paper.counterexamples import four_tokens
from ranklib.paper.depth import beta, contraction, converges, printed_depth, proved_depth
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.paper.sizes import lam, layer_sizes, osc, osc_row, oscillation_of_scores

ROUNDING = 1 + 1e-11


def rng(seed):
    return torch.Generator().manual_seed(seed)


def gauss(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


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
    sizes = import_plain("ranklib.paper.sizes")
    depth = import_plain("ranklib.paper.depth")
    x = gauss(rng(13), 7, 5)
    for call in (
        lambda: sizes.lam(None, 1.0),
        lambda: sizes.layer_sizes(None, x),
        lambda: bounds.bound_value("unconditional", None),
        lambda: depth.contraction(None, 1.0),
        lambda: sizes.osc(torch.ones(3, 3, dtype=torch.int64)),
        lambda: checks.check_layer(None, x),
        lambda: checks.check_network(None, x),
        lambda: depth.beta(None),
        lambda: depth.printed_depth(1.0, 1.0, 1.5),
        lambda: depth.printed_depth(1.0, torch.ones(1, dtype=torch.int64), 1),
    ):
        raises_its_own_message(TypeError, call)
