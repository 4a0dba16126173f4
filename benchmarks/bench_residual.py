"""Certified residual of 128 x 768 tokens against one linear programme of that size.

Usage: python benchmarks/bench_residual.py

Exits with 1 if ``residual_size`` is not at least 100 times faster than the programme, or if the two
contradict each other. The programme takes minutes, so it is run once; it is the one that
``residual_size_exact`` solves for each slope, with the interior-point method of HiGHS, which is the faster
one at this size.
"""

import sys
import threading
import time
from statistics import median

import numpy as np
import torch
from tqdm import tqdm

from ranklib.paper.certificate import slope_program, upper_sums
from ranklib.paper.least import residual_size

TOKENS, DIM, GAP, REPEATS, LEAST_RATIO = 128, 768, 1e-3, 7, 100


def timed(function, *arguments, **options):
    start = time.perf_counter()
    result = function(*arguments, **options)
    return result, time.perf_counter() - start


def with_clock(label, function, *arguments, **options):
    """``timed`` with a progress line once a second."""
    done = threading.Event()

    def tick():
        with tqdm(desc=label, unit="s", bar_format="{desc}: {elapsed}", mininterval=1) as bar:
            while not done.wait(1):
                bar.update()

    clock = threading.Thread(target=tick)
    clock.start()
    try:
        return timed(function, *arguments, **options)
    finally:
        done.set()
        clock.join()


def main() -> int:
    torch.set_num_threads(1)
    x = torch.randn(TOKENS, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    residual_size(x, tol=GAP)
    repeats = tqdm(range(REPEATS), desc="certified residual")
    found, seconds = zip(*(timed(residual_size, x, tol=GAP) for _ in repeats), strict=True)
    certified, fast = found[0], median(seconds)
    lower, upper = certified.lower.item(), certified.upper.item()

    y = x.numpy() - np.sort(x.numpy(), axis=0)[(TOKENS - 1) // 2]
    f, g = upper_sums(y, (certified.centre - x.median(0).values).numpy())
    slope = g / f
    (value, _), slow = with_clock("one linear programme", slope_program, y, slope, method="highs-ipm")

    # For every centre V(s) <= s f + g; at this slope that is 2 sqrt(s) times the upper bound. And the
    # profile V(s) / (2 sqrt s) is never below the residual, hence never below the lower bound.
    profile = value / (2 * slope**0.5)
    consistent = lower * (1 - 1e-9) <= profile <= upper * (1 + 1e-9)
    ratio = slow / fast
    print(f"certified residual: {lower:.6f} <= res <= {upper:.6f}, gap {certified.gap.item():.1e}")
    print(f"linear programme:   V(s) / (2 sqrt s) = {profile:.6f} at s = {slope:.4f}")
    print(f"consistent: {'yes' if consistent else 'NO'}")
    print(f"certified {fast:.3f} s (median of {REPEATS}), programme {slow:.1f} s, ratio {ratio:.0f}")
    return 0 if consistent and ratio >= LEAST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
