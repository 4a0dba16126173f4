"""The recursion over layers, its constant, and what it does not cover."""

import math

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.paper.checks import check_network
from ranklib.paper.constants import f_lambda, g_lambda
from ranklib.paper.depth import beta, converges, printed_depth, proved_depth
from ranklib.paper.least import residual_size
from ranklib.paper.norms import composite, max_col_sum, max_row_sum
from ranklib.paper.sizes import lam


def rng(seed):
    return torch.Generator().manual_seed(seed)


def gauss(generator, *shape):
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


def number(function, value):
    return function(torch.tensor(value, dtype=torch.float64)).item()


def test_printed_depth_is_the_unrolled_recursion():
    generator = rng(8)
    c = torch.rand(11, dtype=torch.float64, generator=generator) * 3
    rho = torch.rand(11, dtype=torch.float64, generator=generator)
    expected = rho.clone()
    for depth in range(5):
        torch.testing.assert_close(printed_depth(c, rho, depth), expected.log10(), rtol=1e-12, atol=1e-10)
        expected = c * expected**3
    assert math.isclose(printed_depth(0.25, 2.0, 600), math.log10(2), rel_tol=1e-15), (
        "c rho^2 = 1 stays where it is"
    )
    assert printed_depth(1.0, 0.0, 3) == -math.inf
    assert math.isclose(printed_depth(0.0, 0.5, 0), math.log10(0.5), rel_tol=1e-15)


def test_convergence_depends_on_c_rho_squared_alone():
    for c, rho in ((0.5, 1.0), (8.0, 0.25), (0.9, 2.0), (0.01, 11.0), (100.0, 0.099)):
        found = converges(c, rho)
        assert found == (c * rho**2, 1.0, c * rho**2 < 1)
        assert found.holds == (printed_depth(c, rho, 12) < printed_depth(c, rho, 11)).item()


def test_beta_is_the_largest_product():
    generator = rng(9)
    network = Network.random(3, 6, 2, skip=False, generator=generator)
    found = beta(network)
    weights = [(max_col_sum(a.w_qk), a.w) for a in (layer.attention for layer in network.layers)]
    for norm, value in ((composite, found.printed), (max_col_sum, found.one), (max_row_sum, found.inf)):
        assert value == pytest.approx(max((q * norm(w)).max().item() for q, w in weights))
    assert found.c == pytest.approx(4 * found.printed * 2 / 3**0.5)


@pytest.mark.slow
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_proved_depth_holds_on_random_networks_with_exact_propagation(heads):
    for seed in range(2):
        generator = rng(seed)
        network = Network.random(4, 6, heads, skip=False, generator=generator)
        x = gauss(generator, 5, 6)
        rho = residual_size(x).upper.item()
        shrink = 1.0
        while not proved_depth(network, rho * shrink).applies:
            shrink /= 1.2
        bounds = proved_depth(network, rho * shrink)
        assert bounds.hypotheses["c rho^2"].value > 0.4 and len(bounds.log10) == 5
        found = check_network(network, x * shrink, "separate_many_heads", tol=1e-2)
        for layer, bound in zip(found, bounds.log10[1:]):
            assert layer.log10_measured[1] <= bound


def test_proved_depth_uses_the_constants_of_the_theorem():
    generator = rng(10)
    for heads in (1, 2):
        network = Network.random(3, 6, heads, skip=False, generator=generator)
        largest = max(lam(layer.attention, 0.5).max().item() for layer in network.layers)
        weights, root = beta(network), (6 / heads) ** 0.5
        if heads == 1:
            c = number(g_lambda, largest) / largest * weights.printed / root
        else:
            c = math.sqrt(number(f_lambda, largest) / largest * weights.one * weights.inf) * 2 / root
        assert proved_depth(network, 0.5).c == pytest.approx(c)


def test_proved_depth_reports_what_it_does_not_cover():
    generator = rng(11)
    network = Network.random(2, 6, mlp_dim=5, norm="post", skip=True, generator=generator)
    found = proved_depth(network, 10.0)
    expected = {"skip": False, "mlp": False, "norm": False, "c rho^2": False}
    assert {name: h.holds for name, h in found.hypotheses.items()} == expected and not found.applies
    bare = proved_depth(network.switched(skip=False, mlp=False, norm="none"), 0.1)
    assert bare.hypotheses["skip"].holds and bare.hypotheses["mlp"].holds and bare.hypotheses["norm"].holds


def test_bad_networks_and_sizes_say_what_was_expected():
    network = Network.random(2, 5, mlp_dim=3, generator=rng(12))
    layers = [SelfAttention.random(5, h, 3, 2, generator=rng(1)) for h in (1, 2)]
    for call in (
        lambda: printed_depth(-1.0, 1.0, 1),
        lambda: printed_depth(1.0, math.nan, 1),
        lambda: printed_depth(1.0, 1.0, -1),
        lambda: printed_depth(1.0, 1.0, 601),
        lambda: converges(math.inf, 1.0),
        lambda: proved_depth(network, -1.0),
        lambda: beta(Network([Layer(attention) for attention in layers])),
    ):
        raises_its_own_message(ValueError, call)
    plain = import_plain("ranklib.paper.depth")
    for call in (
        lambda: plain.beta(None),
        lambda: plain.printed_depth(1.0, 1.0, 1.5),
        lambda: plain.printed_depth(1.0, torch.ones(1, dtype=torch.int64), 1),
    ):
        raises_its_own_message(TypeError, call)
