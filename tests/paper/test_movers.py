"""Movers and the clean family against dense layers and certified residuals, and their first sizes."""

import math
from fractions import Fraction

import pytest
import torch

from ranklib.paper.checks import check_layer
from ranklib.paper.constants import g_lambda
from ranklib.paper.least import residual_size_exact
from ranklib.paper.movers import (
    Movers,
    best_movers,
    clean_family,
    clean_movers,
    pocket_family,
)
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.paper.sizes import layer_sizes


def families():
    return [
        clean_movers(5, 1e-9),
        clean_movers(3, 0.25),
        clean_movers(4, 1e-3, one_number=True),
        Movers(2, 11, 7, 31, Fraction(1, 100)),
        Movers(7, 3, Fraction(5, 2), 13, Fraction(1, 7)),
        Movers(3, 29, 40, 11, Fraction(1, 10**6)),
    ]


@pytest.mark.parametrize("family", families(), ids=str)
def test_movers_match_the_dense_layer_and_the_certificate(family):
    x, attention, facts = family.instance()
    assert x.shape == (family.tokens, family.movers + 1)
    torch.testing.assert_close(attention(x), family.output(), rtol=0, atol=1e-12)
    found = residual_size_exact(family.output())
    assert family.lower <= found.upper.item() * (1 + 1e-9)
    assert found.lower.item() >= family.lower * (1 - 1e-9), "valid about every centre"
    for centre in (family.output()[-1], family.output()[1], family.output().mean(0)):
        assert family.lower <= composite(family.output() - centre)
    sizes = layer_sizes(attention, x, torch.zeros(family.movers + 1, dtype=torch.float64))
    assert sizes.rho == 1 and sizes.lam.item() == pytest.approx(facts["lam"], rel=1e-12)
    assert facts["printed"] == pytest.approx(4 * sizes.lam.item(), rel=1e-12)
    assert check_layer(attention, x).holds


def test_the_lower_bound_is_the_least_over_the_centre():
    for family in (*families(), pocket_family(), clean_movers(1636)):
        (_, (beta, other, own), (alpha, _, _)) = ([float(value) for value in row] for row in family.rows)
        delta = 0 if family.one_number else own - other
        k = torch.linspace(-1, 2, 300_001, dtype=torch.float64)
        f = family.stayers * (alpha - k).abs() + family.movers * (beta - k).abs()
        g = torch.maximum((alpha - k).abs(), (beta - k).abs() + delta)
        least = (f * g).min().sqrt().item()
        assert family.lower <= least * (1 + 1e-12) and least < family.lower * 1.001


def test_clean_family_starts_at_4909_tokens():
    assert clean_movers(1636).tokens == 4909 and clean_movers(3991, one_number=True).tokens == 15965
    for one_number, first in ((False, 1636), (True, 3991)):
        before, at = (clean_movers(m, one_number=one_number) for m in (first - 1, first))
        assert before.ratio < 1 < at.ratio
    for m in (2, 7, 1636, 2000):
        assert clean_movers(m).lower_squared == Fraction(13851, 10000) * m
        assert clean_movers(m, one_number=True).lower_squared == Fraction(81, 100) ** 2 * m
    assert clean_movers(2000).ratio == pytest.approx(1.0874, abs=1e-4)
    assert clean_movers(1636, 1e-9).ratio > 1, "a positive weight of the stayers suffices"


def test_clean_family_is_that_of_the_movers():
    assert clean_family(3, 1e-4).facts == clean_movers(3, 1e-4).instance().facts
    for norm in (max_col_sum, max_row_sum):
        assert norm(clean_family(3).x) == 1


def test_pocket_calculator_family():
    family = pocket_family()
    assert family.tokens == 6001
    # Exact on the left; on the right one logarithm, 16 log(126000)^2, known to 1e-15.
    assert family.lower_squared > Fraction(16 * math.log(126000) ** 2 * (1 + 1e-12))
    assert family.lower == pytest.approx(50.78159304977993787, rel=1e-15)
    assert family.printed == pytest.approx(46.97614874373446020, rel=1e-15)
    assert family.ratio == pytest.approx(1.0810, abs=5e-5)
    y = family.output()
    assert composite(y - y[-1]) >= family.lower and y.shape == (6001, 2001)
    shares = [y[-1, 0].item(), y[1, 0].item(), (y[1, 1] - y[1, 2]).item()]
    assert shares == pytest.approx([0.857142612, 0.085714896, 0.899999260], abs=1e-9)


def test_no_family_beats_what_is_proved():
    for family in (*families(), pocket_family(), clean_movers(1636), best_movers(300)):
        assert family.lower <= g_lambda(torch.tensor(family.lam).double())
        assert family.lower <= math.sqrt(family.tokens)


def test_best_movers_refute_the_printed_claim_before_the_clean_family_does():
    assert best_movers(4725).ratio > 1 > clean_movers(4725 // 3).ratio
