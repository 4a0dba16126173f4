"""Differences from one row through LayerNorm, linear maps, ReLU and GELU, with the exponent apart.

Tokens are carried as 1 row^T + 2^exponent mantissa. For each kind of module there is a formula for
f(a + t) - f(a), with a the row and t = 2^exponent mantissa, that subtracts no two nearly equal numbers:
the difference is accurate when t is far below the rounding of a, also where t itself underflows.

**ReLU.** max(t, -a) for a >= 0, max(a + t, 0) for a < 0, compared in units of 2^exponent.
**GELU.** g(a + t) - g(a) = t * integral_0^1 g'(a + s t) ds, by Gauss-Legendre quadrature with 8 nodes where
|t| max(1, |a|) <= 1/2 (its error is below 1e-17 there). Beyond, g(z) = relu(z) - h(z) with
h(z) = |z| Phi(-|z|) <= 0.17: the first part by the rule above, the second by subtraction.
**LayerNorm.** With u and v the parts of a and of the mantissa that are centred over features, and
s_i^2 = mean((u + 2^e v_i)^2) + eps, s_0 the same without v: the difference is gain * 2^e times
v_i / s_i - u d_i / (s_0 s_i (s_0 + s_i)), d_i = mean(2 u v_i + 2^e v_i^2).

**What is not resolved.** The row itself is known to 1e-16 only. Where a ReLU's a is nearer to 0 than that and
t smaller still, the rounding of a decides the branch. LayerNorm removes the part of v along u: if nothing
else is in v, what it leaves is rounding.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from ranklib._checks import require_float
from ranklib.exact.scaled import normalise, times_power

Split = tuple[Tensor, Tensor, int]  # (row, mantissa, exponent), the tokens 1 row^T + 2^exponent mantissa

# Gauss-Legendre quadrature on [0, 1].
NODES, WEIGHTS = ((part / 2).tolist() for part in np.polynomial.legendre.leggauss(8))
NODES = [0.5 + node for node in NODES]
LARGEST_EXPONENT = 300


def through(
    module: nn.Module, row: Float[Tensor, " dim"], mantissa: Float[Tensor, "tokens dim"], exponent: int
) -> tuple[Float[Tensor, " out"], Float[Tensor, "tokens out"], int]:
    """The tokens 1 row^T + 2^exponent mantissa after ``module``, in the same form and without cancellation.

    f(1 a^T + T) = 1 f(a)^T + (f(1 a^T + T) - 1 f(a)^T), the bracket by the rules at the head of this file,
    all in float64. Modules: Linear, ReLU, GELU (both), LayerNorm over the last axis, Identity, Dropout in
    eval mode, and Sequential of these. Raises ``TypeError`` for any other, ``ValueError`` for NaN or
    infinity, a residual above 2^300, or a token that LayerNorm with eps = 0 would divide by zero. Source:
    chapter `mlps` (MLP) and chapter `layernorm` (LayerNorm).

    >>> row, residual = torch.tensor([1.0, -1.0]).double(), torch.tensor([[0.5, 0.5], [-0.5, -0.5]]).double()
    >>> row, residual, exponent = through(nn.ReLU(), row, residual, -2000)
    >>> row.tolist(), residual.tolist(), exponent
    ([1.0, 0.0], [[0.5, 0.0], [-0.5, 0.0]], -2000)
    """
    require_float("row", row)
    require_float("mantissa", mantissa)
    mantissa, exponent = normalise((mantissa.double(), exponent))
    if exponent > LARGEST_EXPONENT:
        raise ValueError(
            f"exponent: expected a residual up to 2^{LARGEST_EXPONENT}, got 2^{exponent}; "
            "scale the tokens down"
        )
    rule = RULES.get(type(module))
    if rule is None:
        kinds = ", ".join(kind.__name__ for kind in RULES)
        raise TypeError(
            f"module: expected one of {kinds}, got {type(module).__name__}; build the layer from these"
        )
    with torch.no_grad():
        row, mantissa, exponent = rule(module, row.double(), mantissa, exponent)
        return row, *normalise((mantissa, exponent))


def _sequential(module: nn.Sequential, row: Tensor, mantissa: Tensor, exponent: int) -> Split:
    for part in module:
        row, mantissa, exponent = through(part, row, mantissa, exponent)
    return row, mantissa, exponent


def _identity(module: nn.Module, row: Tensor, mantissa: Tensor, exponent: int) -> Split:
    if isinstance(module, nn.Dropout) and module.training and module.p > 0:
        raise ValueError(f"module: expected no dropout, got {module}; call eval()")
    return row, mantissa, exponent


def _linear(module: nn.Linear, row: Tensor, mantissa: Tensor, exponent: int) -> Split:
    weight = module.weight.double()
    new = row @ weight.T
    return new if module.bias is None else new + module.bias.double(), mantissa @ weight.T, exponent


def _relu(module: nn.ReLU, row: Tensor, mantissa: Tensor, exponent: int) -> Split:
    return row.relu(), relu_difference(times_power(row, -exponent), mantissa), exponent


def relu_difference(a: Tensor, t: Tensor) -> Tensor:
    """relu(a + t) - relu(a); a may be infinite."""
    return torch.where(a >= 0, torch.maximum(t, -a), (a + t).relu())


def _gelu(module: nn.GELU, row: Tensor, mantissa: Tensor, exponent: int) -> Split:
    cdf, cdf_slope = CDFS[module.approximate]
    step = times_power(mantissa, exponent)
    mean_slope = torch.zeros_like(step)
    for node, weight in zip(NODES, WEIGHTS):
        z = row + node * step
        mean_slope = mean_slope + weight * (cdf(z) + z * cdf_slope(z))

    def h(z: Tensor) -> Tensor:
        return z.abs() * cdf(-z.abs())

    far = relu_difference(row, step) - (h(row + step) - h(row))
    near = step.abs() * row.abs().clamp(min=1) <= 0.5
    difference = torch.where(near, mantissa * mean_slope, times_power(far, -exponent))
    return row * cdf(row), difference, exponent


def _layer_norm(module: nn.LayerNorm, row: Tensor, mantissa: Tensor, exponent: int) -> Split:
    if tuple(module.normalized_shape) != tuple(row.shape):
        raise ValueError(
            f"module: expected LayerNorm over the last axis, ({len(row)},), got "
            f"{tuple(module.normalized_shape)}; build it with nn.LayerNorm({len(row)})"
        )
    u, v = row - row.mean(), mantissa - mantissa.mean(-1, keepdim=True)
    root = (u.square().mean() + module.eps).sqrt()
    step = times_power(v, exponent)
    roots = ((u + step).square().mean(-1, keepdim=True) + module.eps).sqrt()
    if not (roots > 0).all():
        raise ValueError(
            f"module: expected eps > 0 or tokens that vary over features, got eps={module.eps} and "
            f"{int((roots == 0).sum())} constant tokens; use eps=1e-5"
        )
    gap = (2 * u * v + step * v).mean(-1, keepdim=True)
    unit = u / root if root > 0 else u  # root = 0 only where u = 0: any row may serve as the base
    gain = 1.0 if module.weight is None else module.weight.double()
    bias = 0.0 if module.bias is None else module.bias.double()
    return gain * unit + bias, gain * (v - unit * gap / (root + roots)) / roots, exponent


def _normal_cdf(z: Tensor) -> Tensor:
    return torch.special.erfc(-z / 2**0.5) / 2


def _normal_density(z: Tensor) -> Tensor:
    return (-z.square() / 2).exp() / (2 * math.pi) ** 0.5


# Of torch's GELU(approximate="tanh"): (1 + tanh(y)) / 2 = sigmoid(2 y), y = sqrt(2 / pi) (z + 0.044715 z^3).
def _tanh_argument(z: Tensor) -> Tensor:
    return (8 / math.pi) ** 0.5 * (z + 0.044715 * z**3)


def _tanh_cdf(z: Tensor) -> Tensor:
    return _tanh_argument(z).sigmoid()


def _tanh_cdf_slope(z: Tensor) -> Tensor:
    y = _tanh_argument(z)
    return y.sigmoid() * (-y).sigmoid() * (8 / math.pi) ** 0.5 * (1 + 3 * 0.044715 * z.square())


CDFS = {"none": (_normal_cdf, _normal_density), "tanh": (_tanh_cdf, _tanh_cdf_slope)}
RULES = {
    nn.Linear: _linear,
    nn.ReLU: _relu,
    nn.GELU: _gelu,
    nn.LayerNorm: _layer_norm,
    nn.Identity: _identity,
    nn.Dropout: _identity,
    nn.Sequential: _sequential,
}
