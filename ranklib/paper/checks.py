"""Each bound of the table beside what it bounds, the residual of a layer's output, enclosed.

``Check.applies`` says whether the hypotheses hold, ``Check.holds`` whether the inequality does; neither
implies the other. The output is measured by exact propagation, so rounding is not mistaken for slack.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_instance
from ranklib.exact.propagation import propagate
from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Network, require_plain
from ranklib.paper.bounds import Hypothesis, bound_named
from ranklib.paper.centres import residual_about
from ranklib.paper.enclosure import enclose_least, enclosure, log10_bounds
from ranklib.paper.sizes import LayerSizes, measure_sizes

ROUNDING = 1e-12  # of one propagated layer and of the logarithms, with a margin


@dataclass(frozen=True, eq=False)
class Check:
    """A bound beside the residual that it bounds, enclosed; all sizes as log10, so none underflows."""

    log10_bound: float
    log10_lower: float
    log10_upper: float
    hypotheses: Mapping[str, Hypothesis] = field(default_factory=dict)
    applies: bool = True

    @property
    def bound(self) -> float:
        """The bound itself; 0 where it underflows."""
        return _power(self.log10_bound)

    @property
    def measured(self) -> tuple[float, float]:
        """Lower and upper bound of the residual; 0 where they underflow."""
        return _power(self.log10_lower), _power(self.log10_upper)

    @property
    def slack(self) -> float:
        """bound / upper: how many times the bound is too large, at least; infinite if nothing is left."""
        return _power(self.log10_bound - self.log10_upper) if self.log10_upper > -math.inf else math.inf

    @property
    def holds(self) -> bool:
        """False only if the residual certainly exceeds the bound."""
        return self.log10_lower <= self.log10_bound + self._rounding

    @property
    def certified(self) -> bool:
        """Whether the enclosure decides: the bound is not inside it."""
        return self.log10_upper <= self.log10_bound - self._rounding or not self.holds

    @property
    def _rounding(self) -> float:
        return ROUNDING * (1 + abs(self.log10_bound)) if math.isfinite(self.log10_bound) else 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerCheck(Check):
    """The check of one bound of the table for one layer: its name, and the sizes that it takes."""

    name: str
    sizes: LayerSizes


def measure_layer(
    attention: SelfAttention, x: Float[Tensor, "tokens dim"] | ResidualState, tol: float = 1e-3
) -> tuple[float, float]:
    """log10 of a lower and an upper bound of ||res SA(X)||, to the relative gap ``tol``.

    Measured through ``propagate``, so it resolves residuals far below the rounding of X. One sample. Raises
    as ``propagate`` and ``enclosure`` do.

    >>> import torch
    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> pair = ResidualState(torch.zeros(1).double(), torch.tensor([[0.5], [-0.5]]).double(), -999)
    >>> [round(value, 3) for value in measure_layer(attention, pair)]  # 2^-3000 sqrt 2
    [-902.939, -902.939]
    """
    return enclosure(propagate(ResidualState.of(x), attention), tol)


def check_layer(
    attention: SelfAttention,
    x: Float[Tensor, "tokens dim"] | ResidualState,
    bound: str = "unconditional",
    centre: Float[Tensor, " dim"] | None = None,
    tol: float = 1e-3,
) -> LayerCheck:
    """One bound of ``BOUNDS`` against the residual of the layer's output, with its hypotheses.

    rho, Lambda and osc(E) are about ``centre``; None takes the best one that ``residual_size`` finds, where
    rho exceeds ||res X|| by at most ``tol``, so a failure about it is one of the printed claim too. Raises
    ``ValueError`` for an unknown bound, a centre together with a ``ResidualState``, and as ``measure_layer``.
    Source: chapters `one-head`, `many-heads` and `where-it-breaks`.

    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> attention = SelfAttention.random(5, generator=generator)
    >>> found = check_layer(attention, torch.randn(7, 5, dtype=torch.float64, generator=generator))
    >>> found.applies, found.holds, found.certified, found.slack > 1, found.hypotheses["heads"].holds
    (True, True, True, True, True)
    """
    bound_named(bound)
    require_instance("attention", attention, SelfAttention)
    if isinstance(x, ResidualState) and centre is not None:
        raise ValueError("centre: expected None with a ResidualState, got a row; pass the tokens instead")
    state = ResidualState.of(x)
    if centre is None:
        residual, exponent = state.mantissa - enclose_least(state.mantissa, tol).centre, state.exponent
    else:
        residual, exponent = residual_about(x.double(), centre), 0
    measured = measure_layer(attention, state, tol)
    return _check(bound, measure_sizes(attention, residual, exponent), *measured)


def check_network(
    network: Network,
    x: Float[Tensor, "tokens dim"] | ResidualState,
    bound: str = "unconditional",
    tol: float = 1e-3,
) -> list[LayerCheck]:
    """``check_layer`` for the attention of every layer, each at its own input, hypotheses at every layer.

    The states are propagated exactly, with the skip of the layer if it has one. Raises ``ValueError`` for a
    layer with an MLP or a norm, and as ``check_layer`` does. Source: Theorem (L layers) in chapter
    `printed-theorems`.

    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> network = Network.random(depth=6, dim=5, skip=False, generator=generator)
    >>> found = check_network(network, torch.randn(7, 5, dtype=torch.float64, generator=generator))
    >>> all(layer.holds and layer.certified for layer in found), found[-1].log10_upper < -9
    (True, True)
    """
    require_plain(network)
    bound_named(bound)
    state, found = ResidualState.of(x), []
    least = enclose_least(state.mantissa, tol)
    for layer in network.layers:
        sizes = measure_sizes(layer.attention, state.mantissa - least.centre, state.exponent)
        after = propagate(state, layer.attention)
        least = enclose_least(after.mantissa, tol)
        found.append(_check(bound, sizes, *log10_bounds(least, after)))
        if layer.skip:
            after = propagate(state, layer.attention, layer.skip)
            least = enclose_least(after.mantissa, tol)
        state = after
    return found


def _check(name: str, sizes: LayerSizes, log10_lower: float, log10_upper: float) -> LayerCheck:
    entry = bound_named(name)
    log10 = (entry.coefficient(sizes).log10() + entry.power * sizes.log10_rho).item()
    verdict = entry.hypotheses(sizes), entry.applies(sizes)
    return LayerCheck(log10, log10_lower, log10_upper, *verdict, name=name, sizes=sizes)


def _power(log10: float) -> float:
    return 10.0**log10 if log10 < 308 else math.inf
