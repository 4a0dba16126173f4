"""Tokens and attention matrices for the tests of the measures."""

import torch

SEEDS = range(7)
TOKENS, DIM = 7, 11


def generator(seed):
    return torch.Generator().manual_seed(seed)


def draw(seed, *shape):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def attention(seed, *shape, sharpness=2.0):
    return (sharpness * draw(seed, *shape)).softmax(-1)


def close(a, b, rtol=1e-9, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


def six_matrices(seed, n=32, d=64):
    """The matrices on which the measures disagree: name -> tokens."""
    noise, direction = draw(seed, n, d), draw(seed + 50, 1, d)
    signs = torch.ones(n, 1, dtype=torch.float64)
    signs[::2] = -1
    outlier = noise.clone()
    outlier[:, 0] += 30
    centres = draw(seed + 60, 2, d)
    return {
        "isotropic": noise,
        "equal rows + noise": direction + 1e-3 * noise,
        "rank 1, random lengths": draw(seed + 70, n, 1).abs() @ direction,
        "rank 1, plus and minus": signs @ direction,
        "two clusters": centres[(signs[:, 0] > 0).long()],
        "isotropic + one outlier dimension": outlier,
    }
