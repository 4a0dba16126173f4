"""Propagation without cancellation against the plain float64 forward pass, and against mpmath.

Usage: python benchmarks/bench_propagation.py

Exits with 1 if one layer of 128 x 768 tokens and 12 heads takes more than 1.6 times the plain forward pass, or if
six layers of 8 x 8 tokens that start 2^-20 apart are not at least 100 times faster than the definition in mpmath,
with the digits that this depth needs, or if the two disagree.
"""

import sys

import mpmath as mp
import torch
from pairs import Row, alternate, row, show

from ranklib.exact.propagation import propagate, trajectory
from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention

TOKENS, DIM, HEADS, PAIRS, LARGEST_SLOWDOWN = 128, 768, 12, 21, 1.6
SMALL, EXPONENT, DEPTH, LEAST_SPEEDUP, GUARD_DIGITS, MPMATH_PAIRS = 8, -20, 6, 100, 30, 3


def randn(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def against_forward_pass() -> Row:
    attention = SelfAttention.random(DIM, HEADS, generator=torch.Generator().manual_seed(1))
    x = randn(TOKENS, DIM)
    state = ResidualState.of(x)
    forward = torch.no_grad()(attention)
    wanted, found = forward(x), propagate(state, attention).dense()
    agree = bool((found - wanted).norm() < 1e-12 * wanted.norm())
    taken = alternate(lambda: propagate(state, attention), lambda: forward(x), PAIRS, "one layer")
    claim = f"One attention layer without cancellation, {TOKENS} x {DIM} tokens, {HEADS} heads"
    return row(claim, "its forward pass in float64", taken, "at most", LARGEST_SLOWDOWN, agree)


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


def against_mpmath() -> Row:
    generator = torch.Generator().manual_seed(2)
    layers = [SelfAttention.random(SMALL, generator=generator) for _ in range(DEPTH)]
    start = ResidualState.of(randn(SMALL, SMALL))
    start = ResidualState(start.common, start.mantissa, start.exponent + EXPONENT)
    log_size, ends = trajectory(start, layers)[-1].log10_size(), []
    with mp.workdps(int(GUARD_DIGITS - log_size)):

        def exact(tensor):
            return mp.matrix(tensor.tolist())

        x = exact(start.mantissa) * mp.mpf(2) ** start.exponent
        x += mp.ones(SMALL, 1) * exact(start.common).T
        weights = [
            [[exact(w) for w in head] for head in zip(a.w_q, a.w_k, a.w_v, a.w_o, strict=True)]
            for a in layers
        ]

        def definition() -> None:
            after = x
            for layer in weights:
                after = layer_in_mpmath(after, layer, SMALL)
            ends.append(after)

        taken = alternate(lambda: trajectory(start, layers), definition, MPMATH_PAIRS, "six layers")
        r = (ends[0] - mp.ones(SMALL, SMALL) * ends[0] / SMALL).apply(abs)
        columns = max(mp.fsum(r[:, j]) for j in range(SMALL))
        lines = max(mp.fsum(r[i, :]) for i in range(SMALL))
        agree = abs(float(mp.log10(columns * lines) / 2) - log_size) < 1e-9
        peer = f"the definition in mpmath with {mp.mp.dps} digits"
    claim = f"{DEPTH} layers of {SMALL} x {SMALL} tokens down to a residual of 10^{log_size:.0f}"
    return row(claim, peer, taken, "at least", LEAST_SPEEDUP, agree)


def rows() -> list[Row]:
    torch.set_num_threads(1)
    return [against_forward_pass(), against_mpmath()]


if __name__ == "__main__":
    sys.exit(show(rows()))
