"""Certified residual of 96 x 384 tokens against one linear programme of that size.

Usage: python benchmarks/bench_residual.py

Exits with 1 if ``residual_size`` is not at least 50 times faster than the programme, or if the two contradict
each other. The programme is the one that ``residual_size_exact`` solves for each slope, with the interior-point
method of HiGHS, which is the faster one at this size. At 128 x 768 it takes minutes, too long for pairs.
"""

import sys

import numpy as np
import torch
from pairs import Row, alternate, row, show

from ranklib.paper.certificate import slope_program, upper_sums
from ranklib.paper.least import residual_size

TOKENS, DIM, GAP, PAIRS, LEAST_RATIO = 96, 384, 1e-3, 3, 50


def rows() -> list[Row]:
    torch.set_num_threads(1)
    x = torch.randn(TOKENS, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    certified = residual_size(x, tol=GAP)
    lower, upper = certified.lower.item(), certified.upper.item()

    y = x.numpy() - np.sort(x.numpy(), axis=0)[(TOKENS - 1) // 2]
    f, g = upper_sums(y, (certified.centre - x.median(0).values).numpy())
    slope, values = g / f, []

    def programme() -> None:
        values.append(slope_program(y, slope, method="highs-ipm")[0])

    taken = alternate(lambda: residual_size(x, tol=GAP), programme, PAIRS, "certified residual")
    # For every centre V(s) <= s f + g; at this slope that is 2 sqrt(s) times the upper bound. And the
    # profile V(s) / (2 sqrt s) is never below the residual, hence never below the lower bound.
    profile = values[0] / (2 * slope**0.5)
    agree = lower * (1 - 1e-9) <= profile <= upper * (1 + 1e-9)
    claim = f"Least residual of {TOKENS} x {DIM} tokens, certified to a gap of {GAP:g}"
    return [
        row(
            claim, "one linear programme of scipy's HiGHS at one slope", taken, "at least", LEAST_RATIO, agree
        )
    ]


if __name__ == "__main__":
    sys.exit(show(rows()))
