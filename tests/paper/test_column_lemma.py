"""The column lemma: 100,000 random and adversarial instances, and a smaller constant that fails."""

import math

import pytest
import torch

from ranklib.paper.constants import const_osc, const_osc_heads, f_lambda, f_slope, g_lambda

ROUNDING = 1 + 1e-9
F64 = torch.float64


def instances(seed, batch, tokens):
    """(p, E): sparse, dense, diagonal or positive scores, spread or peaked p; ||E||_1 from 1e-3 to 12."""
    g = torch.Generator().manual_seed(seed)
    e = torch.randn(batch, tokens, tokens, generator=g, dtype=F64)
    e = e * (torch.rand(batch, tokens, tokens, generator=g) < torch.rand(batch, 1, 1, generator=g))
    kind = torch.arange(batch) % 4
    e[kind == 1] = torch.diag_embed(torch.randn(int((kind == 1).sum()), tokens, generator=g, dtype=F64))
    e[kind == 2] = e[kind == 2].abs()
    e[:, 0, 0] += 1e-6
    size = 10 ** (4.08 * torch.rand(batch, generator=g, dtype=F64) - 3)
    e = e * (size / e.abs().sum(1).amax(1))[:, None, None]
    peaked = 10 * torch.rand(batch, 1, generator=g, dtype=F64)
    return (peaked * torch.randn(batch, tokens, generator=g, dtype=F64)).softmax(-1), e


def change(p, e):
    """P - 1 p^T, without a small difference of large numbers."""
    shift = (p[:, None] * e.expm1()).sum(-1, keepdim=True)
    return p[:, None] * (e - shift.log1p()).expm1()


@pytest.mark.parametrize("tokens", [2, 3, 5, 8])
def test_one_entry_columns_and_rows_hold_on_25000_instances_each(tokens):
    for seed in range(5):
        p, e = instances(seed, 5000, tokens)
        moved, size = change(p, e).abs(), e.abs()
        growth = p[:, None] * size.expm1()
        others = growth.sum(-1, keepdim=True) - growth
        entry = size / 4 + p[:, None] * others
        assert (moved <= entry * ROUNDING + 1e-15).all()
        assert not (moved <= 0.9 * entry).all()
        lam = size.sum(1).amax(1)
        osc = (e.amax(2) - e.amin(2)).amax(1)
        mu = torch.minimum(size.amax((1, 2)), osc)
        columns, rows = moved.sum(1).amax(1), moved.sum(2).amax(1)
        assert (columns <= f_lambda(lam) * ROUNDING).all()
        assert (columns <= f_slope(mu) * lam * ROUNDING).all()
        assert (rows <= 2 * (osc / 4).tanh() * ROUNDING).all()
        assert ((columns * rows).sqrt() <= g_lambda(lam) * ROUNDING).all()
        assert ((columns * rows).sqrt() <= const_osc(osc) * lam * ROUNDING).all()
        assert (columns <= const_osc_heads(osc).square() * lam * ROUNDING).all()


@pytest.mark.parametrize("lam", [0.01, 0.5, 2.0, 5.0, 7.49])
def test_the_columns_are_sharp_for_every_size(lam):
    """Half of p on one key, the movers share the rest; many rows score a little on that key."""
    movers, rows = 10**7, 10**4
    x, w = math.expm1(lam), 0.5 / movers
    by_movers = movers * 0.5 * w * x / (1 + w * x)
    by_rows = rows * (1 / (1 + math.exp(-lam / rows)) - 0.5)
    truth, bound = by_movers + by_rows, f_lambda(torch.tensor(lam, dtype=F64)).item()
    assert 0.999 * bound < truth <= bound * ROUNDING


def test_an_adversary_climbs_and_stays_below():
    g = torch.Generator().manual_seed(7)
    p, e = instances(7, 256, 4)
    log_p, best = p.log(), torch.zeros(256, dtype=F64)
    for step in range(200):
        scale = 0.5 * 0.98**step
        trial_p = (log_p + scale * torch.randn(256, 4, generator=g, dtype=F64)).log_softmax(-1)
        trial_e = e + scale * e.abs().amax((1, 2), keepdim=True) * torch.randn(
            256, 4, 4, generator=g, dtype=F64
        )
        lam = trial_e.abs().sum(1).amax(1)
        found = change(trial_p.exp(), trial_e).abs().sum(1).amax(1) / f_lambda(lam)
        assert (found[lam < 25] <= ROUNDING).all()
        better = (found > best) & (lam < 25)
        log_p, e = (
            torch.where(better[(...,) + (None,) * (o.ndim - 1)], t, o)
            for t, o in ((trial_p, log_p), (trial_e, e))
        )
        best = torch.where(better, found, best)
    assert best.max() > 0.95
