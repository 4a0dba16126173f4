"""How far the tokens are from being equal: residuals about a centre, and the least one, certified.

A residual is ``X - 1 x^T`` for some centre x. It has nothing to do with a residual (skip) connection.
The least composite over all centres is a number; "the" best residual matrix is not defined, because the
best centre need not be unique (Chapter 1, Lemma (Vertex)).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import measurable, require_float, require_matrix, require_positive, require_shape
from ranklib.certificate import exact_steps, sandwich, smooth_steps
from ranklib.norms import composite, max_col_sum, max_row_sum


def residual_about(
    x: Float[Tensor, "*batch tokens dim"], centre: Float[Tensor, "*batch dim"]
) -> Float[Tensor, "*batch tokens dim"]:
    r"""Subtract the same row, the centre, from every token.

    .. math:: R = X - \mathbf 1 x^\top

    Parameters
    ----------
    x
        Tokens as rows. Half precision is computed and returned in float32.
    centre
        One row for each matrix of the batch.

    Raises
    ------
    TypeError, ValueError
        Integer dtype, NaN or infinity, an empty matrix, or a centre whose shape does not match.

    Example
    -------
    >>> import torch
    >>> residual_about(torch.tensor([[1.0, 5.0], [3.0, 5.0]]), torch.tensor([2.0, 5.0]))
    tensor([[-1.,  0.],
            [ 1.,  0.]])

    Source: Chapter 1; section 2 of the paper.
    """
    x = measurable("x", x)
    require_float("centre", centre)
    wanted = (*x.shape[:-2], x.shape[-1])
    require_shape("centre", centre, f"one row for each matrix, {wanted}", tuple(centre.shape) == wanted)
    return x - centre.unsqueeze(-2)


def mean_centre(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch dim"]:
    r"""The column means, computed about the first token, so that equal tokens give exactly that token.

    .. math:: \mu = X_1 + \tfrac1n \sum_i (X_i - X_1)

    Raises ``TypeError`` or ``ValueError`` for integer dtype, NaN or infinity, or an empty matrix.

    Example
    -------
    >>> import torch
    >>> mean_centre(torch.tensor([[0.0, 4.0], [1.0, 4.0], [5.0, 4.0]]))
    tensor([2., 4.])

    Source: Chapter 1, Theorem (Mean centre).
    """
    x = measurable("x", x)
    first = x[..., :1, :]
    return (first + (x - first).mean(-2, keepdim=True)).squeeze(-2)


def median_centre(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch dim"]:
    """The columnwise lower median: entry ceil(n/2) of each sorted column, always an entry of X.

    Any other median serves the theorem as well; this one needs no arithmetic, so no rounding.
    Raises ``TypeError`` or ``ValueError`` for integer dtype, NaN or infinity, or an empty matrix.

    Example
    -------
    >>> import torch
    >>> median_centre(torch.tensor([[0.0, 7.0], [1.0, 6.0], [5.0, 8.0], [9.0, 5.0]]))
    tensor([1., 6.])

    Source: Chapter 1, Theorem (Median centre).
    """
    x = measurable("x", x)
    return x.sort(-2).values[..., (x.shape[-2] - 1) // 2, :]


def midrange_centre(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch dim"]:
    """Half-way between the least and the largest entry of each column; no constant bounds what it loses.

    For ``X = I_n`` its composite is n/2 where the least is 1. For two tokens it is the best centre.
    Raises ``TypeError`` or ``ValueError`` for integer dtype, NaN or infinity, or an empty matrix.

    Example
    -------
    >>> import torch
    >>> midrange_centre(torch.tensor([[0.0, 4.0], [1.0, 4.0], [5.0, 4.0]]))
    tensor([2.5000, 4.0000])

    Source: Chapter 1, Theorem (Median centre), the remark on the midrange.
    """
    x = measurable("x", x)
    return x.amin(-2) / 2 + x.amax(-2) / 2


def col_sum(
    x: Float[Tensor, "*batch tokens dim"], centre: Float[Tensor, "*batch dim"]
) -> Float[Tensor, "*batch"]:
    r"""The factor f of the squared residual: the largest column sum about a centre.

    .. math:: f(x) = \|X - \mathbf 1 x^\top\|_1 \ge \mathrm{osc}(X)

    Arguments and errors as in :func:`residual_about`.

    Example
    -------
    >>> import torch
    >>> col_sum(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([2.0]))
    tensor(6.)

    Source: Chapter 1.
    """
    return max_col_sum(residual_about(x, centre))


def row_sum(
    x: Float[Tensor, "*batch tokens dim"], centre: Float[Tensor, "*batch dim"]
) -> Float[Tensor, "*batch"]:
    r"""The factor g of the squared residual: the largest row sum about a centre.

    .. math:: g(x) = \|X - \mathbf 1 x^\top\|_\infty \ge \tfrac12 \max_{jl} \|X_j - X_l\|_1

    Arguments and errors as in :func:`residual_about`.

    Example
    -------
    >>> import torch
    >>> row_sum(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([2.0]))
    tensor(3.)

    Source: Chapter 1.
    """
    return max_row_sum(residual_about(x, centre))


def composite_about(
    x: Float[Tensor, "*batch tokens dim"], centre: Float[Tensor, "*batch dim"]
) -> Float[Tensor, "*batch"]:
    r"""The composite of the residual about a centre, never below the least one, ``residual_size(x)``.

    .. math:: \|X - \mathbf 1 x^\top\|_{1,\infty} = \sqrt{f(x)\,g(x)}

    Arguments and errors as in :func:`residual_about`.

    Example
    -------
    >>> import torch
    >>> composite_about(torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([2.5]))
    tensor(4.0311)

    Source: Chapter 1.
    """
    return composite(residual_about(x, centre))


def mean_residual(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The composite about the column means: at most 2(1 - 1/n) times the least one.

    .. math:: \|(I - J)X\|_{1,\infty} \le 2(1 - \tfrac1n)\,\|\mathrm{res}\,X\|, \qquad J = \tfrac1n 11^\top

    Idea of the proof: I - J removes any common row, so it may be applied to the best residual, and both
    of its induced norms are 2(1 - 1/n). ``X = I_n`` attains the bound.
    Raises ``TypeError`` or ``ValueError`` for integer dtype, NaN or infinity, or an empty matrix.

    Example
    -------
    >>> import torch
    >>> mean_residual(torch.eye(4))
    tensor(1.5000)

    Source: Chapter 1, Theorem (Mean centre).
    """
    x = measurable("x", x)
    from_first = x - x[..., :1, :]
    return composite_about(from_first, mean_centre(from_first))


