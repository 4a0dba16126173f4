"""The residual through layers without cancellation, at any size.

A plain forward pass loses the residual at about 1e-16 of the common row: after three cubic layers it shows
rounding. Here the common row x and the residual are carried apart, X = 1 x^T + 2^e R, with the exponent e an
unbounded integer, and no number is formed as a small difference of large ones. Everything is computed in
float64, for one sample. MLP and LayerNorm are in :mod:`ranklib.exact.modules`.

**The map.** For a head with A = W_QK / sqrt(d_qk) and b = W_K b_Q / sqrt(d_qk), softmax sees E + 1 r^T with
E = 4^e R A R^T and r = 2^e R (A^T x + b) (Theorem (What softmax sees) in chapter `softmax-shift-invariance`).
With p = softmax(r) and P the attention matrix, the head gives P X = 1 (x + 2^e R^T p)^T + 2^e (P - 1 p^T) R,
and the second term is the new residual. A skip adds R to it, and x to the common row.

**No cancellation.** P_ij = p_j exp(E_ij) / sum_k p_k exp(E_ik). Write exp(E) = 1 + expm1(E):
P - 1 p^T = p (expm1(E) - S) / (1 + S), with S_i = sum_k p_k expm1(E_ik) and p multiplying column by column.
Each factor is as accurate as its ingredients, however small E is; expm1(E) is computed as E phi(E) with
phi(E) = expm1(E) / E, and 4^e is kept apart. When E underflows, phi = 1 and S = 0 in the denominator: what is
left is the first order, exact to a relative 2^-1000.

**Recentring.** Rows of P - 1 p^T sum to zero and softmax ignores what a row shares, so R may be replaced by
R - 1 c^T, both where it is averaged and on the key side of E, for any row c. The choice is c = p^T R, the
average that p takes: then S has no first order, and p-heavy tokens get small rows. It is formed relative to
the token j with the largest p_j, c = R_j + sum_k p_k (R_k - R_j), so it stays accurate when p is nearly
one-hot and the other weights are tiny; these keep an exponent of their own, so they cannot underflow.
Weights come first, (R_k - R_j) W = R_k W - R_j W: one product for all heads. Its rounding is like rounding
R_k itself for k other than j, and row j, which may carry nearly all weight, is -sum_k p_k (R_k - R_j) W.
Where some |E_ij| exceeds 1/2 the same quantity is taken in log-space, as p expm1(G) with
G = E - log(1 + S), or as a difference of exponentials where |G| > 1/2.

**Masks.** With a mask, row i has its own base p_i, the softmax of r over its allowed keys N_i, and
P R = (B R) + (P - B) R with rows p_i^T of B. The second part is as above. The first differs between rows in
first order, so a mask makes the collapse geometric; c = p_0^T R of row 0 moves into the common row, and what
is left is p_i^T R - c^T = sum_j w_ij (R_j - c)^T, w_ij = +-exp(r_j) / sum_{k in N_i} exp(r_k) over the keys j
that are in only one of N_i (+) and N_0 (-). Nothing cancels, however few or light these keys are; rows with
equal masks give 0 exactly and keep their cubic law. Where some w_ij < -1 the plain average of R_j - c over
N_i is taken. In the causal case c = R_0 in every head: token 0 sees itself only.

**What is not resolved.** Accuracy is normwise: errors are small relative to the largest direction of R.
Every cubic layer cubes the ratios of directions, so those far below the leading one are soon lost, and under
a mask or a skip so are all that lie below 1e-16 of it. Errors grow by the conditioning of the map: by about 3
per cubic layer, and like the largest |r_j - r_k| or |E_ij| where that is large. The residual of nearly equal
tokens that carry nearly all of p, next to a far token, is such a lost direction too.
"""

import math
from collections.abc import Iterable

import torch
from jaxtyping import Bool
from torch import Tensor

from ranklib._checks import require_instance, require_shape
from ranklib.exact.modules import through
from ranklib.exact.scaled import Scaled, sum_scaled, times_power
from ranklib.exact.softmax import (
    LEAST_LOG,
    base_difference,
    large_difference,
    mild_difference,
    moderate,
    softmax_base,
)
from ranklib.exact.state import ResidualState, about_mean
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import require_mask

LEAST_PLAIN_LOG = -100.0  # lighter weights get an exponent of their own


