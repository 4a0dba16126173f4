"""The diameter theorem on random and adversarial layers, its equality, and a constant one per cent smaller."""

import doctest
import math

import mpmath
import pytest
import torch

import ranklib.theory.diameters
from plain import import_plain, raises_its_own_message
from ranklib.exact.propagation import trajectory
from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention
from ranklib.theory.diameters import (
    bound_depth,
    cubic_constant,
    extreme_layer,
    layer_share,
    tilt_bound,
    tilt_range,
    wait_layers,
)
from ranklib.theory.sizes import NORMS, diameter, log10_diameter, operator_size, score_size, value_size

F64 = torch.float64
ORDER = {"l2": 2, "l1": 1, "linf": math.inf}


def spread(x, norm):
    """The diameter from all pairs, as the definition says."""
    gaps = x.unsqueeze(-2) - x.unsqueeze(-3)
    return torch.linalg.vector_norm(gaps, ORDER[norm], dim=-1).amax((-2, -1))


def sides(x, w_q, w_k, w, b_q, b_k, norm):
    """diam SA(X) and the bound, for a batch of layers: weights (batch, heads, dim, .)."""
    queries, keys = x[:, None] @ w_q + b_q[..., None, :], x[:, None] @ w_k + b_k[..., None, :]
    root = w_q.shape[-1] ** 0.5
    p = (queries @ keys.mT / root).softmax(-1)
    out = (p @ x[:, None] @ w).sum(1)
    a = w_q @ w_k.mT / root
    omega = {
        "l2": lambda: torch.linalg.svdvals(a)[..., 0],
        "l1": lambda: a.abs().amax((-2, -1)),
        "linf": lambda: a.abs().sum((-2, -1)),
    }[norm]()
    nu = {
        "l2": lambda: torch.linalg.svdvals(w)[..., 0],
        "l1": lambda: w.abs().sum(-1).amax(-1),
        "linf": lambda: w.abs().sum(-2).amax(-1),
    }[norm]()
    d = spread(x, norm)
    return spread(out, norm), ((nu * (omega * d[:, None] ** 2 / 4).tanh()).sum(-1)) * d


def draw(batch, generator):
    """Layers and tokens of one random shape, over five decades of size."""

    def size(low, high):
        return int(torch.randint(low, high, (), generator=generator))

    def normal(*shape, low, high):
        decade = low + (high - low) * torch.rand(batch, *[1] * (len(shape)), generator=generator, dtype=F64)
        return torch.randn(batch, *shape, generator=generator, dtype=F64) * 10**decade

    n, d, heads, k = size(2, 9), size(1, 6), size(1, 4), size(1, 5)
    x = normal(n, d, low=-2, high=1) + normal(1, d, low=-1, high=0.5)
    w_q, w_k = (normal(heads, d, k, low=-1, high=0.5) for _ in range(2))
    b_q, b_k = (normal(heads, k, low=-1, high=0.5) for _ in range(2))
    return x, w_q, w_k, normal(heads, d, d, low=-1, high=0.5), b_q, b_k


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
def test_100_000_random_layers_obey_the_theorem(norm):
    generator, seen, worst = torch.Generator().manual_seed(7), 0, 0.0
    while seen < 100_000:
        left, right = sides(*draw(2000, generator), norm)
        measurable = right > 1e-6  # below, the rounding of the tokens is not small against their differences
        worst = max(worst, (left / right)[measurable].max().item())
        seen += int(measurable.sum())
    assert 0.9 < worst <= 1 + 1e-9


@pytest.mark.slow
def test_adversarial_layers_come_close_and_never_pass():
    """Gradient ascent on the quotient from 1000 starts, 100 steps: 100,000 layers."""
    generator = torch.Generator().manual_seed(3)
    parts = [part.clone().requires_grad_() for part in draw(1000, generator)]
    optimiser, worst = torch.optim.Adam(parts, lr=0.1), torch.zeros(1000, dtype=F64)
    with torch.enable_grad():
        for _ in range(100):
            left, right = sides(*parts, "l2")
            good = right.detach() > 1e-6
            quotient = (left / right)[good]
            worst[good] = torch.maximum(worst[good], quotient.detach())
            optimiser.zero_grad()
            (-quotient.sum()).backward()
            optimiser.step()
    assert worst.max() <= 1 + 1e-9 and worst.median() > 0.9


