"""Both constants against dense maps and Jacobians, the checks against plain passes, and the two readings."""

import math

import mpmath
import pytest
import torch
from torch import nn

from plain import import_plain, raises_its_own_message
from ranklib.model.layers import Layer
from ranklib.paper.checks import check_layer
from ranklib.paper.counterexamples import outlier_residual, row_wise_l1, row_wise_l2
from ranklib.paper.least import residual_size, residual_size_exact
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.theory.mlps import (
    GELU_SLOPE,
    attained,
    check_mlp_layer,
    coordinate_constants,
    lambda_1,
    lambda_inf,
    lip,
    slope_range,
)

F64 = torch.float64
SEEDS = range(20)
ACTIVATIONS = [nn.ReLU(), nn.GELU(), nn.Tanh(), nn.Identity()]
NAMES = [type(activation).__name__ for activation in ACTIVATIONS]
ROUND = 1 + 1e-12


def generator(seed):
    return torch.Generator().manual_seed(seed)


def gaussian(seed, *shape):
    return torch.randn(*shape, generator=generator(seed), dtype=F64)


def random_mlp(seed, activation, dim=3, width=7, out=5):
    mlp = nn.Sequential(nn.Linear(dim, width), activation, nn.Linear(width, out)).double()
    with torch.no_grad():
        for i, part in enumerate((mlp[0], mlp[2])):
            part.weight.copy_(gaussian(100 * seed + i, *part.weight.shape))
            part.bias.copy_(gaussian(100 * seed + 10 + i, *part.bias.shape))
    return mlp


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=NAMES)
def test_both_norms_grow_by_at_most_their_constant(activation):
    for seed in SEEDS:
        skip, scale = seed % 3 - 1, 10.0 ** (seed % 5 - 2)
        mlp = random_mlp(seed, activation, out=3)
        y, x = gaussian(seed, 3), gaussian(seed + 50, 11, 3) * scale
        with torch.no_grad():
            gap = skip * (x - y) + mlp(x) - mlp(y)
        assert max_col_sum(gap) <= lambda_1(mlp, skip) * max_col_sum(x - y) * ROUND
        assert max_row_sum(gap) <= lambda_inf(mlp, skip) * max_row_sum(x - y) * ROUND
        assert composite(gap) <= lip(mlp, skip) * composite(x - y) * ROUND
        assert lip(mlp, skip) ** 2 == pytest.approx((lambda_1(mlp, skip) * lambda_inf(mlp, skip)).item())


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=NAMES)
def test_entries_are_the_largest_over_all_patterns_of_slopes(activation):
    low, high = slope_range(activation)
    patterns = torch.cartesian_prod(*[torch.tensor([low, high], dtype=F64)] * 5)
    for seed in range(5):
        for skip in (0, 1, -0.5):
            mlp = random_mlp(seed, activation, dim=3, width=5, out=3)
            inner, outer = mlp[0].weight.detach(), mlp[2].weight.detach()
            jacobians = outer @ (patterns[:, :, None] * inner) + skip * torch.eye(3, dtype=F64)
            torch.testing.assert_close(coordinate_constants(mlp, skip), jacobians.abs().amax(0))


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=NAMES)
def test_jacobians_stay_below_and_are_what_near_rows_attain(activation):
    for seed in SEEDS:
        mlp, y = random_mlp(seed, activation), gaussian(seed + 7, 3)
        columns, rows = attained(mlp, y)
        assert columns <= lambda_1(mlp) * ROUND and rows <= lambda_inf(mlp) * ROUND
        step = 1e-7
        with torch.no_grad():
            gap = mlp(y + step * torch.eye(3, dtype=F64)) - mlp(y)
        assert max_col_sum(gap) / step == pytest.approx(columns.item(), rel=1e-5)
        assert max_row_sum(gap) / step == pytest.approx(rows.item(), rel=1e-5)