@torch.no_grad()
def propagate(
    state: ResidualState,
    attention: SelfAttention,
    skip: float | int = False,
    mask: Bool[Tensor, "..."] | None = None,
) -> ResidualState:
    """One self-attention layer, X -> skip X + SA(X), applied to the state.

    R' = sum_h (P_h - 1 p_h^T) R W_h + skip R about the common row sum_h W_h^T (x + 2^e R^T p_h) + b + skip x;
    see the head of this module for how it is computed, for masks, and what it resolves: the residual to a
    relative 1e-14 of its Frobenius norm at any size, for logits of moderate size. ``skip`` is a switch or the
    strength of the skip; ``mask`` broadcasts to (heads, tokens, tokens). Raises ``TypeError`` for a wrong
    kind of argument, ``ValueError`` for a wrong dim, a wrong mask or where scores exceed 1e12. Source:
    chapter `one-head`; masks: chapter `masks-and-positions`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> pair = ResidualState(torch.zeros(1).double(), torch.tensor([[0.5], [-0.5]]).double(), -999)
    >>> after = propagate(pair, attention)  # a -> a tanh(a^2): 2^-1000 becomes 2^-3000
    >>> after.mantissa[:, 0].tolist(), after.exponent
    ([0.5, -0.5], -2999)
    """
    require_instance("state", state, ResidualState)
    require_instance("attention", attention, SelfAttention)
    dims, tokens = attention.dims, len(state.mantissa)
    require_shape("state", state.mantissa, f"(tokens, {dims.dim})", state.mantissa.shape[1] == dims.dim)
    if not -math.inf < skip < math.inf:
        raise ValueError(f"skip: expected a finite number, got {skip}; use True or False")
    if mask is not None:
        require_mask(mask, state.mantissa.new_empty(()).expand(dims.heads, tokens, tokens))
        mask = mask.expand(dims.heads, tokens, tokens)
    w_q, w_k, w_v, w_o = (getattr(attention, "w_" + name).double() for name in "qkvo")
    root, e, rows = dims.dim_qk**0.5, state.exponent, torch.cat([state.common[None], state.mantissa])
    queries, keys, values = (_of_heads(rows, w) for w in (w_q, w_k, w_v))  # (heads, 1 + tokens, width)

    query = queries[:, :1] if attention.b_q is None else queries[:, :1] + attention.b_q.double()[:, None]
    key_score = moderate(times_power((query @ keys[:, 1:].mT)[:, 0] / root, e))  # (heads, tokens)
    log_base, log_ratio = softmax_base(key_score, mask)
    centre, offsets = _recentred(log_base[:, 0], torch.cat([keys, values], -1)[:, 1:])
    centre, offset_keys, offset_values = centre[:, dims.dim_qk :], *offsets.tensor_split([dims.dim_qk], -1)
    scores = queries[:, 1:] @ offset_keys.mT / root
    if mask is not None:
        scores = scores.masked_fill(~mask, 0.0)

    terms = [] if mask is None else [_averages(*base_difference(log_ratio, mask), offset_values)]
    mild = times_power(scores, 2 * e).abs().amax((1, 2)) <= 0.5
    for function, part in ((mild_difference, mild), (large_difference, ~mild)):
        if part.any():
            part = slice(None) if part.all() else part
            ratio, log_weights, k = function(scores[part], 2 * e, log_base[part])
            mantissa, exponent = _averages(ratio, log_weights, offset_values[part])
            terms.append((values.new_zeros(values[:, 1:].shape), exponent + k))
            terms[-1][0][part] = mantissa
    mantissa, exponent = sum_scaled(terms)
    heads = torch.cat([(values[:, 0] + times_power(centre, e))[:, None], mantissa], 1)
    common, *residual = (heads.transpose(0, 1).flatten(1) @ w_o.flatten(0, 1)).tensor_split([1])
    return _with_skip(state, skip, about_mean(common[0] + attention.bias.double(), (*residual, exponent + e)))


@torch.no_grad()
def propagate_layer(
    state: ResidualState, layer: Layer, mask: Bool[Tensor, "..."] | None = None
) -> ResidualState:
    """A whole ``Layer`` with its skips, MLP and LayerNorm, applied to the state.

    The formula of ``Layer``, with ``propagate`` for the attention and ``ranklib.exact.modules.through`` for
    the rest. LayerNorm's error is relative to what it gets, so a residual along the common row, which it
    removes, is lost; the rest of a layer keeps a relative 1e-12 (Frobenius norm), as long as what comes out
    is not far smaller than its terms. Raises as these two do. Source: chapter `one-head`, chapter `mlps`
    (MLP) and chapter `layernorm` (normalisation).

    >>> layer = Layer.random(4, generator=torch.Generator().manual_seed(0), mlp_dim=5, norm="post")
    >>> shape = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    >>> start = ResidualState(torch.ones(4).double(), shape - shape.mean(0), -3000)
    >>> round(propagate_layer(start, layer).exponent, -2)  # a skip keeps the order
    -3000
    """
    require_instance("state", state, ResidualState)
    require_instance("layer", layer, Layer)
    dim = layer.attention.dims.dim
    require_shape("state", state.mantissa, f"(tokens, {dim})", state.mantissa.shape[1] == dim)
    for branch, skip, before, after in layer.sublayers():
        given = _through(before, state)
        attends = branch is layer.attention
        moved = propagate(given, layer.attention, mask=mask) if attends else _through(branch, given)
        state = _through(after, _with_skip(state, skip, moved))
    return state


