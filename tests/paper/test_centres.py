"""Residuals about a centre, and the theorems on the easy centres."""

import doctest

import numpy as np
import pytest
import torch

import ranklib.paper.centres
import ranklib.paper.least
from plain import import_plain, raises_its_own_message
from ranklib.paper.centres import (
    col_sum,
    composite_about,
    mean_centre,
    mean_residual,
    median_centre,
    median_residual,
    midrange_centre,
    residual_about,
    row_sum,
)
from ranklib.paper.least import residual_size, residual_size_exact

SEEDS = range(7)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def gaussian(seed, n, d):
    return torch.randn(n, d, generator=generator(seed), dtype=torch.float64)


def sharp_for_the_median(m):
    """n = 2m + 1, d = 2m: the last row all 3, m - 1 cyclically shifted entries 2 in every column."""
    row, column = torch.arange(2 * m).unsqueeze(-1), torch.arange(2 * m)
    body = 2.0 * (((row - column) % (2 * m)) < m - 1)
    return torch.cat([body.double(), torch.full((1, 2 * m), 3.0, dtype=torch.float64)])


def test_about_a_centre_by_hand():
    """Tokens 0, 1, 5: f g = 6 * 3, 5 * 4, 6.5 * 2.5 about mean, median and midrange."""
    x = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64)
    for centre, f, g in ((mean_centre, 6, 3), (median_centre, 5, 4), (midrange_centre, 6.5, 2.5)):
        assert col_sum(x, centre(x)) == f and row_sum(x, centre(x)) == g
    assert residual_size_exact(x).upper.item() == pytest.approx(16.25**0.5, rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_centres_against_numpy(seed):
    x = gaussian(seed, 3 * 7, 5).reshape(3, 7, 5)
    a = x.numpy()
    np.testing.assert_allclose(mean_centre(x), a.mean(1), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(median_centre(x), np.median(a, axis=1))
    np.testing.assert_allclose(midrange_centre(x), (a.max(1) + a.min(1)) / 2, rtol=0, atol=1e-15)
    np.testing.assert_allclose(residual_about(x, x[:, 0]), a - a[:, :1], rtol=0, atol=0)
    even = x[:, :4].sort(1).values
    assert torch.equal(median_centre(x[:, :4]), even[:, 1])
    for value, centre in ((mean_residual(x), mean_centre(x)), (median_residual(x), median_centre(x))):
        torch.testing.assert_close(value, composite_about(x, centre), rtol=1e-13, atol=0)
        product = col_sum(x, centre) * row_sum(x, centre)
        torch.testing.assert_close(value, product.sqrt(), rtol=1e-13, atol=0)


@pytest.mark.parametrize("n", [2, 3, 5, 11])
def test_identity_attains_the_mean_bound(n):
    x = torch.eye(n, dtype=torch.float64)
    assert residual_size_exact(x).upper.item() == pytest.approx(1, rel=1e-9)
    assert mean_residual(x).item() == pytest.approx(2 * (1 - 1 / n), rel=1e-14)
    assert composite_about(x, midrange_centre(x)).item() == pytest.approx(n / 2, rel=1e-14)


@pytest.mark.parametrize("m", [2, 5, 11])
def test_the_sharp_median_family(m):
    x = sharp_for_the_median(m)
    zero = torch.zeros(2 * m, dtype=torch.float64)
    assert x.shape == (2 * m + 1, 2 * m) and torch.equal(median_centre(x), zero)
    assert (col_sum(x, zero), row_sum(x, zero)) == (2 * m + 1, 6 * m)
    assert (col_sum(x, zero + 2), row_sum(x, zero + 2)) == (2 * m + 3, 2 * m + 2)
    ratio = (3 * (2 * m + 1) / (2 * m + 3) * m / (m + 1)) ** 0.5
    found = residual_size(x)
    assert ratio * (1 - 1e-12) <= median_residual(x).item() / found.lower.item()
    assert median_residual(x).item() / found.upper.item() <= 3**0.5


@pytest.mark.parametrize("seed", SEEDS)
def test_for_two_tokens_the_midpoint_is_best(seed):
    x = gaussian(seed, 2, 7)
    exact = residual_size_exact(x)
    middle = composite_about(x, midrange_centre(x))
    assert exact.lower <= middle * (1 + 1e-12) and middle <= exact.upper * (1 + 1e-9)


@pytest.mark.parametrize("about", [residual_about, col_sum, row_sum, composite_about])
@pytest.mark.parametrize("centre", [torch.ones(5), torch.ones(1), torch.ones(3) / 0, torch.ones(3).long()])
def test_bad_centres(about, centre):
    with pytest.raises((TypeError, ValueError)):
        about(torch.ones(5, 3), centre)


@pytest.mark.parametrize(
    "centre_of", [mean_centre, median_centre, midrange_centre, mean_residual, median_residual]
)
def test_bad_tokens_have_no_centre(centre_of):
    for x in (torch.ones(5, 3) / 0, torch.ones(5, 3).long(), torch.ones(0, 3), torch.ones(3)):
        with pytest.raises((TypeError, ValueError)):
            centre_of(x)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.paper.centres)
    assert found.attempted >= 5 and found.failed == 0


def test_messages_without_the_shape_checker():
    """What a user sees: the shape checker runs only under pytest."""
    plain = import_plain("ranklib.paper.centres")
    for centre, kind, word in (
        (torch.ones(5), ValueError, "one row for each matrix"),
        (torch.ones(3).long(), TypeError, "floating-point"),
    ):
        assert word in raises_its_own_message(kind, plain.residual_about, torch.ones(5, 3), centre)
