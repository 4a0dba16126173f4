"""The constants of the bounds against forty digits, and where they cross the paper's four."""

import math

import mpmath
import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.paper.bounds import BOUNDS
from ranklib.paper.constants import (
    const_osc,
    const_osc_heads,
    f_lambda,
    f_slope,
    g_lambda,
    g_slope,
    kappa,
    memorable,
    middle,
    shape_limit,
    vartheta,
    x_star,
)

ROUNDING = 1 + 1e-11
SIZES = torch.cat([torch.logspace(-18, 2, 400), torch.zeros(1)]).double()


def exact_kappa(t):
    return mpmath.expm1(t) / t if t else mpmath.mpf(1)


def exact_f(t):
    return (mpmath.expm1(t) + t) / 4


FORMULAS = {
    kappa: exact_kappa,
    vartheta: lambda t: mpmath.tanh(t / 4) / (t / 4) if t else mpmath.mpf(1),
    const_osc: lambda t: mpmath.sqrt(
        max(exact_kappa(t / 2) + 1, (exact_kappa(t) + 1) / 2)
        * (mpmath.tanh(t / 4) / t if t else mpmath.mpf(1) / 4)
    ),
    const_osc_heads: lambda t: mpmath.sqrt((exact_kappa(t) + 1) / 4),
    f_lambda: exact_f,
    f_slope: lambda t: exact_f(t) / t if t else mpmath.mpf(1) / 2,
    g_lambda: lambda t: mpmath.sqrt(2 * exact_f(t) * mpmath.tanh(t / 2)),
    g_slope: lambda t: mpmath.sqrt(2 * exact_f(t) * mpmath.tanh(t / 2)) / t if t else 1 / mpmath.sqrt(2),
    middle: lambda t: mpmath.expm1(t) / mpmath.sqrt(mpmath.exp(t) + 1),
    memorable: lambda t: mpmath.expm1(t),
}


@pytest.mark.parametrize("function", FORMULAS, ids=lambda f: f.__name__)
def test_scalars_are_accurate_from_0_to_large(function):
    found = function(SIZES.reshape(1, -1, 1))
    assert found.shape == (1, len(SIZES), 1) and found.dtype == torch.float64
    with mpmath.workdps(40):
        for t, value in zip(SIZES.tolist(), found.flatten().tolist()):
            expected = FORMULAS[function](mpmath.mpf(t))
            assert abs(value - expected) <= 4e-15 * abs(expected), (t, value, expected)


def test_kappa_takes_negative_arguments():
    t = -SIZES
    torch.testing.assert_close(kappa(t), t.exp() * kappa(-t), rtol=1e-13, atol=0)


def test_identity_of_kappa_and_vartheta_is_exact():
    left, right = kappa(SIZES) * vartheta(SIZES), kappa(SIZES / 2).square()
    torch.testing.assert_close(left, right, rtol=1e-14, atol=0)
    assert not torch.allclose(0.99 * left, right, rtol=1e-3)


def test_the_forms_are_ordered_and_increase():
    g, mid, last = g_lambda(SIZES), middle(SIZES), memorable(SIZES)
    assert (g <= mid * ROUNDING).all() and (mid <= last * ROUNDING).all()
    grid = torch.linspace(1e-3, 40, 100_000, dtype=torch.float64)
    for rising in (f_slope, g_slope, const_osc, const_osc_heads):
        assert (rising(grid).diff() > 0).all(), rising
    assert (vartheta(grid).diff() < 0).all()
    assert (const_osc_heads(grid) >= const_osc(grid)).all() and (const_osc(grid) >= 0.5**0.5).all()


def test_overflow_says_nothing_and_is_no_number():
    big = torch.tensor([1000.0], dtype=torch.float64)
    assert all(f(big).isposinf().all() for f in (kappa, const_osc, f_lambda, g_slope, memorable))


def test_x_star_is_the_root():
    with mpmath.workdps(30):
        root = mpmath.findroot(lambda x: mpmath.exp(x) - 1 - 2 * x, 1.25)
        assert abs(root - x_star()) < 1e-15
    assert abs(number(kappa, x_star()) - 2) < 1e-14


def number(function, value):
    return function(torch.tensor(value, dtype=torch.float64)).item()


def test_where_the_constant_four_is_proved():
    assert number(g_slope, 7.49) < 4 < number(g_slope, 7.491) and number(g_lambda, 7.49) < 29.96
    assert number(const_osc, 7.55) < 4 < number(const_osc, 7.552)
    assert number(const_osc_heads, 5.924) < 4 < number(const_osc_heads, 5.925)
    assert number(f_slope, 5.924) ** 0.5 < 4 < number(f_slope, 5.925) ** 0.5
    assert BOUNDS["constant_four"].any_of == {"lam": 7.49, "osc": 7.55, "tokens": 2200}
    assert abs(number(const_osc, 1.256) - 0.7609) < 1e-4 and abs(number(const_osc, 0.0) - 0.5**0.5) < 1e-15
    assert abs(number(const_osc_heads, x_star()) - 0.75**0.5) < 1e-14 and 6942 < shape_limit() < 6945
    theta, factor = shape_limit() ** 0.25, number(const_osc_heads, x_star())
    assert abs(factor * (theta + 1 / theta) / 2 - 4) < 1e-12


def test_total_variation_is_sharp_for_two_points():
    spread_of_e = torch.linspace(0.01, 12, 200, dtype=torch.float64)
    q = 1 / (1 + (spread_of_e / 2).exp())
    log_p = torch.stack([q.log(), (1 - q).log()], -1)
    tilted = (log_p + torch.stack([spread_of_e, 0 * q], -1)).softmax(-1)
    variation = (tilted - log_p.exp()).abs().sum(-1) / 2
    bound = vartheta(spread_of_e) * spread_of_e / 4
    torch.testing.assert_close(variation, bound, rtol=1e-12, atol=0)
    assert (variation > 0.99 * bound).all()


def test_bad_input_never_gives_a_number():
    constants = import_plain("ranklib.paper.constants")
    one = torch.ones(1, dtype=torch.float64)
    for function in FORMULAS:
        plain = getattr(constants, function.__name__)
        raises_its_own_message(TypeError, plain, torch.ones(1, dtype=torch.int64))
        raises_its_own_message(TypeError, plain, 1.0)
        raises_its_own_message(ValueError, plain, one * math.nan)
        raises_its_own_message(ValueError, plain, one * math.inf)
        if function is not kappa:
            raises_its_own_message(ValueError, plain, -one)
