"""The residual through attention layers without cancellation, at any size.

A plain forward pass loses the residual at about 1e-16 of the common row: after three cubic layers it shows
rounding. Here the common row x and the residual are carried apart, X = 1 x^T + 2^e R, with the exponent e an
unbounded integer, and no number is formed as a small difference of large ones. Everything is computed in
float64, for one sample, without a mask.

**The map.** For a head with A = W_QK / sqrt(d_qk) and b = W_K b_Q / sqrt(d_qk), softmax sees E + 1 r^T with
E = 4^e R A R^T and r = 2^e R (A^T x + b) (Chapter 2, Theorem (What softmax sees)). With p = softmax(r) and
P the attention matrix, the head gives P X = 1 (x + 2^e R^T p)^T + 2^e (P - 1 p^T) R, and the second term is
the new residual. A skip adds R to it, and x to the common row.

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
Where some |E_ij| exceeds 1/2 the same quantity is taken in log-space, as p expm1(G) with
G = E - log(1 + S), or as a difference of exponentials where |G| > 1/2.

**What is not resolved.** Accuracy is normwise: errors are small relative to the largest direction of R.
Every layer cubes the ratios of directions, so those far below the leading one are soon lost. Errors grow by
the conditioning of the map: by about 3 per cubic layer, and like the largest |r_j - r_k| or |E_ij| where that
is large. The residual of nearly equal tokens that carry nearly all of p, next to a far token, is such a
lost direction too.
"""

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_float, require_instance, require_shape
from ranklib.attention import SelfAttention

Scaled = tuple[Tensor, int]  # (mantissa, exponent), the matrix mantissa * 2^exponent

LARGEST_SCORE = 1e12


@dataclass(frozen=True, eq=False)
class ResidualState:
    """The tokens as X = 1 common^T + 2^exponent mantissa, in float64.

    common: (dim); mantissa: (tokens, dim); exponent: a Python integer. ``of`` and ``propagate`` give a
    mantissa whose columns have mean 0 and whose largest entry is in [1/2, 1), or 0 when all rows are equal.
    Raises ``TypeError`` for a dtype other than float64 or an exponent that is no integer, ``ValueError`` for
    a wrong shape, NaN or infinity. Source: Chapter 4.

    >>> x = torch.tensor([[3.0], [1.0]])
    >>> state = ResidualState.of(x)
    >>> state.common.tolist(), state.mantissa[:, 0].tolist(), state.exponent
    ([2.0], [0.5, -0.5], 1)
    """

    common: Float[Tensor, " dim"]
    mantissa: Float[Tensor, "tokens dim"]
    exponent: int

    def __post_init__(self) -> None:
        for name in ("common", "mantissa"):
            value = getattr(self, name)
            require_float(name, value)
            if value.dtype != torch.float64:
                raise TypeError(f"{name}: expected torch.float64, got {value.dtype}; use {name}.double()")
        ok = self.mantissa.ndim == 2 and 0 not in self.mantissa.shape
        require_shape("mantissa", self.mantissa, "(tokens, dim), one sample, neither axis empty", ok)
        expected = self.mantissa.shape[1:]
        require_shape("common", self.common, f"(dim) = {tuple(expected)}", self.common.shape == expected)
        if isinstance(self.exponent, bool) or not isinstance(self.exponent, int):
            raise TypeError(f"exponent: expected an integer, got {self.exponent!r}; use int(...)")

    @classmethod
    def of(cls, x: Float[Tensor, "tokens dim"]) -> "ResidualState":
        """The state of tokens ``x`` (tokens, dim), any float dtype; raises as the class does."""
        require_float("x", x)
        ok = x.ndim == 2 and 0 not in x.shape
        require_shape("x", x, "(tokens, dim), one sample, neither axis empty", ok)
        x = x.detach().double()
        return _centred(x[0], (x - x[0], 0))

    def log10_size(self) -> float:
        """log10 of sqrt(||.||_1 ||.||_inf) of the residual about the mean; -inf when all rows are equal.

        >>> ResidualState.of(torch.tensor([[3.0], [1.0]])).log10_size() == math.log10(2) / 2
        True
        """
        entries = (self.mantissa - self.mantissa.mean(0)).abs()
        square = float(entries.sum(0).max() * entries.sum(1).max())
        return math.log10(square) / 2 + self.exponent * math.log10(2) if square else -math.inf

    def dense(self) -> Float[Tensor, "tokens dim"]:
        """X itself, rounded to float64: a residual below 1e-16 of the common row is lost in that rounding.

        Raises ``ValueError`` if 2^exponent R underflows or overflows.
        """
        largest = float(self.mantissa.abs().max())
        exponent = math.frexp(largest)[1] + self.exponent
        if largest and not -1021 <= exponent <= 1024:
            raise ValueError(
                f"state: expected a residual within the range of float64, got about 2^{exponent}; "
                "use mantissa and exponent, or log10_size()"
            )
        return self.common + _times_power(self.mantissa, self.exponent)


