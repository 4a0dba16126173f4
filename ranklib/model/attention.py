"""The self-attention layer of the book: heads, biases, masks.

``SelfAttention`` checks its weights once, when it is built, and its input at every call, also inside
``torch.func.vmap``. The scores and the softmax are in :mod:`ranklib.model.softmax`.
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
from ranklib.model.softmax import attention_matrix, pruned_scores, raw_scores


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
    for a wrong or mixed dtype, ``ValueError`` for a wrong shape, NaN or infinity. Source: Definition (Layer)
    and Proposition (Biases) in chapter `attention-and-residual`; the paper's section 2 loses the value
    biases.

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
        positive, or heads that do not divide dim while a width is left open. Source: chapter `one-head`.

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
        """b = b_O + sum_h W_{O,h}^T b_{V,h} (Proposition (Biases)); zero without biases."""
        bias = self.w_q.new_zeros(self.dims.dim) if self.b_o is None else self.b_o
        return bias if self.b_v is None else bias + (self.b_v[:, None, :] @ self.w_o).sum((0, 1))

    def scores(self, x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch heads tokens tokens"]:
        """``scores`` of every head."""
        self.check_input(x)
        return raw_scores(x.unsqueeze(-3), self.w_q, self.w_k, self.b_q, self.b_k)

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
