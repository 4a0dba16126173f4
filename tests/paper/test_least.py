"""The certified least residual against the exact one, grids, and hand-made minima."""

import doctest
import itertools

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import ranklib.paper.centres
import ranklib.paper.least
from plain import import_plain, raises_its_own_message
from ranklib.paper import certificate
from ranklib.paper.centres import (
    col_sum,
    composite_about,
    mean_residual,
    median_residual,
    midrange_centre,
    row_sum,
)
from ranklib.paper.least import CertifiedResidual, residual_size, residual_size_exact
from ranklib.paper.norms import composite

SHAPES = [(2, 3), (3, 1), (5, 3), (7, 11), (13, 5)]
SEEDS = range(7)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def gaussian(seed, n, d):
    return torch.randn(n, d, generator=generator(seed), dtype=torch.float64)


def sparse(seed, n, d):
    keep = torch.rand(n, d, generator=generator(seed + 1000), dtype=torch.float64) < 0.3
    return gaussian(seed, n, d) * keep


def clusters(seed, n, d):
    which = torch.randint(0, 3, (n,), generator=generator(seed + 1000))
    return gaussian(seed, 3, d)[which] + 0.01 * gaussian(seed + 1, n, d)


def cauchy(seed, n, d):
    return torch.tan(3.1 * (torch.rand(n, d, generator=generator(seed), dtype=torch.float64) - 0.5))


def integers(seed, n, d):
    return torch.randint(-2, 3, (n, d), generator=generator(seed)).double()


FAMILIES = {f.__name__: f for f in (gaussian, sparse, clusters, cauchy, integers)}
CASES = list(itertools.product(FAMILIES, SHAPES))
UNIT = {n: torch.eye(n, 1, dtype=torch.float64) for n in (2, 3, 4, 5, 8, 11)}
NOT_UNIMODAL = torch.tensor([[-2.0, 0.0], [-187.0, 0.0], [-7.0, -23.0], [5.0, 8.0]], dtype=torch.float64)


def sharp_for_the_median(m):
    """n = 2m + 1, d = 2m: the last row all 3, m - 1 cyclically shifted entries 2 in every column."""
    row, column = torch.arange(2 * m).unsqueeze(-1), torch.arange(2 * m)
    body = 2.0 * (((row - column) % (2 * m)) < m - 1)
    return torch.cat([body.double(), torch.full((1, 2 * m), 3.0, dtype=torch.float64)])


def grid_minimum(x, points):
    """Least composite over a grid that spans the columns; never below the least one."""
    steps = torch.linspace(0, 1, points, dtype=torch.float64)
    axes = [torch.cat([c.min() + (c.max() - c.min()) * steps, c]) for c in x.mT]
    centres = torch.cartesian_prod(*axes).reshape(-1, x.shape[1])
    return composite(x - centres.unsqueeze(1)).min().item()


@pytest.mark.parametrize("family, shape", CASES)
def test_certified_and_exact_agree_and_the_theorems_hold(family, shape):
    """Two independent ways overlap; mean, median and midrange are never better and within their bounds."""
    n, _ = shape
    x = torch.stack([FAMILIES[family](seed, *shape) for seed in SEEDS])
    fast, exact = residual_size(x), residual_size_exact(x)
    assert (fast.gap <= 1e-3 * (1 + 1e-9)).all() and (exact.gap <= 1e-9 * (1 + 1e-6)).all()
    assert (fast.lower <= exact.upper).all() and (exact.lower <= fast.upper).all()
    assert (exact.lower <= exact.upper).all() and (fast.lower <= fast.upper).all()
    up = 1 + 1e-12
    for found in (fast, exact):
        torch.testing.assert_close(composite_about(x, found.centre), found.upper, rtol=1e-11, atol=1e-14)
        for value in (mean_residual(x), median_residual(x), composite_about(x, midrange_centre(x))):
            assert (found.lower <= value * up).all()
    assert (mean_residual(x) <= 2 * (1 - 1 / n) * exact.upper * up).all()
    assert (median_residual(x) <= 3**0.5 * exact.upper * up).all()
    centre = exact.centre
    span = (x.amax(-2) - x.amin(-2)).amax(-1)
    pairs = torch.cdist(x, x, p=1.0).amax((-2, -1))
    assert (col_sum(x, centre) >= span / up).all() and (2 * row_sum(x, centre) >= pairs / up).all()
    assert (exact.upper >= (span * pairs / 2).sqrt() / up).all()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n, d, points", [(7, 1, 4001), (5, 2, 301)])
