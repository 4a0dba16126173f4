"""Networks and tokens for the tests of paths and of their sums."""

import torch

from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network

BATCH, TOKENS, DIM = 2, 5, 7
SEEDS = range(3)
SKIPS = (True, False, 0.5)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def close(a, b, tol=1e-12):
    return a.shape == b.shape and (a - b).abs().max() <= tol * max(1.0, b.abs().max())


def plain_network(seed, heads=2, depth=3, skip=True, biases=True, widths=(3, 4), dim=DIM):
    """Attention and skip only; d_qk and d_v differ from each other and from dim / heads."""
    g = generator(seed)
    return Network(
        Layer(SelfAttention.random(dim, heads, *widths, generator=g, biases=biases), skip=skip)
        for _ in range(depth)
    )


def normed_network(seed, norm, mlp_dim=11, depth=3, activation="relu", skip=True, mlp_skip=True):
    """Gains, biases and all other parameters away from their initial values."""
    options = {"mlp_dim": mlp_dim, "norm": norm, "activation": activation, "biases": True}
    network = Network.random(depth, 6, 2, generator=generator(seed), skip=skip, mlp_skip=mlp_skip, **options)
    with torch.no_grad():
        for i, parameter in enumerate(network.parameters()):
            parameter.add_(0.3 * randn(*parameter.shape, seed=100 * seed + i))
    return network


def tokens(seed, batch=(BATCH,), count=TOKENS, dim=DIM):
    return randn(*batch, count, dim, seed=1000 + seed)


def length_of(path):
    return sum(choice is not None for choice in path)