def median_residual(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The composite about the columnwise median: at most sqrt 3 times the least one.

    .. math:: \sqrt{f(m)\,g(m)} \le \sqrt3\,\|\mathrm{res}\,X\|

    Idea of the proof: a median m minimises every column sum, so f(m) is the least f; and m is within
    2 g(x) of any x in the 1-norm, so g(m) is at most 3 g(x). The constant cannot be improved.
    Raises ``TypeError`` or ``ValueError`` for integer dtype, NaN or infinity, or an empty matrix.

    Example
    -------
    >>> import torch
    >>> median_residual(torch.tensor([[0.0], [1.0], [5.0]]))
    tensor(4.4721)

    Source: Chapter 1, Theorem (Median centre).
    """
    return composite_about(x, median_centre(x))


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

    Source: Chapter 1, Lemma (Vertex) and Lemma (Certificate); the paper defines the residual in section 2.
    """
    require_matrix("x", x)
    require_positive("tol", tol)
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

    Source: Chapter 1, Lemma (Vertex) and Lemma (Certificate).
    """
    require_matrix("x", x)
    require_positive("tol", tol)
    solve = partial(sandwich, steps=exact_steps, tol=tol)
    return _least(x, solve, tol, "use a larger tol, or residual_size(x) with tol=1e-3")
