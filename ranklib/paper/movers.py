"""The family that refutes the constant 4, from how many tokens on, and the best of it.

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
from ranklib.model.attention import SelfAttention
from ranklib.paper.counterexamples import Instance


class Movers(NamedTuple):
    """One default token, movers with a feature each, and stayers: the family that refutes the constant 4.

    R has the rows e_0, e_1 ... e_m and 0 for the stayers; W_QK = sqrt(d_qk) log(gain) I; W_V = I, or
    e_0 e_0^T if ``one_number``. The weights in p are ``weight`` : 1 : ``eta``; eta = 0 is the limit. Then
    rho <= 1 and Lambda <= log(gain). Source: Theorem (Clean family) in chapter `where-it-breaks`.

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
    Source: Theorem (Clean family) in chapter `where-it-breaks`.

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


def pocket_family() -> Movers:
    """6001 tokens, weights 12000 : 1 : 1e-6 and gain 126000: 50.7816 > 46.9761 on a pocket calculator.

    Source: Example (6001 tokens) in chapter `where-it-breaks`.

    >>> round(pocket_family().ratio, 4)
    1.081
    """
    return Movers(2000, 4000, 12000, 126000, Fraction(1, 10**6))


def best_movers(tokens: int) -> Movers:
    """The best proportions of ``Movers`` found for so many tokens, weight and gain rounded to integers.

    Nelder-Mead over weight and gain inside a ternary search over the movers; deterministic. What it finds is
    a lower bound whatever the search did. Raises ``TypeError`` or ``ValueError`` unless tokens >= 8 is an
    integer. Source: chapter `where-it-breaks`.

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
            return (
                -min(
                    ((tokens - 1 - movers) * abs(share - k) + movers * abs(beta - k))
                    * max(abs(share - k), abs(beta - k) + delta)
                    for k in (share, beta, (share + beta - delta) / 2)
                )
                / math.log(gain) ** 2
            )

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
