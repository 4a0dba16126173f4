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

FOUR = {"lam": 7.49, "osc": 7.55, "tokens": 2200}
"""Lambda, osc(E) and n up to which the constant 4 is proved, each by itself (Theorem (When four is true)).

G(7.49) < 4 * 7.49 and C(7.55) < 4; for n, intervals over the two variables that are left.
"""


def kappa(t: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The mean of e^{ts} over s in [0, 1], accurate near 0.

    .. math:: \kappa(t) = \frac{e^t - 1}{t}, \qquad \kappa(0) = 1

    Increasing and convex; negative t are allowed.

    >>> kappa(torch.tensor([0.0, 1e-20, 1.0], dtype=torch.float64))
    tensor([1.0000, 1.0000, 1.7183], dtype=torch.float64)

    Source: Lemma (Columns) in chapter `printed-theorems`.
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

    .. math:: C(D)^2 = \max\Big\{\big(\kappa(\tfrac D2) + 1\big)\frac{\tanh(D/4)}D,\;
              \tfrac12\big(\kappa(D) + 1\big)\frac{\tanh(D/4)}D\Big\}

    Increasing; 1/sqrt 2 at 0, where it is sharp, and at most 4 up to D = 7.55.

    >>> const_osc(torch.tensor([0.0, 1.256, 7.55], dtype=torch.float64))
    tensor([0.7071, 0.7609, 3.9975], dtype=torch.float64)

    Source: Theorem (Small oscillation) in chapter `printed-theorems`.
    """
    osc = _nonnegative("osc", osc)
    largest = torch.maximum(_kappa(osc / 2) + 1, (_kappa(osc) + 1) / 2)
    return (largest * _vartheta(osc) / 4).sqrt()


def const_osc_heads(osc: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The same for several heads, whose ranges may differ: without the factor of the rows.

    .. math:: C(D)^2 = \tfrac14\big(\kappa(D) + 1\big)

    >>> const_osc_heads(torch.tensor([0.0, 1.256], dtype=torch.float64))
    tensor([0.7071, 0.8660], dtype=torch.float64)

    Source: Theorem (Many heads) in chapter `printed-theorems`.
    """
    return ((_kappa(_nonnegative("osc", osc)) + 1) / 4).sqrt()


def f_slope(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""F(Lambda) over Lambda, defined at 0 too: increasing from 1/2.

    .. math:: F(\Lambda) / \Lambda = \tfrac14\big(\kappa(\Lambda) + 1\big)

    >>> f_slope(torch.tensor([0.0, 5.0], dtype=torch.float64))
    tensor([0.5000, 7.6207], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return (_kappa(_nonnegative("lam", lam)) + 1) / 4


def f_lambda(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The largest absolute column sum of P - 1 p^T, as far as ||E||_1 <= Lambda knows it.

    .. math:: F(\Lambda) = \tfrac14(e^\Lambda - 1 + \Lambda)

    Sharp for every Lambda: half of the weight on one key, and many rows.

    >>> f_lambda(torch.tensor([0.0, 1.0], dtype=torch.float64))
    tensor([0.0000, 0.6796], dtype=torch.float64)

    Source: Lemma (Columns) in chapter `printed-theorems`.
    """
    return (_nonnegative("lam", lam).expm1() + lam) / 4


def g_slope(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""G(Lambda) over Lambda, defined at 0 too: increasing from 1/sqrt 2, at most 4 up to Lambda = 7.49.

    >>> g_slope(torch.tensor([0.0, 7.49], dtype=torch.float64))
    tensor([0.7071, 3.9993], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems` and Theorem (When four is true) in
    chapter `where-it-breaks`.
    """
    return f_slope(lam).sqrt() * _vartheta(2 * lam).sqrt()


def g_lambda(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The factor of the unconditional theorem: geometric mean of those of column and row sums.

    .. math:: G(\Lambda) = \sqrt{2 F(\Lambda)\tanh(\Lambda/2)}
              \le \frac{e^\Lambda - 1}{\sqrt{e^\Lambda + 1}} \le e^\Lambda - 1

    >>> g_lambda(torch.tensor([0.0, 7.49], dtype=torch.float64))
    tensor([ 0.0000, 29.9544], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return (2 * f_lambda(lam)).sqrt() * (lam / 2).tanh().sqrt()


def middle(lam: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    r"""The form between G and the memorable one: (e^Lambda - 1) / sqrt(e^Lambda + 1).

    >>> middle(torch.tensor([0.0, 1.0], dtype=torch.float64))
    tensor([0.0000, 0.8911], dtype=torch.float64)

    Source: Theorem (One layer) in chapter `printed-theorems`.
    """
    return memorable(lam) / (lam.exp() + 1).sqrt()


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

    Source: chapter `printed-theorems`; the paper rounds it to 1.256 in its appendix A.
    """
    return -0.5 - float(lambertw(-0.5 * math.exp(-0.5), -1).real)


def shape_limit() -> float:
    r"""How far the shapes of the heads may differ before the printed constant 4 is no longer proved.

    .. math:: \theta^4 \text{ with } \tfrac12(\theta + \theta^{-1}) = 4 / C, \qquad C^2 = \tfrac14(\kappa(x^*) + 1)
              = \tfrac34

    It limits the largest ratio ||W_h||_1 / ||W_h||_inf over the least one, under osc(E) <= x^*.

    >>> int(shape_limit())
    6942

    Source: Proposition (Price of the shape) in chapter `printed-theorems`.
    """
    room = 4 / float(const_osc_heads(torch.tensor(x_star(), dtype=torch.float64)))
    return (room + math.sqrt(room**2 - 1)) ** 4


def _nonnegative(name: str, value: Tensor) -> Tensor:
    require_float(name, value)
    require_all(name, value >= 0, "non-negative entries", "that are negative", "it is a size: take abs()")
    return value
