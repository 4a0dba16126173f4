"""The least residual over all centres, enclosed between certified bounds.

The least composite of ``X - 1 x^T`` over all centres x is a number; "the" best residual matrix is not
defined, because the best centre need not be unique (Lemma (Vertex) in chapter `how-the-paper-measures`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_matrix, require_positive
from ranklib._threads import one_blas_thread
from ranklib.paper.certificate import exact_steps, sandwich, smooth_steps


@dataclass(frozen=True, eq=False)
class CertifiedResidual:
    """Two numbers with the least composite residual between them, and a centre that attains the upper.

    ``lower`` and ``upper`` have the batch shape, ``centre`` has one row more; all are float64. The centre
    is rounded to float64 where the tokens are, so about it the composite may differ from ``upper`` by the
    rounding of the tokens themselves.
    """

    lower: Float[Tensor, "*batch"]
    upper: Float[Tensor, "*batch"]
    centre: Float[Tensor, "*batch dim"]

    @property
    def gap(self) -> Float[Tensor, "*batch"]:
        """``(upper - lower) / lower``; 0 where both are 0, infinite where only ``lower`` is."""
        width = self.upper - self.lower
        return torch.where(width > 0, width / self.lower, torch.zeros_like(width))


def _least_of_one(matrix: np.ndarray, solve: Callable, tol: float, remedy: str):
    """Move the lower median to 0, scale by a power of two, solve, scale back.

    The scaling is exact. Each difference is rounded by EPS / 2, which changes f and g about any centre by
    at most EPS / 2 f(m) and EPS / 2 g(m), hence by at most 3 EPS / 2 of themselves (median theorem).
    """
    median = np.sort(matrix, axis=0)[(len(matrix) - 1) // 2]
    with np.errstate(over="ignore"):
        moved, doublings = matrix - median, 0
    if not np.isfinite(moved).all():
        moved, doublings = matrix / 2 - median / 2, 1
    if not moved.any():
        return 0.0, 0.0, median
    exponent = int(np.frexp(np.abs(moved).max())[1])
    lower, upper, centre = solve(np.ldexp(moved, -exponent))
    if upper > lower * (1 + tol):
        reached = f"{upper / lower - 1:.3g}" if lower > 0 else "none"
        raise ArithmeticError(f"residual: expected a certified gap of at most {tol}, got {reached}; {remedy}")
    exponent += doublings
    with np.errstate(over="ignore"):
        bounds = np.ldexp(np.array([lower, upper]), exponent)
    if not np.isfinite(bounds).all():
        raise ArithmeticError(
            "residual: expected a size that float64 can hold, got an overflow; divide x by a power of two"
        )
    return *bounds.tolist(), median + np.ldexp(centre, exponent)


def _least(x: Tensor, solve: Callable, tol: float, remedy: str) -> CertifiedResidual:
    batch, (tokens, dim) = x.shape[:-2], x.shape[-2:]
    matrices = x.detach().to("cpu", torch.float64).reshape(-1, tokens, dim).numpy()
    with one_blas_thread():  # L-BFGS keeps 20 vectors of a row's length: too little work to share
        found = [_least_of_one(matrix, solve, tol, remedy) for matrix in matrices]
    lower, upper, centre = zip(*found, strict=True) if found else ((), (), ())

    def back(values, *shape):
        return torch.from_numpy(np.array(values, dtype=np.float64)).reshape((*batch, *shape)).to(x.device)

    return CertifiedResidual(back(lower), back(upper), back(centre, dim))


def residual_size(x: Float[Tensor, "*batch tokens dim"], tol: float = 1e-3) -> CertifiedResidual:
    r"""The least composite residual over all centres, enclosed to a relative gap ``tol`` without an LP.

    .. math:: \|\mathrm{res}\,X\| = \min_x \sqrt{f(x)\,g(x)}

    Idea: the least product is at a vertex of the convex region of all (f, g), so it minimises
    ``s f + g`` for some slope s. L-BFGS minimises a smoothed ``s f + g``; its softmax weights give valid
    lower lines by weighted medians, whatever the optimiser did; the lines cut out a polygon whose
    vertices bound the product from below, and the worst vertex gives the next slope. Rounding is counted
    against both bounds. The profile over s has several minima in general, so no line search in s is safe.

    Parameters
    ----------
    x
        Tokens as rows; any float dtype, computed in float64; a batch is done one by one.
    tol
        Largest relative gap accepted. Meant for 1e-2 to 1e-4; below, use :func:`residual_size_exact`.

    Raises
    ------
    TypeError, ValueError
        Integer dtype, NaN or infinity, an empty matrix, or a tolerance that is not positive.
    ArithmeticError
        The gap was not reached, or the size overflows float64.

    Example
    -------
    >>> import torch
    >>> found = residual_size(torch.tensor([[1.0], [0.0], [0.0], [0.0], [0.0]]))
    >>> bool(found.lower <= 1 <= found.upper), bool(found.gap <= 1e-3)
    (True, True)

    Source: Lemma (Vertex) and Lemma (Certificate) in chapter `how-the-paper-measures`; the paper defines the
    residual in section 2.
    """
    require_matrix("x", x)
    require_positive("tol", tol)
    return raw_residual_size(x, tol)


def raw_residual_size(x: Tensor, tol: float) -> CertifiedResidual:
    """``residual_size`` for callers that have checked."""
    steps = partial(smooth_steps, narrowest=max(0.3 * tol, 1e-9))
    solve = partial(sandwich, steps=steps, tol=tol, factors=(0.8, 1.0, 1.25), max_slopes=16)
    return _least(x, solve, tol, "use a larger tol, or residual_size_exact(x)")


def residual_size_exact(x: Float[Tensor, "*batch tokens dim"], tol: float = 1e-9) -> CertifiedResidual:
    r"""The least composite residual over all centres by linear programmes, to a relative gap near rounding.

    .. math:: V(s) = \min_x\,(s f(x) + g(x)), \qquad \|\mathrm{res}\,X\| = \min_{t > 0} \frac{V(t^2)}{2t}

    Idea: as in :func:`residual_size`, with each slope solved as a linear programme (scipy's HiGHS). The
    programme is not trusted: from its dual weights the line is computed anew by weighted medians, which
    is valid for any non-negative weights, and the upper bound is evaluated at a centre. A few programmes
    are enough. Each has about 2 n d variables: under a second up to 48 x 48, minutes at 128 x 768.

    Parameters, errors and result as in :func:`residual_size`.

    Example
    -------
    >>> import torch
    >>> found = residual_size_exact(torch.eye(3))
    >>> f"{found.upper.item():.6f}", bool(found.gap < 1e-9)
    ('1.000000', True)

    Source: Lemma (Vertex) and Lemma (Certificate) in chapter `how-the-paper-measures`.
    """
    require_matrix("x", x)
    require_positive("tol", tol)
    solve = partial(sandwich, steps=exact_steps, tol=tol)
    return _least(x, solve, tol, "use a larger tol, or residual_size(x) with tol=1e-3")
