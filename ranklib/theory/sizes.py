"""The diameter of tokens, and the sizes of weights in its norm."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import (
    require_all,
    require_dtype,
    require_float,
    require_instance,
    require_shape,
)
from ranklib._threads import one_torch_thread, singular_values
from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention

NORMS = ("l2", "l1", "linf")
"""The norms of a row in which the diameter is measured."""
_ORDER = {"l2": 2.0, "l1": 1.0, "linf": math.inf}


def require_norm(norm: str) -> None:
    """Raise ``ValueError`` unless ``norm`` is one of ``NORMS``."""
    if norm not in NORMS:
        raise ValueError(f"norm: expected one of {', '.join(NORMS)}, got {norm!r}; the main line uses 'l2'")


def diameter(x: Float[Tensor, "*batch tokens dim"], norm: str = "l2") -> Float[Tensor, "*batch"]:
    r"""The largest distance of two tokens.

    .. math:: \mathrm{diam}\,X = \max_{i,k} \|x_i - x_k\|

    Zero iff all tokens are equal; a seminorm on matrices, so heads and layers add; unchanged when one row is
    added to all tokens.

    x: (..., tokens, dim), tokens as rows. Raises ``TypeError`` or ``ValueError`` for another dtype, NaN,
    infinity, an empty matrix or a norm that is not in ``NORMS``. Source: Definition (Diameter) in chapter
    `attention-and-residual`.

    >>> x = torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]])
    >>> [diameter(x, norm).item() for norm in NORMS]
    [5.0, 7.0, 4.0]
    """
    require_norm(norm)
    require_float("x", x)
    ok = x.ndim >= 2 and 0 not in x.shape[-2:]
    require_shape("x", x, "a matrix with at least one row and one column", ok)
    return _diameter(x, norm)


def log10_diameter(state: ResidualState, norm: str = "l2") -> float:
    """log10 of the diameter of a state of exact propagation, far below the floor of floats; -inf for zero.

    Raises ``TypeError`` for anything else, ``ValueError`` for a norm that is not in ``NORMS``.

    >>> pair = ResidualState(torch.zeros(1).double(), torch.tensor([[1.0], [-1.0]]).double(), -3001)
    >>> round(log10_diameter(pair), 3)  # 2^-3000
    -903.09
    """
    require_instance("state", state, ResidualState)
    require_norm(norm)
    size = _diameter(state.mantissa, norm).item()
    return math.log10(size) + state.exponent * math.log10(2) if size else -math.inf


def score_size(attention: SelfAttention, norm: str = "l2") -> Float[Tensor, " heads"]:
    r"""What a head can make of two differences: omega of every head.

    .. math:: \omega_h = \sup_{\|u\|, \|v\| \le 1} |u\,W_{QK,h} v^\top| / \sqrt{d_{qk}}

    The spectral norm of W_QK for "l2", its largest absolute entry for "l1", the sum of all absolute entries
    for "linf" (there an upper bound of the supremum), each over sqrt(d_qk).

    Raises ``TypeError`` for anything but a ``SelfAttention``, ``ValueError`` for an unknown norm. Source:
    Theorem (Diameter) in chapter `one-head`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> score_size(SelfAttention(w_q=3 * one, w_k=one, w_v=one, w_o=one)).item()
    3.0
    """
    require_instance("attention", attention, SelfAttention)
    require_norm(norm)
    w_q, w_k = attention.w_q.detach(), attention.w_k.detach()
    sizes = {
        "l2": lambda: _product_norm(w_q, w_k.mT),
        "l1": lambda: (w_q @ w_k.mT).abs().amax((-2, -1)),
        "linf": lambda: (w_q @ w_k.mT).abs().sum((-2, -1)),
    }
    return sizes[norm]() / attention.dims.dim_qk**0.5


def value_size(attention: SelfAttention, norm: str = "l2") -> Float[Tensor, " heads"]:
    r"""How much a head's values stretch a difference: nu of every head.

    .. math:: \nu_h = \sup_{\|u\| \le 1} \|u\,W_h\|, \qquad W_h = W_{V,h} W_{O,h}

    The spectral norm for "l2", the largest row sum of absolute entries for "l1", the largest column sum for
    "linf". Raises as ``score_size``. Source: Theorem (Diameter) in chapter `one-head`.

    >>> w = torch.tensor([[[1.0, -2.0], [0.0, 1.0]]])
    >>> attention = SelfAttention(w_q=w, w_k=w, w_v=w, w_o=torch.eye(2)[None])
    >>> value_size(attention, "l1").item(), value_size(attention, "linf").item()
    (3.0, 3.0)
    """
    require_instance("attention", attention, SelfAttention)
    require_norm(norm)
    if norm == "l2":
        return _product_norm(attention.w_v.detach(), attention.w_o.detach())
    return operator_size(attention.w.detach(), norm)


def operator_size(w: Float[Tensor, "*batch rows cols"], norm: str = "l2") -> Float[Tensor, "*batch"]:
    r"""sup ||u w|| over rows u with ||u|| <= 1. Raises ``TypeError`` or ``ValueError`` as ``diameter`` does.

    >>> operator_size(torch.tensor([[1.0, -2.0], [0.0, 1.0]]), "l1").item()
    3.0
    """
    require_norm(norm)
    require_float("w", w)
    require_shape("w", w, "a matrix", w.ndim >= 2 and 0 not in w.shape)
    sizes = {
        "l2": lambda: singular_values(w)[..., 0],
        "l1": lambda: w.abs().sum(-1).amax(-1),
        "linf": lambda: w.abs().sum(-2).amax(-1),
    }
    return sizes[norm]()


def require_size(name: str, value: Tensor | float, dtype: torch.dtype) -> Tensor:
    """``value`` as a tensor. Raises ``TypeError`` or ``ValueError`` for NaN, infinity or a negative number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Tensor):
        raise TypeError(f"{name}: expected a number or a tensor, got {value!r}; pass a size of at least 0")
    value = value if isinstance(value, Tensor) else torch.tensor(float(value), dtype=dtype)
    require_float(name, value)
    require_dtype(name, value, dtype, "every weight")
    require_all(name, value >= 0, "numbers of at least 0", "that are negative", "pass a size")
    return value


def _product_norm(a: Tensor, b: Tensor) -> Tensor:
    """||a b||_2 of thin factors from their triangles, which are as small as a head; a b is as wide as a token."""
    with one_torch_thread():
        left, right = (torch.linalg.qr(factor, mode="r").R for factor in (a, b.mT))
        return torch.linalg.svdvals(left @ right.mT)[..., 0]


def _diameter(x: Tensor, norm: str) -> Tensor:
    """Row by row, so that distances are differences first (no cancellation) and no n x n x d array is made."""
    if norm == "linf":
        return (x.amax(-2) - x.amin(-2)).amax(-1)
    largest = x.new_zeros(x.shape[:-2])
    for i in range(x.shape[-2] - 1):
        gaps = torch.linalg.vector_norm(x[..., i + 1 :, :] - x[..., i : i + 1, :], _ORDER[norm], dim=-1)
        largest = torch.maximum(largest, gaps.amax(-1))
    return largest