def test_brute_force_on_a_grid(family, n, d, points):
    for seed in SEEDS:
        x = FAMILIES[family](seed + 20, n, d)
        exact, grid = residual_size_exact(x), grid_minimum(x, points)
        assert exact.lower <= grid * (1 + 1e-12)
        step = (x.amax(0) - x.amin(0)).max().item() / (points - 1)
        f, g = col_sum(x, exact.centre), row_sum(x, exact.centre)
        assert grid <= ((f + n * step) * (g + d * step)).sqrt() * (1 + 1e-9)


def test_one_hot_column_has_two_minima_and_the_stated_size():
    """res^2 = min(1, n/4); at n = 4 both 0 and 1/2 attain 1, with 9/8 between them."""
    for n, x in UNIT.items():
        size = min(1.0, n / 4) ** 0.5
        for found in (residual_size(x), residual_size_exact(x)):
            assert found.lower.item() <= size * (1 + 1e-12) and size <= found.upper.item() * (1 + 1e-12)
        assert residual_size_exact(x).upper.item() == pytest.approx(size, rel=1e-9)
    products = [composite_about(UNIT[4], torch.tensor([c]).double()).item() ** 2 for c in (0, 0.25, 0.5)]
    assert products == pytest.approx([1, 9 / 8, 1], rel=1e-14)


