"""Small symbolic matrices and the functions of them that the derivations speak of."""

import sympy as sp


def real_matrix(name: str, rows: int, columns: int) -> sp.Matrix:
    """A ``rows`` by ``columns`` matrix of real symbols ``name_11``, ``name_12``, ...

    >>> real_matrix("x", 1, 2)
    Matrix([[x_11, x_12]])
    """
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}_{i + 1}{j + 1}", real=True))


def stochastic_matrix(name: str, size: int) -> sp.Matrix:
    """A square matrix whose rows sum to 1 by construction: the last column is 1 minus the others.

    >>> stochastic_matrix("p", 2)
    Matrix([
    [p_11, 1 - p_11],
    [p_21, 1 - p_21]])
    """
    free = real_matrix(name, size, size - 1)
    return free.row_join(sp.ones(size, 1) - free * sp.ones(size - 1, 1))


def max_col_sum(x: sp.MatrixBase) -> sp.Expr:
    r"""The induced norm :math:`\|X\|_1`: largest absolute column sum.

    >>> max_col_sum(sp.Matrix([[1, -2], [3, 4]]))
    6
    """
    return sp.Max(*(sum(map(abs, x.col(k))) for k in range(x.cols)))


def max_row_sum(x: sp.MatrixBase) -> sp.Expr:
    r"""The induced norm :math:`\|X\|_\infty`: largest absolute row sum.

    >>> max_row_sum(sp.Matrix([[1, -2], [3, 4]]))
    7
    """
    return max_col_sum(x.T)


def composite(x: sp.MatrixBase) -> sp.Expr:
    r"""The composite :math:`\sqrt{\|X\|_1\|X\|_\infty}`, which is not a norm.

    >>> composite(sp.Matrix([[1, -2], [3, 4]]))
    sqrt(42)
    """
    return sp.sqrt(max_col_sum(x) * max_row_sum(x))


def centring(n: int) -> sp.Matrix:
    r"""The centring matrix :math:`I-\frac1n\mathbf 1\mathbf 1^\top`.

    >>> centring(2)
    Matrix([
    [ 1/2, -1/2],
    [-1/2,  1/2]])
    """
    return sp.eye(n) - sp.ones(n, n) / n


def softmax_rows(scores: sp.MatrixBase) -> sp.Matrix:
    r"""Row-wise softmax: :math:`P_{ij}=e^{S_{ij}}/\sum_l e^{S_{il}}`.

    >>> softmax_rows(sp.Matrix([[0, 0]]))
    Matrix([[1/2, 1/2]])
    """
    weights = scores.applyfunc(sp.exp)
    return sp.Matrix(*scores.shape, lambda i, j: weights[i, j] / sum(weights.row(i)))