def test_constants_are_attained_without_signs_and_with_all_units_on():
    for seed in SEEDS:
        mlp = random_mlp(seed, nn.ReLU())
        with torch.no_grad():
            for part in (mlp[0], mlp[2]):
                part.weight.abs_()
        found = attained(mlp, torch.full((3,), 100.0, dtype=F64))
        assert [v.item() for v in found] == pytest.approx([lambda_1(mlp).item(), lambda_inf(mlp).item()])
        assert torch.allclose(coordinate_constants(mlp), (mlp[2].weight @ mlp[0].weight).detach())


def test_the_constants_of_a_triangular_map_and_of_a_bare_linear_one():
    linear = nn.Linear(3, 5).double()
    torch.testing.assert_close(coordinate_constants(linear), linear.weight.detach().abs())
    square = nn.Linear(2, 2).double()
    square.weight.data = torch.tensor([[1.0, 1.0], [0.0, -1.0]]).double()
    assert coordinate_constants(square, skip=1).tolist() == [[2, 1], [0, 0]]


def test_slope_of_gelu_is_the_largest():
    with mpmath.workdps(30):
        slope = mpmath.diff(lambda z: z * mpmath.ncdf(z), mpmath.sqrt(2))
        assert GELU_SLOPE == pytest.approx(float(slope), rel=1e-15)
    z = torch.linspace(-9, 9, 9001, dtype=F64, requires_grad=True)
    [slopes] = torch.autograd.grad(nn.functional.gelu(z).sum(), z)
    assert 0 <= GELU_SLOPE - slopes.max().item() < 1e-6
    assert 0 <= slopes.min().item() - (1 - GELU_SLOPE) < 1e-6


def test_check_of_a_layer_multiplies_the_bound_of_its_attention():
    for seed in range(8):
        layer = Layer.random(
            6, 1 + seed % 3, generator=generator(seed), mlp_dim=11, skip=False, mlp_skip=seed % 2, biases=True
        )
        x = gaussian(seed, 5, 6) * 10.0 ** (-(seed % 4))
        found = check_mlp_layer(layer, x)
        alone = check_layer(layer.attention, x, "separate_many_heads")
        assert found.log10_bounds[1] == pytest.approx(
            alone.log10_bounds[1] + lip(layer.mlp, seed % 2).log10().item()
        )
        with torch.no_grad():
            plain = residual_size(layer(x))
        low, high = found.measured
        assert low <= plain.upper * (1 + 1e-6) and plain.lower <= high * (1 + 1e-6)
        assert found.holds and found.applies and found.slack > 1
        bare = check_mlp_layer(layer.switched(mlp=False), x)
        assert bare.log10_bounds[1] == pytest.approx(alone.log10_bounds[1])
    assert "osc" in check_mlp_layer(layer, x, "printed_many_heads").hypotheses


@pytest.mark.parametrize("k", [1, 3, 7, 17])
@pytest.mark.parametrize("w", [1e-3, 0.2])
def test_row_wise_l1_reading(k, w):
    (x, attention, facts), phi = row_wise_l1(k, w)
    found = check_layer(attention, x, "printed_one_layer", tol=1e-6)
    assert found.sizes.rho.item() == pytest.approx(facts["rho"], rel=1e-6)
    assert found.sizes.lam.item() == pytest.approx(facts["lam"], rel=1e-5)
    with torch.no_grad():
        out = residual_size_exact(attention(x) @ phi.mT)
    printed = 4 * facts["lam"] * facts["rho"]
    assert out.lower / printed == pytest.approx(facts["ratio"], rel=1e-6)
    assert out.upper / printed == pytest.approx(facts["ratio"], rel=1e-6)
    assert max_col_sum(phi) == 1, "Lipschitz constant 1 in the 1-norm of rows"
    assert max_row_sum(phi) == 2 * k, "lambda_1"
    assert row_wise_l1(16, 1e-9)[0].facts["ratio"] <= 1 < row_wise_l1(17, 1e-9)[0].facts["ratio"]


