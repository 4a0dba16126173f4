"""One shape for what a check finds: a size, enclosed, beside the bounds that are claimed for it, and the hypotheses.

Whether the hypotheses hold (``applies``) and whether the inequalities do (``holds``) are two questions: neither
answers the other.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

ROUNDING = 1e-12  # of one propagated layer and of the logarithms, with a margin


class Hypothesis(NamedTuple):
    """What a theorem asks for: ``value`` at most ``limit``, and whether it ``holds``."""

    value: float
    limit: float
    holds: bool


@dataclass(frozen=True, eq=False)
class Bounds:
    """A size is claimed to lie from ``lower`` to ``upper``; as log10, so that neither underflows.

    A lower bound of 0 (log10: -inf) and an upper bound of infinity claim nothing.

    >>> Bounds.of(0.0, 10.0).log10_bounds
    (-inf, 1.0)
    """

    log10_bounds: tuple[float, float]

    @classmethod
    def of(cls, lower: float, upper: float, **more) -> "Bounds":
        """From the bounds themselves; ``more`` are the further fields."""
        return cls((log10(lower), log10(upper)), **more)

    @property
    def lower(self) -> float:
        """The lower bound itself; 0 where it underflows."""
        return power(self.log10_bounds[0])

    @property
    def upper(self) -> float:
        """The upper bound itself; 0 where it underflows."""
        return power(self.log10_bounds[1])


@dataclass(frozen=True, eq=False)
class Check(Bounds):
    """Bounds beside the size that they bound, which lies in the enclosure ``measured``.

    ``rounding`` is relative and belongs to the enclosure. Source: chapter `printed-theorems`.

    >>> found = Check.of(0.0, 2.0, log10_measured=(-1.0, 0.0))
    >>> found.holds, found.certified, round(found.slack, 9), found.measured
    (True, True, 2.0, (0.1, 1.0))
    """

    log10_measured: tuple[float, float]
    hypotheses: Mapping[str, Hypothesis] = field(default_factory=dict)
    applies: bool = True
    rounding: float = ROUNDING

    @property
    def measured(self) -> tuple[float, float]:
        """Lower and upper end of the enclosure of the size; 0 where they underflow."""
        low, high = self.log10_measured
        return power(low), power(high)

    @property
    def slack(self) -> float:
        """How many times the upper bound is above the size, at least; infinite if nothing is left of the size."""
        return _quotient(self.log10_bounds[1], self.log10_measured[1])

    @property
    def slack_below(self) -> float:
        """How many times the size is above the lower bound, at least; infinite if the bound is 0."""
        return _quotient(self.log10_measured[0], self.log10_bounds[0])

    @property
    def holds(self) -> bool:
        """False only if the size certainly is outside the bounds."""
        (lower, upper), (low, high) = self.log10_bounds, self.log10_measured
        return low <= upper + self._margin(upper) and lower - self._margin(lower) <= high

    @property
    def certified(self) -> bool:
        """Whether the enclosure decides: no bound lies inside it."""
        (lower, upper), (low, high) = self.log10_bounds, self.log10_measured
        inside = high <= upper - self._margin(upper) and lower + self._margin(lower) <= low
        return inside or not self.holds

    def _margin(self, bound: float) -> float:
        return self.rounding * (1 + abs(bound)) if math.isfinite(bound) else 0.0


def log10(size: float) -> float:
    """log10 of a size that is not negative; -inf for 0."""
    return math.log10(size) if size else -math.inf


def power(log10_size: float) -> float:
    """10^log10_size; 0 where it underflows, infinite where it overflows."""
    return 10.0**log10_size if log10_size < 308 else math.inf


def _quotient(above: float, below: float) -> float:
    return power(above - below) if below > -math.inf else math.inf