@torch.no_grad()
def propagate(
    state: ResidualState, attention: SelfAttention, skip: float | int = False
) -> ResidualState:
    """One self-attention layer, X -> skip X + SA(X), applied to the state.

    R' = sum_h (P_h - 1 p_h^T) R W_h + skip R about the common row sum_h W_h^T (x + 2^e R^T p_h) + b + skip x;
    see the head of this module for how it is computed and what it resolves. ``skip`` is a switch or the
    strength of the skip. Raises ``TypeError`` for a wrong kind of argument, ``ValueError`` for a wrong dim or
    where scores exceed 1e12. Source: Chapter 4; no masks.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> pair = ResidualState(torch.zeros(1).double(), torch.tensor([[0.5], [-0.5]]).double(), -999)
    >>> after = propagate(pair, attention)  # a -> a tanh(a^2): 2^-1000 becomes 2^-3000
    >>> after.mantissa[:, 0].tolist(), after.exponent
    ([0.5, -0.5], -2999)
    """
    require_instance("state", state, ResidualState)
    require_instance("attention", attention, SelfAttention)
    attention, dims = copy.deepcopy(attention).double(), attention.dims
    require_shape("state", state.mantissa, f"(tokens, {dims.dim})", state.mantissa.shape[1] == dims.dim)
    if not -math.inf < skip < math.inf:
        raise ValueError(f"skip: expected a finite number, got {skip}; use True or False")
    b_q = attention.w_q.new_zeros(dims.heads, dims.dim_qk) if attention.b_q is None else attention.b_q
    common = attention.bias + float(skip) * state.common
    terms = [(float(skip) * state.mantissa, state.exponent)]
    for w_q, w_k, b, w_v, w_o in zip(attention.w_q, attention.w_k, b_q, attention.w_v, attention.w_o):
        (mantissa, exponent), row = _head(state, w_q, w_k / dims.dim_qk**0.5, b)
        terms.append((mantissa @ w_v @ w_o, exponent))
        common = common + row @ w_v @ w_o
    return _centred(common, _sum(terms))


def trajectory(
    state: ResidualState, layers: Iterable[SelfAttention], skip: float | int = False
) -> list[ResidualState]:
    """The states X^0 ... X^L through ``layers``, each by ``propagate``, with the errors that it raises.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> states = trajectory(ResidualState.of(torch.tensor([[1.0], [-1.0]])), [attention] * 7)
    >>> [round(s.log10_size() - states[0].log10_size(), 1) for s in states[5:]]
    [-10.8, -32.5, -97.5]
    """
    states = [state]
    for attention in layers:
        states.append(propagate(states[-1], attention, skip))
    return states


