r"""Where the diameter theorem is far from a layer: what each of the steps of its proof gives away, in decades.

The proof goes from the worst case to the layer in five inequalities, and LayerNorm adds one. With T_h the range
by which two rows of scores differ, TV_h the largest total variation of two rows of P_h, and s the least
deviation of a token, each line replaces one estimate by what it estimates:

====================  ======================================================
bound                 (g/s) sum_h nu_h tanh((b_h + omega_h d^2) / 4) d
scores                (g/s) sum_h nu_h tanh(T_h / 4) d
softmax               (g/s) sum_h nu_h TV_h d
averages              (g/s) sum_h nu_h diam(P_h X)
values                (g/s) sum_h diam(P_h X W_h)
heads                 (g/s) diam SA(X)
norm                  diam N(SA(X))
====================  ======================================================

The lines fall from top to bottom, and the logarithm of two neighbours' quotient is what that step loses. All is
carried as logarithms, with the residual apart from the common row, so that nothing underflows.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_float, require_instance, require_shape
from ranklib.exact.modules import through
from ranklib.exact.propagation import propagate
from ranklib.exact.scaled import times_power
from ranklib.exact.softmax import large_difference, mild_difference
from ranklib.exact.state import ResidualState, about_mean
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.theory.block import norm_size
from ranklib.theory.diameters import tilt_range
from ranklib.theory.sizes import diameter, log10_diameter, score_size, value_size

PROOF_STEPS = ("scores", "softmax", "averages", "values", "heads", "norm")
"""The steps of the proof, in its order; ``Slack.lost`` has one number for each."""
_LOG2 = math.log10(2)


@dataclass(frozen=True, eq=False)
class Slack:
    """One layer of attention beside the diameter theorem, Euclidean; all sizes as decimal logarithms.

    ``before``: diam X; ``after``: the diameter of the output; ``bound``: what the theorem promises for it;
    ``scores``: omega_h d^2 / 4 of every head; ``values``: nu_h (no logarithm); ``stretch``: g/s of the norm,
    1 without one (no logarithm); ``lost``: what each of ``PROOF_STEPS`` gives away; they add up to ``bound - after``.
    """

    before: float
    after: float
    bound: float
    scores: Float[Tensor, " heads"]
    values: Float[Tensor, " heads"]
    stretch: float
    lost: Float[Tensor, " steps"]


def typical_sizes(
    attention: SelfAttention,
) -> tuple[Float[Tensor, " heads"], Float[Tensor, " heads"]]:
    r"""What omega and nu are for directions drawn at random: root mean squares over independent unit vectors.

    .. math:: \frac{(\mathrm{E}|u\,W_{QK}v^\top|^2)^{1/2}}{\sqrt{d_{qk}}} = \frac{\|W_{QK}\|_F}{d\sqrt{d_{qk}}},
              \qquad (\mathrm{E}\|u\,W\|^2)^{1/2} = \frac{\|W\|_F}{\sqrt d}

    The first is below omega by at least sqrt(d), the second below nu by a factor from 1 to sqrt(d). Raises
    ``TypeError`` for anything but a ``SelfAttention``. Source: Proposition (Random directions) in chapter
    `real-transformers`.

    >>> eye = torch.eye(4)[None]
    >>> scores, values = typical_sizes(SelfAttention(w_q=eye, w_k=eye, w_v=eye, w_o=eye))
    >>> scores.item(), values.item()  # omega is 1/2, nu is 1
    (0.25, 1.0)
    """
    require_instance("attention", attention, SelfAttention)
    dim, root = attention.dims.dim, attention.dims.dim_qk**0.5
    w_q, w_k, w_v, w_o = (getattr(attention, "w_" + name).detach() for name in "qkvo")
    return _product_frobenius(w_q, w_k) / (dim * root), _product_frobenius(w_v, w_o.mT) / dim**0.5


@torch.no_grad()
def measure_slack(
    layer: SelfAttention | Layer,
    x: Float[Tensor, "tokens dim"] | ResidualState,
    positions: Float[Tensor, "heads tokens tokens"] | None = None,
) -> Slack:
    r"""The diameter theorem at one layer, and what each step of its proof gives away there.

    layer: attention, or a ``Layer`` of attention alone with or without LayerNorm after it (no skip, no MLP).
    x: the tokens, or a state of exact propagation. positions: finite terms that are added to the scores; then the
    theorem is that with position terms, and the state must be within float64. Raises ``TypeError`` or
    ``ValueError`` for another layer, NaN, infinity, a wrong shape, or tokens that are all equal. Source: Theorem
    (Diameter) in chapter `one-head`; Proposition (Position terms) in chapter `masks-and-positions`.

    >>> from ranklib.theory.diameters import extreme_layer
    >>> found = measure_slack(*extreme_layer(tokens=5, omega=2.0, nu=3.0, d=1.0))
    >>> bool(found.lost.abs().max() < 1e-9)  # the extreme case loses nothing
    True
    """
    return _measure(_bare(layer), ResidualState.of(x), positions)[0]


def _measure(layer: Layer, state: ResidualState, positions: Tensor | None) -> tuple[Slack, ResidualState]:
    """What ``measure_slack`` gives, and the state after the layer."""
    attention = layer.attention
    moved = propagate(state, attention)  # also refuses tokens of a wrong width
    e, log_d = state.exponent, log10_diameter(state)
    if log_d == -math.inf:
        raise ValueError("x: expected tokens that differ, got equal ones; their diameter is 0 at every layer")
    tilt, p, k, b = _tilts(attention, state, positions)
    sizes, stretch = score_size(attention), value_size(attention)

    r = state.mantissa
    averages = p @ r
    outputs = averages @ attention.w_v @ attention.w_o
    scores = sizes.log10() + 2 * log_d
    worst = scores if b is None else (b + 10**scores).log10()
    tv = torch.cdist(p, p, p=1).amax((1, 2)) / 2
    log_nu = stretch.log10()
    lines = [
        _log10_sum(log_nu + _log10_tanh(worst - math.log10(4))) + log_d,
        _log10_sum(log_nu + _log10_tanh(tilt - math.log10(4))) + log_d,
        _log10_sum(log_nu + tv.log10()) + k * _LOG2 + log_d,
        _log10_sum(log_nu + diameter(averages).log10()) + (k + e) * _LOG2,
        _log10_sum(diameter(outputs).log10()) + (k + e) * _LOG2,
        float(diameter(outputs.sum(0)).log10()) + (k + e) * _LOG2,
    ]
    if positions is not None:  # propagate knows none
        tokens = state.dense()
        weights = (attention.scores(tokens) + positions).softmax(-1)
        moved = ResidualState.of((weights @ tokens @ attention.w_v @ attention.w_o).sum(0) + attention.bias)
    gain, after = 1.0, lines[-1]
    if layer.norm == "post":
        tokens = moved.dense() if moved.exponent > -1000 else moved.common[None]
        gain = float(norm_size(layer.norm_1, tokens))
        row, *residual = through(layer.norm_1, moved.common, moved.mantissa, moved.exponent)
        moved = about_mean(row, tuple(residual))
        after = log10_diameter(moved)
    if after == -math.inf:
        raise ValueError(
            "layer: expected outputs that differ, got equal ones; no bound is far from 0 by a factor"
        )
    lines = [line + math.log10(gain) for line in lines] + [after]
    lost = -torch.tensor(lines, dtype=torch.float64).diff()
    return Slack(log_d, after, lines[0], scores - math.log10(4), stretch, gain, lost), moved


@torch.no_grad()
def measure_slacks(
    layers: Iterable[SelfAttention | Layer] | Network, x: Float[Tensor, "tokens dim"] | ResidualState
) -> list[Slack]:
    """``measure_slack`` of every layer, at the state in which the tokens reach it, carried exactly.

    Raises as ``measure_slack``. Source: Figure (What the proof gives away) in chapter `real-transformers`.

    >>> g = torch.Generator().manual_seed(0)
    >>> layers = [SelfAttention.random(6, 2, generator=g) for _ in range(7)]
    >>> found = measure_slacks(layers, torch.randn(5, 6, dtype=torch.float64, generator=g))
    >>> bool(found[-1].after < -300), all(s.bound >= s.after for s in found)
    (True, True)
    """
    state, found = ResidualState.of(x), []
    for layer in layers.layers if isinstance(layers, Network) else layers:
        slack, state = _measure(_bare(layer), state, None)
        found.append(slack)
    return found


def _bare(layer: SelfAttention | Layer) -> Layer:
    """The layer as a ``Layer`` in float64; raises for a skip, an MLP, or a norm before the attention."""
    layer = Layer(layer, skip=False) if isinstance(layer, SelfAttention) else layer
    require_instance("layer", layer, Layer)
    if layer.skip or layer.mlp is not None or layer.norm == "pre":
        raise ValueError(
            f"layer: expected attention with at most LayerNorm after it, got skip={layer.skip}, "
            f"mlp={layer.mlp is not None}, norm={layer.norm!r}; use layer.switched(skip=False, mlp=False)"
        )
    double = layer.attention.w_q.dtype == torch.float64
    return layer if double else copy.deepcopy(layer).double()


def _tilts(
    attention: SelfAttention, state: ResidualState, positions: Tensor | None
) -> tuple[Tensor, Tensor, int, Tensor | None]:
    """log10 T_h, (P_h - 1 p_h^T) / 2^k, k, and the range b_h of the position terms."""
    r, e, root = state.mantissa, state.exponent, attention.dims.dim_qk**0.5
    keys = r @ attention.w_k
    query = state.common @ attention.w_q  # (heads, d_qk)
    query = query if attention.b_q is None else query + attention.b_q
    shared = times_power(
        (keys @ query[..., None])[..., 0] / root, e
    )  # what all rows of scores have in common
    scores = r @ attention.w_q @ keys.mT / root
    if positions is None:
        log_base = shared.log_softmax(-1)[:, None]
        mild = bool(times_power(scores, 2 * e).abs().max() <= 0.5)
        difference, log_weights, k = (mild_difference if mild else large_difference)(scores, 2 * e, log_base)
        p = difference * log_weights.exp()[:, None]
        return tilt_range(scores).log10() + 2 * e * _LOG2, p, k, None
    require_float("positions", positions)
    require_shape("positions", positions, f"{tuple(scores.shape)}", positions.shape == scores.shape)
    scores = times_power(scores, 2 * e) + positions
    p = (scores + shared[:, None]).softmax(-1)
    return tilt_range(scores).log10(), p - p[:, :1], 0, tilt_range(positions)


def _log10_tanh(log10_u: Tensor) -> Tensor:
    """log10 tanh(u); where u < 1e-8 it is u, to 16 digits and not smaller."""
    return torch.where(log10_u < -8, log10_u, (10 ** log10_u.clamp(min=-8)).tanh().log10())


def _log10_sum(logs: Tensor) -> float:
    return float((logs * math.log(10)).logsumexp(0)) / math.log(10)


def _product_frobenius(a: Tensor, b: Tensor) -> Tensor:
    """||a b^T||_F from the small Gram matrices: tr(a^T a b^T b)."""
    return ((a.mT @ a) * (b.mT @ b)).sum((-2, -1)).sqrt()
