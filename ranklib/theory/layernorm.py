"""LayerNorm over the features of each token, RMSNorm, and the division over tokens that the paper prints.

The pair on a circle is carried as log tan of its half-angle: offsets of 1e-12 from 90 degrees and angles far
below the range of float64 are exact to rounding.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from scipy.optimize import brentq
from torch import Tensor

from ranklib._checks import measurable, require_all, require_float, require_int, require_positive
from ranklib._threads import singular_values
from ranklib.model.attention import SelfAttention


def row_std(x: Float[Tensor, "*batch tokens dim"], eps: float | int = 0.0) -> Float[Tensor, "*batch tokens"]:
    r"""LayerNorm's divisor of each token.

    .. math:: \sigma_i = \sqrt{\tfrac1d\sum_k (x_{ik} - \bar x_i)^2 + \varepsilon}

    Half precision is computed in float32. Raises ``TypeError`` or ``ValueError`` for what is no finite float
    matrix, ``ValueError`` for an eps that is negative or not finite. Source: chapter `layernorm`; the
    function is standard.

    >>> row_std(torch.tensor([[3.0, 1.0], [2.0, 2.0]]))
    tensor([1., 0.])
    """
    x = measurable("x", x)
    return _root(x - x.mean(-1, keepdim=True), eps, -1)[..., 0]


def layer_norm(
    x: Float[Tensor, "*batch tokens dim"], eps: float | int = 0.0
) -> Float[Tensor, "*batch tokens dim"]:
    r"""Each row minus its mean, divided by its own deviation over the features (no gain, no bias).

    .. math:: N(X)_{ik} = (x_{ik} - \bar x_i) / \sigma_i

    Raises as :func:`row_std`, and ``ValueError`` if a row is constant and eps = 0. Source: chapter `layernorm`; the
    function is standard.

    >>> layer_norm(torch.tensor([[3.0, 1.0], [2.0, 1.5]]))
    tensor([[ 1., -1.],
            [ 1., -1.]])
    """
    x = measurable("x", x)
    return _divide(x - x.mean(-1, keepdim=True), eps, -1, "tokens that vary over features")


def rms_norm(
    x: Float[Tensor, "*batch tokens dim"], eps: float | int = 0.0
) -> Float[Tensor, "*batch tokens dim"]:
    r"""Each row divided by its root mean square, without centring.

    .. math:: x_{ik} / \sqrt{\tfrac1d\sum_k x_{ik}^2 + \varepsilon}

    Raises as :func:`row_std`, and ``ValueError`` if a row is zero and eps = 0. Source: chapter `layernorm`; the
    function is standard.

    >>> rms_norm(torch.tensor([[3.0, 3.0], [0.0, 2.0]]))
    tensor([[1.0000, 1.0000],
            [0.0000, 1.4142]])
    """
    return _divide(measurable("x", x), eps, -1, "tokens that are not zero")


def column_norm(
    x: Float[Tensor, "*batch tokens dim"], eps: float | int = 0.0
) -> Float[Tensor, "*batch tokens dim"]:
    r"""Each column minus its mean, divided by its deviation over the tokens: the paper's formula.

    .. math:: (x_{ik} - \bar x_k) / s_k, \qquad s_k^2 = \tfrac1n\sum_i (x_{ik} - \bar x_k)^2 + \varepsilon

    With eps = 0 its residual is at least sqrt(dim), whatever x is. Raises as :func:`row_std`, and
    ``ValueError`` if a column is constant and eps = 0. Source: Theorem (Columns cannot collapse) in chapter
    `printed-theorems`.

    >>> column_norm(torch.tensor([[3.0, 2.0], [1.0, 6.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = measurable("x", x)
    return _divide(x - x.mean(-2, keepdim=True), eps, -2, "columns that vary over tokens")


def fold_factor(x: Float[Tensor, "*batch tokens dim"], eps: float | int = 0.0) -> Float[Tensor, "*batch"]:
    r"""The factor by which LayerNorm multiplies the residual at most.

    .. math:: \|\mathrm{res}\,N(X)\|_{1,\infty} \le \frac{d^{3/4}}{\min_i\sigma_i}
              \|\mathrm{res}\,X\|_{1,\infty}

    Infinite if a row is constant and eps = 0. Raises as :func:`row_std`. Source: Theorem (When it
    folds) in chapter `printed-theorems`; chapter `layernorm` has the same for the diameter.

    >>> round(fold_factor(torch.tensor([[3.0, 1.0], [2.0, 0.0]])).item(), 3)
    1.682
    """
    least = row_std(x, eps).amin(-1)
    return x.shape[-1] ** 0.75 / least


def affine_rank(x: Float[Tensor, "*batch tokens dim"], tol: float) -> Int[Tensor, "*batch"]:
    """The dimension of the smallest affine subspace that holds all rows: the rank of X minus its first row.

    Counts the singular values of that difference above ``tol`` times the largest one of X itself, so that
    tokens equal up to rounding have affine rank 0. Raises as :func:`row_std`, and ``ValueError`` unless
    0 <= tol < 1. Source: Proposition (Ranks) in chapter `layernorm`.

    >>> affine_rank(torch.tensor([[1.0, 0.0], [1.0, 2.0], [1.0, 5.0]]), tol=1e-6)
    tensor(1)
    """
    x = measurable("x", x)
    if not 0 <= tol < 1:
        raise ValueError(f"tol: expected a share from 0 to below 1, got {tol}; use for example 1e-9")
    largest = x.abs().amax((-2, -1), keepdim=True)
    x = x / torch.where(largest > 0, largest, 1.0)
    return (singular_values(x - x[..., :1, :]) > tol * singular_values(x)[..., :1]).sum(-1)


def circle_trace(
    offset: float | int, w: float | int, layers: int, normalise: bool = True
) -> Float[Tensor, " states"]:
    r"""log tan of the half-angle of a pair, layer by layer; +inf is a pair of opposite tokens.

    .. math:: x_\pm = (\sin\delta, \pm\cos\delta), \qquad \tan\theta \mapsto \tan\theta\,\tanh(w\sin^2\theta)

    One head with W_QK = w I and W_V = I, rows divided by their length (``normalise``), or
    tan(theta) -> tan(theta) tanh(w a^2) with a -> a tanh(w a^2) without. Entry l is after l layers.
    Everything is done with logarithms. Raises ``ValueError`` unless 0 <= offset < pi / 2 and w > 0, and for
    ``layers`` below 0. Source: Theorem (Knife edge) in chapter `layernorm`, this book's.

    >>> [round(t, 2) for t in circle_trace(0.1, 1.0, 3).exp().tolist()]
    [9.97, 7.55, 5.69, 4.26]
    >>> circle_trace(0.0, 1.0, 3).tolist()
    [inf, inf, inf, inf]
    """
    require_positive("w", w * 1.0)
    require_int("layers", layers, 0)
    if not 0 <= offset < math.pi / 2:
        raise ValueError(f"offset: expected an angle in [0, pi / 2), got {offset}; use for example 0.1")
    log_tan = -math.log(math.tan(offset)) if offset else math.inf
    log_a, states = math.log(math.cos(offset)), [log_tan]
    for _ in range(layers):
        log_sine = F.logsigmoid(torch.tensor(2 * log_tan, dtype=torch.float64)).item() / 2
        step = _log_tanh(math.log(w) + 2 * (log_sine if normalise else log_a))
        log_tan, log_a = log_tan + step, log_a + step
        states.append(log_tan)
    return torch.tensor(states, dtype=torch.float64)


def peak() -> tuple[float, float]:
    r"""Where tanh(a^2) sqrt(1 - a^2) is largest on [0, 1], and its value there, 0.3398.

    With s = a^2 the slope vanishes where 4 (1 - s) = sinh(2 s), once. Source: Theorem (Nose) in chapter
    `layernorm`, this book's.

    >>> [round(value, 4) for value in peak()]
    [0.7822, 0.3398]
    """
    square = brentq(lambda s: 4 * (1 - s) - math.sinh(2 * s), 0, 1, xtol=1e-15)
    return math.sqrt(square), math.tanh(square) * math.sqrt(1 - square)


def held_pair(value: float | int, eps: float) -> tuple[float, float] | None:
    r"""The two half-gaps that a bare layer with value v and a norm with eps keep, lower and upper, or None.

    .. math:: a \mapsto \frac b{\sqrt{b^2 + \varepsilon}},\; b = v a\tanh a^2; \qquad
              v\tanh(a^2)\sqrt{1 - a^2} = \sqrt\varepsilon

    The lower repels, the upper attracts; None when v is below sqrt(eps) / 0.3398 = ``sqrt(eps) / peak()[1]``:
    then every start falls to 0. Raises ``ValueError`` unless both are positive. Source: chapter `layernorm`,
    Theorem (Nose), this book's.

    >>> [round(a, 4) for a in held_pair(1.0, 1e-5)], held_pair(0.009, 1e-5)
    ([0.0563, 1.0], None)
    """
    require_positive("value", value * 1.0)
    require_positive("eps", eps)
    top, height = peak()
    log_level = math.log(eps) / 2 - math.log(value)  # of tanh(a^2) sqrt(1 - a^2)
    if log_level > math.log(height):
        return None

    def above(log_small: float) -> float:  # the lower one, in log a^2: it may be far below 1
        return _log_tanh(log_small) + math.log1p(-math.exp(log_small)) / 2 - log_level

    def beyond(log_rest: float) -> float:  # the upper one, in log (1 - a^2)
        return math.log(math.tanh(-math.expm1(log_rest))) + log_rest / 2 - log_level

    def root(function, inner: float) -> float:
        if function(inner) <= 0:  # at the nose itself
            return inner
        return brentq(function, min(inner, 2 * log_level) - 9, inner, xtol=1e-14)

    lower = math.exp(root(above, 2 * math.log(top)) / 2)
    upper = math.sqrt(-math.expm1(root(beyond, math.log1p(-(top**2)))))
    return lower, upper


def rank_two(decay: float = 0.5, angle: float = math.atan(0.5)) -> tuple[Float[Tensor, "2 2"], SelfAttention]:
    r"""Two tokens of rank 2 that causal attention and division by the length keep, and that attract.

    .. math:: e W_V = e, \quad f W_V = \mu f, \quad \angle(e, f) = \varphi, \qquad
              x_1 = e, \quad x_2 = (-\cos(\psi - \varphi), \sin(\psi - \varphi)), \quad
              \sin\psi = \frac{\sin\varphi}{1 - \mu}

    To be used with ``causal_mask(2)``: token 1 sees itself, token 2 both with weight one half, W_QK = 0.
    Every pair that is close enough is drawn in, by the larger of mu and (1 - cos(psi - phi)) / mu a layer.

    decay: mu, between 0 and 1; angle: phi. Raises ``ValueError`` where no such pair exists, which is unless
    0 < sin(phi) < 1 - mu. Source: Theorem (Rank two) in chapter `layernorm`, after Wu et al. (2024).

    >>> x, attention = rank_two()
    >>> [[round(v, 3) for v in row] for row in x.tolist()]
    [[1.0, 0.0], [-0.8, 0.6]]
    >>> [[round(v, 3) for v in row] for row in attention(x, torch.ones(2, 2).tril().bool()).tolist()]
    [[1.0, 0.0], [-0.2, 0.15]]
    """
    if not (0 < decay < 1 and 0 < angle < math.pi / 2 and math.sin(angle) < 1 - decay):
        raise ValueError(
            f"angle: expected 0 < sin(angle) < 1 - decay with 0 < decay < 1, got {angle} and decay={decay}; "
            "use a smaller angle or decay"
        )
    turn = math.asin(math.sin(angle) / (1 - decay)) - angle
    x = torch.tensor([[1.0, 0.0], [-math.cos(turn), math.sin(turn)]], dtype=torch.float64)
    shear = -(1 - decay) / math.tan(angle)
    zero = torch.zeros(1, 2, 1, dtype=torch.float64)
    value = torch.tensor([[[1.0, 0.0], [shear, decay]]], dtype=torch.float64)
    return x, SelfAttention(w_q=zero, w_k=zero, w_v=value, w_o=torch.eye(2, dtype=torch.float64)[None])


def _root(x: Tensor, eps: float | int, axis: int) -> Tensor:
    """sqrt(mean of squares + eps) along an axis, without overflow or underflow of the squares."""
    if not 0 <= eps < math.inf:
        raise ValueError(f"eps: expected a number that is not negative, got {eps}; use for example 1e-5")
    largest = x.abs().amax(axis, keepdim=True)
    size = torch.where(largest > 0, largest, 1.0)
    root = size * (x / size).square().mean(axis, keepdim=True).sqrt()
    return torch.hypot(root, torch.full_like(root, math.sqrt(eps)))


def _divide(x: Tensor, eps: float | int, axis: int, wanted: str) -> Tensor:
    root = _root(x, eps, axis)
    require_all("x", root > 0, f"eps > 0 or {wanted}", "that do not", "use eps=1e-5")
    result = x / root
    require_float("result", result)
    return result


def _log_tanh(log_u: float) -> float:
    """log tanh(e^log_u), also where e^log_u underflows or tanh rounds to 1."""
    if log_u < -20:
        return log_u
    u = math.exp(min(log_u, 7.0))
    return math.log(-math.expm1(-2 * u)) - math.log1p(math.exp(-2 * u))
