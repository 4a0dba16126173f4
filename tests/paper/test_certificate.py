"""Lower bounds on the least residual: lines and polygons, each valid about every centre."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch

from ranklib.paper import certificate
from ranklib.paper.least import residual_size, residual_size_exact
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


@pytest.mark.parametrize("family, shape", CASES)
def test_no_centre_is_below_the_lower_bound(family, shape):
    """A dual that is too large (doubled, say) is noticed: every centre is at or above ``lower``."""
    x = FAMILIES[family](3, *shape)
    spread = torch.randn(400, shape[1], generator=generator(9), dtype=torch.float64)
    for found in (residual_size(x), residual_size_exact(x)):
        radius = torch.logspace(-6, 1, 400, dtype=torch.float64).unsqueeze(-1)
        centres = torch.cat([found.centre + radius * spread, x, found.centre.unsqueeze(0)])
        values = composite(x - centres.unsqueeze(1))
        assert (values >= found.lower * (1 - 1e-13)).all()
        assert values.min() <= found.upper * (1 + 1e-12)


@pytest.mark.parametrize("family, shape", CASES)
def test_each_line_is_valid_and_a_larger_one_is_not(family, shape):
    """Random weights give s f + g >= h at every centre; at the programme's weights no greater h is valid."""
    y = FAMILIES[family](5, *shape).numpy()
    y = y - np.sort(y, axis=0)[(shape[0] - 1) // 2]
    columns = certificate.sort_columns(y)
    rng = np.random.default_rng(11)
    centres = [*y, *rng.normal(size=(50, shape[1]))]
    sums = np.array([certificate.upper_sums(y, c) for c in centres])
    for _ in range(20):
        u, v = rng.exponential(size=shape[1]), rng.exponential(size=shape[0])
        (slope, height), _ = certificate.median_line(columns, u, v)
        assert (slope * sums[:, 0] + sums[:, 1] >= height).all()
    value, (centre, u, v) = certificate.slope_program(y, 0.7)
    (slope, height), _ = certificate.median_line(columns, u, v)
    f, g = certificate.upper_sums(y, centre)
    assert slope == pytest.approx(0.7, rel=1e-9) and height == pytest.approx(value, rel=1e-9)
    assert height <= slope * f + g <= height * (1 + 1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_median_line_against_rational_arithmetic(seed):
    """The height is below the exact phi(u, v), found by trying every entry of a column as the centre."""
    y, (n, d) = integers(seed, 7, 3).numpy() / 3, (7, 3)
    rng = np.random.default_rng(seed)
    u, v = rng.exponential(size=d), rng.exponential(size=n)
    (slope, height), _ = certificate.median_line(certificate.sort_columns(y), u, v)
    exact = [[Fraction(value) for value in row] for row in y]
    us, vs = [Fraction(value) for value in u], [Fraction(value) for value in v]
    phi = sum(
        min(sum((us[k] + vs[i]) * abs(exact[i][k] - exact[j][k]) for i in range(n)) for j in range(n))
        for k in range(d)
    )
    assert Fraction(height) * sum(vs) <= phi and Fraction(height) * sum(vs) >= phi * Fraction(999999, 1000000)
    assert slope == pytest.approx(float(sum(us) / sum(vs)), rel=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_the_polygon_bound_against_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    lines = [(float(s), float(h)) for s, h in rng.uniform(0.1, 3, size=(7, 2))]
    f_min, g_min = rng.uniform(0.05, 0.5, size=2).tolist()
    product, slope, active = certificate.polygon_bound(lines, f_min, g_min)
    f = np.concatenate([np.geomspace(f_min, 50, 200_001), [f_min]])
    g = np.max([np.full_like(f, g_min), *(h - s * f for s, h in lines)], axis=0)
    assert product <= (f * g).min() * (1 + 1e-12) and product == pytest.approx((f * g).min(), rel=1e-3)
    at = int((f * g).argmin())
    assert slope == pytest.approx(g[at] / f[at], rel=1e-2) and set(active) <= set(lines)
    assert certificate.polygon_bound(active, f_min, g_min)[0] == product