@pytest.mark.parametrize("c, tokens", [(3, 7), (5, 11), (11, 23), (17, 101)])
def test_row_wise_l2_reading_against_the_dense_layer(c, tokens):
    (x, attention, facts), phi = row_wise_l2(c, tokens, 0.1)
    assert torch.linalg.matrix_norm(phi, 2).item() == pytest.approx(1, rel=1e-14)
    with torch.no_grad():
        out = residual_size_exact(attention(x) @ phi.mT)
    assert facts["ratio"] * 0.4 == pytest.approx(out.lower.item(), rel=1e-8)
    assert facts["ratio"] * 0.4 == pytest.approx(out.upper.item(), rel=1e-8)


def test_row_wise_l2_reading_at_its_sizes():
    assert row_wise_l2(4096, 1502)[0].facts["ratio"] == pytest.approx(1.160, abs=5e-4)
    assert row_wise_l2(4096, 296)[0].facts["ratio"] < 1 < row_wise_l2(4096, 297)[0].facts["ratio"]
    assert row_wise_l2(1984, 10**5, 1e-9)[0].facts["ratio"] < 1
    assert outlier_residual(0.5, 1 / math.sqrt(8 * 1985), 3970, 10**6) > 4


@pytest.mark.slow
def test_outlier_residual_is_a_lower_bound_and_mostly_attained():
    attained_count = 0
    for seed in range(40):
        g = generator(seed)
        count, tokens = (int(torch.randint(1, 9, (), generator=g)) for _ in range(2))
        top, rest = sorted(torch.rand(2, generator=g, dtype=F64).tolist(), reverse=True)
        x = torch.zeros(tokens + 2, count + 1, dtype=F64)
        x[0] = rest
        x[0, 0] = top
        found = residual_size_exact(x)
        low = outlier_residual(top, rest, count, tokens + 2)
        assert low <= found.upper * ROUND
        attained_count += low >= found.lower * (1 - 1e-7)
    assert attained_count >= 20


def test_bad_input_never_gives_a_number():
    good = random_mlp(0, nn.ReLU())
    plain = import_plain("ranklib.theory.mlps")
    x = gaussian(0, 5, 3)
    says = raises_its_own_message
    for activation in (nn.SiLU(), nn.GELU(approximate="tanh")):
        assert "slopes" in says(TypeError, plain.slope_range, activation)
    assert plain.coordinate_constants(random_mlp(0, nn.SiLU()), slopes=(-0.1, 1.1)).shape == (5, 3)
    for mlp in (nn.ReLU(), nn.Sequential(nn.Linear(2, 2), nn.ReLU()), nn.Sequential(nn.ReLU())):
        says(TypeError, plain.coordinate_constants, mlp)
    for slopes in ((1.0, 0.0), (0.0, math.inf), (math.nan, 1.0)):
        says(ValueError, plain.lambda_1, good, slopes=slopes)
    assert "as many outputs" in says(ValueError, plain.lambda_inf, good, 1)
    says(ValueError, plain.lip, good, math.nan)
    for bad in (x[0].long(), torch.full((3,), math.nan), x):
        says((TypeError, ValueError), plain.attained, good, bad)
    says(ValueError, plain.attained, lambda y: y * math.inf, x[0])
    layer = Layer.random(3, generator=generator(0), mlp_dim=5)
    says(ValueError, check_mlp_layer, layer, x)
    says(TypeError, plain.check_mlp_layer, good, x)
    normed = Layer.random(3, generator=generator(0), mlp_dim=5, skip=False, norm="pre")
    says(ValueError, check_mlp_layer, normed, x)
    broken = random_mlp(0, nn.ReLU())
    broken[0].weight.data[0, 0] = math.nan
    says(ValueError, plain.coordinate_constants, broken)
    for arguments in ((0.0, 1.0, 1, 3), (1.0, 2.0, 1, 3), (1.0, 1.0, 0, 3), (1.0, 1.0, 1, 2)):
        says((TypeError, ValueError), outlier_residual, *arguments)
    for arguments in ((0,), (2, 0.0)):
        says((TypeError, ValueError), row_wise_l1, *arguments)
    for arguments in ((0, 5), (1, 2), (1, 5, -1.0)):
        says((TypeError, ValueError), row_wise_l2, *arguments)
