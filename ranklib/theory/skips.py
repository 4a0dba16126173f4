r"""What a skip guarantees and what it does not: bounds for X' = skip X + SA(X), each beside what it bounds.

S_1 and S_inf are the two ledgers of chapter `printed-theorems`: what a layer can move in the column and in the row
norm, as a share of the residual. They are of the order of the squared residual, so a small residual changes
slowly.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_float, require_instance, require_int, require_positive, require_shape
from ranklib.exact.propagation import propagate_layer
from ranklib.exact.state import ResidualState, raw_state
from ranklib.exact.verdicts import Check, Hypothesis, log10
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network, require_plain
from ranklib.model.softmax import attention_matrix, raw_score_parts
from ranklib.paper.centres import raw_residual_about
from ranklib.paper.constants import f_lambda, x_star
from ranklib.paper.enclosure import enclosure
from ranklib.paper.least import raw_residual_size
from ranklib.paper.norms import raw_col_sum, raw_row_sum
from ranklib.paper.sizes import as_size, lam, weight_norms

ROUNDING = 1e-10  # relative, of one layer and of the logarithms, with a margin


def ledgers(
    attention: SelfAttention, rho: Float[Tensor, "*batch"] | float
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    r"""What a layer moves at most, in the column and in the row norm, as a share of the residual.

    .. math:: S_1 = \sum_h F(\Lambda_h)\|W_h\|_1, \qquad S_\infty = \sum_h 2\tanh(\Lambda_h/2)\|W_h\|_\infty

    Raises ``TypeError`` or ``ValueError`` for a wrong kind, NaN, infinity or a negative rho. Source:
    Theorem (Many heads) and Theorem (Two sides) in chapter `printed-theorems`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> [round(s.item(), 4) for s in ledgers(attention, 0.1)]
    [0.0051, 0.01]
    """
    size = lam(attention, rho)
    _, w_1, w_inf = weight_norms(attention)
    return (f_lambda(size) * w_1).sum(-1), (2 * (size / 2).tanh() * w_inf).sum(-1)


def check_norms(
    attention: SelfAttention,
    x: Float[Tensor, "tokens dim"],
    centre: Float[Tensor, " dim"],
    skip: float | int = 1.0,
    tol: float = 1e-3,
) -> dict[str, Check]:
    r"""Each norm apart, about any centre z of X and the centre of X' that belongs to it.

    .. math:: (|\alpha| - S_p)_+\,\|R\|_p \le \|R'\|_p \le (|\alpha| + S_p)\,\|R\|_p, \qquad p = 1, \infty

    R = X - 1 z^T, and R' = alpha R + sum_h (P_h - 1 p_h^T) R W_h is X' about alpha z plus the attention's own
    constant row. Keys "1" and "inf". Raises ``TypeError`` or ``ValueError`` for a wrong kind or shape, NaN or
    infinity. Source: Theorem (Two sides) in chapter `printed-theorems`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> attention = SelfAttention.random(6, 3, generator=generator, scale=0.3)
    >>> x = torch.randn(7, 6, dtype=torch.float64, generator=generator) / 3
    >>> [sides.holds for sides in check_norms(attention, x, x[0]).values()]
    [True, True]
    """
    require_instance("attention", attention, SelfAttention)
    attention.check_input(x)
    require_shape("x", x, "(tokens, dim), one sample", x.ndim == 2)
    strength = abs(_strength(skip))
    require_positive("tol", tol)
    found = raw_residual_size(x, tol)
    best = found.centre.to(x)
    moved = torch.zeros_like(x)
    for h, w in enumerate(attention.w):
        bias = None if attention.b_q is None else attention.b_q[h]
        e, key = raw_score_parts(x, best, attention.w_q[h], attention.w_k[h], bias)
        base = attention_matrix(key[None])
        moved = moved + (attention_matrix(e + key) - base) @ (x - best) @ w
    r = raw_residual_about(x, centre)
    after = skip * r + moved
    sides = {}
    for name, norm, s in zip(("1", "inf"), (raw_col_sum, raw_row_sum), ledgers(attention, found.upper)):
        before, now = norm(r).item(), norm(after).item()
        lower, upper = max(strength - s.item(), 0) * before, (strength + s.item()) * before
        sides[name] = Check.of(lower, upper, log10_measured=(log10(now), log10(now)), rounding=ROUNDING)
    return sides


def check_step(
    attention: SelfAttention, x: Float[Tensor, "tokens dim"], skip: float | int = 1.0, tol: float = 1e-3
) -> Check:
    r"""One layer with a skip of strength alpha: its residual between the two bounds, all enclosed.

    .. math:: \sqrt{(|\alpha| - S_1)_+ (|\alpha| - S_\infty)_+}\;\rho \le \|\mathrm{res}\,X'\|
              \le \sqrt{(|\alpha| + S_1)(|\alpha| + S_\infty)}\;\rho

    No hypothesis. Residuals are carried apart from the common row, and enclosed to the relative gap ``tol``.
    Raises as ``check_norms`` and ``residual_size`` do. Source: Theorem (Two sides) in chapter
    `printed-theorems`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=-one, w_o=one)
    >>> pair = torch.tensor([[0.25], [-0.25]], dtype=torch.float64)
    >>> found = check_step(attention, pair)
    >>> [round(size, 3) for size in (found.lower, *found.measured, found.upper)]  # 0.3536 before
    [0.318, 0.331, 0.331, 0.389]
    """
    require_instance("attention", attention, SelfAttention)
    attention.check_input(x)
    require_shape("x", x, "(tokens, dim), one sample", x.ndim == 2)
    strength = abs(_strength(skip))
    state = raw_state(x)
    after = propagate_layer(state, Layer(attention, skip=skip))
    low, high = (10**size for size in enclosure(state, tol))
    s_1, s_inf = (s.item() for s in ledgers(attention, high))
    shrunk = math.sqrt(max(strength - s_1, 0) * max(strength - s_inf, 0))
    grown = math.sqrt(strength + s_1) * math.sqrt(strength + s_inf)
    return Check.of(shrunk * low, grown * high, log10_measured=enclosure(after, tol), rounding=ROUNDING)


@dataclass(frozen=True, eq=False)
class SlowDecay:
    """The check of the residual of every X^l, from l = 0 on, by the algebraic laws.

    ``k`` is K; ``at_start`` the hypothesis of part (b). ``states[l].hypotheses`` are those at the input of
    layer l. From the first layer that fails on, nothing is claimed: ``applies`` is False, the bounds 0 and infinite.
    """

    k: float
    states: list[Check]
    at_start: Hypothesis

    @property
    def fails(self) -> list[int]:
        """The layers, counted from 1, where a hypothesis fails."""
        return [l for l, state in enumerate(self.states) if not _all_hold(state.hypotheses)]

    @property
    def holds(self) -> bool:
        """False only if a residual is certainly outside its bounds."""
        return all(state.holds for state in self.states)


def check_slow_decay(
    network: Network, x: Float[Tensor, "tokens dim"] | ResidualState, tol: float = 1e-3
) -> SlowDecay:
    r"""Skips of strength 1 through L layers: the residual between two algebraic laws.

    .. math:: \frac1{\rho_0^2} - KL \le \frac1{\rho_L^2} \le \frac1{\rho_0^2} + 2KL, \qquad
              K = \max_l \sum_h q_h (\|W_h\|_1 + \|W_h\|_\infty)

    It holds as long as at every layer Lambda_h <= x*/2 = 0.628 (``lam``) and K rho_l^2 <= 1/2 (``k``); both
    are checked at each layer's own input, and reported. States are propagated exactly, so tiny residuals do
    not show rounding. Raises ``ValueError`` for a network with an MLP, a norm or another skip, and as
    ``propagate`` does. Source: Theorem (Slow decay) in chapter `printed-theorems`.

    >>> from ranklib.model.layers import Layer
    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> layer = Layer(SelfAttention(w_q=one, w_k=one, w_v=-one, w_o=one))
    >>> pair = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    >>> found = check_slow_decay(Network([layer] * 5), pair)
    >>> found.k, found.fails, found.holds
    (2.0, [1, 2], True)
    """
    remedy = 'use network.switched(skip=True, mlp=False, norm="none")'
    require_plain(network, remedy)
    if skips := [layer.skip for layer in network.layers if float(layer.skip) != 1]:
        raise ValueError(f"network: expected skips of strength 1, got {skips}; {remedy}")
    weights = [weight_norms(layer.attention) for layer in network.layers]
    k = max((q * (w_1 + w_inf)).sum().item() for q, w_1, w_inf in weights)
    states = [ResidualState.of(x)]
    for layer in network.layers:
        states.append(propagate_layer(states[-1], layer))
    measured = [enclosure(state, tol) for state in states]
    (low, high), applies = measured[0], True
    checks = [Check((low, high), (low, high), rounding=ROUNDING)]
    for l, (q, _, _) in enumerate(weights):
        size = _square(measured[l][1])
        lam_max = _at_most(q.max().item() * size, x_star() / 2)
        hypotheses = {"lam": lam_max, "k": _at_most(k * size, 0.5)}
        applies = applies and _all_hold(hypotheses)
        bounds = (
            (slow_law(k, low, l + 1)[0], slow_law(k, high, l + 1)[1]) if applies else (-math.inf, math.inf)
        )
        checks.append(Check(bounds, measured[l + 1], hypotheses, applies, ROUNDING))
    q_max = max(q.max().item() for q, _, _ in weights)
    needed = k * len(weights) + max(2 * k, 2 * q_max / x_star())
    return SlowDecay(k, checks, _at_most(_square(high) * needed, 1.0))


def slow_law(k: float, log10_rho: float, depth: int) -> tuple[float, float]:
    r"""log10 of both sides of the algebraic law; the upper one is infinite where K L rho^2 >= 1.

    .. math:: \frac{\rho}{\sqrt{1 + 2KL\rho^2}}, \qquad \frac{\rho}{\sqrt{1 - KL\rho^2}}

    The formula only: ``check_slow_decay`` has the hypotheses. Raises ``TypeError`` or ``ValueError`` unless
    k is finite and not negative, and depth an integer from 0 on. Source: Theorem (Slow decay) in chapter
    `printed-theorems`.

    >>> [round(10**size, 4) for size in slow_law(2.0, -1.0, 10)]
    [0.0845, 0.1118]
    """
    require_int("depth", depth, 0)
    k = as_size("k", k).item()
    power = k * depth * _square(log10_rho) if k * depth else 0.0
    below = math.log1p(2 * power) / 2 / math.log(10)
    above = math.log1p(-power) / 2 / math.log(10) if power < 1 else -math.inf
    return log10_rho - below, log10_rho - above


def skip_maximum(c: float, rho: float, depth: int) -> float:
    r"""log10 of the printed upper bound with skips, which is never below 2^L rho.

    .. math:: \max_{0 \le l \le L} (2c)^{(3^l - 1)/2}\; 2^{3^l (L - l)}\; \rho^{3^l}

    With c = 4 beta H / sqrt(d_qk) and the composite beta it is the paper's, and false by
    Example (Skip corollary) in chapter `printed-theorems`; with max(beta_1, beta_inf) and small scores it is
    true by Proposition (Repaired maximum) in chapter `printed-theorems`. Raises ``TypeError`` or
    ``ValueError`` for a c or rho that is negative or not finite, or a depth that is no integer from 0 to 600.

    >>> [round(10 ** skip_maximum(0.25, 0.5, depth), 6) for depth in (0, 1, 2)]  # 2^L rho
    [0.5, 1.0, 2.0]
    """
    require_int("depth", depth, 0)
    if depth > 600:
        raise ValueError(f"depth: expected at most 600, got {depth}; 3^depth leaves the range of float64")
    log_c, log_rho = (as_size(name, value).log10().item() for name, value in (("c", 2 * c), ("rho", rho)))
    if log_rho == -math.inf:
        return -math.inf
    return max(
        ((3.0**l - 1) / 2 * log_c if l else 0.0) + 3.0**l * ((depth - l) * math.log10(2) + log_rho)
        for l in range(depth + 1)
    )


def cosine_with_skips(
    tokens: int, depth: int, branch: float | int = 1.0, skip: float | int = 1.0, start: float | int = 0.0
) -> float:
    r"""The cosine of two tokens after L layers of uniform attention with independent random values.

    .. math:: 1 - \cos_L = \frac{1 - \cos_0}{1 + \frac{1 + (n-1)\cos_0}n\big((1 + s)^L - 1\big)}, \qquad
              s = \frac{\eta^2}{\alpha^2}

    Layers X <- alpha X + eta J X W, entries of W independent with mean 0 and variance 1/d; the cosine is the
    quotient of the expected products of equally long tokens, exact as d grows. Raises ``TypeError`` or
    ``ValueError`` for fewer than 2 tokens, a negative depth, a branch that is not finite, a skip that is zero
    or not finite, or a start outside [-1/(n-1), 1]. Source: Theorem (Aligned directions) in chapter
    `skip-connections`.

    >>> [round(cosine_with_skips(32, depth), 3) for depth in (0, 8, 32)]
    [0.0, 0.889, 1.0]
    >>> round(cosine_with_skips(32, 1000, branch=1000**-0.5), 3)
    0.051
    """
    require_int("tokens", tokens, 2)
    require_int("depth", depth, 0)
    ratio = _strength(branch, "branch") / _nonzero(skip)
    if not -1 / (tokens - 1) <= start <= 1:
        raise ValueError(f"start: expected a cosine from -1/(tokens - 1) to 1, got {start}; use 0")
    exponent = depth * math.log1p(ratio**2)
    grown = math.expm1(exponent) if exponent < 700 else math.inf
    common = (1 + (tokens - 1) * start) / tokens
    return 1 - (1 - start) / (1 + common * grown if common > 0 else 1)


def _square(log10: float) -> float:
    return 10 ** (2 * log10) if log10 < 150 else math.inf


def _all_hold(hypotheses: Mapping[str, Hypothesis]) -> bool:
    return all(hypothesis.holds for hypothesis in hypotheses.values())


def _at_most(value: float, limit: float) -> Hypothesis:
    return Hypothesis(value, limit, value <= limit)


def _strength(value: float | int, name: str = "skip") -> float:
    require_float(name, torch.as_tensor(float(value)))
    return float(value)


def _nonzero(skip: float | int) -> float:
    require_positive("skip", abs(_strength(skip)))
    return float(skip)
