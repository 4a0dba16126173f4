"""Measures of the tokens at their extremes."""

import doctest

import pytest
import torch

import ranklib.measures.tokens
from ranklib.measures.spectrum import (
    effective_rank,
    gram_stable_rank,
    isometry_gap,
    numerical_rank,
    participation_ratio,
    stable_rank,
)
from ranklib.measures.table import MEASURES
from ranklib.measures.tokens import composite_residual, mean_average_distance, mean_cosine, mu
from tests.measures.matrices import DIM, TOKENS, close, draw, generator


def test_extremes():
    equal = (draw(1, 1, DIM) / 3).expand(TOKENS, DIM)
    for name in ("composite_residual", "mu", "relative_residual", "hc_dc", "oscillation", "dirichlet_energy"):
        assert MEASURES[name](equal) == 0, name
    assert mean_average_distance(equal) == 0
    eye = torch.eye(TOKENS, DIM, dtype=torch.float64)
    assert composite_residual(eye).item() == pytest.approx(2 * (1 - 1 / TOKENS), rel=1e-14)
    for rank in (stable_rank, gram_stable_rank, effective_rank):
        assert rank(eye).item() == pytest.approx(TOKENS, rel=1e-12)
    assert isometry_gap(3 * eye).item() == pytest.approx(0, abs=1e-14)
    simplex = torch.eye(TOKENS, dtype=torch.float64) - 1 / TOKENS
    assert mean_cosine(simplex).item() == pytest.approx(-1 / (TOKENS - 1), rel=1e-12)
    assert participation_ratio(eye).item() == pytest.approx(TOKENS - 1, rel=1e-12), "centring costs one"
    assert numerical_rank(torch.zeros(TOKENS, DIM), 1e-3) == 0
    steps = torch.randint(-4, 5, (TOKENS, DIM), generator=generator(3)).double()
    close(mu(1 + 2.0**-50 * steps), 2.0**-50 * mu(steps), atol=0)
    nearly = equal + 1e-10 * draw(2, TOKENS, DIM)
    assert 1e-22 < mean_average_distance(nearly) < 1e-18, "1 - cosine would have cancelled"


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.measures.tokens)
    assert found.attempted >= 8 and found.failed == 0
