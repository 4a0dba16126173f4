"""Propagation without cancellation against the plain float64 forward pass, and against mpmath.

Usage: python benchmarks/bench_propagation.py

Exits with 1 if one layer of 128 x 768 tokens and 12 heads takes more than twice the plain forward pass, or if
six layers of 8 x 8 tokens that start 2^-20 apart are not at least 100 times faster than the definition in
mpmath, with the digits that this depth needs, or if the two disagree. The ratio for tokens that start 1 apart
is printed too: there mpmath gets by with 200 digits, and the overhead of small torch tensors tells.
"""

import sys
import time
from statistics import median

import mpmath as mp
import torch
from tqdm import tqdm

from ranklib.exact.propagation import ResidualState, propagate, trajectory
from ranklib.model.attention import SelfAttention

TOKENS, DIM, HEADS, REPEATS, LARGEST_SLOWDOWN = 128, 768, 12, 21, 2
SMALL, SMALL_EXPONENT, DEPTH, LEAST_SPEEDUP, GUARD_DIGITS = 8, -20, 6, 100, 30


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def against_forward_pass() -> float:
    """Median of the ratios of neighbouring runs, so that a slow spell of the machine hits both sides."""
    attention = SelfAttention.random(DIM, HEADS, generator=torch.Generator().manual_seed(1))
    x = randn(TOKENS, DIM)
    state = ResidualState.of(x)
    forward = torch.no_grad()(attention)
    forward(x), propagate(state, attention)
    ratios, plain, ours = [], [], []
    for _ in tqdm(range(REPEATS), desc="one layer"):
        plain.append(timed(forward, x)[1])
        ours.append(timed(propagate, state, attention)[1])
        ratios.append(ours[-1] / plain[-1])
    slowdown = median(ratios)
    print(f"one layer, n={TOKENS}, d={DIM}, H={HEADS}: forward pass {1e3 * median(plain):.1f} ms,", end=" ")
    print(f"propagation {1e3 * median(ours):.1f} ms, slowdown {slowdown:.2f}")
    return slowdown


def layer_in_mpmath(x, weights, dim_qk):
    out = mp.zeros(x.rows, x.cols)
    for w_q, w_k, w_v, w_o in weights:
        s = (x * w_q) * (x * w_k).T / mp.sqrt(dim_qk)
        p = s.apply(mp.exp)
        for i in range(p.rows):
            total = mp.fsum(p[i, :])
            for j in range(p.cols):
                p[i, j] /= total
        out += p * (x * w_v) * w_o
    return out


def against_mpmath(exponent: int) -> tuple[float, float]:
    generator = torch.Generator().manual_seed(2)
    layers = [SelfAttention.random(SMALL, generator=generator) for _ in range(DEPTH)]
    start = ResidualState.of(randn(SMALL, SMALL))
    start = ResidualState(start.common, start.mantissa, start.exponent + exponent)
    trajectory(start, layers)
    repeats = (timed(trajectory, start, layers) for _ in range(REPEATS))
    states, seconds = zip(*tqdm(repeats, desc="six layers", total=REPEATS), strict=True)
    log_size = states[0][-1].log10_size()
    with mp.workdps(int(GUARD_DIGITS - log_size)):

        def exact(tensor):
            return mp.matrix(tensor.tolist())

        x = exact(start.mantissa) * mp.mpf(2) ** start.exponent
        x += mp.ones(SMALL, 1) * exact(start.common).T
        weights = [
            [[exact(w) for w in head] for head in zip(a.w_q, a.w_k, a.w_v, a.w_o, strict=True)]
            for a in layers
        ]
        begin = time.perf_counter()
        for layer in tqdm(weights, desc="mpmath"):
            x = layer_in_mpmath(x, layer, SMALL)
        slow = time.perf_counter() - begin
        r = (x - mp.ones(SMALL, SMALL) * x / SMALL).apply(abs)
        columns = max(mp.fsum(r[:, j]) for j in range(SMALL))
        rows = max(mp.fsum(r[i, :]) for i in range(SMALL))
        gap = abs(float(mp.log10(columns * rows) / 2) - log_size)
        digits = mp.mp.dps
    speedup = slow / median(seconds)
    print(f"{DEPTH} layers, n=d={SMALL}, residual from 2^{exponent} to 10^{log_size:.1f},", end=" ")
    print(f"the two logarithms differ by {gap:.0e};")
    print(f"mpmath ({digits} digits) {slow:.2f} s, propagation {1e3 * median(seconds):.2f} ms,", end=" ")
    print(f"speedup {speedup:.0f}")
    return speedup, gap


def main() -> int:
    torch.set_num_threads(1)
    slowdown = against_forward_pass()
    against_mpmath(0)  # for information
    speedup, gap = against_mpmath(SMALL_EXPONENT)
    return 0 if slowdown <= LARGEST_SLOWDOWN and speedup >= LEAST_SPEEDUP and gap < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
