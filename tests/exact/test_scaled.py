"""Numbers with an exponent of their own, against mpmath: nothing underflows, and powers are exact."""

import mpmath as mp
import pytest
import torch

from ranklib.exact.scaled import normalise, sum_scaled, times_power


def value_of(scaled):
    mantissa, exponent = scaled
    return [mp.mpf(entry) * mp.mpf(2) ** exponent for entry in mantissa.flatten().tolist()]


@pytest.mark.parametrize("exponent", [0, 7, -7, -537, -5000, 5000])
def test_normalising_changes_the_writing_and_not_the_number(exponent):
    mantissa = torch.tensor([[3.0, -0.25], [1e-3, 40.0]], dtype=torch.float64)
    found = normalise((mantissa, exponent))
    assert value_of(found) == value_of((mantissa, exponent))
    assert 0.5 <= found[0].abs().max() < 1


def test_zero_has_no_exponent_to_normalise():
    mantissa, _ = normalise((torch.zeros(2, 3, dtype=torch.float64), -3000))
    assert torch.equal(mantissa, torch.zeros(2, 3, dtype=torch.float64))


def test_sums_of_distant_sizes_keep_the_largest_exactly():
    one = torch.tensor([1.5, -2.0], dtype=torch.float64)
    found = value_of(sum_scaled([(one, -3000), (one, -3003), (one, -9000)]))
    with mp.workdps(60):
        for got, entry in zip(found, one.tolist(), strict=True):
            assert got == mp.mpf(entry) * mp.mpf(2) ** -3000 * (1 + mp.mpf(1) / 8)


@pytest.mark.parametrize("exponent", [0, 1, -1, 1023, -1074, -1500, 1500, 10**6, -(10**6)])
def test_a_power_of_two_is_exact_or_leaves_float64(exponent):
    value = torch.tensor([1.0, -1.5], dtype=torch.float64)
    for power in (exponent, torch.tensor(float(exponent), dtype=torch.float64)):
        got = times_power(value, power)
        wanted = [float(mp.ldexp(entry, max(-3000, min(3000, exponent)))) for entry in value.tolist()]
        assert got.tolist() == wanted
