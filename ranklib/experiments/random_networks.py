"""Runs on networks with random weights, and what training a small one changes."""

import time

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot

from ranklib.experiments.tasks import sorting
from ranklib.experiments.training import Recipe, descend
from ranklib.measures.tokens import composite_residual
from ranklib.model.layers import Network
from ranklib.theory.path_sums import bias_part, length_spectrum
from ranklib.theory.paths import bias_row, enumerate_paths, frozen_attention, path_output, sample_paths

DEPTH_VARIANTS = {
    "attention": {"skip": False, "mlp": False, "norm": "none"},
    "attention + norm": {"skip": False, "mlp": False, "norm": "post"},
    "attention + skip": {"skip": True, "mlp": False, "norm": "none"},
    "full": {},
}


@torch.no_grad()
def depth(seed: int, device: torch.device, tokens: int, dim: int, heads: int, depth: int, mlp: int) -> dict:
    """Relative residual about the token mean after every layer of a random network, with parts switched off.

    Float64; tokens N(0, 1), weights N(0, 1/dim); one draw of the network serves all variants. Source:
    Figure (Width of BERT) in chapter `attention-and-residual`.

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
        for name, switches in DEPTH_VARIANTS.items()
    }


@torch.no_grad()
def spectrum(seed: int, device: torch.device, tokens: int, dim: int, heads: int, depth: int) -> dict:
    """What the paths of each length add up to, in a random network of attention and skips.

    ``residual``: relative residual of the sum about the token mean; ``size``: its Frobenius norm over the sum
    of those of all lengths; ``error``: relative distance of all sums and the bias row from the forward pass.
    Float64; tokens N(0, 1), weights N(0, 1/dim). Source: Figure (Flat long sums) in chapter
    `path-decomposition`.

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


def _one_hot(given: Tensor, letters: int) -> Tensor:
    """Letters as one-hot rows with a one-hot position."""
    place = torch.eye(given.shape[-1], dtype=torch.float64).expand(len(given), -1, -1)
    return torch.cat([one_hot(given, letters).double(), place], -1)


def trained(
    seed: int, device: torch.device, letters: int, tokens: int, dim: int, heads: int, depth: int, steps: int
):
    """What the paths of each length add up to, before and after training a small network to sort letters.

    Pre-norm layers of attention and a ReLU MLP, both with skips; Adam at 1e-3, batches of 64, float64.
    Lengths count heads; the MLPs, with their pattern frozen, belong to every path. ``accuracy``: share of
    right letters on 256 fresh sequences; ``before`` and ``after``: relative residual of every length's sum,
    mean over 64 of them; ``error``: how far all sums and the biases' part are from the forward pass. Source:
    Figure (Training lifts) in chapter `path-decomposition`.

    Example
    -------
    >>> out = trained(0, torch.device("cpu"), letters=3, tokens=4, dim=8, heads=2, depth=2, steps=2)
    >>> len(out["before"]), out["error"] < 1e-12
    (3, True)
    """
    generator = torch.Generator().manual_seed(seed)
    options = {"mlp_dim": 2 * dim, "activation": "relu", "norm": "pre", "biases": True}
    network = Network.random(depth, dim, heads, generator=generator, **options)
    first, last = torch.randn(2, dim, letters + tokens, generator=generator, dtype=torch.float64) / dim**0.5
    into, out = nn.Parameter(first.T.contiguous()), nn.Parameter(last[:, :letters].contiguous())
    network.to(device), into.to(device), out.to(device)
    fresh, truth = sorting(256, generator, letters, tokens)
    test = _one_hot(fresh, letters)

    def state():
        x = (test[:64] @ into).detach()
        sums, rest = length_spectrum(network, x), bias_part(network, x)
        error = float((sums.sum(0) + rest - network(x)).norm() / network(x).norm())
        return composite_residual(sums).mean(1).tolist(), error

    with torch.no_grad():
        before, _ = state()
    recipe = Recipe(rate=1e-3, steps=steps, batch=64)

    def losses_at(step: int) -> Tensor:
        given, y = sorting(recipe.batch, generator, letters, tokens)
        guesses = network(_one_hot(given, letters) @ into) @ out
        return cross_entropy(guesses.flatten(0, 1), y.flatten())[None]

    for _ in descend(losses_at, recipe.optimizer([*network.parameters(), into, out]), recipe, [seed]):
        pass
    with torch.no_grad():
        after, error = state()
        accuracy = float(((network(test @ into) @ out).argmax(-1) == truth).double().mean())
    return {"accuracy": accuracy, "before": before, "after": after, "error": error}


@torch.no_grad()
def path_cost(seed: int, device: torch.device, tokens: int, dim: int, small: list, large: list) -> dict:
    """What adding all paths one by one costs, in sweeps of :func:`~ranklib.theory.path_sums.length_spectrum`.

    ``run``: measured for the (depth, heads) of ``small``; ``extrapolated``: number of paths times the time of
    one, mean of 40 sampled paths, for those of ``large``. Both sides run one after the other on one thread.
    Source: Figure (Cost) in chapter `path-decomposition`.
    """

    def clock(function) -> float:
        start = time.perf_counter()
        function()
        return time.perf_counter() - start

    generator = torch.Generator().manual_seed(seed)
    costs = {"run": [], "extrapolated": []}
    for kind, sizes in (("run", small), ("extrapolated", large)):
        for depth, heads in sizes:
            network = Network.random(depth, dim, heads, generator=generator)
            x = torch.randn(tokens, dim, generator=generator, dtype=torch.float64)
            frozen = frozen_attention(network, x)
            every = kind == "run"
            some = enumerate_paths(heads, depth) if every else sample_paths(heads, depth, 40, generator)
            sweep = min(clock(lambda: length_spectrum(network, x, attentions=frozen)) for _ in range(3))
            paths = clock(lambda: [path_output(network, x, frozen, path) for path in some])
            number = (1 + heads) ** depth
            costs[kind].append(paths * (1 if every else number / 40) / sweep)
    return costs
