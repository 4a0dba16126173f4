"""Measures of attention matrices: their ranges, their extremes, and what they certify."""

import doctest
import math

import pytest
import torch

import ranklib.measures.attention
from ranklib.measures.attention import attention_entropy, dobrushin, spectral_gap
from ranklib.measures.tokens import oscillation
from tests.measures.matrices import SEEDS, TOKENS, attention, close, draw


@pytest.mark.parametrize("seed", SEEDS)
def test_ranges(seed):
    p = attention(seed, 2, TOKENS, TOKENS)
    assert (attention_entropy(p) <= math.log(TOKENS)).all() and (attention_entropy(p) >= 0).all()
    assert (1 - spectral_gap(p) <= dobrushin(p) + 1e-12).all(), "the second eigenvalue is below tau"


@pytest.mark.parametrize("seed", SEEDS)
def test_dobrushin_certifies_a_stack(seed):
    p, q, x = attention(seed, TOKENS, 5), attention(seed + 20, 5, 3), draw(seed, 3, 2)
    assert dobrushin(p @ q) <= dobrushin(p) * dobrushin(q) * (1 + 1e-12)
    assert oscillation(q @ x) <= dobrushin(q) * oscillation(x) * (1 + 1e-12)


def test_attention_extremes():
    """Uniform rows, one key for each query, and a matrix whose eigenvalues mislead."""
    n = TOKENS
    uniform, single = torch.full((n, n), 1 / n, dtype=torch.float64), torch.eye(n, dtype=torch.float64)
    close(attention_entropy(uniform), torch.full((n,), math.log(n), dtype=torch.float64))
    assert attention_entropy(single).tolist() == [0.0] * n, "0 log 0 is 0"
    assert dobrushin(uniform) == 0 and dobrushin(single) == 1
    assert spectral_gap(uniform).item() == pytest.approx(1) and spectral_gap(single) == 0
    first_key = torch.eye(n, dtype=torch.float64)[:1].expand(n, n)
    assert dobrushin(first_key) == 0
    follow = torch.eye(n, dtype=torch.float64).roll(1, 0)
    follow[0] = torch.eye(n, dtype=torch.float64)[0]
    assert spectral_gap(follow) > 0.99 and dobrushin(follow) == 1, "non-normal: nothing mixes in one layer"
    pair = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
    for measure in (spectral_gap, dobrushin):
        assert measure(pair).item() == pytest.approx(0.5, rel=1e-14)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.measures.attention)
    assert found.attempted >= 6 and found.failed == 0
