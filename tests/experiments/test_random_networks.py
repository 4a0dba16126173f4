"""The recorded runs on random networks at toy sizes, against sums written out by hand."""

import doctest
import itertools

import pytest
import torch

from ranklib.experiments import random_networks
from ranklib.experiments.random_networks import depth, path_cost, spectrum
from ranklib.model.layers import Network

CPU = torch.device("cpu")


def relative(x):
    """Composite residual about the mean, over the composite of the tokens."""

    def composite(m):
        return (torch.linalg.matrix_norm(m, 1) * torch.linalg.matrix_norm(m, torch.inf)).sqrt()

    return float(composite(x - x.mean(0)) / composite(x))


def averages(layer, x):
    """P_h X W_h of each head."""
    p = layer.attention.attention(x)
    return [p[h] @ x @ layer.attention.w[h] for h in range(len(p))]


@torch.no_grad()
def test_curves_of_depth_are_those_of_the_layers_written_out():
    out = depth(3, CPU, tokens=5, dim=8, heads=2, depth=3, mlp=7)
    generator = torch.Generator().manual_seed(3)
    options = {"mlp_dim": 7, "activation": "gelu", "norm": "post"}
    network = Network.random(3, 8, 2, generator=generator, **options)
    start = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    bare, skip = [start], [start]
    for layer in network.layers:
        bare.append(sum(averages(layer, bare[-1])) + layer.attention.bias)
        skip.append(skip[-1] + sum(averages(layer, skip[-1])) + layer.attention.bias)
    assert out["attention"] == pytest.approx([relative(x) for x in bare], rel=1e-9)
    assert out["attention + skip"] == pytest.approx([relative(x) for x in skip], rel=1e-9)
    assert set(out) == set(random_networks.DEPTH_VARIANTS) and out["full"][-1] > 10 * out["attention"][-1]


@torch.no_grad()
def test_the_spectrum_is_that_of_all_paths():
    out = spectrum(1, CPU, tokens=5, dim=8, heads=2, depth=3)
    generator = torch.Generator().manual_seed(1)
    network = Network.random(3, 8, 2, generator=generator, skip=True, biases=True)
    x = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    states, sums = network.trace(x), torch.zeros(4, 5, 8, dtype=torch.float64)
    frozen = [layer.attention.attention(state) for layer, state in zip(network.layers, states)]
    for path in itertools.product((None, 0, 1), repeat=3):
        y = x
        for layer, p, head in zip(network.layers, frozen, path, strict=True):
            y = y if head is None else p[head] @ y @ layer.attention.w[head]
        sums[sum(head is not None for head in path)] += y
    sizes = sums.flatten(1).norm(dim=1)
    assert out["residual"] == pytest.approx([relative(y) for y in sums], rel=1e-9)
    assert out["size"] == pytest.approx((sizes / sizes.sum()).tolist(), rel=1e-9) and out["error"] < 1e-12


def test_one_path_of_many_is_timed_and_multiplied(monkeypatch):
    """With a clock that ticks once a call, a sweep and all timed paths take one tick each."""
    ticks = itertools.count()
    monkeypatch.setattr(random_networks.time, "perf_counter", lambda: float(next(ticks)))
    out = path_cost(0, CPU, tokens=3, dim=4, small=[[2, 1]], large=[[3, 2], [4, 1]])
    assert out == {"run": [1.0], "extrapolated": [27 / 40, 16 / 40]}


def test_examples_in_the_docstrings():
    found = doctest.testmod(random_networks)
    assert found.failed == 0 and found.attempted >= 6
