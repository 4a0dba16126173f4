"""The least residual of a propagated state between two bounds, as log10, so that none underflows."""

import torch
from torch import Tensor

from ranklib._checks import require_positive
from ranklib.exact.state import ResidualState
from ranklib.paper.centres import raw_mean_centre
from ranklib.paper.least import CertifiedResidual, raw_residual_size
from ranklib.paper.norms import raw_composite
from ranklib.paper.sizes import scaled_log10

EPS = torch.finfo(torch.float64).eps


def enclosure(state: ResidualState, tol: float = 1e-3) -> tuple[float, float]:
    """log10 of a lower and an upper bound of ||res X||, to the relative gap ``tol``; a zero gives -inf.

    For two tokens the midpoint is the best centre (Theorem (Two tokens) in chapter `printed-theorems`) and the gap is
    rounding. One sample. Raises as ``residual_size`` does.

    >>> pair = ResidualState(torch.zeros(1).double(), torch.tensor([[1.0], [-1.0]]).double(), -3000)
    >>> [round(value, 3) for value in enclosure(pair)]  # 2^-3000 sqrt 2
    [-902.939, -902.939]
    """
    return log10_bounds(enclose_least(state.mantissa, tol), state)


def log10_bounds(least: CertifiedResidual, state: ResidualState) -> tuple[float, float]:
    """log10 of both bounds, with the exponent of the state."""
    return tuple(scaled_log10(value, state.exponent).item() for value in (least.lower, least.upper))


def enclose_least(mantissa: Tensor, tol: float) -> CertifiedResidual:
    """The certified residual of a mantissa: the midpoint for two tokens, ``residual_size`` for more."""
    require_positive("tol", tol)
    if len(mantissa) > 2:
        return raw_residual_size(mantissa, tol)
    centre = raw_mean_centre(mantissa)
    value = raw_composite(mantissa - centre)
    width = (sum(mantissa.shape) + 16) * EPS
    return CertifiedResidual(value * (1 - width), value * (1 + width), centre)