@pytest.mark.parametrize("tokens", [2, 3, 4, 7, 50])
def test_equality_for_every_number_of_tokens_and_one_per_cent_less_fails(tokens):
    for omega, nu, d in ((0.1, 1.0, 0.5), (2.0, 3.0, 1.0), (5.0, 0.3, 2.0)):
        attention, x = extreme_layer(tokens, omega, nu, d)
        torch.testing.assert_close(diameter(x).item(), d)
        torch.testing.assert_close(score_size(attention).item(), omega)
        torch.testing.assert_close(value_size(attention).item(), nu)
        quotient = (diameter(attention(x)) / (layer_share(attention, d) * d)).item()
        assert abs(quotient - 1) < 1e-12 and quotient > 0.99


def test_the_library_computes_both_sides_as_the_definition_says():
    generator = torch.Generator().manual_seed(11)
    for _ in range(60):
        x, w_q, w_k, w, b_q, b_k = (part[0] for part in draw(1, generator))
        heads, dim = w.shape[:2]
        eye = torch.eye(dim, dtype=F64).expand(heads, dim, dim)
        attention = SelfAttention(
            w_q=w_q, w_k=w_k, w_v=w, w_o=eye, b_q=b_q, b_k=b_k, b_o=torch.ones(dim).double()
        )
        for norm in NORMS:
            left, right = sides(*(part[None] for part in (x, w_q, w_k, w, b_q, b_k)), norm)
            torch.testing.assert_close(diameter(attention(x), norm), left[0], rtol=1e-9, atol=1e-12)
            d = diameter(x, norm)
            torch.testing.assert_close(d, spread(x, norm), rtol=1e-12, atol=0)
            torch.testing.assert_close(layer_share(attention, d, norm) * d, right[0], rtol=1e-9, atol=0)
            torch.testing.assert_close(operator_size(w, norm), value_size(attention, norm), rtol=1e-9, atol=0)


def test_a_score_of_the_size_omega_is_reached_in_l1_and_l2():
    generator = torch.Generator().manual_seed(5)
    a = torch.randn(4, 4, generator=generator, dtype=F64)
    attention = SelfAttention(w_q=a[None], w_k=torch.eye(4).double()[None], w_v=a[None], w_o=a[None])
    u, s, v = torch.linalg.svd(a / 2)
    torch.testing.assert_close((u[:, 0] @ (a / 2) @ v[0]).abs(), score_size(attention)[0])
    largest = (a / 2).abs().max()
    torch.testing.assert_close(largest, score_size(attention, "l1")[0])
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0]).double()] * 4)
    reached = (signs @ (a / 2) @ signs.mT).max()
    assert reached <= score_size(attention, "linf")[0]


def test_the_tilt_lemma_and_its_extreme_case():
    generator = torch.Generator().manual_seed(2)
    for n in (2, 3, 9):
        p = torch.rand(20_000, n, generator=generator, dtype=F64).pow(4) + 1e-12
        p = p / p.sum(-1, keepdim=True)
        t = 6 * torch.randn(20_000, n, generator=generator, dtype=F64)
        q = (p.log() + t).softmax(-1)
        moved, bound = (p - q).abs().sum(-1) / 2, tilt_bound(t.amax(-1) - t.amin(-1))
        assert (moved <= bound + 1e-12).all()
    for osc in (0.01, 1.0, 8.0):
        a = 1 / (1 + math.exp(osc / 2))
        p = torch.tensor([a, 1 - a], dtype=F64)
        q = (p.log() + torch.tensor([osc, 0.0], dtype=F64)).softmax(-1)
        quotient = ((p - q).abs().sum() / 2 / tilt_bound(torch.tensor(osc, dtype=F64))).item()
        assert abs(quotient - 1) < 1e-9


