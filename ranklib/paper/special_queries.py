"""Counterexamples with special queries: fewer tokens, smaller scores; and the best ratios by the tokens.

A special token has a feature of its own and looks almost only at itself. Its row is long, and that is what a
crowd of movers alone is short of.
"""

import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize

from ranklib._checks import require_int, require_positive
from ranklib.model.attention import SelfAttention
from ranklib.paper.counterexamples import Instance
from ranklib.paper.movers import best_movers

LIMITS = {"osc": (0.494, 0.0126, False), "lam": (0.503, 0.009, True)}
"""By the size that is bounded: the shares of default and special token, and whether the query leaves the default."""


def special_limit(level: float, size: str = "osc") -> float:
    r"""What one special query reaches of ||res SA(X)|| / (Lambda rho ||W||) under Lambda <= level, with ever more tokens.

    .. math:: \frac{\sqrt{f_0\, g_0}}L, \qquad f_0 = q \mu (e^L - 1) + |\hat q - q|, \quad
              g_0 = |\hat q - q| + |\hat s - s| + |\hat\mu - \mu|

    p has q on the default, s on the special token and mu = 1 - q - s on the movers together; hats are the
    special query's own weights. It scores +L on itself and, for ``size="lam"``, -L on the default. For
    ``size="osc"`` also osc(E) <= level. Above 4 from 7.6, and from Lambda = 7.57 on. Raises ``ValueError``
    unless level is a positive number and size is "osc" or "lam". Source: Theorem (Oscillation 7.6) in chapter
    `where-it-breaks`.

    >>> round(special_limit(7.6), 4), round(special_limit(7.57, "lam"), 4)
    (4.0029, 4.0024)
    """
    require_positive("level", level)
    if size not in LIMITS:
        raise ValueError(f"size: expected one of {tuple(LIMITS)}, got {size!r}; choose one of them")
    default, special, leaves = LIMITS[size]
    rest = 1 - default - special
    weights = default * math.exp(-level * leaves), special * math.exp(level), rest
    total = sum(weights)
    moved = [abs(w / total - p) for w, p in zip(weights, (default, special, rest), strict=True)]
    return math.sqrt((default * rest * math.expm1(level) + moved[0]) * sum(moved)) / level


class Specials(NamedTuple):
    """Two special tokens, one default, groups of movers (count, weight) and stayers of weight 0.

    R has a row e_k for each token but the stayers, 0 for them; W_V = I. W_QK / sqrt(d_qk) has L = 2 log(root)
    on the diagonal but 0 at the default, and -L/2 for a special query on the default: Lambda <= L, rho <= 1.
    Source: Theorem (When four is true) in chapter `where-it-breaks`.

    >>> family = refuting_3573()
    >>> family.tokens, family.lower_squared > Fraction(16 * family.lam**2)
    (3573, True)
    """

    groups: tuple[tuple[int, Fraction | int], ...]
    stayers: int
    default: Fraction | int
    special: Fraction | int
    root: Fraction | int

    @property
    def tokens(self) -> int:
        """n."""
        return 3 + sum(count for count, _ in self.groups) + self.stayers

    @property
    def lam(self) -> float:
        """2 log(root), at least Lambda."""
        return 2 * math.log(self.root)

    @property
    def kinds(self) -> list[tuple[int, Fraction, Fraction]]:
        """For each kind of token: how many, what it gives to the default, and own minus other feature."""
        root, default, special = map(Fraction, (self.root, self.default, self.special))
        gain = root**2
        total = default + 2 * special + sum(count * Fraction(w) for count, w in self.groups)
        own = total - default + default / root + special * (gain - 1)
        found = [(self.stayers + 1, default / total, Fraction(0))]
        found.append((2, default / root / own, special * (gain - 1) / own))
        for count, w in self.groups:
            here = total + w * (gain - 1)
            found.append((count, default / here, w * (gain - 1) / here))
        return found

    @property
    def lower_squared(self) -> Fraction:
        """The least f g over all centres is at least this, exactly, by the kinks in the centre's entry 0.

        f >= sum count |alpha - x_0| and g >= max(|alpha - x_0| + delta), over the kinds; between kinks both
        are affine, so the product is least at one.
        """
        return _least(self.kinds)

    @property
    def lower(self) -> float:
        """A lower bound of ||res SA(X)||."""
        return math.sqrt(self.lower_squared)

    @property
    def ratio(self) -> float:
        """lower over Lambda rho ||W_V||, at least: the printed claim says at most 4."""
        return self.lower / self.lam

    def instance(self, eta: float = 1e-9) -> Instance:
        """Tokens and layer, the stayers with weight eta; dim is the number of other tokens. Raises for eta <= 0."""
        require_positive("eta", eta)
        weights = [self.default, self.special, self.special]
        weights += [w for count, w in self.groups for _ in range(count)]
        dim, options = len(weights), {"dtype": torch.float64}
        w_qk = self.lam * torch.eye(dim, **options)
        w_qk[0, 0], w_qk[1:3, 0] = 0, -self.lam / 2
        bias = torch.tensor([math.log(w / eta) for w in weights], **options)
        eye, scale = torch.eye(dim, **options)[None], dim**0.5
        attention = SelfAttention(w_q=scale * w_qk[None], w_k=eye, w_v=eye, w_o=eye, b_q=scale * bias[None])
        facts = {"lower": self.lower, "ratio": self.ratio, "lam": self.lam}
        return Instance(torch.eye(self.tokens, dim, **options), attention, facts)


