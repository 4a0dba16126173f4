"""Scores, their parts, masks and the softmax that turns scores into an attention matrix.

Rows of ``x`` are tokens. Weights multiply from the right (``x @ w_q``), as in the notation of chapter
`attention-and-residual`. The functions check shapes, dtypes and values of all they get.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ranklib._checks import (
    require_dtype,
    require_float_traced,
    require_instance,
    require_int,
    require_shape,
)


def causal_mask(tokens: int) -> Bool[Tensor, "tokens tokens"]:
    """A token may attend to itself and to all earlier ones: entry (i, j) is True where j <= i.

    Raises ``TypeError`` or ``ValueError`` unless ``tokens`` is a positive integer. Source: chapter
    `masks-and-positions`.

    >>> causal_mask(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    require_int("tokens", tokens, 1)
    return torch.ones(tokens, tokens, dtype=torch.bool).tril()


def window_mask(tokens: int, width: int, causal: bool = False) -> Bool[Tensor, "tokens tokens"]:
    """A token may attend to those at most ``width`` places away.

    Entry (i, j) is True where |i - j| <= width; causal: where 0 <= i - j <= width. Raises ``TypeError``
    or ``ValueError`` unless ``tokens`` >= 1 and ``width`` >= 0 are integers. Source: chapter
    `masks-and-positions`.

    >>> window_mask(3, 1).int().tolist()
    [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    >>> window_mask(3, 1, causal=True).int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    require_int("tokens", tokens, 1)
    require_int("width", width, 0)
    place = torch.arange(tokens)
    ahead = place[:, None] - place
    return (ahead <= width) & (ahead >= (0 if causal else -width))


def scores(
    x: Float[Tensor, "*#batch tokens dim"],
    w_q: Float[Tensor, "*#batch dim dim_qk"],
    w_k: Float[Tensor, "*#batch dim dim_qk"],
    b_q: Float[Tensor, "*#batch dim_qk"] | None = None,
    b_k: Float[Tensor, "*#batch dim_qk"] | None = None,
) -> Float[Tensor, "*batch tokens tokens"]:
    """The scaled scores of every query row against every key column.

    S = (X W_Q + 1 b_Q^T)(X W_K + 1 b_K^T)^T / sqrt(d_qk).

    x: (..., tokens, dim); w_q, w_k: (..., dim, dim_qk); b_q, b_k: (..., dim_qk) or None for zero. Leading
    axes broadcast. Raises ``TypeError`` for a wrong dtype, ``ValueError`` for a wrong shape, NaN or infinity.
    Source: chapter `attention-and-residual`, the definition of a head (the paper's section 2).

    >>> x, one = torch.tensor([[3.0], [1.0]]), torch.ones(1, 1)
    >>> scores(x, one, one).tolist()
    [[9.0, 3.0], [3.0, 1.0]]
    >>> scores(x, 2 * one, one / 2, torch.ones(1), torch.tensor([2.0])).tolist()
    [[24.5, 17.5], [10.5, 7.5]]
    """
    _require_projections(x, {"w_q": w_q, "w_k": w_k}, {"b_q": b_q, "b_k": b_k})
    return raw_scores(x, w_q, w_k, b_q, b_k)


def pruned_scores(
    x: Float[Tensor, "*#batch tokens dim"],
    w_q: Float[Tensor, "*#batch dim dim_qk"],
    w_k: Float[Tensor, "*#batch dim dim_qk"],
    b_q: Float[Tensor, "*#batch dim_qk"] | None = None,
    b_k: Float[Tensor, "*#batch dim_qk"] | None = None,
) -> Float[Tensor, "*batch tokens tokens"]:
    """The scores without the two terms that are constant along rows; softmax gives the same matrix.

    (X W_QK X^T + 1 b_Q^T W_K^T X^T) / sqrt(d_qk), with W_QK = W_Q W_K^T.

    Arguments, shapes and errors are those of ``scores``. The key bias is checked and then drops out: it
    enters only X W_Q b_K 1^T and 1 b_Q^T b_K 1^T. Source: Theorem (What softmax sees) in chapter
    `softmax-shift-invariance`; the pruned form is the paper's.

    >>> x, one = torch.tensor([[3.0], [1.0]]), torch.ones(1, 1)
    >>> pruned_scores(x, 2 * one, one / 2, torch.ones(1), torch.tensor([2.0])).tolist()
    [[10.5, 3.5], [4.5, 1.5]]
    """
    _require_projections(x, {"w_q": w_q, "w_k": w_k}, {"b_q": b_q, "b_k": b_k})
    pruned = x @ (w_q @ w_k.mT) @ x.mT
    if b_q is not None:
        pruned = pruned + (x @ (w_k @ b_q[..., None])).mT
    return pruned / w_q.shape[-1] ** 0.5


def score_parts(
    x: Float[Tensor, "*#batch tokens dim"],
    centre: Float[Tensor, "*#batch dim"],
    w_q: Float[Tensor, "*#batch dim dim_qk"],
    w_k: Float[Tensor, "*#batch dim dim_qk"],
    b_q: Float[Tensor, "*#batch dim_qk"] | None = None,
) -> tuple[Float[Tensor, "*batch tokens tokens"], Float[Tensor, "*batch tokens"]]:
    """What softmax sees of the scores: a part E quadratic in R = X - 1 x^T and a key-only part r linear in R.

    E = R W_QK R^T / sqrt(d_qk) and r = R (W_QK^T x + W_K b_Q) / sqrt(d_qk), for any centre x; then
    softmax(E + 1 r^T) = softmax(S).

    centre: (..., dim); the rest as in ``scores``. Returns E (..., tokens, tokens) and r (..., tokens).
    Raises as ``scores`` does. Source: Theorem (What softmax sees) in chapter `softmax-shift-invariance`; the
    paper's appendix A.

    >>> x, one = torch.tensor([[3.0], [1.0]]), torch.ones(1, 1)
    >>> e, key_score = score_parts(x, torch.tensor([2.0]), one, one)
    >>> e.tolist(), key_score.tolist()
    ([[1.0, -1.0], [-1.0, 1.0]], [2.0, -2.0])
    """
    _require_projections(x, {"w_q": w_q, "w_k": w_k}, {"b_q": b_q})
    require_float_traced("centre", centre)
    require_dtype("centre", centre, x.dtype, "x")
    ok = centre.ndim >= 1 and centre.shape[-1] == x.shape[-1]
    require_shape("centre", centre, f"one entry per feature, (..., {x.shape[-1]})", ok)
    return raw_score_parts(x, centre, w_q, w_k, b_q)


def raw_score_parts(
    x: Tensor, centre: Tensor, w_q: Tensor, w_k: Tensor, b_q: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The formula of ``score_parts`` without its checks, for callers that have checked."""
    residual = x - centre[..., None, :]
    queries = centre[..., None, :] @ w_q
    if b_q is not None:
        queries = queries + b_q[..., None, :]
    root = w_q.shape[-1] ** 0.5
    e = residual @ (w_q @ w_k.mT) @ residual.mT / root
    key_score = residual @ (w_k @ queries.mT) / root
    return e, key_score[..., 0]


def attention_matrix(
    scores: Float[Tensor, "*batch tokens keys"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch tokens keys"]:
    """The row-wise softmax of the scores, over the entries that the mask allows.

    P_ij = exp(S_ij - m_i) / sum_k exp(S_ik - m_i), with m_i the largest score of row i: exp cannot overflow.

    scores: (..., tokens, keys); mask: boolean, broadcastable to that, True where attention is allowed.
    Raises ``TypeError`` for integer scores or a mask that is not boolean, ``ValueError`` for NaN or infinite
    scores (mask with ``mask``, not with infinite scores), a mask of the wrong shape, or one that leaves a
    row empty. Source: Proposition (Row-stochastic) in chapter `softmax-shift-invariance`.

    >>> attention_matrix(torch.tensor([[1000.0, 1000.0], [0.0, 0.0]]), causal_mask(2)).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    require_float_traced("scores", scores)
    ok = scores.ndim >= 2 and scores.shape[-1] > 0
    require_shape("scores", scores, "(..., tokens, keys) with at least one key", ok)
    if mask is None:
        return scores.softmax(-1)
    require_mask(mask, scores)
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def naive_softmax(scores: Float[Tensor, "*batch tokens keys"]) -> Float[Tensor, "*batch tokens keys"]:
    """The softmax as written, exp(S_ij) / sum_k exp(S_ik), without the shift: a demonstration of overflow.

    It returns what the arithmetic gives: NaN where exp overflows (above 709.8 in float64, 88.7 in float32)
    and where every exp of a row is 0. Use ``attention_matrix`` for anything else. Raises ``TypeError`` for
    an integer dtype, ``ValueError`` for NaN or infinite scores. Source: chapter `softmax-shift-invariance`.

    >>> naive_softmax(torch.tensor([[0.0, 0.0], [0.0, 100.0]])).tolist()
    [[0.5, 0.5], [0.0, nan]]
    """
    require_float_traced("scores", scores)
    require_shape(
        "scores", scores, "(..., tokens, keys), at least one key", scores.ndim >= 2 and scores.shape[-1] > 0
    )
    weights = scores.exp()
    return weights / weights.sum(-1, keepdim=True)


def raw_scores(x: Tensor, w_q: Tensor, w_k: Tensor, b_q: Tensor | None, b_k: Tensor | None) -> Tensor:
    """The formula of ``scores`` without its checks, for callers that have checked."""
    queries, keys = x @ w_q, x @ w_k
    if b_q is not None:
        queries = queries + b_q[..., None, :]
    if b_k is not None:
        keys = keys + b_k[..., None, :]
    return queries @ keys.mT / w_q.shape[-1] ** 0.5


def _require_projections(x: Tensor, weights: dict[str, Tensor], biases: dict[str, Tensor | None]) -> None:
    given = {"x": x} | weights | {name: bias for name, bias in biases.items() if bias is not None}
    for name, value in given.items():
        require_float_traced(name, value)
        require_dtype(name, value, x.dtype, "x")
    require_shape("x", x, "(..., tokens, dim), no axis of them empty", x.ndim >= 2 and 0 not in x.shape[-2:])
    dim, width = x.shape[-1], weights["w_q"].shape[-1:]
    for name, value in weights.items():
        ok = value.ndim >= 2 and value.shape[-2] == dim and value.shape[-1:] == width != (0,)
        require_shape(name, value, f"(..., {dim}, dim_qk), the same dim_qk for queries and keys", ok)
    for name in given.keys() & biases.keys():
        require_shape(name, given[name], f"(..., {width[0]})", given[name].shape[-1:] == width)


def require_mask(mask: Tensor, scores: Tensor) -> None:
    """Raise unless ``mask`` is boolean, broadcasts to the scores and leaves a key to every row."""
    require_instance("mask", mask, Tensor)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask: expected dtype bool, True = may attend, got {mask.dtype}; use mask.bool()")
    padded = (1,) * (scores.ndim - mask.ndim) + tuple(mask.shape)
    ok = len(padded) == scores.ndim and all(m in (1, s) for m, s in zip(padded, scores.shape))
    require_shape("mask", mask, f"a shape that broadcasts to the scores {tuple(scores.shape)}", ok)
    empty = int((~mask.any(-1)).sum())
    if empty:
        raise ValueError(
            f"mask: expected at least one allowed key per row, got {empty} rows without; "
            "let every token attend to itself or drop the rows"
        )
