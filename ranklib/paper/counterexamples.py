"""The explicit instances behind what is sharp and what is false; those with many tokens are ``Movers`` and ``Specials``."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_int, require_positive
from ranklib.model.attention import SelfAttention
from ranklib.model.softmax import attention_matrix
from ranklib.paper.norms import max_col_sum
from ranklib.paper.sizes import osc_row


class Instance(NamedTuple):
    """Tokens, a layer, and what theory says about them."""

    x: Float[Tensor, "tokens dim"]
    attention: SelfAttention
    facts: dict[str, float]


def two_heads(m: int, w: float = 1e-3, overlap: bool = True) -> Instance:
    r"""Two heads on two tokens that beat the printed bound for many heads from m = 64514 on.

    .. math:: X = (e_0, -e_0)^\top, \quad W_1 = \sqrt m\, e_0 e_0^\top, \quad W_2 = e_0 1_m^\top, \quad
              \frac{\|\mathrm{res}\|}{4\beta H\rho^3} = \frac{\tanh w}w\cdot\frac{m^{1/4} + m^{-1/4}}{16}

    Both heads have W_QK = w e_0 e_0^T. Without ``overlap`` head 1 writes to a feature of its own, and the
    last factor is sqrt(1 + sqrt m) / 16. dim is m, or m + 1. facts: ratio, output (its residual), rho.
    Raises ``TypeError`` or ``ValueError`` unless m is a positive integer and w a positive number. Source:
    Example (Two heads) in chapter `printed-theorems`.

    >>> round(two_heads(65536).facts["ratio"], 4), round(two_heads(65536, overlap=False).facts["ratio"], 4)
    (1.0039, 1.002)
    """
    require_int("m", m, 1)
    require_positive("w", w)
    dim = m if overlap else m + 1
    unit = torch.zeros(dim, dtype=torch.float64)
    unit[0] = 1
    column, row = unit[:, None].expand(2, dim, 1), torch.zeros(2, 1, dim, dtype=torch.float64)
    row[0, 0, 0 if overlap else m] = m**0.5
    row[1, 0, :m] = 1
    attention = SelfAttention(w_q=w * column, w_k=column, w_v=column, w_o=row)
    ratio = (m**0.25 + m**-0.25 if overlap else (1 + m**0.5) ** 0.5) * math.tanh(w) / w / 16
    facts = {"ratio": ratio, "output": ratio * 8 * w * m**0.5 * 2**1.5, "rho": 2**0.5}
    return Instance(torch.stack([unit, -unit]), attention, facts)


def four_tokens(w: float, beta: float = 40.0, tokens: int = 4) -> Instance:
    r"""The constant 1/sqrt 2 is attained by four tokens as w goes to 0.

    .. math:: R = (e_0, e_1, 0, \dots)^\top, \quad W_{QK} = w\, e_0 (e_0 - e_1)^\top, \quad W_V = I, \quad
              b = \beta (e_0 + e_1), \quad \frac{\|\mathrm{res}\|}{\Lambda\rho} \to \frac{\tanh w}{\sqrt2\, w}

    as beta grows; with fewer tokens n it tends to sqrt(n / 4) times that: 1/2 for n = 2. rho = 1 and
    Lambda = w. facts: ratio (the limit in beta), rho, lam. Raises ``TypeError`` or ``ValueError`` unless w
    and beta are positive and tokens >= 2. Source: Proposition (Sharp constant) in chapter `printed-theorems`.

    >>> [round(four_tokens(1e-6, tokens=n).facts["ratio"], 4) for n in (2, 3, 4, 5)]
    [0.5, 0.6124, 0.7071, 0.7071]
    """
    require_positive("w", w)
    require_positive("beta", beta)
    require_int("tokens", tokens, 2)
    root, options = 2**0.5, {"dtype": torch.float64}
    attention = SelfAttention(
        w_q=torch.tensor([[[root * w, 0.0], [0.0, 0.0]]], **options),
        w_k=torch.tensor([[[1.0, 1.0], [-1.0, 1.0]]], **options),
        w_v=torch.eye(2, **options)[None],
        w_o=torch.eye(2, **options)[None],
        b_q=torch.tensor([[0.0, root * beta]], **options),
    )
    facts = {"ratio": math.tanh(w) / w * math.sqrt(min(1, tokens / 4) / 2), "rho": 1.0, "lam": w}
    return Instance(torch.eye(tokens, 2, **options), attention, facts)


def diagonal_step(eps: float, tokens: int) -> tuple[float, float]:
    """The sum of osc_i and 2 ||E||_1 for E = eps I: the printed proof needs the first below the second.

    The first is n eps, so the step fails from three tokens on. Raises ``TypeError`` or ``ValueError`` unless
    eps is positive and tokens >= 1. Source: chapter `printed-theorems`, on the printed proof.

    >>> diagonal_step(0.5, 2), diagonal_step(0.5, 3)
    ((1.0, 1.0), (1.5, 1.0))
    """
    require_positive("eps", eps)
    require_int("tokens", tokens, 1)
    e = eps * torch.eye(tokens, dtype=torch.float64)
    return osc_row(e).sum().item(), 2 * max_col_sum(e).item()


def signed_step(u: float) -> tuple[float, float]:
    """The largest |(P - 1 p^T) R| and 2 osc |p^T R| for an opposite pair.

    The printed proof needs the first below the second. The pair is R = (1, -1)^T with E = u R R^T and
    p = (1/2, 1/2): tanh u against 0. Raises ``ValueError`` unless u is a positive number.
    Source: chapter `printed-theorems`, on the printed proof.

    >>> round(signed_step(0.5)[0], 3), signed_step(0.5)[1]
    (0.462, 0.0)
    """
    require_positive("u", u)
    pair = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    e, base = u * pair @ pair.T, torch.full((2,), 0.5, dtype=torch.float64)
    left = (attention_matrix(e) @ pair - base @ pair).abs().max()
    right = 2 * osc_row(e).max() * (base @ pair).abs().max()
    return left.item(), right.item()


def skip_corollary(m: int, w: float = 0.05) -> Instance:
    r"""Two tokens, one head and a skip that beat the printed upper bound from m = 577 outputs on.

    .. math:: X = (e_0, -e_0)^\top, \quad W_{QK} = w\, e_0 e_0^\top, \quad W_V = t\, e_0 (0, 1_m)^\top, \quad
              w t \sqrt m = \tfrac18, \quad \|\mathrm{res}\,X'\| = \rho\sqrt{1 + m t \tanh w}

    The printed bound is max(2 rho, 8 beta rho^3) = 2 rho. dim is m + 1. facts: ratio, output (its residual
    with the skip), rho, w, t, first (the least m that beats it for small w). Raises ``TypeError`` or
    ``ValueError`` unless m is a positive integer and w a positive number. Source: Example (Skip
    corollary) in chapter `printed-theorems`.

    >>> [round(skip_corollary(m, 1e-3).facts["ratio"], 5) for m in (576, 577, 1000)]
    [1.0, 1.00033, 1.11275]
    """
    require_int("m", m, 1)
    require_positive("w", w)
    t = 1 / (8 * w * m**0.5)
    column = torch.zeros(1, m + 1, 1, dtype=torch.float64)
    column[0, 0, 0] = 1
    row = torch.full((1, 1, m + 1), t, dtype=torch.float64)
    row[0, 0, 0] = 0
    attention = SelfAttention(w_q=w * column, w_k=column, w_v=column, w_o=row)
    gap = t * math.tanh(w)
    ratio = math.sqrt(max(1, gap) * (1 + m * gap)) / 2
    facts = {"ratio": ratio, "output": ratio * 2 * 2**0.5, "rho": 2**0.5, "w": w, "t": t, "first": 24**2 + 1}
    return Instance(torch.cat([column[0].T, -column[0].T]), attention, facts)


def outlier_residual(top: float, rest: float, count: int, tokens: int) -> float:
    r"""A lower bound of the residual of one row (top, rest, ..., rest) among n - 1 rows 0, often its value.

    .. math:: \min\big(t \max(T - N s, \tfrac12 T),\ \tfrac12 T \max(t, F)\big)^{1/2}, \qquad
              T = t + N q, \quad s = \frac{t - q}{n - 2}, \quad F = \frac{n T}{2 (N + 1)}

    t = top, q = rest, N = count. With column sums at most f, the centre takes at most (f - t) / (n - 2) of
    the first column and (f - q) / (n - 2) of each other one: the product with the largest row sum is concave
    in f up to f = F, where both row sums agree, and increases from there. The first term is attained where
    it is the smaller one and 2 s <= q. Raises ``TypeError`` or ``ValueError`` unless count >= 1, tokens >= 3
    and 0 < rest <= top. Source: Example (Spectral norm one) in chapter `printed-theorems`.

    >>> round(outlier_residual(0.5, 0.0055243, 8192, 1502), 3)
    4.64
    """
    require_positive("rest", rest)
    require_positive("top", top)
    require_int("count", count, 1)
    require_int("tokens", tokens, 3)
    if rest > top:
        raise ValueError(f"rest: expected at most top = {top}, got {rest}; swap them")
    total, taken = top + count * rest, (top - rest) / (tokens - 2)
    largest = max(top, tokens * total / (2 * (count + 1)))
    return math.sqrt(min(top * max(total - count * taken, total / 2), largest * total / 2))


def _blocks(k: int, w: float, beta: float, tokens: int) -> tuple[Tensor, SelfAttention]:
    """``four_tokens`` with every feature copied k times: rho = sqrt k and Lambda = w k."""
    x, four, _ = four_tokens(w, beta, tokens)
    copies = four.w_k.repeat_interleave(k, 1)
    eye = torch.eye(2 * k, dtype=torch.float64)[None]
    query = four.w_q.repeat_interleave(k, 1) / k
    return x.repeat_interleave(k, 1), SelfAttention(w_q=query, w_k=copies, w_v=eye, w_o=eye, b_q=four.b_q / k)


def row_wise_l1(k: int, w: float = 1e-3, beta: float = 40.0) -> tuple[Instance, Tensor]:
    r"""Four tokens and an MLP of constant 1 in the 1-norm of rows that beat the printed bound from k = 17 on.

    .. math:: \varphi(u) = \textstyle\sum_{m \le k} u_m - \sum_{m > k} u_m, \qquad
              \frac{\|\mathrm{res}\|}{4\Lambda\rho} \to \frac{\sqrt k}4 \cdot \frac{\tanh wk}{wk}

    as beta grows; tokens as in ``four_tokens`` with each feature copied k times, so d = 2k. Returns the
    instance and phi as a row of weights, (1, 2k). facts: ratio (the limit in beta), rho, lam. Raises as
    ``four_tokens``. Source: Example (34 features) in chapter `printed-theorems`.

    >>> [round(row_wise_l1(k, w=1e-6)[0].facts["ratio"], 4) for k in (16, 17)]
    [1.0, 1.0308]
    """
    require_int("k", k, 1)
    require_positive("w", w)
    x, attention = _blocks(k, w, beta, 4)
    ratio = math.sqrt(k) / 4 * math.tanh(w * k) / (w * k)
    weight = torch.ones(1, 2 * k, dtype=torch.float64)
    weight[0, k:] = -1
    return Instance(x, attention, {"ratio": ratio, "rho": k**0.5, "lam": w * k}), weight


def row_wise_l2(c: int, tokens: int, w: float = 1e-3, beta: float = 40.0) -> tuple[Instance, Tensor]:
    r"""A linear MLP of spectral norm 1 on two features that beats the printed bound, with 2c + 1 outputs.

    .. math:: \varphi(u) = \big(\tfrac{u_1 - u_2}2,\ \tfrac{u_1}{\sqrt{2c}} \mathbf 1_c,\
              \tfrac{u_2}{\sqrt{2c}} \mathbf 1_c\big)

    Tokens as in ``four_tokens``, with ``tokens`` of them. Returns the instance and the weights (2c + 1, 2).
    facts: ratio, a lower bound of the residual over 4 Lambda rho in the limit of beta, by
    ``outlier_residual``; rho, lam. Raises as ``four_tokens``, and unless tokens >= 3. Source: Example
    (Spectral norm one) in chapter `printed-theorems`.

    >>> [round(row_wise_l2(4096, n)[0].facts["ratio"], 3) for n in (100, 300, 1502)]
    [0.846, 1.003, 1.16]
    """
    require_int("c", c, 1)
    require_int("tokens", tokens, 3)
    x, attention, facts = four_tokens(w, beta, tokens)
    t = math.tanh(w)
    least = outlier_residual(t / 2, t / math.sqrt(8 * c), 2 * c, tokens)
    weight = torch.zeros(2 * c + 1, 2, dtype=torch.float64)
    weight[0] = torch.tensor([0.5, -0.5])
    weight[1 : c + 1, 0] = weight[c + 1 :, 1] = (2 * c) ** -0.5
    return Instance(x, attention, facts | {"ratio": least / (4 * w)}), weight