def refuting_3573() -> Specials:
    """The fewest tokens for which this book refutes the constant 4, in exact fractions.

    Source: Theorem (When four is true) in chapter `where-it-breaks`.

    >>> round(refuting_3573().lower, 5), round(4 * refuting_3573().lam, 5)
    (41.73076, 41.72867)
    """
    groups = ((1239, 1), (128, Fraction(12, 55)), (111, Fraction(308, 565)))
    return Specials(groups, 3573 - 3 - 1478, Fraction(85937, 9), Fraction(637, 64), Fraction(13079, 71))


def best_specials(tokens: int) -> Specials:
    """The best proportions of ``Specials`` found for so many tokens, with one group of movers.

    Nelder-Mead from three starts; deterministic. What it finds is a lower bound whatever the search did.
    Raises ``TypeError`` or ``ValueError`` unless tokens >= 16 is an integer. Source: chapter
    `where-it-breaks`.

    >>> round(best_specials(64).ratio, 2)
    0.89
    """
    require_int("tokens", tokens, 16)

    def height(movers, logs):
        default, special, level = movers * math.exp(logs[0]), math.exp(logs[1]), logs[2]
        if not (1 <= movers <= tokens - 4 and 0 < level < 40):
            return 0.0
        gain, root = math.exp(level), math.exp(level / 2)
        total = default + 2 * special + movers
        own, here = total - default + default / root + special * (gain - 1), total + gain - 1
        kinds = [(tokens - 2 - movers, default / total, 0.0)]
        kinds += [
            (2, default / root / own, special * (gain - 1) / own),
            (movers, default / here, (gain - 1) / here),
        ]
        return -_least(kinds) / level**2

    options = {"xatol": 1e-6, "fatol": 1e-10, "maxiter": 4000}
    starts = ([0.4, 1.7, 0.5, 4.5], [0.4, 1.7, 1.0, 6.0], [0.4, 1.7, 2.0, 9.0])
    rough = [
        minimize(lambda v: height(tokens * v[0], v[1:]), start, method="Nelder-Mead", options=options)
        for start in starts
    ]
    found = min(rough, key=lambda r: r.fun).x
    movers = min(max(1, round(tokens * found[0])), tokens - 4)
    logs = minimize(lambda v: height(movers, v), found[1:], method="Nelder-Mead", options=options).x
    default, special, root = (
        Fraction(round(1000 * v), 1000) for v in (movers * np.exp(logs[0]), *np.exp(logs[1:] / (1, 2)))
    )
    return Specials(((movers, 1),), tokens - 3 - movers, default, special, root)


def best_ratios(
    sizes: tuple[int, ...] = (2, 3, 4, 32, 64, 128, 256, 512, 1024, 2048, 3573, 4096, 8192),
) -> dict[int, float]:
    """For each number of tokens the largest ||res SA(X)|| / (Lambda rho ||W||) in the families of this book.

    ``four_tokens`` in its limit, from 16 tokens on also ``best_movers`` and ``best_specials``. The printed
    claim says at most 4; values are lower bounds of the truth. Raises ``TypeError`` or ``ValueError`` unless
    all sizes are integers >= 2. Source: chapter `where-it-breaks`.

    >>> {n: round(ratio, 2) for n, ratio in best_ratios((2, 3, 4, 64)).items()}
    {2: 0.5, 3: 0.61, 4: 0.71, 64: 0.89}
    """
    found = {}
    for tokens in sizes:
        require_int("sizes", tokens, 2)
        found[tokens] = math.sqrt(min(1, tokens / 4) / 2)
        if tokens >= 16:
            found[tokens] = max(found[tokens], 4 * best_movers(tokens).ratio, best_specials(tokens).ratio)
        if tokens >= 3573:
            more = refuting_3573()
            found[tokens] = max(found[tokens], more._replace(stayers=more.stayers + tokens - 3573).ratio)
    return found


def _least(kinds) -> Fraction | float:
    """The least of sum count |alpha - x| times max(|alpha - x| + delta) over x."""
    kinks = [alpha for _, alpha, _ in kinds]
    kinks += [(a + b + sign * (d - e)) / 2 for _, a, d in kinds for _, b, e in kinds for sign in (1, -1)]
    return min(
        sum(count * abs(a - x) for count, a, _ in kinds) * max(abs(a - x) + d for _, a, d in kinds)
        for x in kinks
    )
