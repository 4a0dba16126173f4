"""A search for a point that breaks ``lhs <= rhs``: random, small and edge points, then refinement."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import sympy as sp

Number = int | float
TOLERANCE = 1e-9  # relative; rounding of float64 stays far below it
TINY = 1e-12  # where both sides are below this, equality says nothing


@dataclass(frozen=True)
class Found:
    """How many valid points were tried, the least relative slack, and what is wrong (empty: nothing)."""

    valid: int
    slack: float
    trouble: str


def search(
    lhs: sp.Expr,
    rhs: sp.Expr,
    box: Mapping[sp.Symbol, tuple[Number, Number]],
    where: Any,
    points: int,
    near: Number,
    seed: int,
) -> Found:
    """Least relative slack ``(rhs - lhs) / max(|lhs|, |rhs|)`` over the points of ``box`` with ``where``.

    Trouble is: no valid point, a value that is NaN or infinite, a negative slack, or a least slack above
    ``near``, since then a slightly wrong constant would have passed.

    Example
    -------
    >>> x = sp.Symbol("x", real=True)
    >>> search(2 * x, x**2 + 1, {x: (-3, 3)}, sp.true, 300, 0.01, 0).trouble
    ''
    >>> search(2 * x, x**2 + 1, {x: (-3, 3)}, x > 5, 300, 0.01, 0).trouble
    'no valid point among 300'
    """
    rng = np.random.default_rng(seed)
    low, high = np.array(list(box.values()), dtype=float).T
    functions = {"Max": partial(_fold, np.maximum), "Min": partial(_fold, np.minimum)}
    sides = sp.lambdify(list(box), [lhs, rhs, where], modules=[functions, "numpy"])
    start = _starting_points(rng, low, high, points)
    slack, valid, bad = _slack(sides, start)
    if not valid.any():
        return Found(0, np.inf, f"no valid point among {points}")
    count = int(valid.sum())
    best = start[np.argsort(slack)[:16]]
    lowest = np.sort(slack)[:16]
    for radius in (high - low) * 0.3 * 0.8 ** np.arange(40)[:, None]:
        step = radius * rng.standard_normal((4, *best.shape)) * (rng.random((4, *best.shape)) < 0.5)
        for moved in np.clip(best + step, low, high):
            new, valid, new_bad = _slack(sides, moved)
            count, bad = count + int(valid.sum()), bad or new_bad
            better = new < lowest
            best[better], lowest[better] = moved[better], new[better]
    worst = float(lowest.min())
    point = ", ".join(f"{symbol} = {value:.4g}" for symbol, value in zip(box, best[lowest.argmin()]))
    if bad:
        return Found(count, worst, f"NaN or infinity: {bad}")
    if worst < -TOLERANCE:
        return Found(count, worst, f"a relative slack of {worst:.2g} at {point}")
    if worst > near:
        return Found(count, worst, f"a least relative slack of {worst:.2g}: no point came near equality")
    return Found(count, worst, "")


def _fold(ufunc: Any, *args: Any) -> Any:
    return reduce(ufunc, args)


def _starting_points(rng: np.random.Generator, low: Any, high: Any, points: int) -> Any:
    zero = np.clip(0.0, low, high)
    uniform = rng.uniform(low, high, (points, low.size))
    small = zero + (uniform - zero) * 10 ** (-6 * rng.random((points, 1)))
    edges = rng.permuted(np.broadcast_to(np.stack([low, zero, high]), (points, 3, low.size)), axis=1)[:, 0]
    return np.select([np.arange(points)[:, None] % 3 == k for k in range(2)], [uniform, small], edges)


def _slack(sides: Any, points: Any) -> tuple[Any, Any, str]:
    """Relative slack (infinite where invalid or both sides vanish), the valid points, and a bad point."""
    with np.errstate(all="ignore"):
        left, right, valid = (np.broadcast_to(value, len(points)) for value in sides(*points.T))
        valid = valid.astype(bool)
        size = np.maximum(abs(left), abs(right))
        slack = (right - left) / np.maximum(size, TINY)
    broken = valid & ~np.isfinite(slack)
    bad = f"sides {left[broken][0]} and {right[broken][0]}" if broken.any() else ""
    return np.where(valid & ~broken & (size > TINY), slack, np.inf), valid, bad
