"""Bounds on what a layer leaves of the residual: a table of bounds.

Every bound of one layer has the form coefficient * rho^power. The coefficient is made of the weights and of
two sizes, Lambda and osc(E), that go to 0 with the residual, so it stays a number where rho underflows.
Hypotheses are reported, never assumed: ``Bound.hypotheses`` gives value and limit of each.
The sizes are in ``ranklib.paper.sizes``. ``ranklib.paper.checks`` puts each bound beside what it bounds;
``ranklib.paper.depth`` is about L layers.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_instance
from ranklib.exact.verdicts import Hypothesis
from ranklib.paper.constants import (
    FOUR,
    const_osc,
    const_osc_heads,
    f_slope,
    g_slope,
    kappa,
    shape_limit,
    vartheta,
    x_star,
)
from ranklib.paper.sizes import LayerSizes, times_size


class Bound(NamedTuple):
    """||res SA(X)|| <= coefficient(sizes) * rho^power, if all ``needs`` and one of ``any_of`` hold."""

    statement: str
    power: int
    coefficient: Callable[[LayerSizes], Tensor]
    needs: dict[str, float | Callable[[], float]] = {}
    any_of: dict[str, float | Callable[[], float]] = {}

    def hypotheses(self, sizes: LayerSizes) -> dict[str, Hypothesis]:
        """Each hypothesis by name, with value, limit and whether it holds; for a batch, at its worst."""
        found = {}
        for name, limit in (self.needs | self.any_of).items():
            value, limit = float(VALUES[name](sizes)), float(limit() if callable(limit) else limit)
            found[name] = Hypothesis(value, limit, value <= limit)
        return found

    def applies(self, sizes: LayerSizes) -> bool:
        """Whether all ``needs`` hold and, if there are alternatives, one of them."""
        found = self.hypotheses(sizes)
        enough = any(found[name].holds for name in self.any_of) or not self.any_of
        return enough and all(found[name].holds for name in self.needs)


def _one_head(constant: Callable[[LayerSizes], Tensor]) -> Callable[[LayerSizes], Tensor]:
    """constant * q ||W||; with several heads the largest, and then the hypothesis ``heads`` fails."""
    return lambda s: times_size(constant(s), s.q * s.w).amax(-1)


def _separate(s: LayerSizes) -> Tensor:
    columns = times_size(f_slope(s.lam), s.q * s.w_1).sum(-1)
    rows = times_size(vartheta(2 * s.lam), s.q * s.w_inf).sum(-1)
    return columns.sqrt() * rows.sqrt()


def _osc_heads(s: LayerSizes) -> Tensor:
    size = (s.q * s.w_1).sum().sqrt() * (s.q * s.w_inf).sum().sqrt()
    return times_size(const_osc_heads(s.osc.amax(-1)), size)


# The values that hypotheses speak of.
VALUES: dict[str, Callable[[LayerSizes], Tensor | float]] = {
    "heads": lambda s: len(s.q),
    "tokens": lambda s: s.tokens,
    "lam": lambda s: s.lam.max(),
    "osc": lambda s: s.osc.max(),
    "shape": lambda s: s.shape,
}

ONE = {"heads": 1}

BOUNDS: dict[str, Bound] = {
    "printed_one_layer": Bound(
        "4 Lambda rho ||W||, under the paper's hypothesis (the paper's appendix A)",
        3,
        _one_head(lambda s: torch.full_like(s.lam, 4.0)),
        ONE | {"osc": x_star},
    ),
    "constant_four": Bound(
        "4 Lambda rho ||W||, where it is proved (Theorem (When four is true))",
        3,
        _one_head(lambda s: torch.full_like(s.lam, 4.0)),
        ONE,
        FOUR,
    ),
    "small_oscillation": Bound(
        "C(osc) Lambda rho ||W|| (Theorem (Small oscillation))",
        3,
        _one_head(lambda s: const_osc(s.osc)),
        ONE,
    ),
    "unconditional": Bound(
        "G(Lambda) rho ||W|| (Theorem (One layer))",
        3,
        _one_head(lambda s: g_slope(s.lam)),
        ONE,
    ),
    "middle": Bound(
        "(e^Lambda - 1) / sqrt(e^Lambda + 1) rho ||W|| (Theorem (One layer))",
        3,
        _one_head(lambda s: kappa(s.lam) / (s.lam.exp() + 1).sqrt()),
        ONE,
    ),
    "memorable": Bound(
        "(e^Lambda - 1) rho ||W|| (Theorem (One layer))",
        3,
        _one_head(lambda s: kappa(s.lam)),
        ONE,
    ),
    "sqrt_tokens": Bound(
        "sqrt(n) rho ||W|| (Theorem (One layer))",
        1,
        lambda s: s.tokens**0.5 * s.w.amax().expand(s.rho.shape),
        ONE,
    ),
    "two_tokens": Bound(
        "tanh(Lambda / 2) rho ||W|| (Theorem (Two tokens))",
        3,
        _one_head(lambda s: vartheta(2 * s.lam) / 2),
        ONE | {"tokens": 2},
    ),
    "printed_many_heads": Bound(
        "4 beta H / sqrt(d_qk) rho^3 (the paper's Theorem 2.3; false: Example (Two heads))",
        3,
        lambda s: (4 * len(s.q) * (s.q * s.w).amax()).expand(s.rho.shape),
        {"osc": x_star, "shape": shape_limit},
    ),
    "separate_many_heads": Bound(
        "rho sqrt(S_1 S_inf), column and row sums added separately (Theorem (Many heads))",
        3,
        _separate,
    ),
    "small_oscillation_many_heads": Bound(
        "C sqrt(sum q ||W||_1 sum q ||W||_inf) rho^3 (Theorem (Many heads))",
        3,
        _osc_heads,
    ),
}
"""The bounds of one layer by name: formula, exponent and hypotheses."""


def bound_value(name: str, sizes: LayerSizes) -> Float[Tensor, "*batch"]:
    """The right side of the bound ``name`` of the table ``BOUNDS``.

    A one-head bound of a layer with several heads is that of its worst head, and its hypothesis ``heads``
    fails. Raises ``ValueError`` for an unknown name, ``TypeError`` unless sizes are ``LayerSizes``. Source:
    chapter `printed-theorems`.

    >>> from ranklib.model.attention import SelfAttention
    >>> from ranklib.paper.sizes import layer_sizes
    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> sizes = layer_sizes(SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one), torch.eye(2, 1).double())
    >>> [round(bound_value(name, sizes).item(), 3) for name in ("two_tokens", "unconditional", "memorable")]
    [0.173, 0.265, 0.459]
    """
    entry = bound_named(name)
    require_instance("sizes", sizes, LayerSizes)
    return times_size(sizes.rho**entry.power, entry.coefficient(sizes))


def bound_named(name: str) -> Bound:
    """The entry of ``BOUNDS``; raises ``ValueError`` for a name that is not there."""
    if name not in BOUNDS:
        raise ValueError(f"bound: expected one of {tuple(BOUNDS)}, got {name!r}; choose one of them")
    return BOUNDS[name]
