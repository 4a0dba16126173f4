"""Differences of softmax under a tilt, against mpmath: small, moderate and large scores, with and without a mask."""

import mpmath as mp
import pytest
import torch

from ranklib.exact.softmax import base_difference, large_difference, mild_difference, moderate, softmax_base
from tests.exact.by_definition import exact, generator

TOKENS = 5


def tilted(key_score, scores):
    """softmax(key + E) - softmax(key), row by row, with all digits."""
    base = [mp.exp(entry) for entry in key_score]
    total = mp.fsum(base)
    rows = []
    for i in range(scores.rows):
        row = [b * mp.exp(scores[i, j]) for j, b in enumerate(base)]
        rows.append([r / mp.fsum(row) - b / total for r, b in zip(row, base, strict=True)])
    return mp.matrix(rows)


def inputs(size):
    draw = torch.randn(TOKENS + 1, TOKENS, generator=generator(0), dtype=torch.float64)
    return draw[:1], size * draw[None, 1:]


@pytest.mark.parametrize("exponent", [-1, -40, -70, -800])
def test_a_mild_tilt_is_resolved_at_every_size(exponent):
    key_score, scores = inputs(0.25)
    log_base, _ = softmax_base(key_score, None)
    ratio, log_weights, power = mild_difference(scores, exponent, log_base)
    with mp.workdps(600):
        wanted = tilted(exact(key_score[0]), exact(scores[0]) * mp.mpf(2) ** exponent)
        got = exact(ratio[0] * log_weights[0].exp()) * mp.mpf(2) ** power
        assert mp.norm(got - wanted, 2) < 1e-14 * mp.norm(wanted, 2)


@pytest.mark.parametrize("size", [0.1, 3.0, 40.0])
def test_a_large_tilt_is_a_difference_of_weights(size):
    key_score, scores = inputs(size)
    log_base, _ = softmax_base(key_score, None)
    ratio, log_weights, power = large_difference(scores, 0, log_base)
    assert power == 0
    with mp.workdps(60):
        wanted = tilted(exact(key_score[0]), exact(scores[0]))
        got = exact(ratio[0] * log_weights[0].exp())
        assert mp.norm(got - wanted, 2) < 1e-13 * mp.norm(wanted, 2)


def test_masks_change_the_base_itself():
    """B_ij - B_0j, up to what averages R - 1 c^T to zero, where c is the first row's average of R."""
    key_score, _ = inputs(1.0)
    mask = torch.ones(1, TOKENS, TOKENS, dtype=torch.bool).tril()
    log_base, log_ratio = softmax_base(key_score, mask)
    ratio, log_weights = base_difference(log_ratio, mask)
    base, weighted = log_base[0].exp(), ratio[0] * log_weights[0].exp()
    residual = torch.randn(TOKENS, 3, generator=generator(1), dtype=torch.float64)
    centred = residual - base[:1] @ residual
    assert torch.allclose(weighted @ centred, base @ centred, rtol=0, atol=1e-13)
    assert not torch.allclose(weighted @ residual, base @ residual, atol=1e-3)


def test_scores_too_large_for_their_rounding_are_refused():
    assert torch.equal(moderate(torch.ones(2, 2)), torch.ones(2, 2))
    for bad in (1e13, torch.inf, torch.nan):
        with pytest.raises(ValueError, match="state: expected scores up to 1e.12, got larger ones.*scale"):
            moderate(torch.tensor([[0.0, bad]]))
