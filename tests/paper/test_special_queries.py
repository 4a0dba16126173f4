"""Special queries against dense layers, certified residuals and limits; the table of best ratios."""

import math
from fractions import Fraction

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.paper.checks import measure_layer
from ranklib.paper.constants import FOUR, const_osc, g_slope
from ranklib.paper.counterexamples import four_tokens
from ranklib.paper.least import residual_size_exact
from ranklib.paper.movers import best_movers, clean_movers
from ranklib.paper.norms import composite
from ranklib.paper.sizes import layer_sizes
from ranklib.paper.special_queries import (
    LIMITS,
    Specials,
    best_ratios,
    best_specials,
    refuting_3573,
    special_limit,
)

SMALL = Specials(((5, 1), (2, Fraction(1, 4))), 9, 30, 5, 7)


def number(function, value):
    return function(torch.tensor(value, dtype=torch.float64)).item()


def test_limits_cross_four_where_the_theorem_says():
    assert special_limit(7.59) < 4 < special_limit(7.6)
    assert special_limit(7.56, "lam") < 4 < special_limit(7.57, "lam")
    for level in (0.5, 3.0, 7.49):
        assert special_limit(level) <= number(const_osc, level)
        assert special_limit(level, "lam") <= number(g_slope, level)


@pytest.mark.parametrize("size", LIMITS)
def test_the_limit_is_that_of_rows_of_softmax(size):
    q, s, leaves = LIMITS[size]
    level, m, rest = 3.0, 10**7, 1 - q - s
    # Keys: default, special, one mover, the other movers together.
    log_p = torch.tensor([q, s, rest / m, rest * (m - 1) / m]).double().log()
    tilt = torch.zeros(3, 4, dtype=torch.float64)
    tilt[0, 2], tilt[1, 1], tilt[1, 0] = level, level, -level * leaves
    mover, special, stayer = (log_p + tilt).softmax(-1)
    column = m * (stayer - mover)[0] + (stayer - special)[0].abs()
    row = (special - stayer).abs().sum()
    assert (column * row).sqrt().item() / level == pytest.approx(special_limit(level, size), rel=1e-5)


def test_a_small_family_against_the_dense_layer_and_the_certificate():
    x, attention, facts = SMALL.instance()
    assert len(x) == SMALL.tokens
    found = residual_size_exact(attention(x))
    assert found.upper.item() >= facts["lower"] * (1 - 1e-6)
    assert found.lower.item() < 1.2 * facts["lower"]
    sizes = layer_sizes(attention, x, torch.zeros(x.shape[1], dtype=torch.float64))
    assert sizes.rho == 1 and sizes.lam.item() == pytest.approx(facts["lam"], rel=1e-12)
    y = attention(x)
    g = torch.Generator().manual_seed(0)
    for seed in range(100):
        centre = y[seed % len(y)] + torch.randn(y.shape[1], generator=g).double() * 10 ** (-seed / 20)
        assert composite(y - centre) >= facts["lower"] * (1 - 1e-6)


def test_kinds_are_those_of_the_dense_layer():
    y = SMALL.instance().attention(SMALL.instance().x)
    alphas = [alpha for _, alpha, _ in SMALL.kinds]
    found = [y[-1, 0].item(), y[1, 0].item(), y[3, 0].item(), y[8, 0].item()]
    assert found == pytest.approx([float(a) for a in alphas], abs=1e-7)
    deltas = [(y[1, 1] - y[1, 2]).item(), (y[3, 3] - y[3, 4]).item()]
    assert deltas == pytest.approx([float(SMALL.kinds[1][2]), float(SMALL.kinds[2][2])], abs=1e-7)


def test_3573_tokens_refute_and_nearby_proportions_do_not():
    family = refuting_3573()
    assert family.tokens == 3573 and family.root == Fraction(13079, 71)
    # Exact on the left; on the right one logarithm, known to 1e-15.
    assert family.lower_squared > Fraction(16 * family.lam**2 * (1 + 1e-12))
    assert (family.lower, 4 * family.lam) == (
        pytest.approx(41.73076, abs=1e-5),
        pytest.approx(41.72867, abs=1e-5),
    )
    assert family._replace(stayers=family.stayers + 1).lower >= family.lower
    for change in ({"special": 5}, {"default": 7000}, {"root": 150}):
        assert family._replace(**change).ratio < 4
    assert FOUR["tokens"] < 3573


def test_best_ratios_are_lower_bounds_that_grow():
    sizes = (2, 3, 4, 7, 11, 32, 64, 256)
    found = best_ratios(sizes)
    assert tuple(found) == sizes and list(found.values()) == sorted(found.values())
    assert [found[n] for n in (2, 3, 4, 7)] == pytest.approx(
        [0.5, math.sqrt(3 / 8), *[math.sqrt(0.5)] * 2], rel=1e-14
    )
    assert [found[n] for n in (32, 64, 256)] == pytest.approx([0.7214, 0.8875, 1.4318], rel=2e-3)
    for tokens in (64, 256):
        plain = clean_movers((tokens - 1) // 3)
        assert 4 * plain.ratio < 4 * best_movers(tokens).ratio < found[tokens]
        assert best_specials(tokens).tokens == tokens
    for tokens in (2, 3, 4):
        x, attention, _ = four_tokens(1e-6, tokens=tokens)
        measured = 10 ** measure_layer(attention, x)[0]
        assert measured / 1e-6 == pytest.approx(found[tokens], rel=1.1e-3)


def test_bad_input_says_what_was_expected():
    plain = import_plain("ranklib.paper.special_queries")
    for kind, call in (
        (ValueError, lambda: plain.special_limit(-1.0)),
        (ValueError, lambda: plain.special_limit(1.0, "rho")),
        (ValueError, lambda: plain.best_specials(15)),
        (ValueError, lambda: plain.best_ratios((1,))),
        (ValueError, lambda: SMALL.instance(0.0)),
    ):
        raises_its_own_message(kind, call)
