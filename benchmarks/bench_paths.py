"""All paths of each length in one sweep, against one path after the other and against forward passes.

Usage: python benchmarks/bench_paths.py

Exits with 1 if the sweep through 12 layers of 12 heads, 128 tokens and 768 features costs more than twice
L + 1 forward passes with known attention, if it is not at least 3 times faster than the enumeration of 243 paths,
or if it contradicts either.
"""

import sys

import torch
from pairs import Row, alternate, row, show

from ranklib.model.layers import Network
from ranklib.theory.path_sums import length_spectrum
from ranklib.theory.paths import enumerate_paths, frozen_attention, path_output

TOKENS, DIM, HEADS, DEPTH = 128, 768, 12, 12
SMALL_HEADS, SMALL_DEPTH, LEAST_SPEEDUP = 2, 5, 3.0
PAIRS, MOST_PASSES = 5, 2.0


def example(heads: int, depth: int):
    generator = torch.Generator().manual_seed(0)
    network = Network.random(depth, DIM, heads, generator=generator)
    x = torch.randn(TOKENS, DIM, dtype=torch.float64, generator=generator)
    return network, x, frozen_attention(network, x)


def frozen_pass(network, x, attentions):
    """The forward pass with known attention, the heads in one product with W_V and one with W_O."""
    for layer, p in zip(network.layers, attentions, strict=True):
        w_v, w_o = layer.attention.w_v, layer.attention.w_o
        values = (x @ w_v.transpose(0, 1).flatten(1)).unflatten(-1, (len(w_v), -1)).transpose(0, 1)
        x = float(layer.skip) * x + (p @ values).transpose(0, 1).flatten(1) @ w_o.flatten(0, 1)
    return x


def enumerate_sums(network, x, attentions, heads, depth):
    sums = torch.zeros(depth + 1, *x.shape, dtype=x.dtype)
    for path in enumerate_paths(heads, depth):
        sums[sum(choice is not None for choice in path)] += path_output(network, x, attentions, path)
    return sums


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool((a - b).abs().max() < 1e-12 * b.abs().max())


def against_enumeration() -> Row:
    network, x, p = example(SMALL_HEADS, SMALL_DEPTH)

    def sweep() -> torch.Tensor:
        return length_spectrum(network, x, attentions=p)

    def one_by_one() -> torch.Tensor:
        return enumerate_sums(network, x, p, SMALL_HEADS, SMALL_DEPTH)

    agree, number = same(sweep(), one_by_one()), (1 + SMALL_HEADS) ** SMALL_DEPTH
    taken = alternate(sweep, one_by_one, PAIRS, "enumeration")
    claim = f"Sums over the paths of each length, {SMALL_DEPTH} layers of {SMALL_HEADS} heads"
    return row(claim, f"all {number} paths one by one", taken, "at least", LEAST_SPEEDUP, agree)


def against_passes() -> Row:
    network, x, p = example(HEADS, DEPTH)

    def sweep() -> torch.Tensor:
        return length_spectrum(network, x, attentions=p)

    whole = network(x)
    agree = same(sweep().sum(0), whole) and same(frozen_pass(network, x, p), whole)
    taken = alternate(sweep, lambda: [frozen_pass(network, x, p) for _ in range(DEPTH + 1)], PAIRS, "sweep")
    claim = f"Sums over the paths of each length, {DEPTH} layers of {HEADS} heads, {TOKENS} x {DIM} tokens"
    return row(
        claim, f"{DEPTH + 1} forward passes with known attention", taken, "at most", MOST_PASSES, agree
    )


@torch.no_grad()
def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [against_enumeration(), against_passes()]


if __name__ == "__main__":
    sys.exit(show(rows()))
