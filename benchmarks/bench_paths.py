"""All paths of each length in one sweep, against one path after the other and against forward passes.

Usage: python benchmarks/bench_paths.py

Exits with 1 if the sweep through 12 layers of 12 heads, 128 tokens and 768 features costs more than twice
L + 1 forward passes with known attention, or if it contradicts the enumeration where that can be run.
"""

import sys
import time
from statistics import median

import torch
from tqdm import tqdm

from ranklib.model.layers import Network
from ranklib.theory.path_sums import length_spectrum
from ranklib.theory.paths import enumerate_paths, frozen_attention, path_output, sample_paths

TOKENS, DIM, HEADS, DEPTH = 128, 768, 12, 12
SMALL_HEADS, SMALL_DEPTHS = 2, (3, 4, 5)
REPEATS, SAMPLES, MOST_PASSES, YEAR = 5, 60, 2.0, 365.25 * 86400


def timed(function, *arguments, **options):
    start = time.perf_counter()
    result = function(*arguments, **options)
    return result, time.perf_counter() - start


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


def seconds_a_path(network, x, attentions, paths):
    start = time.perf_counter()
    for path in paths:
        path_output(network, x, attentions, path)
    return (time.perf_counter() - start) / len(paths)


@torch.no_grad()
def main() -> int:
    torch.set_num_threads(1)
    agree = True
    for depth in tqdm(SMALL_DEPTHS, desc="enumeration"):
        network, x, p = example(SMALL_HEADS, depth)
        length_spectrum(network, x, attentions=p)
        sums, slow = timed(enumerate_sums, network, x, p, SMALL_HEADS, depth)
        spectrum, fast = timed(length_spectrum, network, x, attentions=p)
        error = ((spectrum - sums).abs().max() / sums.abs().max()).item()
        agree = agree and error < 1e-12
        tqdm.write(
            f"{depth} layers, {SMALL_HEADS} heads: {(1 + SMALL_HEADS) ** depth} paths one by one take "
            f"{slow / fast:.1f} times as long as the sweep; largest relative difference {error:.0e}"
        )

    network, x, p = example(HEADS, DEPTH)
    whole, (passes, sweeps, complete) = network(x), ([], [], [])
    for _ in tqdm(range(REPEATS), desc="12 layers of 12 heads"):
        outputs, seconds = timed(lambda: [frozen_pass(network, x, p) for _ in range(DEPTH + 1)])
        passes.append(seconds)
        spectrum, seconds = timed(length_spectrum, network, x, attentions=p)
        sweeps.append(seconds)
        complete.append(timed(length_spectrum, network, x)[1])
    for result in (outputs[0], spectrum.sum(0)):
        agree = agree and ((result - whole).abs().max() / whole.abs().max()).item() < 1e-12
    ratio = median(sweeps) / median(passes)
    paths = sample_paths(HEADS, DEPTH, SAMPLES, torch.Generator().manual_seed(0))
    each, number = seconds_a_path(network, x, p, paths), (1 + HEADS) ** DEPTH
    everything = each * number
    print(f"{DEPTH} layers of {HEADS} heads, {TOKENS} x {DIM} tokens in float64, medians of {REPEATS}:")
    seconds = f"{median(sweeps):.2f} s, {DEPTH + 1} frozen passes {median(passes):.2f} s"
    print(f"sweep {seconds}, ratio {ratio:.2f}")
    print(f"sweep that also finds its attention: {median(complete) / median(passes):.2f} of those passes")
    print(f"one path: {each / median(sweeps):.4f} of the sweep (mean of {SAMPLES} sampled paths)")
    print(
        f"all {number:.2e} paths, extrapolated and never run: {everything / median(sweeps):.1e} sweeps, "
        f"{everything / YEAR:.0f} years; if paths shared what they have in common, still more than "
        f"{everything / DEPTH / median(sweeps):.0e} sweeps"
    )
    print(f"sweep, enumeration and forward pass agree: {'yes' if agree else 'NO'}")
    return 0 if agree and ratio <= MOST_PASSES else 1


if __name__ == "__main__":
    sys.exit(main())
