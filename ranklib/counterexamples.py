"""The explicit instances behind what is sharp, what is false, and from how many tokens on.

Families too large to hold are kept as a few exact numbers: ``Movers`` computes a lower bound that holds for
every centre in rational arithmetic, and forms tokens and matrices only when asked.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from ranklib._checks import require_int, require_positive
from ranklib.attention import SelfAttention
from ranklib.bounds import osc_row
from ranklib.norms import max_col_sum
from ranklib.softmax import attention_matrix


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
    Chapter 5, Example (Two heads).

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
    and beta are positive and tokens >= 2. Source: Chapter 4, Proposition (Sharp constant).

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


class Movers(NamedTuple):
    """One default token, movers with a feature each, and stayers: the family that refutes the constant 4.

    R has the rows e_0, e_1 ... e_m and 0 for the stayers; W_QK = sqrt(d_qk) log(gain) I; W_V = I, or
    e_0 e_0^T if ``one_number``. The weights in p are ``weight`` : 1 : ``eta``; eta = 0 is the limit. Then
    rho <= 1 and Lambda <= log(gain). Source: Chapter 6, Theorem (Clean family).

    >>> family = Movers(2000, 4000, 12000, 126000, Fraction(1, 10**6))
    >>> family.tokens, round(family.lower, 6), round(family.printed, 6)
    (6001, 50.781593, 46.976149)
    """

    movers: int
    stayers: int
    weight: Fraction | int
    gain: Fraction | int
    eta: Fraction | int = 0
    one_number: bool = False

    @property
    def tokens(self) -> int:
        """n."""
        return 1 + self.movers + self.stayers

    @property
    def rows(self) -> tuple[tuple[Fraction, Fraction, Fraction], ...]:
        """What default, movers and stayers give to: the default, a mover (not itself), itself; exactly."""
        weight, gain = Fraction(self.weight), Fraction(self.gain)
        total = weight + self.movers + self.stayers * Fraction(self.eta)
        default, mover = total + weight * (gain - 1), total + gain - 1
        return (
            (weight * gain / default, 1 / default, weight * gain / default),
            (weight / mover, 1 / mover, gain / mover),
            (weight / total, 1 / total, Fraction(self.eta) / total),
        )

    @property
    def lower_squared(self) -> Fraction:
        """The least f g over all centres is at least this: exact, by the kinks in the centre's entry 0.

        With alpha, beta what stayers and movers give to the default, and delta = own - other of a mover,
        f >= h |alpha - x_0| + m |beta - x_0| and g >= max(|alpha - x_0|, |beta - x_0| + delta). Both are
        affine between kinks, so their product is least at one.
        """
        (_, (beta, other, own), (alpha, _, _)) = self.rows
        delta = 0 if self.one_number else own - other
        kinks = (alpha, beta, (alpha + beta - delta) / 2, (alpha + beta + delta) / 2)
        return min(
            (self.stayers * abs(alpha - k) + self.movers * abs(beta - k))
            * max(abs(alpha - k), abs(beta - k) + delta)
            for k in kinks
        )

    @property
    def lower(self) -> float:
        """A lower bound of ||res SA(X)||."""
        return math.sqrt(self.lower_squared)

    @property
    def lam(self) -> float:
        """log(gain), at least Lambda."""
        return math.log(self.gain)

    @property
    def printed(self) -> float:
        """4 log(gain), at least 4 Lambda rho ||W_V||: the printed claim fails where ``lower`` exceeds it."""
        return 4 * self.lam

    @property
    def ratio(self) -> float:
        """lower / printed."""
        return self.lower / self.printed

    def output(self) -> Float[Tensor, "tokens dim"]:
        """SA(X) as a dense matrix, (n, m + 1), from the exact rows, up to the same row for all tokens."""
        default, mover, stayer = ([float(value) for value in row] for row in self.rows)
        y = torch.empty(self.tokens, self.movers + 1, dtype=torch.float64)
        last = self.movers + 1
        groups = ((slice(0, 1), default), (slice(1, last), mover), (slice(last, None), stayer))
        for rows, (to_default, other, _) in groups:
            y[rows, 0], y[rows, 1:] = to_default, other
        y[1:last, 1:].fill_diagonal_(mover[2])
        if self.one_number:
            y[:, 1:] = 0
        return y

    def instance(self) -> Instance:
        """Tokens and layer, with the weights of p in the query bias; needs ``eta`` > 0. dim is m + 1.

        Raises ``ValueError`` for eta = 0.
        """
        require_positive("eta", float(self.eta))
        dim, options = self.movers + 1, {"dtype": torch.float64}
        weights = torch.full((dim,), -math.log(self.eta), **options)
        weights[0] += math.log(self.weight)
        eye = torch.eye(dim, **options)[None]
        value = eye.clone()
        if self.one_number:
            value[:, 1:] = 0
        attention = SelfAttention(
            w_q=dim**0.5 * self.lam * eye, w_k=eye, w_v=value, w_o=eye, b_q=dim**0.5 * weights[None]
        )
        facts = {"lower": self.lower, "printed": self.printed, "ratio": self.ratio, "lam": self.lam}
        return Instance(torch.eye(self.tokens, dim, **options), attention, facts)


def clean_movers(m: int, eta: Fraction | float = 0, one_number: bool = False) -> Movers:
    """The clean family: m movers, 2m stayers (3m for ``one_number``), weight 9m, gain 90m + 1.

    It beats the printed bound from m = 1636 on (4909 tokens); with one number per token from m = 3991 on
    (15965 tokens). Raises ``TypeError`` or ``ValueError`` unless m >= 2 is an integer and eta is in [0, 1].
    Source: Chapter 6, Theorem (Clean family).

    >>> family = clean_movers(2000)
    >>> family.lower_squared == Fraction(13851, 10000) * 2000, round(family.ratio, 4)
    (True, 1.0874)
    """
    require_int("m", m, 2)
    if not 0 <= eta <= 1:
        raise ValueError(f"eta: expected a weight from 0 to 1, got {eta}; use for example eta=1e-9")
    return Movers(m, 3 * m if one_number else 2 * m, 9 * m, 90 * m + 1, Fraction(eta), one_number)


def clean_family(m: int, eta: Fraction | float = 1e-9) -> Instance:
    """``clean_movers(m, eta)`` as tokens and a layer of dim m + 1; raises as it does, and for eta = 0.

    >>> clean_family(5).x.shape
    torch.Size([16, 6])
    """
    return clean_movers(m, eta).instance()


def clean_family_bound(m: int) -> float:
    """sqrt(1.3851 m), below ||res SA(X)|| of the clean family about every centre as eta goes to 0.

    >>> round(clean_family_bound(1636), 4)
    47.6028
    """
    return clean_movers(m).lower


def clean_family_matrix(m: int, eta: Fraction | float = 1e-9) -> Float[Tensor, "tokens dim"]:
    """The output SA(X) of the clean family as an explicit matrix, (3m + 1, m + 1).

    >>> clean_family_matrix(5).shape
    torch.Size([16, 6])
    """
    return clean_movers(m, eta).output()


def pocket_family() -> Movers:
    """6001 tokens, weights 12000 : 1 : 1e-6 and gain 126000: 50.7816 > 46.9761 on a pocket calculator.

    Source: Chapter 6, Example (6001 tokens).

    >>> round(pocket_family().ratio, 4)
    1.081
    """
    return Movers(2000, 4000, 12000, 126000, Fraction(1, 10**6))


def oscillation_family(osc: float) -> float:
    r"""What a family with osc(E) <= D reaches of ||res SA(X)|| / (Lambda rho ||W||), with ever more tokens.

    .. math:: \frac{\sqrt{2 T (\frac29 (e^D - 1) + T)}}D, \qquad T = \frac23\cdot\frac{e^D - 1}{e^D + 2}

    It exceeds 4 from D = 8.1968 on: an oscillation of 8.2 is not small enough. Raises ``ValueError`` unless
    osc is a positive number. Source: Chapter 6, Theorem (Oscillation 8.2).

    >>> [round(oscillation_family(osc), 3) for osc in (8.0, 8.2, 8.5, 9.0)]
    [3.714, 4.005, 4.489, 5.444]
    """
    require_positive("osc", osc)
    excess = math.expm1(osc)
    tilt = 2 / 3 * excess / (excess + 3)
    return math.sqrt(2 * tilt * (2 / 9 * excess + tilt)) / osc


def diagonal_step(eps: float, tokens: int) -> tuple[float, float]:
    """The sum of osc_i and 2 ||E||_1 for E = eps I: the printed proof needs the first below the second.

    The first is n eps, so the step fails from three tokens on. Raises ``TypeError`` or ``ValueError`` unless
    eps is positive and tokens >= 1. Source: Chapter 4, on the printed proof.

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
    Source: Chapter 4, on the printed proof.

    >>> round(signed_step(0.5)[0], 3), signed_step(0.5)[1]
    (0.462, 0.0)
    """
    require_positive("u", u)
    pair = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    e, base = u * pair @ pair.T, torch.full((2,), 0.5, dtype=torch.float64)
    left = (attention_matrix(e) @ pair - base @ pair).abs().max()
    right = 2 * osc_row(e).max() * (base @ pair).abs().max()
    return left.item(), right.item()


def best_movers(tokens: int) -> Movers:
    """The best proportions of ``Movers`` found for so many tokens, weight and gain rounded to integers.

    Nelder-Mead over weight and gain inside a ternary search over the movers; deterministic. What it finds is
    a lower bound whatever the search did. Raises ``TypeError`` or ``ValueError`` unless tokens >= 8 is an
    integer. Source: Chapter 6.

    >>> family = best_movers(4725)
    >>> family.tokens, family.ratio > 1
    (4725, True)
    """
    require_int("tokens", tokens, 8)

    def family(movers: int, logs) -> Movers:
        weight, gain = (max(2, round(value)) for value in movers * np.exp(logs))
        return Movers(movers, tokens - 1 - movers, weight, gain)

    def height(movers: int) -> Movers:
        def smooth(logs):
            weight, gain = (movers * np.exp(logs)).tolist()
            share, total = weight / (weight + movers), weight + movers - 1 + gain
            beta, delta = weight / total, (gain - 1) / total
            return -min(
                ((tokens - 1 - movers) * abs(share - k) + movers * abs(beta - k))
                * max(abs(share - k), abs(beta - k) + delta)
                for k in (share, beta, (share + beta - delta) / 2)
            ) / math.log(gain) ** 2

        options = {"xatol": 1e-4, "fatol": 1e-9}
        return family(movers, minimize(smooth, np.log([8, 70]), method="Nelder-Mead", options=options).x)

    low, high = 2, tokens - 2
    while high - low > 3:
        left, right = low + (high - low) // 3, high - (high - low) // 3
        if height(left).ratio < height(right).ratio:
            low = left
        else:
            high = right
    return max(map(height, range(low, high + 1)), key=lambda found: found.ratio)


def best_ratios(
    sizes: tuple[int, ...] = (2, 3, 4, 64, 128, 256, 512, 1024, 2048, 4725, 6001, 8192),
) -> dict[int, float]:
    """For each number of tokens the largest ||res SA(X)|| / (Lambda rho ||W||) in the families of this book.

    ``four_tokens`` in its limit, and from 8 tokens on also ``best_movers``. The printed claim says at most 4;
    values are lower bounds of the truth. Raises as those two do. Source: Chapter 6.

    >>> {n: round(ratio, 3) for n, ratio in best_ratios((2, 3, 4, 64)).items()}
    {2: 0.5, 3: 0.612, 4: 0.707, 64: 0.745}
    """
    found = {}
    for tokens in sizes:
        require_int("sizes", tokens, 2)
        small = math.sqrt(min(1, tokens / 4) / 2)
        found[tokens] = max(small, 4 * best_movers(tokens).ratio) if tokens >= 8 else small
    return found
