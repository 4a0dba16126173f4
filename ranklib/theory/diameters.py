r"""The diameter theorem: one layer of attention shrinks the diameter of the tokens by a hyperbolic tangent.

.. math:: \mathrm{diam}\,\mathrm{SA}(X) \le \sum_h \nu_h \tanh(\omega_h\,\mathrm{diam}(X)^2/4)\;\mathrm{diam}\,X

No hypothesis: any number of tokens and heads, any biases, any width, any norm of a row. ``NORMS`` are the three
norms whose sizes can be computed. The two ingredients, Dobrushin's coefficient and the tangent of a quarter of
an oscillation (Birkhoff), are classical. Masks, positions, skips, MLPs and LayerNorm: :mod:`ranklib.theory.block`.
"""

import math
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import (
    require_all,
    require_float,
    require_int,
    require_shape,
)
from ranklib.model.attention import SelfAttention
from ranklib.theory.sizes import require_size, score_size, value_size


def tilt_bound(osc: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""How far a softmax moves, in total variation, when its scores change by a vector of range ``osc``.

    .. math:: \mathrm{TV}(p, q) \le \tanh(\mathrm{osc}(t)/4), \qquad q_j \propto p_j e^{t_j}

    Attained by two outcomes of weights 1/(1 + e^(osc/2)) and 1/(1 + e^(-osc/2)). Raises ``TypeError`` or
    ``ValueError`` for another dtype, NaN, infinity or a negative range. Source: Lemma (Tilt) in chapter
    `one-head`; Birkhoff's, as Cohen and Fausti (2023) use it.

    >>> round(tilt_bound(torch.tensor(4.0)).item(), 4)
    0.7616
    """
    require_float("osc", osc)
    require_all("osc", osc >= 0, "ranges of at least 0", "that are negative", "pass max - min")
    return (osc / 4).tanh()


def tilt_range(scores: Float[Tensor, "*batch tokens keys"]) -> Float[Tensor, "*batch"]:
    r"""How far the rows of a score matrix differ, up to a constant of each row.

    .. math:: T = \max_{i,k}\,\mathrm{osc}_j\,(S_{ij} - S_{kj})

    Without positions T <= omega diam(X)^2; with position terms of range b, T <= b + omega diam(X)^2. Raises
    ``TypeError`` or ``ValueError`` for another dtype, NaN, infinity (a mask is not a score) or no rows.
    Source: Theorem (Diameter) in chapter `one-head`.

    >>> tilt_range(torch.tensor([[0.0, 1.0], [5.0, 5.0]])).item()
    1.0
    """
    require_float("scores", scores)
    ok = scores.ndim >= 2 and 0 not in scores.shape[-2:]
    require_shape("scores", scores, "(..., tokens, keys) with at least one of each", ok)
    largest = scores.new_zeros(scores.shape[:-2])
    for row in scores.unbind(-2):  # n passes over n x n numbers: no array of n^3
        gap = scores - row.unsqueeze(-2)
        largest = torch.maximum(largest, (gap.amax(-1) - gap.amin(-1)).amax(-1))
    return largest


def layer_share(
    attention: SelfAttention,
    d: Float[Tensor, "*batch"] | float,
    norm: str = "l2",
    position_range: Float[Tensor, " heads"] | float = 0.0,
    contraction: Float[Tensor, " heads"] | float = 0.0,
) -> Float[Tensor, "*batch"]:
    r"""What attention can make of a diameter d, as a share of it.

    .. math:: \tau(d) = \sum_h \nu_h \min(1, m_h + \tanh((b_h + \omega_h d^2)/4)), \qquad
              \mathrm{diam}\,\mathrm{SA}(X) \le \tau(d)\,d

    No hypothesis. Without positions and masks (b = m = 0) it is at most c d^2 with c = ``cubic_constant``.

    d: diameters of any batch shape; position_range: b of every head or one number for all, as
    ``position_range`` of :mod:`ranklib.theory.block` gives it; contraction: m likewise, as ``mask_contraction``
    gives it. Raises ``TypeError`` or ``ValueError`` for NaN, infinity, negative numbers or an unknown norm.
    Source: Theorem (Diameter) in chapter `one-head`; Proposition (Position terms) and Proposition (Masks) in
    chapter `masks-and-positions`.

    >>> from ranklib.theory.sizes import diameter
    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> pair = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> x = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    >>> share = layer_share(pair, diameter(x))  # tanh(2^2 / 4): the pair attains it
    >>> round(share.item(), 4), round((diameter(pair(x)) / diameter(x)).item(), 4)
    (0.7616, 0.7616)
    """
    sizes, stretch = score_size(attention, norm), value_size(attention, norm)
    d = require_size("d", d, sizes.dtype)
    given = {"position_range": position_range, "contraction": contraction}
    for name, value in given.items():
        given[name] = require_size(name, value, sizes.dtype)
        ok = given[name].shape in ((), sizes.shape)
        require_shape(name, given[name], f"one number, or {len(sizes)} for the heads", ok)
    tilt = tilt_bound(given["position_range"] + sizes * d.unsqueeze(-1).square())
    return (stretch * (given["contraction"] + tilt).clamp(max=1)).sum(-1)


def cubic_constant(attention: SelfAttention, norm: str = "l2") -> float:
    r"""c = (1/4) sum_h nu_h omega_h, so that diam SA(X) <= c diam(X)^3.

    Raises as ``score_size``. Source: Corollary (Depth) in chapter `one-head`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> cubic_constant(SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one))
    0.25
    """
    return float((score_size(attention, norm) * value_size(attention, norm)).sum() / 4)


def bound_depth(
    layers: Iterable[SelfAttention], d: float, norm: str = "l2"
) -> tuple[list[float], list[float]]:
    r"""log10 of two upper bounds of the diameter after 0, 1, ..., L layers of attention alone.

    The first goes layer by layer, d <- tau_l(d) d; the second is its closed form

    .. math:: \sqrt c\,d_L \le (\sqrt c\,d_0)^{3^L}, \qquad c = \max_l \tfrac14\sum_h\nu_h\omega_h,

    which always holds and says something iff sqrt(c) d_0 < 1. Neither underflows: below 1e-8 the tangent of
    the first is replaced by its argument, which is not smaller.

    Raises ``TypeError`` or ``ValueError`` for entries that are no ``SelfAttention``, no layers, or d that is
    negative, NaN or infinite. Source: Theorem (Diameter) and Corollary (Depth) in chapter `one-head`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> pair = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> steps, closed = bound_depth([pair] * 4, 1.0)
    >>> [round(value, 2) for value in steps], [round(value, 2) for value in closed]
    ([0.0, -0.61, -2.44, -7.91, -24.32], [0.0, -0.6, -2.41, -7.83, -24.08])
    """
    layers = list(layers)
    if not layers:
        raise ValueError("layers: expected at least one SelfAttention, got none; pass [attention]")
    start = require_size("d", d, torch.float64)
    require_shape("d", start, "one number", start.ndim == 0)
    constants = [cubic_constant(layer, norm) for layer in layers]
    c = max(constants)
    log = start.log10().item()
    steps = [log]
    for layer, constant in zip(layers, constants, strict=True):
        if log > -8:
            d_now = torch.tensor(10.0**log, dtype=torch.float64)
            log += layer_share(layer.double(), d_now, norm).log10().item()
        else:
            log = 3 * log + (math.log10(constant) if constant else -math.inf)
        steps.append(log)
    if not c:
        return steps, [steps[0]] + [-math.inf] * len(layers)
    half = math.log10(c) / 2
    return steps, [(steps[0] + half) * 3**l - half for l in range(len(layers) + 1)]


def wait_layers(u: float, below: float = 0.5) -> int:
    r"""Layers until u = omega d^2 / 4 of the extreme pair is below ``below``: u goes to u tanh(u)^2.

    With values of norm one collapse is certain from every start and not soon: about e^(2u)/(8u) layers pass
    before u falls by one. Raises ``ValueError`` for numbers that are not positive, or a wait of more than 10^7.
    Source: Corollary (Certain collapse) in chapter `one-head`.

    >>> [wait_layers(u) for u in (1.0, 2.0, 3.0, 4.0)]
    [2, 6, 24, 113]
    """
    for name, value in (("u", u), ("below", below)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name}: expected a positive number, got {value}; use for example {name}=0.5")
    if 2 * u - math.log(8 * u) > math.log(1e7):
        raise ValueError(
            f"u: expected a wait of at most 10^7 layers, got e^(2u)/(8u) at u={u}; take a smaller u"
        )
    layers = 0
    while u >= below:
        u, layers = u * math.tanh(u) ** 2, layers + 1
    return layers


def extreme_layer(
    tokens: int, omega: float, nu: float, d: float
) -> tuple[SelfAttention, Float[Tensor, "tokens 1"]]:
    r"""A layer and tokens for which the theorem is an equality, for any number of tokens.

    Two groups at +-d/2 on a line; a bias of the queries gives both groups the total weight 1/2 at the midpoint.

    tokens: at least 2; omega, nu, d: positive. Raises ``TypeError`` or ``ValueError`` otherwise. Source:
    Proposition (Sharp) in chapter `one-head`.

    >>> from ranklib.theory.sizes import diameter
    >>> attention, x = extreme_layer(tokens=5, omega=2.0, nu=3.0, d=1.0)
    >>> bound = layer_share(attention, diameter(x)) * diameter(x)
    >>> round((diameter(attention(x)) / bound).item(), 9)
    1.0
    """
    require_int("tokens", tokens, 2)
    for name, value in (("omega", omega), ("nu", nu), ("d", d)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name}: expected a positive number, got {value}; use for example {name}=1.0")
    above = tokens // 2
    signs = torch.ones(tokens, 1, dtype=torch.float64)
    signs[above:] = -1
    # The group at +d/2 has ``above`` tokens: their key score exceeds the others' by log((n - above) / above).
    bias = math.log((tokens - above) / above) / (omega * d)
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    attention = SelfAttention(w_q=omega * one, w_k=one, w_v=nu * one, w_o=one, b_q=omega * bias * one[0])
    return attention, signs * d / 2
