"""The least residual of a state between two bounds, at any size, and of two tokens to rounding."""

import math

import pytest
import torch

from ranklib.exact.state import ResidualState
from ranklib.paper.enclosure import enclose_least, enclosure
from ranklib.paper.least import residual_size_exact


@pytest.mark.parametrize("shape", [(2, 3), (5, 2), (7, 4)])
@pytest.mark.parametrize("exponent", [0, -40, -3000])
def test_the_enclosure_holds_the_exact_least_residual(shape, exponent):
    for seed in range(3):
        x = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        state = ResidualState.of(x)
        state = ResidualState(state.common, state.mantissa, exponent)
        least = residual_size_exact(state.mantissa)
        low, high = (math.log10(value) + exponent * math.log10(2) for value in (least.lower, least.upper))
        lower, upper = enclosure(state, 1e-3)
        assert lower <= high + 1e-9 and low - 1e-9 <= upper and 0 <= upper - lower < 1e-3


def test_two_tokens_are_enclosed_to_rounding_and_never_from_one_side():
    for seed in range(20):
        x = torch.randn(2, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        half = (x[0] - x[1]).abs() / 2
        truth = math.sqrt(2 * half.max().item() * half.sum().item())
        found = enclose_least(x, 1e-3)
        assert found.lower < truth < found.upper and found.upper / found.lower - 1 < 1e-13
        assert torch.allclose(found.centre, x.mean(0))


def test_equal_rows_have_no_logarithm_and_a_bad_tolerance_is_refused():
    equal = ResidualState.of(torch.ones(3, 2, dtype=torch.float64))
    assert enclosure(equal) == (-math.inf, -math.inf)
    with pytest.raises(ValueError, match="tol: expected .*positive"):
        enclosure(equal, 0.0)
