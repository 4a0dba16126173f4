"""Each bound of the table beside what it bounds, the residual of a layer's output, enclosed.

The output is measured by exact propagation, so rounding is not mistaken for slack.
"""

import math
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_instance
from ranklib.exact.propagation import propagate
from ranklib.exact.state import ResidualState
from ranklib.exact.verdicts import Check
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Network, require_plain
from ranklib.paper.bounds import bound_named
from ranklib.paper.centres import residual_about
from ranklib.paper.enclosure import enclose_least, enclosure, log10_bounds
from ranklib.paper.sizes import LayerSizes, measure_sizes


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
    Source: chapters `printed-theorems` and `where-it-breaks`.

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
    return _check(bound, measure_sizes(attention, residual, exponent), measured)


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
    >>> all(layer.holds and layer.certified for layer in found), found[-1].log10_measured[1] < -9
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
        found.append(_check(bound, sizes, log10_bounds(least, after)))
        if layer.skip:
            after = propagate(state, layer.attention, layer.skip)
            least = enclose_least(after.mantissa, tol)
        state = after
    return found


def _check(name: str, sizes: LayerSizes, measured: tuple[float, float]) -> LayerCheck:
    entry = bound_named(name)
    bound = (entry.coefficient(sizes).log10() + entry.power * sizes.log10_rho).item()
    verdict = entry.hypotheses(sizes), entry.applies(sizes)
    return LayerCheck((-math.inf, bound), measured, *verdict, name=name, sizes=sizes)
