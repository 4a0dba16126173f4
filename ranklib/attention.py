"""Self-attention by the book's formulas: scores, their parts, masks, the attention matrix, and the layer.

Rows of ``x`` are tokens. Weights multiply from the right (``x @ w_q``), as in the notation of Chapter 1.
The functions check shapes, dtypes and values of all they get; ``SelfAttention`` checks its weights once,
when it is built, and its input at every call, also inside ``torch.func.vmap``.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ranklib._checks import (
    require_dtype,
    require_float,
    require_float_traced,
    require_instance,
    require_int,
    require_positive,
    require_shape,
)


def causal_mask(tokens: int) -> Bool[Tensor, "tokens tokens"]:
    """A token may attend to itself and to all earlier ones: entry (i, j) is True where j <= i.

    Raises ``TypeError`` or ``ValueError`` unless ``tokens`` is a positive integer. Source: Chapter 10.

    >>> causal_mask(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    require_int("tokens", tokens, 1)
    return torch.ones(tokens, tokens, dtype=torch.bool).tril()


def window_mask(tokens: int, width: int, causal: bool = False) -> Bool[Tensor, "tokens tokens"]:
    """A token may attend to those at most ``width`` places away.

    Entry (i, j) is True where |i - j| <= width; causal: where 0 <= i - j <= width. Raises ``TypeError``
    or ``ValueError`` unless ``tokens`` >= 1 and ``width`` >= 0 are integers. Source: Chapter 10.

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
    Source: Chapter 1, the definition of a head (the paper's section 2).

    >>> x, one = torch.tensor([[3.0], [1.0]]), torch.ones(1, 1)
    >>> scores(x, one, one).tolist()
    [[9.0, 3.0], [3.0, 1.0]]
    >>> scores(x, 2 * one, one / 2, torch.ones(1), torch.tensor([2.0])).tolist()
    [[24.5, 17.5], [10.5, 7.5]]
    """
    _require_projections(x, {"w_q": w_q, "w_k": w_k}, {"b_q": b_q, "b_k": b_k})
    return _scores(x, w_q, w_k, b_q, b_k)


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
    enters only X W_Q b_K 1^T and 1 b_Q^T b_K 1^T. Source: Chapter 2, Theorem (What softmax sees); the
    pruned form is the paper's.

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
    Raises as ``scores`` does. Source: Chapter 2, Theorem (What softmax sees); the paper's appendix A.

    >>> x, one = torch.tensor([[3.0], [1.0]]), torch.ones(1, 1)
    >>> e, key_score = score_parts(x, torch.tensor([2.0]), one, one)
    >>> e.tolist(), key_score.tolist()
    ([[1.0, -1.0], [-1.0, 1.0]], [2.0, -2.0])
    """
    _require_projections(x, {"w_q": w_q, "w_k": w_k}, {"b_q": b_q})
    require_float_traced("centre", centre)
    ok = centre.ndim >= 1 and centre.shape[-1] == x.shape[-1]
    require_shape("centre", centre, f"one entry per feature, (..., {x.shape[-1]})", ok)
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
    row empty. Source: Chapter 2, Proposition (Row-stochastic).

    >>> attention_matrix(torch.tensor([[1000.0, 1000.0], [0.0, 0.0]]), causal_mask(2)).tolist()
    [[1.0, 0.0], [0.5, 0.5]]
    """
    require_float_traced("scores", scores)
    ok = scores.ndim >= 2 and scores.shape[-1] > 0
    require_shape("scores", scores, "(..., tokens, keys) with at least one key", ok)
    if mask is None:
        return scores.softmax(-1)
    _require_mask(mask, scores)
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


def naive_softmax(scores: Float[Tensor, "*batch tokens keys"]) -> Float[Tensor, "*batch tokens keys"]:
    """The softmax as written, exp(S_ij) / sum_k exp(S_ik), without the shift: a demonstration of overflow.

    It returns what the arithmetic gives: NaN where exp overflows (above 709.8 in float64, 88.7 in float32)
    and where every exp of a row is 0. Use ``attention_matrix`` for anything else. Raises ``TypeError`` for
    an integer dtype, ``ValueError`` for NaN or infinite scores. Source: Chapter 2.

    >>> naive_softmax(torch.tensor([[0.0, 0.0], [0.0, 100.0]])).tolist()
    [[0.5, 0.5], [0.0, nan]]
    """
    require_float_traced("scores", scores)
    weights = scores.exp()
    return weights / weights.sum(-1, keepdim=True)


class Dims(NamedTuple):
    """The sizes of a layer: H heads, d features, query-key width d_qk and value width d_v of each head."""

    heads: int
    dim: int
    dim_qk: int
    dim_v: int


# The shape of every weight in terms of the sizes, in the order in which ``random`` draws them.
SHAPES = {
    "w_q": ("heads", "dim", "dim_qk"),
    "w_k": ("heads", "dim", "dim_qk"),
    "w_v": ("heads", "dim", "dim_v"),
    "w_o": ("heads", "dim_v", "dim"),
    "b_q": ("heads", "dim_qk"),
    "b_k": ("heads", "dim_qk"),
    "b_v": ("heads", "dim_v"),
    "b_o": ("dim",),
}


class SelfAttention(nn.Module):
    """A self-attention layer: SA(X) = sum_h P_h X W_h + 1 b^T, with W_h = W_{V,h} W_{O,h}.

    P_h is the softmax of head h's scores and b = b_O + sum_h W_{O,h}^T b_{V,h}: since P_h 1 = 1, the value
    biases do not depend on the attention.

    w_q, w_k: (heads, dim, dim_qk); w_v: (heads, dim, dim_v); w_o: (heads, dim_v, dim); b_q, b_k:
    (heads, dim_qk), b_v: (heads, dim_v), b_o: (dim), or None. The weights are copied. Raises ``TypeError``
    for a wrong or mixed dtype, ``ValueError`` for a wrong shape, NaN or infinity. Source: Chapter 1,
    Definition (Layer) and Proposition (Biases); the paper's section 2 loses the value biases.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> layer = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> x = torch.tensor([[3.0], [1.0]], dtype=torch.float64)  # m = 2, a = 1: m + a tanh(a x_i)
    >>> [round(value, 3) for value in layer(x)[:, 0].tolist()]
    [2.995, 2.762]
    """

    def __init__(
        self,
        *,
        w_q: Float[Tensor, "heads dim dim_qk"],
        w_k: Float[Tensor, "heads dim dim_qk"],
        w_v: Float[Tensor, "heads dim dim_v"],
        w_o: Float[Tensor, "heads dim_v dim"],
        b_q: Float[Tensor, "heads dim_qk"] | None = None,
        b_k: Float[Tensor, "heads dim_qk"] | None = None,
        b_v: Float[Tensor, "heads dim_v"] | None = None,
        b_o: Float[Tensor, " dim"] | None = None,
    ) -> None:
        super().__init__()
        given = dict(w_q=w_q, w_k=w_k, w_v=w_v, w_o=w_o, b_q=b_q, b_k=b_k, b_v=b_v, b_o=b_o)
        for name, value in given.items():
            if value is None and name.startswith("b_"):
                self.register_parameter(name, None)
                continue
            require_float(name, value)
            require_dtype(name, value, w_q.dtype, "w_q")
            self.register_parameter(name, nn.Parameter(value.detach().clone()))
        for name, value in (("w_q", w_q), ("w_v", w_v)):
            ok = value.ndim == 3 and 0 not in value.shape
            require_shape(name, value, "three axes, none of them empty", ok)
        sizes = self.dims._asdict()
        for name, axes in SHAPES.items():
            value, expected = given[name], tuple(sizes[axis] for axis in axes)
            if value is not None:
                require_shape(name, value, f"({', '.join(axes)}) = {expected}", value.shape == expected)

    @classmethod
    def random(
        cls,
        dim: int,
        heads: int = 1,
        dim_qk: int | None = None,
        dim_v: int | None = None,
        *,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float64,
        scale: float | int = 1.0,
        biases: bool = False,
    ) -> "SelfAttention":
        """A layer whose entries, biases included, are independent N(0, scale^2 / dim).

        dim_qk and dim_v default to dim / heads. Raises ``ValueError`` for sizes below 1, a scale that is not
        positive, or heads that do not divide dim while a width is left open. Source: Chapter 4.

        >>> SelfAttention.random(6, heads=2, generator=torch.Generator().manual_seed(0)).dims
        Dims(heads=2, dim=6, dim_qk=3, dim_v=3)
        """
        require_int("dim", dim, 1)
        require_int("heads", heads, 1)
        require_positive("scale", scale)
        if dim % heads and None in (dim_qk, dim_v):
            raise ValueError(
                f"heads: expected a divisor of dim={dim}, got {heads}; choose one, or pass dim_qk and dim_v"
            )
        widths = {"dim_qk": dim_qk, "dim_v": dim_v}
        sizes = {"heads": heads, "dim": dim}
        for name, width in widths.items():
            sizes[name] = dim // heads if width is None else width
            require_int(name, sizes[name], 1)
        options = {"generator": generator, "dtype": dtype, "device": generator.device}
        return cls(
            **{
                name: torch.randn([sizes[axis] for axis in axes], **options) * (scale / dim**0.5)
                for name, axes in SHAPES.items()
                if biases or name.startswith("w_")
            }
        )

    @classmethod
    def from_torch(cls, module: nn.MultiheadAttention) -> "SelfAttention":
        """The same layer as a ``torch.nn.MultiheadAttention`` used for self-attention, with copied weights.

        Torch stores queries, keys and values in one matrix, transposed, with the heads side by side; its
        scale is 1 / sqrt(head_dim), so d_qk = d_v = head_dim. ``batch_first`` does not matter here: tokens
        are always the second to last axis. Raises ``ValueError`` where the module has other key or value
        sizes, extra key-value tokens, or dropout in training mode.

        >>> SelfAttention.from_torch(torch.nn.MultiheadAttention(6, 2)).dims
        Dims(heads=2, dim=6, dim_qk=3, dim_v=3)
        """
        require_instance("module", module, nn.MultiheadAttention)
        obstacles = {
            "the same size for queries, keys and values": module.in_proj_weight is None,
            "no add_bias_kv, no add_zero_attn": module.bias_k is not None or module.add_zero_attn,
            "no dropout": module.training and module.dropout > 0,
        }
        for wanted, hit in obstacles.items():
            if hit:
                raise ValueError(f"module: expected {wanted}, got {module}; build it so or call eval()")
        heads, dim = module.num_heads, module.embed_dim
        weights = {
            name: part.T.reshape(dim, heads, -1).transpose(0, 1)
            for name, part in zip(("w_q", "w_k", "w_v"), module.in_proj_weight.chunk(3))
        }
        if module.in_proj_bias is not None:
            parts = module.in_proj_bias.chunk(3)
            weights |= {name: part.reshape(heads, -1) for name, part in zip(("b_q", "b_k", "b_v"), parts)}
        return cls(**weights, w_o=module.out_proj.weight.T.reshape(heads, -1, dim), b_o=module.out_proj.bias)

    @property
    def dims(self) -> Dims:
        """The sizes (heads, dim, dim_qk, dim_v)."""
        return Dims(*self.w_q.shape, self.w_v.shape[-1])

    @property
    def w_qk(self) -> Float[Tensor, "heads dim dim"]:
        """W_QK = W_Q W_K^T of every head, before the division by sqrt(d_qk)."""
        return self.w_q @ self.w_k.mT

    @property
    def w(self) -> Float[Tensor, "heads dim dim"]:
        """W_h = W_{V,h} W_{O,h} of every head."""
        return self.w_v @ self.w_o

    @property
    def bias(self) -> Float[Tensor, " dim"]:
        """b = b_O + sum_h W_{O,h}^T b_{V,h} (Chapter 1, Proposition (Biases)); zero without biases."""
        bias = self.w_q.new_zeros(self.dims.dim) if self.b_o is None else self.b_o
        return bias if self.b_v is None else bias + (self.b_v[:, None, :] @ self.w_o).sum((0, 1))

    def scores(self, x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch heads tokens tokens"]:
        """``scores`` of every head."""
        self.check_input(x)
        return _scores(x.unsqueeze(-3), self.w_q, self.w_k, self.b_q, self.b_k)

    def pruned_scores(
        self, x: Float[Tensor, "*batch tokens dim"]
    ) -> Float[Tensor, "*batch heads tokens tokens"]:
        """``pruned_scores`` of every head."""
        self.check_input(x)
        return pruned_scores(x.unsqueeze(-3), self.w_q, self.w_k, self.b_q, self.b_k)

    def attention(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch heads tokens tokens"]:
        """``attention_matrix`` of every head; the mask broadcasts to (..., heads, tokens, tokens)."""
        return attention_matrix(self.scores(x), mask)

    def forward(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch tokens dim"]:
        """SA(X) = sum_h P_h X W_h + 1 b^T."""
        p = self.attention(x, mask)
        return (p @ (x.unsqueeze(-3) @ self.w_v) @ self.w_o).sum(-3) + self.bias

    def extra_repr(self) -> str:
        """The sizes, for print."""
        return ", ".join(f"{name}={size}" for name, size in self.dims._asdict().items())

    def check_input(self, x: Float[Tensor, "*batch tokens dim"]) -> None:
        """Raise ``TypeError`` or ``ValueError`` unless the layer can take ``x``."""
        require_float_traced("x", x)
        require_dtype("x", x, self.w_q.dtype, "every weight")
        ok = x.ndim >= 2 and x.shape[-2] > 0 and x.shape[-1] == self.dims.dim
        require_shape("x", x, f"(..., tokens, {self.dims.dim}) with at least one token", ok)


def _scores(x: Tensor, w_q: Tensor, w_k: Tensor, b_q: Tensor | None, b_k: Tensor | None) -> Tensor:
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


def _require_mask(mask: Tensor, scores: Tensor) -> None:
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
