"""Differences through the parts of a layer: activations of every size, and what cannot be resolved."""

import jaxtyping
import mpmath as mp
import pytest
import torch
from torch import nn

from ranklib.exact.modules import through
from ranklib.exact.propagation import trajectory
from ranklib.exact.state import ResidualState
from tests.exact.by_definition import (
    DIM,
    centred,
    exact,
    exact_gelu,
    exact_tokens,
    generator,
    layer_by_definition,
    module_by_definition,
    random_attention,
    random_state,
    residual_error,
    tanh_gelu,
)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_difference_of_every_size(approximate):
    """Relative to |t| + |difference| everywhere, and to the difference itself away from its zero."""
    function = exact_gelu if approximate == "none" else tanh_gelu
    a = torch.tensor([-30.0, -9.0, -4.0, -1.3, -0.75, -0.1, 0.0, 1e-9, 0.3, 2.0, 7.0, 40.0]).double()
    sizes = [2.0**-k for k in (0, 1, 2, 5, 20, 300)] + [3.0, 17.0, 90.0]
    steps = torch.tensor([[sign * size] * len(a) for size in sizes for sign in (1, -1)]).double()
    for t in steps:
        row, mantissa, exponent = through(nn.GELU(approximate), a, t[None], 0)
        with mp.workdps(160):
            for j in range(len(a)):
                z, step = mp.mpf(a[j].item()), mp.mpf(t[j].item())
                wanted = function(z + step) - function(z)
                got = mp.mpf(mantissa[0, j].item()) * mp.mpf(2) ** exponent
                assert abs(got - wanted) <= 4e-16 * (abs(step) + abs(wanted))
                if z > -10 and abs(wanted) > abs(step) / 10**30 and not -1.4 < z < -0.5:
                    assert abs(got - wanted) <= 2e-14 * abs(wanted), (float(z), float(step))


@pytest.mark.parametrize("exponent", [2, -3, -90, -5000])
def test_relu_difference_on_both_sides_of_the_kink(exponent):
    unit = 2.0**exponent
    row = torch.tensor([1.0, -1.0, 0.0, 0.25 * unit, -0.25 * unit]).double()
    residual = torch.tensor([[0.5] * 5, [-0.5] * 5, [0.125] * 5]).double()
    after, mantissa, e = through(nn.ReLU(), row, residual, exponent)
    with mp.workdps(1700):
        a, t = exact(row), exact(residual) * mp.mpf(2) ** exponent
        for i in range(3):
            for j in range(5):
                wanted = max(a[j] + t[i, j], mp.mpf(0)) - max(a[j], mp.mpf(0))
                assert mp.mpf(mantissa[i, j].item()) * mp.mpf(2) ** e == wanted
    assert torch.equal(after, row.relu())


def minor(x):
    """The determinant of two rows and columns over the squared norm: 0 for rank one."""
    return float(abs(x[0, 0] * x[1, 1] - x[0, 1] * x[1, 0]) / mp.norm(x, 2) ** 2)


def test_directions_far_below_the_leading_one_are_lost():
    """After five cubic layers the second direction is far below 1e-16 of the first: rounding replaces it."""
    layers = [random_attention(i, heads=1) for i in range(5)]
    states = trajectory(random_state(0, -4), layers)
    with mp.workdps(700):
        x = exact_tokens(states[0])
        for attention in layers:
            x = layer_by_definition(x, attention)
        assert residual_error(states[-1], x) < 1e-12
        assert minor(centred(x)) < 1e-25
        assert 1e-19 < minor(exact(states[-1].mantissa)) < 1e-14


def test_what_layer_norm_removes_is_lost():
    """Of a residual along the common row eps alone leaves something, here about 1e-12 of what came in."""
    norm = nn.LayerNorm(DIM, eps=1e-12, dtype=torch.float64)
    row = torch.randn(DIM, generator=generator(0), dtype=torch.float64)
    for direction, low, high in ((row, 1e-8, 10.0), (row.flip(0), 0.0, 1e-14)):
        state = ResidualState(row, torch.tensor([[0.3], [-0.3]]).double() * direction, -50)
        with mp.workdps(80):
            wanted = module_by_definition(norm, exact_tokens(state))
            got = ResidualState(*through(norm, state.common, state.mantissa, state.exponent))
            assert low <= residual_error(got, wanted) < high


def test_layer_norm_without_spread_in_the_common_row():
    norm = nn.LayerNorm(2, eps=0.0, dtype=torch.float64)
    residual = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]).double()
    row, mantissa, e = through(norm, torch.zeros(2).double(), residual, -9)
    assert row.tolist() == [0, 0] and (mantissa * 2.0**e).tolist() == [[1, -1], [-1, 1]]


ROW, PAIR = torch.ones(2).double(), torch.tensor([[0.5, 0.5], [-0.5, -0.5]]).double()
BAD = [
    (lambda: through(nn.LayerNorm(3), ROW, PAIR, 0), ValueError, "module: expected LayerNorm over"),
    (lambda: through(nn.LayerNorm(2, eps=0), ROW, PAIR, 0), ValueError, "module: expected eps > 0"),
    (lambda: through(nn.ReLU(), ROW, PAIR * torch.nan, 0), ValueError, "mantissa: expected finite"),
    (lambda: through(nn.ReLU(), ROW, PAIR, 400), ValueError, "exponent: expected a residual up to"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
