"""The sizes that the bounds of a layer are made of: rho, Lambda, osc(E) and the norms of the weights."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_float, require_instance, require_shape, widen
from ranklib.model.attention import SelfAttention
from ranklib.paper.centres import deviations, raw_residual_about
from ranklib.paper.norms import raw_col_sum, raw_composite, raw_row_sum


@dataclass(frozen=True, eq=False)
class LayerSizes:
    """What the bounds of one layer are made of, about one centre.

    rho: composite of the residual, (*batch), and its log10, which cannot underflow; q: ||W_QK||_1 over
    sqrt(d_qk) of every head; w_1, w_inf: the two norms of W_h = W_V W_O; osc: osc(E) of every head,
    (*batch, heads).
    """

    tokens: int
    rho: Float[Tensor, "*batch"]
    log10_rho: Float[Tensor, "*batch"]
    q: Float[Tensor, " heads"]
    w_1: Float[Tensor, " heads"]
    w_inf: Float[Tensor, " heads"]
    osc: Float[Tensor, "*batch heads"]

    @property
    def lam(self) -> Float[Tensor, "*batch heads"]:
        """Lambda_h = q_h rho^2."""
        return self.q * self.rho[..., None] * self.rho[..., None]

    @property
    def w(self) -> Float[Tensor, " heads"]:
        """||W_h||_{1,inf}."""
        return (self.w_1 * self.w_inf).sqrt()

    @property
    def shape(self) -> float:
        """Largest ratio ||W_h||_1 / ||W_h||_inf over the least, among heads that do something."""
        used = self.q * self.w > 0
        ratio = self.w_1[used] / self.w_inf[used]
        return float(ratio.max() / ratio.min()) if len(ratio) else 1.0


def times_size(constant: Tensor, size: Tensor) -> Tensor:
    """constant * size, 0 where the size is 0, even if the constant has overflowed."""
    return torch.where(size > 0, constant * size, 0)


def osc_row(e: Float[Tensor, "*batch tokens keys"]) -> Float[Tensor, "*batch tokens"]:
    """The range of each row: D_i = max_j E_ij - min_j E_ij, all that softmax sees of its size.

    Raises ``TypeError`` or ``ValueError`` for an integer dtype, NaN, infinity or no keys. Source: chapter
    `printed-theorems`.

    >>> osc_row(torch.tensor([[1.0, -2.0], [0.5, 0.5]])).tolist()
    [3.0, 0.0]
    """
    require_float("e", e)
    require_shape("e", e, "(..., tokens, keys), neither axis empty", e.ndim >= 2 and 0 not in e.shape[-2:])
    return e.amax(-1) - e.amin(-1)


def osc(e: Float[Tensor, "*batch tokens keys"]) -> Float[Tensor, "*batch"]:
    """The largest range of a row: D = max_i D_i; errors as in ``osc_row``. Source: chapter `printed-theorems`.

    >>> osc(torch.tensor([[1.0, -2.0], [0.5, 0.5]])).item()
    3.0
    """
    return osc_row(e).amax(-1)


def lam(attention: SelfAttention, rho: Float[Tensor, "*batch"] | float) -> Float[Tensor, "*batch heads"]:
    """Lambda_h = ||W_QK,h||_1 rho^2 / sqrt(d_qk) of every head; it bounds every |E_ij|.

    Raises ``TypeError`` or ``ValueError`` for a wrong kind of argument or a rho that is NaN, infinite or
    negative. Source: chapter `printed-theorems`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> lam(SelfAttention(w_q=2 * one, w_k=one, w_v=one, w_o=one), 3.0).tolist()
    [18.0]
    """
    require_instance("attention", attention, SelfAttention)
    q = weight_norms(attention)[0]
    rho = as_size("rho", rho).to(q)[..., None]
    return q * rho * rho


def oscillation_of_scores(
    attention: SelfAttention,
    x: Float[Tensor, "*batch tokens dim"],
    centre: Float[Tensor, "*batch dim"] | None = None,
) -> Float[Tensor, "*batch heads"]:
    """osc(E) of every head, with E = R W_QK R^T / sqrt(d_qk) about ``centre``, by default the mean.

    E, and with it osc(E), depends on the centre; the theorems hold about any. Raises as ``layer_sizes``.
    Source: chapter `printed-theorems`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> oscillation_of_scores(attention, torch.tensor([[3.0], [1.0]]).double()).tolist()
    [2.0]
    """
    return layer_sizes(attention, x, centre).osc


def layer_sizes(
    attention: SelfAttention,
    x: Float[Tensor, "*batch tokens dim"],
    centre: Float[Tensor, "*batch dim"] | None = None,
) -> LayerSizes:
    """The sizes that the bounds are made of, about ``centre``, by default the mean.

    x: (..., tokens, dim); centre: (..., dim). Every proved bound holds about any centre; the printed ones
    speak of the best, which ``check_layer`` takes. Raises ``TypeError`` or ``ValueError`` for a wrong kind,
    dtype or shape, NaN or infinity. Source: chapter `printed-theorems`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> sizes = layer_sizes(SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one), torch.eye(2, 1).double())
    >>> round(sizes.lam.item(), 3), sizes.osc.item()
    (0.5, 0.5)
    """
    require_instance("attention", attention, SelfAttention)
    attention.check_input(x)
    x = widen(x)
    return measure_sizes(attention, deviations(x) if centre is None else raw_residual_about(x, centre), 0)


def as_size(name: str, value: Tensor | float) -> Tensor:
    """A size as a float64 tensor; raises ``ValueError`` for a negative one."""
    value = value if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
    require_float(name, value)
    if (value < 0).any():
        raise ValueError(f"{name}: expected a size, got {value.min().item()}; it cannot be negative")
    return value


def _product_norms(left: Tensor, right: Tensor) -> Tensor:
    """Column and row norm of each ``left @ right``, (2, heads), without forming rows or columns of zeros."""
    norms = left.new_zeros(2, len(left))
    for head, (a, b) in enumerate(zip(left, right)):
        product = a[a.any(1)] @ b[:, b.any(0)]
        if product.numel():
            norms[:, head] = torch.stack([raw_col_sum(product), raw_row_sum(product)])
    return norms


@torch.no_grad()
def weight_norms(attention: SelfAttention, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """||W_QK||_1 / sqrt(d_qk), ||W||_1 and ||W||_inf of every head."""
    w_q, w_k, w_v, w_o = (w.to(dtype) for w in (attention.w_q, attention.w_k, attention.w_v, attention.w_o))
    q = _product_norms(w_q, w_k.mT)[0] / attention.dims.dim_qk**0.5
    return q, *_product_norms(w_v, w_o)


@torch.no_grad()
def measure_sizes(attention: SelfAttention, residual: Tensor, exponent: int) -> LayerSizes:
    """The sizes for R = 2^exponent residual."""
    rows = residual.unsqueeze(-3)
    w_q, w_k = attention.w_q.to(residual.dtype), attention.w_k.to(residual.dtype)
    e = (rows @ w_q) @ (rows @ w_k).mT / attention.dims.dim_qk**0.5
    rho, power = raw_composite(residual), torch.exp2(residual.new_tensor(exponent))
    return LayerSizes(
        residual.shape[-2],
        times_size(power, rho),
        scaled_log10(rho, exponent),
        *weight_norms(attention, residual.dtype),
        times_size(power, times_size(power, osc(e))),
    )


def scaled_log10(mantissa: Tensor, exponent: int) -> Tensor:
    """log10 of ``mantissa`` 2^``exponent``."""
    return mantissa.log10() + exponent * math.log10(2)
