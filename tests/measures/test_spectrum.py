"""Measures of the spectrum: their ranges, and known confusions."""

import doctest

import pytest
import torch

import ranklib.measures.spectrum
from ranklib.measures.spectrum import (
    effective_rank,
    gram_stable_rank,
    isometry_gap,
    numerical_rank,
    participation_ratio,
    stable_rank,
)
from ranklib.measures.tokens import composite_residual, mean_average_distance, mean_cosine, relative_residual
from tests.measures.matrices import DIM, SEEDS, TOKENS, close, draw, six_matrices


@pytest.mark.parametrize("seed", SEEDS)
def test_ranges(seed):
    x, up = torch.stack(list(six_matrices(seed, 7, 11).values())), 1 + 1e-9
    rank, n = numerical_rank(x, 1e-9).double(), 7
    assert rank.tolist() == [7, 7, 1, 1, 2, 7]
    for measure in (stable_rank, gram_stable_rank, effective_rank, participation_ratio):
        assert (measure(x) >= 1 / up).all() and (measure(x) <= rank * up).all()
    assert (gram_stable_rank(x) <= stable_rank(x) * up).all()
    assert (stable_rank(x) <= effective_rank(x) * up).all()
    assert (composite_residual(x) <= 2 * (1 - 1 / n) * up).all() and (relative_residual(x) <= up).all()
    assert (mean_cosine(x) >= -1 / (n - 1) * up).all() and (mean_cosine(x) <= up).all()
    close(mean_average_distance(x), 1 - mean_cosine(x))
    gap = isometry_gap(x)
    assert (gap >= 0).all() and gap.isinf().tolist() == [False, False, True, True, True, False]


@pytest.mark.parametrize("seed", SEEDS)
def test_confusions_seen_in_public_code(seed):
    """Softmax of s, s^2 for s, and sum(s) / max(s) are other numbers; exact rank deficiency gives no NaN."""
    x = draw(seed, TOKENS, DIM)
    s = torch.linalg.svdvals(x)

    def exp_entropy(share):
        return torch.special.entr(share).sum().exp()

    right = effective_rank(x)
    assert abs(exp_entropy(s.softmax(0)) - right) > 0.2
    assert exp_entropy(s**2 / (s**2).sum()) < right - 0.2
    assert abs(s.sum() / s.max() - right) > 0.2
    deficient = torch.zeros(TOKENS, DIM, dtype=torch.float64)
    deficient[0, 0], deficient[1, 1] = 2, 2
    assert effective_rank(deficient).item() == pytest.approx(2, rel=1e-12)
    close(mean_cosine(x - x.mean(0)), torch.tensor(-1 / (TOKENS - 1)).double(), atol=0.08)
    assert participation_ratio(x) <= TOKENS - 1 and effective_rank(x - x.mean(0)) <= TOKENS - 1


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.measures.spectrum)
    assert found.attempted >= 8 and found.failed == 0
