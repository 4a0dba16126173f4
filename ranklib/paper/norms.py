"""The two matrix norms in which the theorems are stated, and their composite."""

from jaxtyping import Float
from torch import Tensor

from ranklib._checks import measurable


def max_col_sum(a: Float[Tensor, "*batch rows cols"]) -> Float[Tensor, "*batch"]:
    r"""The largest column sum of absolute values is the norm that the 1-norm of vectors induces.

    .. math:: \|A\|_1 = \max_k \sum_i |A_{ik}|

    Parameters
    ----------
    a
        Any matrix, with any leading batch axes. Half precision is computed and returned in float32.

    Raises
    ------
    TypeError, ValueError
        ``a`` is no floating-point tensor, has no rows or columns, or contains NaN or infinity.

    Example
    -------
    >>> import torch
    >>> max_col_sum(torch.tensor([[1.0, -2.0, 0.0], [3.0, 1.0, -1.0]]))
    tensor(4.)

    Source: chapter `how-the-paper-measures`; section 2 of the paper.
    """
    return raw_col_sum(measurable("a", a))


def max_row_sum(a: Float[Tensor, "*batch rows cols"]) -> Float[Tensor, "*batch"]:
    r"""The largest row sum of absolute values is the norm that the maximum norm of vectors induces.

    .. math:: \|A\|_\infty = \max_i \sum_k |A_{ik}| = \|A^\top\|_1

    Parameters
    ----------
    a
        Any matrix, with any leading batch axes. Half precision is computed and returned in float32.

    Raises
    ------
    TypeError, ValueError
        ``a`` is no floating-point tensor, has no rows or columns, or contains NaN or infinity.

    Example
    -------
    >>> import torch
    >>> max_row_sum(torch.tensor([[1.0, -2.0, 0.0], [3.0, 1.0, -1.0]]))
    tensor(5.)

    Source: chapter `how-the-paper-measures`; section 2 of the paper.
    """
    return raw_row_sum(measurable("a", a))


def composite(a: Float[Tensor, "*batch rows cols"]) -> Float[Tensor, "*batch"]:
    r"""The geometric mean of the two induced norms: the size in which the theorems measure. Not a norm.

    .. math:: \|A\|_{1,\infty} = \sqrt{\|A\|_1\,\|A\|_\infty}

    It is absolutely homogeneous, zero only for ``A = 0``, monotone in the absolute values of the entries,
    submultiplicative, and the same for ``A`` and its transpose. It is *not* a norm: the triangle
    inequality fails, for example for the rows (1, 1) and (1, 0), where sqrt 6 > sqrt 2 + 1. It is
    computed as a product of two roots, so that matrices near 1e-200 do not underflow.

    Parameters
    ----------
    a
        Any matrix, with any leading batch axes. Half precision is computed and returned in float32.

    Raises
    ------
    TypeError, ValueError
        ``a`` is no floating-point tensor, has no rows or columns, or contains NaN or infinity.

    Example
    -------
    >>> import torch
    >>> total, parts = torch.tensor([[2.0, 1.0]]), torch.tensor([[[1.0, 1.0]], [[1.0, 0.0]]])
    >>> composite(total), composite(parts).sum()
    (tensor(2.4495), tensor(2.4142))

    Source: chapter `how-the-paper-measures`; section 2 of the paper, which also says that it is no norm.
    """
    return raw_composite(measurable("a", a))


def raw_col_sum(a: Tensor) -> Tensor:
    """``max_col_sum`` for callers that have checked, as the two below."""
    return a.abs().sum(-2).amax(-1)


def raw_row_sum(a: Tensor) -> Tensor:
    """``max_row_sum`` for callers that have checked."""
    return a.abs().sum(-1).amax(-1)


def raw_composite(a: Tensor) -> Tensor:
    """``composite`` for callers that have checked."""
    size = a.abs()
    return size.sum(-2).amax(-1).sqrt() * size.sum(-1).amax(-1).sqrt()
