"""Sizes of a layer follow their definitions about any centre."""

import math

import torch

from plain import import_plain, raises_its_own_message
from ranklib.model.attention import SelfAttention
from ranklib.model.softmax import score_parts
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.paper.sizes import lam, layer_sizes, osc, osc_row, oscillation_of_scores

ROUNDING = 1 + 1e-11


def rng(seed):
    return torch.Generator().manual_seed(seed)


def gauss(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def attention_of(generator, dim, heads=1, dim_qk=3, scale=1.0, dim_v=2):
    return SelfAttention.random(dim, heads, dim_qk, dim_v, generator=generator, scale=scale, biases=True)


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


def test_bad_layers_and_tokens_say_what_was_expected():
    attention, x = attention_of(rng(12), 5), gauss(rng(12), 7, 5)
    for call in (
        lambda: layer_sizes(attention, x * math.inf),
        lambda: lam(attention, -1.0),
        lambda: lam(attention, math.nan),
        lambda: osc(x * math.nan),
        lambda: osc_row(x[:, :0]),
    ):
        raises_its_own_message(ValueError, call)
    plain = import_plain("ranklib.paper.sizes")
    for call in (
        lambda: plain.lam(None, 1.0),
        lambda: plain.layer_sizes(None, x),
        lambda: plain.osc(torch.ones(3, 3, dtype=torch.int64)),
    ):
        raises_its_own_message(TypeError, call)
