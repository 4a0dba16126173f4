"""The families against dense layers and certified residuals, and the sizes at which they start to refute."""

import math
from fractions import Fraction

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.paper.bounds import layer_sizes
from ranklib.paper.checks import check_layer, measure_layer
from ranklib.paper.clean_family import (
    Movers,
    best_movers,
    best_ratios,
    clean_family,
    clean_family_bound,
    clean_family_matrix,
    clean_movers,
    pocket_family,
)
from ranklib.paper.constants import const_osc, g_lambda
from ranklib.paper.counterexamples import (
    diagonal_step,
    four_tokens,
    oscillation_family,
    signed_step,
    two_heads,
)
from ranklib.paper.least import residual_size_exact
from ranklib.paper.norms import composite, max_col_sum, max_row_sum


@pytest.mark.parametrize("overlap,first", [(True, 64514), (False, 65026)])
def test_two_heads_beat_the_printed_bound_from_their_first_size_on(overlap, first):
    for m, w in ((7, 0.3), (31, 1.1)):
        x, attention, facts = two_heads(m, w, overlap)
        found = check_layer(attention, x, "printed_many_heads")
        assert found.sizes.rho.item() == pytest.approx(facts["rho"], rel=1e-12)
        assert found.measured[0] == pytest.approx(facts["output"], rel=1e-12)
        assert 1 / found.slack == pytest.approx(facts["ratio"], rel=1e-12)
        torch.testing.assert_close(composite(attention.w), torch.full((2,), m**0.5, dtype=torch.float64))
    before, at = (two_heads(m, 1e-6, overlap).facts["ratio"] for m in (first - 1, first))
    assert before <= 1 < at


def test_two_heads_at_sixteen_to_the_fourth():
    assert two_heads(16**4, 1e-9).facts["ratio"] == pytest.approx(4112 / 4096, rel=1e-12)
    assert two_heads(10**6, 1e-9).facts["ratio"] == pytest.approx(1.9784, abs=1e-4)


@pytest.mark.parametrize("tokens", [2, 3, 4, 5, 7])
@pytest.mark.parametrize("w", [1e-6, 0.1, 1.3])
def test_four_tokens_have_the_stated_ratio(tokens, w):
    x, attention, facts = four_tokens(w, tokens=tokens)
    found = check_layer(attention, x, tol=1e-6)
    assert found.sizes.rho.item() == pytest.approx(1, rel=1e-6)
    assert found.sizes.lam.item() == pytest.approx(w, rel=3e-6)
    lower, upper = (value / w for value in found.measured)
    assert lower * (1 - 1e-9) <= facts["ratio"] <= upper * (1 + 1e-9)
    assert found.holds and upper <= const_osc(found.sizes.osc).item()


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
        assert clean_family_bound(m) == pytest.approx(math.sqrt(1.3851 * m), rel=1e-15)
        assert clean_movers(m, one_number=True).lower_squared == Fraction(81, 100) ** 2 * m
    assert clean_movers(2000).ratio == pytest.approx(1.0874, abs=1e-4)
    assert clean_movers(1636, 1e-9).ratio > 1, "a positive weight of the stayers suffices"


def test_clean_family_is_that_of_the_movers():
    family = clean_movers(3, 1e-4)
    assert torch.equal(clean_family_matrix(3, 1e-4), family.output())
    assert clean_family(3, 1e-4).facts == family.instance().facts
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


def test_oscillation_family_crosses_four_between_8_196_and_8_197():
    assert oscillation_family(8.196) < 4 < oscillation_family(8.197)
    for osc in (0.5, 3.0, 5.6, 8.0):
        assert oscillation_family(osc) <= const_osc(torch.tensor(osc).double())


def test_oscillation_family_is_the_limit_of_rows_of_softmax():
    osc, m, tiny = 3.0, 10**6, 1e-12
    # Keys: default, special, one mover, the other movers together, stayers together.
    log_p = torch.tensor([2 / 3, tiny, 1 / (3 * m), (m - 1) / (3 * m), tiny]).double().log()
    tilt = torch.zeros(3, 5, dtype=torch.float64)
    tilt[0, 2], tilt[1, 0] = osc, -osc
    mover, special, stayer = (log_p + tilt).softmax(-1)
    column = m * (stayer - mover)[0] + (stayer - special)[0]
    variation = (special - stayer).abs().sum() / 2
    assert (column * 2 * variation).sqrt() / osc == pytest.approx(oscillation_family(osc), rel=1e-4)
    assert variation == pytest.approx(2 / 3 * math.expm1(osc) / (math.exp(osc) + 2), rel=1e-6)


def test_the_two_slips_of_the_printed_proof():
    for eps in (1e-3, 0.5):
        for tokens in (2, 3, 11):
            assert diagonal_step(eps, tokens) == (pytest.approx(tokens * eps), 2 * eps)
    assert diagonal_step(0.1, 1) == (0, 0.2), "one token: nothing to range over"
    for u in (0.01, 0.5, 3.0):
        left, right = signed_step(u)
        assert left == pytest.approx(math.tanh(u)) and right == 0


def test_best_ratios_are_lower_bounds_that_grow():
    sizes = (2, 3, 4, 7, 11, 64, 301)
    found = best_ratios(sizes)
    assert tuple(found) == sizes and list(found.values()) == sorted(found.values())
    assert found[2] == 0.5 and found[3] == math.sqrt(3 / 8) and found[4] == found[7] == math.sqrt(0.5)
    for tokens in (64, 301):
        plain = clean_movers(tokens // 3)
        assert plain.tokens <= tokens and found[tokens] > 4 * plain.ratio * 1.02
        assert best_movers(tokens).tokens == tokens
    for tokens in (2, 3, 4):
        x, attention, _ = four_tokens(1e-6, tokens=tokens)
        measured = 10 ** measure_layer(attention, x)[0]
        assert measured / 1e-6 == pytest.approx(found[tokens], rel=1.1e-3)


def test_best_movers_refute_the_printed_claim_before_the_clean_family_does():
    assert best_movers(4725).ratio > 1 > clean_movers(4725 // 3).ratio


def test_bad_input_says_what_was_expected():
    plain, movers = import_plain("ranklib.paper.counterexamples"), import_plain("ranklib.paper.clean_family")
    for kind, call in (
        (ValueError, lambda: plain.two_heads(0)),
        (TypeError, lambda: plain.two_heads(3.0)),
        (ValueError, lambda: plain.two_heads(3, w=math.nan)),
        (ValueError, lambda: plain.four_tokens(0.0)),
        (ValueError, lambda: plain.four_tokens(1.0, beta=-1.0)),
        (ValueError, lambda: plain.four_tokens(1.0, tokens=1)),
        (ValueError, lambda: movers.clean_movers(1)),
        (ValueError, lambda: movers.clean_movers(5, eta=-1e-9)),
        (ValueError, lambda: movers.clean_movers(5, eta=math.nan)),
        (ValueError, lambda: movers.clean_family(5, eta=0)),
        (ValueError, lambda: plain.oscillation_family(-1.0)),
        (ValueError, lambda: plain.diagonal_step(0.0, 3)),
        (TypeError, lambda: plain.diagonal_step(1.0, 3.5)),
        (ValueError, lambda: plain.signed_step(math.inf)),
        (ValueError, lambda: movers.best_movers(7)),
        (ValueError, lambda: movers.best_ratios((1,))),
    ):
        raises_its_own_message(kind, call)
