"""Measures of attention matrices against loops, at their extremes, and what they certify."""

import doctest
import math

import pytest
import torch

import ranklib.measures.attention
import ranklib.measures.spectrum
import ranklib.measures.tokens
from ranklib.measures.attention import (
    attention_entropy,
    dobrushin,
    inverse_participation,
    singular_gap,
    spectral_gap,
)
from ranklib.measures.table import ATTENTION_MEASURES
from ranklib.measures.tokens import (
    oscillation,
)

SEEDS = range(7)
TOKENS, DIM = 7, 11


def generator(seed):
    return torch.Generator().manual_seed(seed)


def draw(seed, *shape):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def attention(seed, *shape, sharpness=2.0):
    return (sharpness * draw(seed, *shape)).softmax(-1)


def close(a, b, rtol=1e-9, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("seed", SEEDS)
def test_attention_measures_against_loops_and_ranges(seed):
    p = attention(seed, 2, TOKENS, TOKENS)
    for index in range(2):
        rows = p[index]
        close(attention_entropy(rows), torch.stack([-(r * r.log()).sum() for r in rows]))
        close(inverse_participation(rows), torch.stack([(r * r).sum() for r in rows]))
        distances = [(a - b).abs().sum() / 2 for a in rows for b in rows]
        close(dobrushin(rows), torch.stack(distances).max())
        close(spectral_gap(rows), 1 - sorted(torch.linalg.eigvals(rows).abs())[-2])
        singular = torch.linalg.svdvals(rows)
        close(singular_gap(rows), singular[0] - singular[1])
    for name, measure in ATTENTION_MEASURES.items():
        close(measure(p), torch.stack([measure(p[0]), measure(p[1])]))
        assert measure(p.float()).dtype == measure(p.bfloat16()).dtype == torch.float32, name
    assert (attention_entropy(p) <= math.log(TOKENS)).all() and (attention_entropy(p) >= 0).all()
    assert (inverse_participation(p) >= 1 / TOKENS).all() and (inverse_participation(p) <= 1).all()
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
    close(inverse_participation(uniform), torch.full((n,), 1 / n, dtype=torch.float64))
    assert inverse_participation(single).tolist() == [1.0] * n
    assert dobrushin(uniform) == 0 and dobrushin(single) == 1
    assert spectral_gap(uniform).item() == pytest.approx(1) and spectral_gap(single) == 0
    assert singular_gap(uniform).item() == pytest.approx(1) and singular_gap(single) == 0
    first_key = torch.eye(n, dtype=torch.float64)[:1].expand(n, n)
    assert singular_gap(first_key).item() == pytest.approx(n**0.5) and dobrushin(first_key) == 0
    follow = torch.eye(n, dtype=torch.float64).roll(1, 0)
    follow[0] = torch.eye(n, dtype=torch.float64)[0]
    assert spectral_gap(follow) > 0.99 and dobrushin(follow) == 1, "non-normal: nothing mixes in one layer"
    pair = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
    for measure in (spectral_gap, singular_gap, dobrushin):
        assert measure(pair).item() == pytest.approx(0.5, rel=1e-14)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.measures.attention)
    assert found.attempted >= 8 and found.failed == 0
