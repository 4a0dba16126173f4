"""The book's computations that exist in two sizes: see :mod:`ranklib.runs` for the pattern."""

import torch

from ranklib.layers import Network
from ranklib.measures import composite_residual
from ranklib.path_sums import length_spectrum
from ranklib.paths import bias_row
from ranklib.runs import Experiment

VARIANTS = {
    "attention": {"skip": False, "mlp": False, "norm": "none"},
    "attention + norm": {"skip": False, "mlp": False, "norm": "post"},
    "attention + skip": {"skip": True, "mlp": False, "norm": "none"},
    "full": {},
}


@torch.no_grad()
def depth(seed: int, device: torch.device, tokens: int, dim: int, heads: int, depth: int, mlp: int) -> dict:
    """Relative residual about the token mean after every layer of a random network, with parts switched off.

    Float64; tokens N(0, 1), weights N(0, 1/dim); one draw of the network serves all variants. Source:
    Chapter 1, Figure 1.4.

    Example
    -------
    >>> out = depth(0, torch.device("cpu"), tokens=5, dim=8, heads=2, depth=3, mlp=16)
    >>> [len(curve) for curve in out.values()]
    [4, 4, 4, 4]
    """
    generator = torch.Generator().manual_seed(seed)
    network = Network.random(
        depth, dim, heads, generator=generator, mlp_dim=mlp, activation="gelu", norm="post"
    )
    x = torch.randn(tokens, dim, generator=generator, dtype=torch.float64).to(device)
    return {
        name: [float(composite_residual(state)) for state in network.switched(**switches).to(device).trace(x)]
        for name, switches in VARIANTS.items()
    }


@torch.no_grad()
def spectrum(seed: int, device: torch.device, tokens: int, dim: int, heads: int, depth: int) -> dict:
    """What the paths of each length add up to, in a random network of attention and skips.

    ``residual``: relative residual of the sum about the token mean; ``size``: its Frobenius norm over the sum of
    those of all lengths; ``error``: relative distance of all sums and the bias row from the forward pass. Float64;
    tokens N(0, 1), weights N(0, 1/dim). Source: Chapter 3, Figure 3.1.

    Example
    -------
    >>> out = spectrum(0, torch.device("cpu"), tokens=5, dim=8, heads=2, depth=3)
    >>> len(out["residual"]), out["error"] < 1e-12
    (4, True)
    """
    generator = torch.Generator().manual_seed(seed)
    network = Network.random(depth, dim, heads, generator=generator, skip=True, biases=True).to(device)
    x = torch.randn(tokens, dim, generator=generator, dtype=torch.float64).to(device)
    sums, output = length_spectrum(network, x), network(x)
    size = torch.linalg.matrix_norm(sums)
    return {
        "residual": composite_residual(sums).tolist(),
        "size": (size / size.sum()).tolist(),
        "error": float((sums.sum(0) + bias_row(network) - output).norm() / output.norm()),
    }


EXPERIMENTS = {
    e.name: e
    for e in [
        Experiment(
            name="depth",
            run=depth,
            sizes={
                "quick": {"tokens": 16, "dim": 48, "heads": 4, "depth": 6, "mlp": 96},
                "paper": {"tokens": 128, "dim": 768, "heads": 12, "depth": 12, "mlp": 3072},
            },
            seeds={"quick": range(3), "paper": range(8)},
            minutes=6,
        ),
        Experiment(
            name="spectrum",
            run=spectrum,
            sizes={
                "quick": {"tokens": 16, "dim": 48, "heads": 4, "depth": 6},
                "paper": {"tokens": 128, "dim": 768, "heads": 12, "depth": 12},
            },
            seeds={"quick": range(3), "paper": range(4)},
            minutes=3,
        ),
    ]
}