def _head(state: ResidualState, w_q: Tensor, w_k: Tensor, b_q: Tensor) -> tuple[Scaled, Tensor]:
    """(P - 1 p^T) 2^e R with its exponent, and the row x + 2^e R^T p."""
    r, e = state.mantissa, state.exponent
    log_p = _moderate(_times_power(r @ (w_k @ (state.common @ w_q + b_q)), e)).log_softmax(0)
    heavy = int(log_p.argmax())
    offsets = r - r[heavy]
    mean, k = _weighted(log_p, offsets)
    centred = offsets - _times_power(mean.sum(0), k)
    row = state.common + _times_power(r[heavy] + _times_power(mean.sum(0), k), e)
    scores = (r @ w_q) @ (centred @ w_k).T
    ratio, log_weights, k = _relative_difference(scores, 2 * e, log_p)
    weighted, j = _weighted(log_weights, centred)
    return (ratio @ weighted, e + j + k), row


def _relative_difference(scores: Tensor, e: int, log_p: Tensor) -> tuple[Tensor, Tensor, int]:
    """(D, log w, k) with P_ij - p_j = 2^k w_j D_ij, for P = softmax(2^e scores + 1 log_p^T) row by row."""
    scores_now = _moderate(_times_power(scores, e))
    if scores_now.abs().max() <= 0.5:
        excess = scores * torch.where(scores_now == 0, 1.0, scores_now.expm1() / scores_now)
        total = (excess @ log_p.exp())[:, None]
        return (excess - total) / (1 + _times_power(total, e)), log_p, e
    log_sum = (scores_now + log_p).logsumexp(1, keepdim=True)
    small = scores_now.abs().amax(1, keepdim=True) <= 0.5
    total = torch.where(small, scores_now, 0.0).expm1() @ log_p.exp()[:, None]
    gain = scores_now - torch.where(small, total.log1p(), log_sum)
    log_joint = gain + log_p
    log_weights = torch.maximum(log_joint.max(0).values, log_p)
    base = (log_p - log_weights).exp()
    near = base * gain.clamp(-0.5, 0.5).expm1()
    far = (log_joint - log_weights).exp() - base
    return torch.where(gain.abs() <= 0.5, near, far), log_weights, 0


def _weighted(log_weights: Tensor, rows: Tensor) -> Scaled:
    """exp(log_weights)_j rows_j as a scaled matrix: neither weights nor rows underflow by themselves."""
    shift = (log_weights / math.log(2)).floor()
    sizes = rows.abs().amax(1)
    exponents = torch.where(sizes > 0, shift + torch.frexp(sizes).exponent, -math.inf)
    if not (sizes > 0).any():
        return rows, 0
    top = int(exponents.max())
    weights = (log_weights - shift * math.log(2)).exp()
    half = ((shift - top).clamp(-2000, 2000) / 2).floor()
    rest = (shift - top).clamp(-2000, 2000) - half
    return rows * (weights * torch.exp2(half))[:, None] * torch.exp2(rest)[:, None], top


def _sum(terms: list[Scaled]) -> Scaled:
    terms = [_normalised(term) for term in terms if term[0].any()] or terms[:1]
    top = max(exponent for _, exponent in terms)
    return sum(_times_power(mantissa, exponent - top) for mantissa, exponent in terms), top


def _centred(common: Tensor, residual: Scaled) -> ResidualState:
    """The state with the mean of the residual moved into the common row."""
    mantissa, exponent = _normalised(residual)
    mean = mantissa.mean(0)
    common = common + _times_power(mean, exponent)
    return ResidualState(common, *_normalised((mantissa - mean, exponent)))


def _normalised(scaled: Scaled) -> Scaled:
    mantissa, exponent = scaled
    largest = float(mantissa.abs().max())
    if not largest:
        return mantissa, 0
    shift = math.frexp(largest)[1]
    return _times_power(mantissa, -shift), exponent + shift


def _times_power(value: Tensor, exponent: int) -> Tensor:
    """value * 2^exponent in two steps, as 2^exponent alone may leave the range."""
    exponent = max(-2000, min(2000, exponent))
    return value * 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2)


def _moderate(scores: Tensor) -> Tensor:
    if not (scores.abs() <= LARGEST_SCORE).all():
        raise ValueError(
            f"state: expected scores up to {LARGEST_SCORE:.0e}, got larger ones, and softmax would turn "
            "their rounding errors into an arbitrary result; scale the weights or the tokens down"
        )
    return scores