def trajectory(
    state: ResidualState,
    layers: Iterable[SelfAttention | Layer] | Network,
    skip: float | int = False,
    mask: Bool[Tensor, "..."] | None = None,
) -> list[ResidualState]:
    """The states X^0 ... X^L through ``layers``, by ``propagate`` or ``propagate_layer``, with their errors.

    ``skip`` is for ``SelfAttention`` only: a ``Layer`` has its own, and ``ValueError`` is raised if both say
    something. Source: chapter `one-head`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> states = trajectory(ResidualState.of(torch.tensor([[1.0], [-1.0]])), [attention] * 7)
    >>> [round(s.log10_size() - states[0].log10_size(), 1) for s in states[5:]]
    [-10.8, -32.5, -97.5]
    """
    states = [state]
    for layer in layers.layers if isinstance(layers, Network) else layers:
        if not isinstance(layer, Layer):
            states.append(propagate(states[-1], layer, skip, mask))
            continue
        if skip:
            raise ValueError(f"skip: expected none, as a Layer has its own, got {skip}; use layer.switched")
        states.append(propagate_layer(states[-1], layer, mask))
    return states


def _through(module: torch.nn.Module | None, state: ResidualState) -> ResidualState:
    if module is None:
        return state
    row, mantissa, exponent = through(module, state.common, state.mantissa, state.exponent)
    return about_mean(row, (mantissa, exponent))


def _with_skip(state: ResidualState, skip: float | int, branch: ResidualState) -> ResidualState:
    if not skip:
        return branch
    terms = [(float(skip) * state.mantissa, state.exponent), (branch.mantissa, branch.exponent)]
    return about_mean(float(skip) * state.common + branch.common, sum_scaled(terms))


def _of_heads(rows: Tensor, w: Tensor) -> Tensor:
    """rows W_h of every head, (heads, rows, width), in one product: the heads stand side by side in it."""
    return (rows @ w.transpose(0, 1).flatten(1)).unflatten(-1, (len(w), -1)).transpose(0, 1)


def _recentred(log_weights: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """c = sum_j exp(log_weights)_j z_j of every head, and z - 1 c^T; both about the heaviest row."""
    heavy = z[torch.arange(len(z)), log_weights.argmax(-1)]
    offsets = z - heavy[:, None]
    if float(log_weights.min()) > LEAST_PLAIN_LOG:
        mean = (log_weights.exp()[:, None] @ offsets)[:, 0]
    else:
        weighted, top = _weighted(log_weights, offsets)
        mean = times_power(weighted.sum(1), top[:, None])
    return heavy + mean, offsets - mean[:, None]


def _weighted(log_weights: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """exp(log_weights)_j rows_j and an exponent per head: neither weights nor rows underflow alone."""
    log_weights = log_weights.clamp(min=LEAST_LOG)
    shift = (log_weights / math.log(2)).floor()
    sizes = rows.abs().amax(-1)
    exponents = torch.where(sizes > 0, shift + torch.frexp(sizes).exponent, -math.inf)
    top = exponents.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
    weights = (log_weights - shift * math.log(2)).exp()
    return times_power(rows, (shift - top)[..., None]) * weights[..., None], top[..., 0]


def _averages(ratio: Tensor, log_weights: Tensor, values: Tensor) -> Scaled:
    """ratio_h diag(w_h) values_h of every head as one scaled tensor."""
    if float(log_weights.min()) > LEAST_PLAIN_LOG:
        return ratio @ (log_weights.exp()[..., None] * values), 0
    weighted, top = _weighted(log_weights, values)
    heads = ratio @ weighted
    sizes = heads.abs().amax((1, 2))
    exponents = torch.where(sizes > 0, top + torch.frexp(sizes).exponent, -math.inf)
    best = int(exponents.max()) if sizes.any() else 0
    return times_power(heads, (top - best)[:, None, None]), best
