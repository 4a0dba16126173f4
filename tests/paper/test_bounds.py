"""Every bound against random, adversarial and extreme instances, and every sharp constant from below."""

import math

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.paper.bounds import BOUNDS, bound_value
from ranklib.paper.checks import check_layer
from ranklib.paper.constants import const_osc, const_osc_heads, f_lambda, g_lambda, memorable, middle
from ranklib.paper.counterexamples import four_tokens
from ranklib.paper.depth import beta
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.paper.sizes import layer_sizes, osc

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


@pytest.mark.slow
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
        assert found.measured[0] > 0.99 * found.upper, "1 % smaller would be false"
        truth = 3 * a * math.tanh(0.7 * a * a) * 2**0.5
        assert abs(found.upper / truth - 1) < 1e-12


@pytest.mark.parametrize("name", ["small_oscillation", "unconditional", "separate_many_heads", "middle"])
def test_one_over_root_two_is_sharp(name):
    found = check_layer(*reversed(four_tokens(1e-6)[:2]), name, tol=1e-5)
    assert found.holds and found.certified
    assert 1 <= found.slack < 1.0001 and found.measured[0] > 0.99 * found.upper


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


def test_many_heads_add_column_and_row_sums_separately():
    generator = rng(3)
    attention = attention_of(generator, 5, heads=3)
    s = layer_sizes(attention, gauss(generator, 7, 5))
    s_1 = (f_lambda(s.lam) * max_col_sum(attention.w)).sum()
    s_inf = (2 * (s.lam / 2).tanh() * max_row_sum(attention.w)).sum()
    torch.testing.assert_close(bound_value("separate_many_heads", s), s.rho * (s_1 * s_inf).sqrt())
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


def test_bad_names_and_sizes_say_what_was_expected():
    attention, x = attention_of(rng(12), 5), gauss(rng(12), 7, 5)
    raises_its_own_message(ValueError, lambda: bound_value("best", layer_sizes(attention, x)))
    plain = import_plain("ranklib.paper.bounds")
    raises_its_own_message(TypeError, lambda: plain.bound_value("unconditional", None))
