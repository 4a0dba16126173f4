r"""Lipschitz constants of a row-wise map in both matrix norms, what they bound, and how closely.

A map phi acts on every row of Y alone. Two constants carry it through the two norms of the theorems. With
l_km the Lipschitz constant of output k in coordinate m, uniform over the other coordinates,

    lambda_1 = max_k sum_m l_km  for the largest column sum,    lambda_inf  for the largest row sum,

where lambda_inf is the Lipschitz constant in the 1-norm of rows, at most max_m sum_k l_km. Then
||res phi(Y)|| <= sqrt(lambda_1 lambda_inf) ||res Y||. A constant for rows alone, in any one norm, does not
do. For linear, activation, linear the l_km are bounded by a formula; Jacobians bound both from below.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ranklib._checks import require_float, require_instance, require_shape
from ranklib.exact.propagation import propagate_layer
from ranklib.exact.state import ResidualState
from ranklib.exact.verdicts import Check, log10
from ranklib.model.layers import Layer
from ranklib.paper.checks import check_layer
from ranklib.paper.enclosure import enclosure
from ranklib.paper.norms import raw_col_sum, raw_row_sum

# GELU'(z) = Phi(z) + z phi(z) is largest at z = sqrt 2, least at -sqrt 2, and GELU'(-z) = 1 - GELU'(z).
GELU_SLOPE = (1 + math.erf(1)) / 2 + math.exp(-1) / math.sqrt(math.pi)

SLOPES: dict[type, tuple[float, float]] = {
    nn.Identity: (1.0, 1.0),
    nn.ReLU: (0.0, 1.0),
    nn.Tanh: (0.0, 1.0),
    nn.GELU: (1 - GELU_SLOPE, GELU_SLOPE),
}
"""Least and largest slope of each activation."""


def slope_range(activation: nn.Module) -> tuple[float, float]:
    """The least and the largest slope of an activation.

    Raises ``TypeError`` for one that is not in ``SLOPES``, which GELU(approximate="tanh") is not. Source:
    Proposition (Two linear maps) in chapter `printed-theorems`.

    >>> slope_range(nn.ReLU()), [round(slope, 3) for slope in slope_range(nn.GELU())]
    ((0.0, 1.0), [-0.129, 1.129])
    """
    if type(activation) not in SLOPES or getattr(activation, "approximate", "none") != "none":
        kinds = ", ".join(kind.__name__ for kind in SLOPES)
        raise TypeError(
            f"activation: expected one of {kinds}, got {activation}; pass slopes=(least, largest) yourself"
        )
    return SLOPES[type(activation)]


@torch.no_grad()
def coordinate_constants(
    mlp: nn.Module, skip: float | int = 0, slopes: tuple[float, float] | None = None
) -> Float[Tensor, "out dim"]:
    r"""A bound of every l_km of y -> skip y + mlp(y), for mlp = linear, activation, linear, or linear alone.

    .. math:: \ell_{km} \le \max(b P - a N + s,\; b N - a P - s), \qquad s = \text{skip}\,\delta_{km}

    where the activation's slopes lie in [a, b] and P, N are the sums over j of the positive and of the
    negative parts of (W_2)_kj (W_1)_jm, weights as in ``nn.Linear``. It is the largest absolute slope if
    units may have any slopes, so it is exact where all patterns occur. Computed in float64. ``slopes``
    overrides ``SLOPES``. Raises ``TypeError`` for another kind of module or activation, ``ValueError`` for
    slopes out of order, or a skip that is not finite or whose map is not square. Source: Proposition (Two
    linear maps) in chapter `printed-theorems`.

    >>> mlp = nn.Sequential(nn.Linear(1, 2, bias=False), nn.ReLU(), nn.Linear(2, 1, bias=False)).double()
    >>> mlp[0].weight.data, mlp[2].weight.data = torch.tensor([[1.0], [-1.0]]), torch.tensor([[3.0, 3.0]])
    >>> coordinate_constants(mlp), coordinate_constants(mlp, slopes=(-1, 1))  # 3 |x|, and any unit of slope 1
    (tensor([[3.]], dtype=torch.float64), tensor([[6.]], dtype=torch.float64))
    """
    if isinstance(mlp, nn.Linear):
        outer, inner, (low, high) = mlp.weight.double(), None, (1.0, 1.0)
    else:
        kinds = [type(part) for part in mlp] if isinstance(mlp, nn.Sequential) else []
        if len(kinds) != 3 or kinds[0] != nn.Linear or kinds[2] != nn.Linear:
            raise TypeError(
                f"mlp: expected Linear or Sequential(Linear, activation, Linear), got {type(mlp).__name__} "
                f"of {[kind.__name__ for kind in kinds]}; bound its parts and multiply"
            )
        inner, outer = mlp[0].weight.double(), mlp[2].weight.double()
        low, high = slope_range(mlp[1]) if slopes is None else slopes
    if not -math.inf < low <= high < math.inf:
        raise ValueError(f"slopes: expected finite (least, largest), got {(low, high)}; swap them")
    if not -math.inf < skip < math.inf:
        raise ValueError(f"skip: expected a finite number, got {skip}; use True or False")
    if inner is None:
        plus, minus = outer.relu(), (-outer).relu()
    else:
        plus = outer.relu() @ inner.relu() + (-outer).relu() @ (-inner).relu()
        minus = outer.relu() @ (-inner).relu() + (-outer).relu() @ inner.relu()
    require_float("weights", plus + minus)
    own = torch.zeros_like(plus)
    if skip:
        require_shape("skip", plus, "as many outputs as inputs", plus.shape[0] == plus.shape[1])
        own.diagonal().fill_(float(skip))
    return torch.maximum(high * plus - low * minus + own, high * minus - low * plus - own)


def lambda_1(
    mlp: nn.Module, skip: float | int = 0, slopes: tuple[float, float] | None = None
) -> Float[Tensor, ""]:
    r"""The constant for column sums: max_k sum_m l_km, with the bounds of ``coordinate_constants``.

    .. math:: \|\varphi(Y) - 1\varphi(y)^\top\|_1 \le \lambda_1 \|Y - 1y^\top\|_1

    Arguments and errors as there. Source: Theorem (Both norms) in chapter `printed-theorems`.

    >>> linear = nn.Linear(2, 1, bias=False)
    >>> linear.weight.data = torch.tensor([[1.0, -1.0]])
    >>> lambda_1(linear).item(), lambda_inf(linear).item(), round(lip(linear).item(), 3)
    (2.0, 1.0, 1.414)
    """
    return raw_row_sum(coordinate_constants(mlp, skip, slopes))


def lambda_inf(
    mlp: nn.Module, skip: float | int = 0, slopes: tuple[float, float] | None = None
) -> Float[Tensor, ""]:
    r"""A bound of the constant for row sums, the Lipschitz constant in the 1-norm: max_m sum_k l_km.

    .. math:: \|\varphi(Y) - 1\varphi(y)^\top\|_\infty \le \lambda_\infty \|Y - 1y^\top\|_\infty

    Arguments and errors as in ``coordinate_constants``. Source: Theorem (Both norms) in chapter `printed-theorems`.

    >>> linear = nn.Linear(2, 2, bias=False)
    >>> linear.weight.data = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    >>> lambda_1(linear).item(), lambda_inf(linear).item()
    (2.0, 2.0)
    """
    return raw_col_sum(coordinate_constants(mlp, skip, slopes))


def lip(
    mlp: nn.Module, skip: float | int = 0, slopes: tuple[float, float] | None = None
) -> Float[Tensor, ""]:
    """lambda = sqrt(lambda_1 lambda_inf), by which the residual grows at most.

    Arguments and errors as in ``coordinate_constants``. Source: Theorem (Both norms) in chapter `printed-theorems`.

    >>> lip(nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 3)), skip=1) >= 1
    tensor(True)
    """
    return (lambda_1(mlp, skip, slopes) * lambda_inf(mlp, skip, slopes)).sqrt()


def attained(
    phi: Callable[[Tensor], Tensor], y: Float[Tensor, " dim"]
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    r"""What rows near ``y`` attain of both constants: ||J||_inf and ||J||_1 of the Jacobian J_km at y.

    .. math:: \|J\|_\infty = \max_k \sum_m |J_{km}| \le \lambda_1, \qquad
              \|J\|_1 = \max_m \sum_k |J_{km}| \le \lambda_\infty

    The rows y + t e_m, one for each m, have both norms |t|; what phi makes of them has |t| times these, as t
    tends to 0. ``phi`` maps a row to a row. Raises ``TypeError`` or ``ValueError`` unless y and the Jacobian
    are finite floats of shapes (dim) and (out, dim). Source: Proposition (Attained) in chapter `printed-theorems`.

    >>> [value.item() for value in attained(lambda y: y[:1] - y[1:], torch.tensor([0.3, 0.7]))]
    [2.0, 1.0]
    """
    require_float("y", y)
    require_shape("y", y, "one row, (dim)", y.ndim == 1 and len(y) > 0)
    jacobian = torch.autograd.functional.jacobian(phi, y.detach())
    require_float("jacobian", jacobian)
    require_shape("jacobian", jacobian, "(out, dim)", jacobian.ndim == 2 and len(jacobian) > 0)
    return raw_row_sum(jacobian), raw_col_sum(jacobian)


def check_mlp_layer(
    layer: Layer,
    x: Float[Tensor, "tokens dim"] | ResidualState,
    bound: str = "separate_many_heads",
    tol: float = 1e-3,
) -> Check:
    """A layer of attention without skip, then an MLP: lambda times a bound of the attention, measured.

    ``bound`` is one of ``ranklib.paper.bounds.BOUNDS``, with its hypotheses; lambda = ``lip(mlp, mlp_skip)``,
    or 1 without an MLP. Raises ``ValueError`` for a skip round the attention or a norm, and as
    ``check_layer`` and ``lip`` do. Source: Corollary (L layers with MLPs) in chapter `printed-theorems`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> layer = Layer.random(6, 2, generator=generator, mlp_dim=7, skip=False, mlp_skip=False)
    >>> found = check_mlp_layer(layer, torch.randn(3, 6, dtype=torch.float64, generator=generator))
    >>> found.holds, found.applies, found.slack > 1
    (True, True, True)
    """
    require_instance("layer", layer, Layer)
    if layer.skip or layer.norm != "none":
        raise ValueError(
            f"layer: expected attention without skip or norm, got skip={layer.skip}, norm={layer.norm!r}; "
            'use layer.switched(skip=False, norm="none")'
        )
    state = ResidualState.of(x)
    found = check_layer(layer.attention, state, bound, tol=tol)
    factor = 1.0 if layer.mlp is None else float(lip(layer.mlp, layer.mlp_skip))
    measured = enclosure(propagate_layer(state, layer), tol)
    bound = found.log10_bounds[1] + log10(factor)
    return Check((-math.inf, bound), measured, found.hypotheses, found.applies)
