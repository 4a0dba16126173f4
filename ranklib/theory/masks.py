"""Masks and positions: scores that depend on where a token stands, and what is left of the rate.

At a common row the softmax of such scores has unequal rows, so the factor "difference of rows" of chapter
`one-head` does not vanish. The layer then acts on the differences of the tokens through ``difference_map``;
its spectral radius is the asymptotic rate, and Dobrushin's coefficient of products certifies every finite
depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import (
    require_dtype,
    require_float,
    require_instance,
    require_shape,
)
from ranklib._threads import eigenvalues
from ranklib.exact.verdicts import Check, log10
from ranklib.measures.attention import dobrushin
from ranklib.measures.tokens import raw_oscillation


def difference_map(p: Float[Tensor, "*batch tokens tokens"]) -> Float[Tensor, "*batch rest rest"]:
    """What attention does to the differences of the tokens from the first one.

    Q_ij = P_ij - P_1j for i, j >= 2. With y_i = x_i - x_1 the layer X -> P X gives Y -> Q Y. Its eigenvalues
    are those of P without one eigenvalue 1; it is 0 exactly where the rows of P are equal.

    p: (..., tokens, tokens), rows that are probabilities. Raises ``TypeError`` or ``ValueError`` otherwise,
    and for a single token. Source: Theorem (Second eigenvalue) in chapter
    `masks-and-positions`.

    >>> difference_map(torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]])).tolist()
    [[0.5, 0.0], [0.25, 0.5]]
    """
    dobrushin(p)  # its checks: finite rows of probabilities
    ok = p.shape[-1] == p.shape[-2] >= 2
    require_shape("p", p, "a square matrix for at least two tokens", ok)
    return p[..., 1:, 1:] - p[..., :1, 1:]


def asymptotic_rate(
    p: Float[Tensor, "heads tokens tokens"] | Float[Tensor, "tokens tokens"],
    w: Float[Tensor, "heads dim dim"] | None = None,
) -> float:
    """The factor per layer by which the differences of tokens shrink in the end, near a common row.

    The largest modulus of an eigenvalue of Y -> sum_h Q_h Y W_h, with Q_h = ``difference_map``(P_h) of the
    attention at the common row; for one head without values it is |lambda_2(P)|. 0 means faster than any
    geometric rate: cubic where the rows of P are equal. Values move the common row, so with w the rate is
    that of layers that all have the same P_h (masks and biases; rotary scores depend on the row).

    p: (tokens, tokens), or (heads, tokens, tokens) together with w: (heads, dim, dim), the products
    W_V W_O. Raises ``ValueError`` for several heads without w, and as ``difference_map`` does. Source:
    Theorem (Second eigenvalue) in chapter `masks-and-positions`.

    >>> p = torch.tensor([[1.0, 0.0, 0.0], [1 / 2, 1 / 2, 0.0], [1 / 3, 1 / 3, 1 / 3]])
    >>> asymptotic_rate(p), asymptotic_rate(p[None], 3 * torch.eye(2)[None])
    (0.5, 1.5)
    """
    q = difference_map(p)
    if w is None:
        require_shape("p", p, "(tokens, tokens), or heads together with w", p.ndim == 2)
        return _radius(q)
    require_float("w", w)
    require_dtype("w", w, p.dtype, "p")
    ok = p.ndim == 3 and w.ndim == 3 and len(w) == len(p) and w.shape[1] == w.shape[2]
    require_shape("w", w, f"(heads, dim, dim) for the heads of p {tuple(p.shape)}", ok)
    return _radius(sum(torch.kron(a, b.T.contiguous()) for a, b in zip(q, w, strict=True)))


@dataclass(frozen=True, eq=False, kw_only=True)
class ProductCheck(Check):
    """A certificate beside what it bounds: osc(P_L ... P_1 X) and tau(P_L ... P_1) osc(X)."""

    layerwise: float
    spread: float


def check_product(
    ps: Sequence[Float[Tensor, "tokens tokens"]], x: Float[Tensor, "tokens dim"]
) -> ProductCheck:
    """Dobrushin's certificate of a stack of attention matrices, beside the spread that it bounds.

    measured encloses osc(P_L ... P_1 X) by its rounding; upper = tau(P_L ... P_1) osc(X); layerwise =
    osc(X) prod_l tau(P_l), which is never smaller and says nothing where every factor is 1; spread = osc(X).

    ps: P_1 first, each (tokens, tokens); x: (tokens, dim). Raises ``TypeError`` or ``ValueError`` for an
    empty list, wrong shapes or dtypes, or rows that are no probabilities. Source: Theorem (From
    everywhere) in chapter `masks-and-positions`; the coefficient and its product are Dobrushin's.

    >>> half = torch.tensor([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    >>> found = check_product([half, half], torch.tensor([[0.0], [1.0], [1.0]]))
    >>> round(found.measured[1], 4), round(found.upper, 4), found.layerwise, found.holds
    (0.75, 0.75, 1.0, True)
    """
    require_float("x", x)
    ok = x.ndim == 2 and 0 not in x.shape
    require_shape("x", x, "(tokens, dim), one sample, neither axis empty", ok)
    if not len(ps):
        raise ValueError("ps: expected at least one attention matrix, got none; pass [p]")
    product, factors = torch.eye(len(x), dtype=x.dtype, device=x.device), 1.0
    for p in ps:
        require_instance("ps", p, Tensor)
        require_dtype("ps", p, x.dtype, "x")
        require_shape("ps", p, f"{len(x)} queries and keys, as x has tokens", p.shape == product.shape)
        factors *= float(dobrushin(p))
        product = p @ product
    spread = float(raw_oscillation(x))
    size = float(raw_oscillation(product @ x))
    margin = torch.finfo(x.dtype).eps * len(x) * len(ps) * float(x.abs().max())
    return ProductCheck.of(
        0.0,
        float(dobrushin(product)) * spread,
        log10_measured=(log10(max(size - margin, 0.0)), log10(size + margin)),
        layerwise=factors * spread,
        spread=spread,
    )


def _radius(q: Tensor) -> float:
    return float(eigenvalues(q).abs().max())
