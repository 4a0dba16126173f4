"""Bounds through L layers, the printed one and the proved one, and when a layer or a network contracts."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_instance, require_int
from ranklib.model.layers import Network
from ranklib.paper.bounds import Hypothesis
from ranklib.paper.constants import f_slope, g_slope
from ranklib.paper.sizes import as_size, lam, weight_norms


class Beta(NamedTuple):
    """Largest products of weights over heads and layers, without 1/sqrt(d_qk): see ``beta``."""

    printed: float
    one: float
    inf: float
    heads: int
    dim_qk: int

    @property
    def c(self) -> float:
        """c = 4 beta H / sqrt(d_qk) with the printed beta."""
        return 4 * self.printed * self.heads / self.dim_qk**0.5


def beta(network: Network) -> Beta:
    """The weight products of the depth theorems, over all heads and layers.

    printed: max ||W_QK||_1 ||W_h||_{1,inf}; one: max ||W_QK||_1 ||W_h||_1; inf: max ||W_QK||_1 ||W_h||_inf.
    Raises ``TypeError`` for no ``Network``, ``ValueError`` where layers differ in heads or d_qk. Source:
    Theorem (L layers) in chapter `printed-theorems`; the printed one is the paper's section 2.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> from ranklib.model import Layer, SelfAttention
    >>> found = beta(Network([Layer(SelfAttention(w_q=one, w_k=one, w_v=3 * one, w_o=one), skip=False)]))
    >>> found.printed, found.one, found.c
    (3.0, 3.0, 12.0)
    """
    require_instance("network", network, Network)
    kinds = {(layer.attention.dims.heads, layer.attention.dims.dim_qk) for layer in network.layers}
    if len(kinds) > 1:
        raise ValueError(f"network: expected one (heads, dim_qk), got {sorted(kinds)}; make them equal")
    [(heads, dim_qk)] = kinds
    products = []
    for layer in network.layers:
        q, w_1, w_inf = weight_norms(layer.attention)
        products.append(torch.stack([q * (w_1 * w_inf).sqrt(), q * w_1, q * w_inf]) * dim_qk**0.5)
    return Beta(*torch.cat(products, 1).amax(1).tolist(), heads, dim_qk)


def printed_depth(
    c: Float[Tensor, "*batch"] | float, rho: Float[Tensor, "*batch"] | float, depth: int
) -> Float[Tensor, "*batch"]:
    """log10 of c^{(3^L - 1)/2} rho^{3^L}, the unrolled cubic bound; it neither over- nor underflows.

    Raises ``TypeError`` or ``ValueError`` for a negative, NaN or infinite c or rho, or a depth that is no
    integer from 0 to 600. Source: Theorem (L layers) in chapter `printed-theorems`; the paper's Theorem 2.2, with
    c = 4 beta / sqrt(d_qk).

    >>> round(printed_depth(8.0, 0.25, 3).item(), 1), printed_depth(8.0, 0.25, 600).item() < -1e285
    (-4.5, True)
    """
    require_int("depth", depth, 0)
    if depth > 600:
        raise ValueError(f"depth: expected at most 600, got {depth}; 3^depth leaves the range of float64")
    c, rho = as_size("c", c), as_size("rho", rho)
    log10_rho = rho.log10()
    if depth == 0:
        return log10_rho.expand(torch.broadcast_shapes(c.shape, log10_rho.shape))
    # The product first: its logarithm is 0 at 1, where a sum of two logarithms leaves a last digit times 3^L.
    product, limits = c * rho.square(), torch.finfo(c.dtype)
    fits = (product >= limits.tiny) & (product <= limits.max)
    log10_product = torch.where(fits, product.log10(), c.log10() + 2 * log10_rho)
    return (3.0**depth - 1) / 2 * log10_product + log10_rho


def converges(c: float, rho: float) -> Hypothesis:
    """The unrolled bound tends to 0 if and only if c rho^2 < 1; ``4 beta H < sqrt(d_qk)`` does not matter.

    Errors as in ``printed_depth``. Source: Theorem (L layers) in chapter `printed-theorems`.

    >>> converges(8.0, 0.25), converges(0.5, 2.0).holds
    (Hypothesis(value=0.5, limit=1.0, holds=True), False)
    """
    value = (as_size("c", c) * as_size("rho", rho).square()).item()
    return Hypothesis(value, 1.0, value < 1)


class DepthBound(NamedTuple):
    """c, log10 of c^{(3^l - 1)/2} rho^{3^l} for l = 0 ... L, and the hypotheses under which it is proved."""

    c: float
    log10: list[float]
    hypotheses: dict[str, Hypothesis]

    @property
    def applies(self) -> bool:
        """Whether all hypotheses hold."""
        return all(hypothesis.holds for hypothesis in self.hypotheses.values())


def proved_depth(network: Network, rho: float) -> DepthBound:
    """The cubic bound through L layers with a proved constant, for tokens with residual ``rho``.

    c = C H beta / sqrt(d_qk), with C = G(Lambda) / Lambda and the printed beta for one head, and
    C = sqrt(F(Lambda) / Lambda) and beta = sqrt(beta_1 beta_inf) for several; Lambda is the largest over
    heads and layers at ``rho``. It needs c rho^2 <= 1 and layers of attention alone. Raises as ``beta``, and
    for a negative, NaN or infinite rho. Source: Theorem (L layers) in chapter `printed-theorems`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> network = Network.random(depth=3, dim=5, skip=False, generator=generator)
    >>> found = proved_depth(network, 0.1)
    >>> found.applies, found.log10[0], found.log10[3] < -10
    (True, -1.0, True)
    """
    weights = beta(network)
    largest = torch.stack([lam(layer.attention, rho).double() for layer in network.layers]).max()
    if weights.heads == 1:
        constant, product = g_slope(largest), weights.printed
    else:
        constant, product = f_slope(largest).sqrt(), math.sqrt(weights.one) * math.sqrt(weights.inf)
    c = float(constant) * weights.heads * product / weights.dim_qk**0.5
    counts = {
        "skip": max(abs(float(layer.skip)) for layer in network.layers),
        "mlp": sum(layer.mlp is not None for layer in network.layers),
        "norm": sum(layer.norm != "none" for layer in network.layers),
    }
    found = {name: Hypothesis(float(count), 0.0, count == 0) for name, count in counts.items()}
    found["c rho^2"] = Hypothesis(c * rho**2, 1.0, c * rho**2 <= 1)
    return DepthBound(c, [printed_depth(c, rho, l).item() for l in range(len(network.layers) + 1)], found)
