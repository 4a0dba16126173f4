"""The scalar functions in the bounds of one layer. Elementwise on tensors of any shape.

Each raises ``TypeError`` unless its argument is a floating-point tensor and ``ValueError`` for NaN or
infinity, and, all but ``kappa``, for negative entries. Where e^t leaves the range of the dtype the result is
infinite: a bound that says nothing, and no error.
"""

import math

import torch
from jaxtyping import Float
from scipy.special import lambertw
from torch import Tensor

from ranklib._checks import require_all, require_float

FOUR = {"lam": 6.5, "osc": 5.62, "tokens": 676}
"""Lambda, osc(E) and n up to which the constant 4 is proved, each by itself (Theorem (Constant four)).

G(6.5) < 4 * 6.5 and C(5.62) < 4; beyond Lambda = 6.5, sqrt(676) = 4 * 6.5 is enough.
"""


def kappa(t: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The mean of e^{ts} over s in [0, 1], accurate near 0.

    .. math:: \kappa(t) = \frac{e^t - 1}{t}, \qquad \kappa(0) = 1

    Increasing and convex; negative t are allowed.

    >>> kappa(torch.tensor([0.0, 1e-20, 1.0], dtype=torch.float64))
    tensor([1.0000, 1.0000, 1.7183], dtype=torch.float64)

    Source: Lemma (Master) in chapter `printed-theorems`.
    """
    require_float("t", t)
    return _kappa(t)


def _kappa(t: Tensor) -> Tensor:
    return torch.where(t == 0, 1, t.expm1() / torch.where(t == 0, 1, t))


def vartheta(osc: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""What the total variation under a tilt of range D loses against D / 4.

    .. math:: \vartheta(D) = \frac{\tanh(D/4)}{D/4}, \qquad \vartheta(0) = 1

    Decreasing, in (0, 1], and kappa(D) vartheta(D) = kappa(D/2)^2. The letter tau is Dobrushin's coefficient.

    >>> vartheta(torch.tensor([0.0, 4.0], dtype=torch.float64))
    tensor([1.0000, 0.7616], dtype=torch.float64)

    Source: Lemma (Total variation) in chapter `printed-theorems`.
    """
    return _vartheta(_nonnegative("osc", osc))


def _vartheta(osc: Tensor) -> Tensor:
    quarter = osc / 4
    return torch.where(quarter == 0, 1, quarter.tanh() / torch.where(quarter == 0, 1, quarter))


def const_osc(osc: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The proved one-layer constant of one head under osc(E) <= D.

    .. math:: C(D)^2 = \Big(\frac{\kappa(D)}2 + \tanh\frac D4\Big)\vartheta(D)
              = \tfrac12\kappa(\tfrac D2)^2 + \vartheta(D)\tanh\frac D4

    Increasing; 1/sqrt 2 at 0, where it is sharp, and at most 4 up to D = 5.62.

    >>> const_osc(torch.tensor([0.0, 1.256, 5.62], dtype=torch.float64))
    tensor([0.7071, 1.1236, 3.9986], dtype=torch.float64)

    Source: Theorem (Small oscillation) in chapter `printed-theorems`.
    """
    osc = _nonnegative("osc", osc)
    return (_kappa(osc / 2).square() / 2 + _vartheta(osc) * (osc / 4).tanh()).sqrt()


def const_osc_heads(osc: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The same for several heads, whose ranges may differ: without the factor vartheta.

    .. math:: C(D)^2 = \frac{\kappa(D)}2 + \tanh\frac D4

    >>> const_osc_heads(torch.tensor([0.0, 1.256], dtype=torch.float64))
    tensor([0.7071, 1.1418], dtype=torch.float64)

    Source: Theorem (Many heads) in chapter `printed-theorems`.
    """
    return (_kappa(_nonnegative("osc", osc)) / 2 + (osc / 4).tanh()).sqrt()


def f_slope(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""F(Lambda) over Lambda, defined at 0 too: increasing from 1/2.

    .. math:: F(\Lambda) / \Lambda = \tfrac12\kappa(\Lambda) + \tanh\frac\Lambda2

    >>> f_slope(torch.tensor([0.0, 5.0], dtype=torch.float64))
    tensor([ 0.5000, 15.7279], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return _kappa(_nonnegative("lam", lam)) / 2 + (lam / 2).tanh()


def f_lambda(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The factor of the column sums in the unconditional theorem.

    .. math:: F(\Lambda) = \tfrac12(e^\Lambda - 1) + \Lambda\tanh\frac\Lambda2

    >>> f_lambda(torch.tensor([0.0, 1.0], dtype=torch.float64))
    tensor([0.0000, 1.3213], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return _nonnegative("lam", lam).expm1() / 2 + lam * (lam / 2).tanh()


def g_slope(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""G(Lambda) over Lambda, defined at 0 too: increasing from 1/sqrt 2, at most 4 up to Lambda = 6.5.

    >>> g_slope(torch.tensor([0.0, 6.5], dtype=torch.float64))
    tensor([0.7071, 3.9972], dtype=torch.float64)

    Source: Theorem (One layer) and Theorem (Constant four) in chapter `printed-theorems`.
    """
    return f_slope(lam).sqrt() * _vartheta(2 * lam).sqrt()


def g_lambda(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The factor of the unconditional theorem: geometric mean of those of column and row sums.

    .. math:: G(\Lambda) = \sqrt{2 F(\Lambda)\tanh(\Lambda/2)}
              \le \frac{e^\Lambda - 1}{\sqrt{1 + e^{-\Lambda}}} \le e^\Lambda - 1

    >>> g_lambda(torch.tensor([0.0, 6.5], dtype=torch.float64))
    tensor([ 0.0000, 25.9821], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return (2 * f_lambda(lam)).sqrt() * (lam / 2).tanh().sqrt()


def middle(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The form between G and the memorable one: (e^Lambda - 1) / sqrt(1 + e^-Lambda).

    >>> middle(torch.tensor([0.0, 1.0], dtype=torch.float64))
    tensor([0.0000, 1.4692], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return memorable(lam) / (1 + (-lam).exp()).sqrt()


def memorable(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The form to remember: e^Lambda - 1.

    >>> memorable(torch.tensor([0.0, 1.0], dtype=torch.float64))
    tensor([0.0000, 1.7183], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return _nonnegative("lam", lam).expm1()


def x_star() -> float:
    r"""The positive root of e^x = 1 + 2x, up to which the paper's proof allows the scores to range.

    .. math:: x^* = -\tfrac12 - W_{-1}\big(-\tfrac12 e^{-1/2}\big), \qquad \kappa(x^*) = 2

    >>> round(x_star(), 7)
    1.2564312

    Source: chapter `one-head`; the paper rounds it to 1.256 in its appendix A.
    """
    return -0.5 - float(lambertw(-0.5 * math.exp(-0.5), -1).real)


def shape_limit() -> float:
    r"""How far the shapes of the heads may differ before the printed constant 4 is no longer proved.

    .. math:: \theta^4 \text{ with } \tfrac12(\theta + \theta^{-1}) = 4 / C, \qquad C^2 = \tfrac12\kappa(x^*)
              + \tanh\tfrac{x^*}4

    It limits the largest ratio ||W_h||_1 / ||W_h||_inf over the least one, under osc(E) <= x^*.

    >>> int(shape_limit())
    2213

    Source: Proposition (Price of the shape) in chapter `printed-theorems`.
    """
    room = 4 / float(const_osc_heads(torch.tensor(x_star(), dtype=torch.float64)))
    return (room + math.sqrt(room**2 - 1)) ** 4


def _nonnegative(name: str, value: Tensor) -> Tensor:
    require_float(name, value)
    require_all(name, value >= 0, "non-negative entries", "that are negative", "it is a size: take abs()")
    return value