def test_the_tilt_range_is_the_largest_range_of_a_difference_of_rows():
    scores = torch.randn(3, 6, 5, generator=torch.Generator().manual_seed(0), dtype=F64)
    expected = [
        max(float((m[i] - m[k]).max() - (m[i] - m[k]).min()) for i in range(6) for k in range(6))
        for m in scores
    ]
    torch.testing.assert_close(tilt_range(scores), torch.tensor(expected, dtype=F64))


def test_the_tilt_range_is_at_most_omega_times_the_square_of_the_diameter():
    generator = torch.Generator().manual_seed(9)
    for _ in range(40):
        attention = SelfAttention.random(4, 2, generator=generator, biases=True, scale=2.0)
        x = torch.randn(5, 4, generator=generator, dtype=F64)
        for norm in NORMS:
            bound = score_size(attention, norm) * diameter(x, norm) ** 2
            assert (tilt_range(attention.scores(x)) <= bound * (1 + 1e-12)).all()


def test_depth_far_below_the_floor_of_floats():
    """Both bounds hold over the exact trajectory, and the closed one is the straight line of log(-log)."""
    generator = torch.Generator().manual_seed(1)
    layers = [SelfAttention.random(6, 2, generator=generator) for _ in range(7)]
    x = torch.randn(5, 6, generator=generator, dtype=F64) / 20
    states = trajectory(ResidualState.of(x), layers)
    steps, closed = bound_depth(layers, diameter(x).item())
    measured = [log10_diameter(state) for state in states]
    assert len(measured) == len(steps) == len(closed) == 8 and measured[-1] < -3000
    for seen, step, line in zip(measured, steps, closed, strict=True):
        assert seen <= step + 1e-9 * abs(step) and step <= line + 1e-9 * abs(line)
    half = math.log10(max(map(cubic_constant, layers))) / 2
    logs = [math.log(-(line + half)) for line in closed]
    assert all(abs(b - a - math.log(3)) < 1e-9 for a, b in zip(logs, logs[1:]))


def test_certain_collapse_and_the_wait():
    for u, layers in ((1.0, 2), (2.0, 6), (3.0, 24), (4.0, 113)):
        with mpmath.workdps(30):
            value, count = mpmath.mpf(u), 0
            while value >= 0.5:
                value, count = value * mpmath.tanh(value) ** 2, count + 1
        assert wait_layers(u) == count == layers
    attention, x = extreme_layer(5, omega=12.0, nu=1.0, d=1.0)  # u = 3
    for _ in range(24):
        x = attention(x)
    assert diameter(x).item() ** 2 * 12 / 4 < 0.5


@pytest.mark.parametrize(
    "kind,call",
    [
        (ValueError, lambda m: m.tilt_bound(torch.tensor(-1.0))),
        (ValueError, lambda m: m.tilt_range(torch.tensor([[-math.inf, 0.0]]))),
        (ValueError, lambda m: m.bound_depth([], 1.0)),
        (ValueError, lambda m: m.wait_layers(-1.0)),
        (ValueError, lambda m: m.wait_layers(math.nan)),
        (ValueError, lambda m: m.wait_layers(30.0)),
        (ValueError, lambda m: m.extreme_layer(1, 1.0, 1.0, 1.0)),
        (ValueError, lambda m: m.extreme_layer(2, 0.0, 1.0, 1.0)),
    ],
)
def test_bad_input_is_refused(kind, call):
    raises_its_own_message(kind, call, import_plain("ranklib.theory.diameters"))


@pytest.mark.parametrize("d", [-1.0, math.nan, math.inf, "1", True, torch.tensor([-1.0]).double()])
def test_a_size_that_is_none_is_refused(d):
    attention, _ = extreme_layer(2, 1.0, 1.0, 1.0)
    with pytest.raises((TypeError, ValueError)):
        layer_share(attention, d)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.theory.diameters)
    assert found.failed == 0 and found.attempted > 7
