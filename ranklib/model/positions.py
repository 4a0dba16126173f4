"""Position terms of the scores: relative biases, ALiBi, rotations of queries and keys."""

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import (
    require_dtype,
    require_float_traced,
    require_int,
    require_positive,
    require_shape,
)


def relative_bias(table: Float[Tensor, "*batch offsets"]) -> Float[Tensor, "*batch tokens tokens"]:
    """The position term that depends on the offset of query and key only, as a matrix to add to the scores.

    B_ij = table[j - i + n - 1], for the offsets j - i = -(n - 1), ..., n - 1.

    table: (..., 2 n - 1), leading axes for example heads. Raises ``TypeError`` for a dtype that is not
    floating-point, ``ValueError`` for an even number of offsets, NaN or infinity. Source: chapter
    `masks-and-positions`.

    >>> relative_bias(torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0])).tolist()
    [[0.0, 1.0, 2.0], [-1.0, 0.0, 1.0], [-2.0, -1.0, 0.0]]
    """
    require_float_traced("table", table)
    ok = table.ndim >= 1 and table.shape[-1] % 2 == 1
    require_shape("table", table, "an odd number 2 n - 1 of offsets on the last axis", ok)
    place = torch.arange((table.shape[-1] + 1) // 2, device=table.device)
    return table[..., place - place[:, None] + len(place) - 1]


def alibi_bias(
    tokens: int, slope: float, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "tokens tokens"]:
    """The linear position term B_ij = -slope |i - j| of Press et al. (2022); they use it with a causal mask.

    Raises ``TypeError`` or ``ValueError`` unless ``tokens`` >= 1 is an integer and the slope is positive.
    Source: Theorem (Second eigenvalue) in chapter `masks-and-positions`.

    >>> alibi_bias(3, 0.5).tolist()
    [[-0.0, -0.5, -1.0], [-0.5, -0.0, -0.5], [-1.0, -0.5, -0.0]]
    """
    require_positive("slope", slope)
    require_int("tokens", tokens, 1)
    return relative_bias(-slope * torch.arange(1 - tokens, tokens, dtype=dtype).abs())


def rotary_scores(
    x: Float[Tensor, "*#batch tokens dim"],
    w_q: Float[Tensor, "*#batch dim dim_qk"],
    w_k: Float[Tensor, "*#batch dim dim_qk"],
    angles: Float[Tensor, " planes"],
) -> Float[Tensor, "*batch tokens tokens"]:
    """Scaled scores of queries and keys that are rotated by their place, plane by plane.

    S_ij = <G(i) W_Q^T x_i, G(j) W_K^T x_j> / sqrt(d_qk), where G(i) turns the features (2k, 2k + 1) by
    i angles[k]. Only j - i enters, since rotations keep inner products.

    x: (..., tokens, dim); w_q, w_k: (..., dim, dim_qk); angles: (dim_qk / 2). Raises ``TypeError`` for a
    wrong dtype, ``ValueError`` for a wrong shape, NaN or infinity. Source: Proposition (Position terms) in
    chapter `masks-and-positions`; the rotation is that of Su et al. (2021).

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> s = rotary_scores(x, torch.eye(2), torch.eye(2), torch.tensor([torch.pi / 3]))
    >>> [[round(v, 3) for v in row] for row in (s * 2**0.5).tolist()]
    [[1.0, 0.5], [0.5, 1.0]]
    """
    for name, value in {"x": x, "w_q": w_q, "w_k": w_k, "angles": angles}.items():
        require_float_traced(name, value)
        require_dtype(name, value, x.dtype, "x")
    require_shape("x", x, "(..., tokens, dim), no axis of them empty", x.ndim >= 2 and 0 not in x.shape[-2:])
    width = 2 * angles.shape[-1] if angles.ndim == 1 else -1
    require_shape("angles", angles, "one axis, one angle per pair of query features", width > 0)
    for name, value in {"w_q": w_q, "w_k": w_k}.items():
        expected = (x.shape[-1], width)
        ok = value.ndim >= 2 and value.shape[-2:] == expected
        require_shape(name, value, f"(..., dim, dim_qk) = (..., {expected[0]}, {expected[1]})", ok)
    place = torch.arange(x.shape[-2], dtype=x.dtype, device=x.device)
    turn = place[:, None] * angles
    return _turn(x @ w_q, turn) @ _turn(x @ w_k, turn).mT / width**0.5


def _turn(rows: Tensor, turn: Tensor) -> Tensor:
    """Every pair of features (2k, 2k + 1) of row i, rotated by turn[i, k]."""
    even, odd = rows[..., 0::2], rows[..., 1::2]
    cos, sin = turn.cos(), turn.sin()
    return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)
