"""The state of the tokens: its size, what it refuses, and that its mean moves into the common row."""

import math

import jaxtyping
import pytest
import torch

from ranklib.exact.state import ResidualState, about_mean
from tests.exact.by_definition import DIM, TOKENS, generator


def test_the_mean_of_the_residual_moves_into_the_common_row():
    x = torch.randn(TOKENS, DIM, generator=generator(0), dtype=torch.float64) + 3
    row = torch.randn(DIM, generator=generator(1), dtype=torch.float64)
    state = about_mean(row, (x, 5))
    torch.testing.assert_close(state.dense(), row + 32 * x)
    assert state.mantissa.mean(0).abs().max() < 1e-15 and 0.5 <= state.mantissa.abs().max() < 1
    torch.testing.assert_close(state.common, row + 32 * x.mean(0))


def test_log10_size_is_the_composite_about_the_mean():
    for seed in range(5):
        x = torch.randn(TOKENS, DIM, generator=generator(seed), dtype=torch.float64)
        r = (x - x.mean(0)).abs()
        wanted = math.log10(math.sqrt(r.sum(0).max() * r.sum(1).max()))
        assert abs(ResidualState.of(x).log10_size() - wanted) < 1e-14
        shifted = ResidualState(x[0], x, -5000)  # a mantissa that is not centred
        assert abs(shifted.log10_size() - (wanted - 5000 * math.log10(2))) < 1e-11


def test_dense_raises_outside_the_range():
    x = torch.tensor([[0.5], [-0.5]]).double()
    row = torch.ones(1).double()
    assert torch.equal(ResidualState(row, x, -1021).dense(), row + x * 2.0**-1021)
    for exponent in (-1022, -(10**6), 1025):
        with pytest.raises(ValueError, match="within the range of float64.*log10_size"):
            ResidualState(row, x, exponent).dense()


ROW, PAIR = torch.ones(1).double(), torch.tensor([[0.5], [-0.5]]).double()
BAD = [
    (lambda: ResidualState.of(torch.tensor([[1], [2]])), TypeError, "x: expected a floating-point dtype"),
    (lambda: ResidualState.of(PAIR * torch.nan), ValueError, "x: expected finite"),
    (lambda: ResidualState.of(PAIR[None]), ValueError, "x: expected .*one sample"),
    (lambda: ResidualState.of(PAIR[:0]), ValueError, "x: expected .*neither axis empty"),
    (lambda: ResidualState(ROW.float(), PAIR, 0), TypeError, "common: expected torch.float64"),
    (lambda: ResidualState(ROW, PAIR * torch.inf, 0), ValueError, "mantissa: expected finite"),
    (lambda: ResidualState(torch.ones(2).double(), PAIR, 0), ValueError, "common: expected .*1"),
    (lambda: ResidualState(ROW, PAIR, 0.5), TypeError, "exponent: expected an integer"),
    (lambda: ResidualState(ROW, PAIR, True), TypeError, "exponent: expected an integer"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    """Without the shape checks of the tests, as a user has it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
