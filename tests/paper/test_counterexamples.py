"""The counterexamples against dense layers and certified residuals, and the sizes at which they start."""

import math

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.paper.checks import check_layer
from ranklib.paper.constants import const_osc
from ranklib.paper.counterexamples import (
    diagonal_step,
    four_tokens,
    signed_step,
    two_heads,
)
from ranklib.paper.norms import composite


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


def test_the_two_slips_of_the_printed_proof():
    for eps in (1e-3, 0.5):
        for tokens in (2, 3, 11):
            assert diagonal_step(eps, tokens) == (pytest.approx(tokens * eps), pytest.approx(2 * eps))
    assert diagonal_step(0.1, 1) == (0, pytest.approx(0.2)), "one token: nothing to range over"
    for u in (0.01, 0.5, 3.0):
        left, right = signed_step(u)
        assert left == pytest.approx(math.tanh(u)) and right < 1e-14 * u


def test_bad_input_says_what_was_expected():
    plain, movers = import_plain("ranklib.paper.counterexamples"), import_plain("ranklib.paper.movers")
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
        (ValueError, lambda: plain.diagonal_step(0.0, 3)),
        (TypeError, lambda: plain.diagonal_step(1.0, 3.5)),
        (ValueError, lambda: plain.signed_step(math.inf)),
        (ValueError, lambda: movers.best_movers(7)),
    ):
        raises_its_own_message(kind, call)