def test_profiles_that_are_not_unimodal():
    """A descent from the midrange ends at 1.118 for n = 5, where the least is 1.

    At the slope g / f of the best centre the profile V(s) / (2 sqrt s) touches the least value (188.31 for
    the second matrix, whose other local minimum is 189.57, with 196.9 between the two).
    """
    assert composite_about(UNIT[5], midrange_centre(UNIT[5])).item() == pytest.approx(1.25**0.5, rel=1e-14)
    for x, barrier in ((UNIT[5], (0.2, 1 / 3, 1.0)), (NOT_UNIMODAL, (0.28, 0.5, 0.9))):
        y = x.numpy() - np.sort(x.numpy(), axis=0)[(len(x) - 1) // 2]

        def profile(s, y=y):
            return certificate.slope_program(y, s)[0] / (2 * s**0.5)

        exact, fast = residual_size_exact(x), residual_size(x)
        best = (row_sum(x, exact.centre) / col_sum(x, exact.centre)).item()
        assert exact.upper.item() == pytest.approx(profile(best), rel=1e-9)
        assert fast.lower <= exact.upper and fast.upper <= exact.upper * (1 + 1e-3)
        left, middle, right = map(profile, barrier)
        assert middle > 1.03 * left and left > 1.005 * right and right >= exact.lower.item() * (1 - 1e-9)
    assert residual_size_exact(UNIT[5]).upper.item() == pytest.approx(1, rel=1e-9)
    assert residual_size_exact(NOT_UNIMODAL).upper.item() == pytest.approx(188.31, abs=0.005)


def test_sharp_median_family_at_n_201():
    """The ratio is between 1.714 and sqrt 3 there."""
    x = sharp_for_the_median(100)
    found = residual_size(x)
    assert 1.714 < (median_residual(x) / found.upper).item() <= 3**0.5


@pytest.mark.parametrize("size_of", [residual_size, residual_size_exact])
def test_equal_rows_and_one_row_give_exactly_zero(size_of):
    row = gaussian(1, 1, 7) / 3
    for x in (row, row.expand(5, 7), torch.zeros(3, 2, dtype=torch.float64)):
        found = size_of(x)
        assert found.lower == 0 and found.upper == 0 and found.gap == 0
        assert torch.equal(found.centre, x[0])
        assert mean_residual(x) == 0 and median_residual(x) == 0


@pytest.mark.parametrize("size_of", [residual_size, residual_size_exact])
@pytest.mark.parametrize("scale", [1e-200, 1e-310, 1e200, 1e307, -(2.0**70)])
def test_scale(size_of, scale):
    x = integers(4, 5, 3)
    small, plain = size_of(x * scale), size_of(x)
    size = abs(scale)
    assert small.lower.item() <= plain.upper.item() * size * (1 + 1e-9)
    assert plain.lower.item() * size <= small.upper.item() * (1 + 1e-9)
    assert small.gap <= 1e-3 * (1 + 1e-9)


def test_differences_larger_than_float64_are_handled_or_refused():
    x = torch.tensor([[1.5e308], [-1.5e308]], dtype=torch.float64)
    with pytest.raises(ArithmeticError, match="overflow"):
        residual_size(x.expand(2, 5).contiguous())
    small = x / 2
    assert residual_size(small).upper.item() == pytest.approx(2**0.5 * 0.75e308, rel=1e-3)


@pytest.mark.parametrize("size_of", [residual_size, residual_size_exact])
@pytest.mark.parametrize("family", FAMILIES)
def test_adding_a_common_row_changes_nothing(size_of, family):
    """Also for tokens that almost agree: rounding of the tokens is all that is seen."""
    x = FAMILIES[family](6, 7, 5)
    row = torch.randint(-8, 9, (5,), generator=generator(1)).double()
    shifted, plain = size_of(x + row), size_of(x)
    assert shifted.lower <= plain.upper * (1 + 1e-9) and plain.lower <= shifted.upper * (1 + 1e-9)
    far = size_of(2.0**-40 * integers(6, 7, 5) + row)
    near = size_of(2.0**-40 * integers(6, 7, 5))
    assert torch.equal(far.upper, near.upper) and torch.equal(far.lower, near.lower)


def test_float32_is_computed_in_float64_and_batches_keep_their_shape():
    x = gaussian(2, 6 * 5, 3).reshape(2, 3, 5, 3)
    found = residual_size(x.float())
    assert found.lower.dtype == found.centre.dtype == torch.float64
    assert found.lower.shape == found.gap.shape == (2, 3) and found.centre.shape == (2, 3, 3)
    one = residual_size(x[1, 2].float().double())
    assert torch.equal(one.upper, found.upper[1, 2]) and torch.equal(one.centre, found.centre[1, 2])
    assert residual_size(x[:0]).centre.shape == (0, 3, 3)
    assert residual_size(x[0, 0].requires_grad_()).upper.requires_grad is False
    for dtype in (torch.float16, torch.bfloat16):
        half = x[0, 0].detach().to(dtype)
        assert residual_size(half).upper == residual_size(half.double()).upper
        assert mean_residual(half).dtype == torch.float32


def test_gap_where_the_lower_bound_is_zero():
    bounds = torch.tensor([[0.0, 0.0], [0.0, 1.0], [2.0, 3.0]], dtype=torch.float64).mT
    found = CertifiedResidual(bounds[0], bounds[1], torch.zeros(3, 5, dtype=torch.float64))
    assert found.gap.tolist() == [0, float("inf"), 0.5]


BAD = {
    "nan": (torch.tensor([[1.0], [float("nan")]]), {}, ValueError, "finite"),
    "integers": (torch.ones(5, 3, dtype=torch.int64), {}, TypeError, "floating-point"),
    "a vector": (torch.ones(3), {}, ValueError, "at least one row"),
    "no columns": (torch.ones(3, 0), {}, ValueError, "at least one row"),
    "negative tolerance": (torch.ones(5, 3), {"tol": -1e-3}, ValueError, "positive"),
    "zero tolerance": (torch.ones(5, 3), {"tol": 0.0}, ValueError, "positive"),
    "impossible tolerance": (torch.eye(5, 3).cumsum(0), {"tol": 1e-300}, ArithmeticError, "certified gap"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("size_of", [residual_size, residual_size_exact])
def test_bad_input_never_gives_a_size(size_of, case):
    x, options, _, _ = BAD[case]
    with pytest.raises((TypeError, ValueError, ArithmeticError)):
        size_of(x, **options)


def test_messages_without_the_shape_checker():
    """What a user sees: the shape checker runs only under pytest."""
    plain = import_plain("ranklib.paper.least")
    for x, options, kind, word in BAD.values():
        for size_of in (plain.residual_size, plain.residual_size_exact):
            assert word in raises_its_own_message(kind, size_of, x, **options)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.paper.least)
    assert found.attempted >= 5 and found.failed == 0


def test_the_optimiser_runs_on_one_blas_thread(monkeypatch):
    """With a busy core beside, a second thread makes L-BFGS ten times slower."""
    threads = set()

    def spy(*arguments, **options):
        threads.update(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return minimize(*arguments, **options)

    minimize = certificate.minimize
    monkeypatch.setattr(certificate, "minimize", spy)
    with threadpool_limits(2, user_api="blas"):
        residual_size(torch.randn(5, 4, generator=generator(0)))
        assert threads == {1}
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {2}
