"""Residuals about a centre: the mean, the columnwise median, the midrange, or any other row.

A residual is ``X - 1 x^T`` for some centre x. It has nothing to do with a residual (skip) connection. The
least composite over all centres is in :mod:`ranklib.paper.least`.
"""

from jaxtyping import Float
from torch import Tensor

from ranklib._checks import measurable, require_float, require_shape
from ranklib.paper.norms import raw_col_sum, raw_composite, raw_row_sum


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

    Source: chapter `how-the-paper-measures`; section 2 of the paper.
    """
    return raw_residual_about(measurable("x", x), centre)


def raw_residual_about(x: Tensor, centre: Tensor) -> Tensor:
    """``residual_about`` for callers that have checked x, not the centre."""
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

    Source: Theorem (Mean centre) in chapter `how-the-paper-measures`.
    """
    return raw_mean_centre(measurable("x", x))


def raw_mean_centre(x: Tensor) -> Tensor:
    """``mean_centre`` for callers that have checked."""
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

    Source: Theorem (Median centre) in chapter `how-the-paper-measures`.
    """
    return raw_median_centre(measurable("x", x))


def raw_median_centre(x: Tensor) -> Tensor:
    """``median_centre`` for callers that have checked."""
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

    Source: Theorem (Median centre) in chapter `how-the-paper-measures`, the remark on the midrange.
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

    Source: chapter `how-the-paper-measures`.
    """
    return raw_col_sum(residual_about(x, centre))


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

    Source: chapter `how-the-paper-measures`.
    """
    return raw_row_sum(residual_about(x, centre))


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

    Source: chapter `how-the-paper-measures`.
    """
    return raw_composite(residual_about(x, centre))


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

    Source: Theorem (Mean centre) in chapter `how-the-paper-measures`.
    """
    return raw_composite(deviations(measurable("x", x)))


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

    Source: Theorem (Median centre) in chapter `how-the-paper-measures`.
    """
    x = measurable("x", x)
    return raw_composite(x - raw_median_centre(x).unsqueeze(-2))


def deviations(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch tokens dim"]:
    """X - JX of checked tokens, exactly zero where all rows are equal."""
    from_first = x - x[..., :1, :]
    return from_first - raw_mean_centre(from_first).unsqueeze(-2)
