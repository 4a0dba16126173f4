"""Measures of collapse by singular values: how many directions the tokens X (rows) use.

Below s_1 >= s_2 >= ... are the singular values of X. What the functions raise is said in
:mod:`ranklib.measures.tokens`.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ranklib._checks import measurable, require_nonzero, require_shape
from ranklib._threads import singular_values
from ranklib.paper.centres import deviations


def _spectrum(x: Tensor, what: str = "a matrix") -> Tensor:
    """Singular values over the largest one; raises for a zero matrix."""
    require_nonzero(x, what, "a zero matrix has no such rank; leave it out, or report it as collapsed")
    singular = singular_values(x / x.abs().amax((-2, -1), keepdim=True))
    return singular / singular[..., :1]


def stable_rank(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""How many directions carry as much energy as the strongest one.

    .. math:: \|X\|_F^2 \,/\, s_1^2

    Range [1, rank], 1 for rank one; scale and rotation invariant. One big feature fakes collapse, and
    rank one does not mean equal tokens.

    >>> import torch
    >>> stable_rank(torch.diag(torch.tensor([2.0, 1.0])))
    tensor(1.2500)

    Source: chapter `measure-your-own-model`.
    """
    return _spectrum(measurable("x", x)).square().sum(-1)


def gram_stable_rank(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The stable rank of the Gram matrix of the tokens, X X^T.

    .. math:: \sum_i s_i^4 \,/\, s_1^4

    Range [1, rank], 1 for rank one, never above the stable rank of X; scale and rotation invariant. Same
    cautions as ``stable_rank``, with whose value it is easily confused.

    >>> import torch
    >>> gram_stable_rank(torch.diag(torch.tensor([2.0, 1.0])))
    tensor(1.0625)

    Source: chapter `measure-your-own-model`.
    """
    return _spectrum(measurable("x", x)).pow(4).sum(-1)


def effective_rank(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The exponential of the entropy of the normalised singular values.

    .. math:: \exp\Big(-\sum_i q_i \log q_i\Big), \qquad q_i = s_i \,/\, \textstyle\sum_j s_j

    Range [1, rank], 1 for rank one; scale and rotation invariant. It takes s, not s^2 (that variant is
    smaller), and q is s over its sum, not a softmax of s. Rank one does not mean equal tokens.

    >>> import torch
    >>> round(effective_rank(torch.eye(5)).item(), 5)
    5.0

    Source: chapter `measure-your-own-model`; Roy and Vetterli, The effective rank (2007).
    """
    singular = _spectrum(measurable("x", x))
    share = singular / singular.sum(-1, keepdim=True)
    return torch.special.entr(share).sum(-1).exp()


def participation_ratio(
    x: Float[Tensor, "*batch tokens dim"], centred: bool = True
) -> Float[Tensor, "*batch"]:
    r"""How many principal directions the variance is spread over.

    .. math:: \Big(\sum_i \lambda_i\Big)^2 \Big/ \sum_i \lambda_i^2

    The lambda are the eigenvalues of the covariance, of X - JX if ``centred`` and of X if not. Range [1,
    rank]; scale and rotation invariant. Centred, the rank is at most n - 1, and equal tokens raise, as
    they have no covariance. Blind to collapse: equal tokens plus a little noise have the ratio of the
    noise.

    >>> import torch
    >>> round(participation_ratio(torch.eye(5, dtype=torch.float64)).item(), 9)
    4.0

    Source: chapter `measure-your-own-model`.
    """
    x = measurable("x", x)
    energy = _spectrum(deviations(x) if centred else x, "a covariance" if centred else "a matrix").square()
    return energy.sum(-1).square() / energy.square().sum(-1)


def numerical_rank(x: Float[Tensor, "*batch tokens dim"], tol: float) -> Int[Tensor, "*batch"]:
    r"""The number of singular values above a share of the largest.

    .. math:: \#\{i : s_i > \mathrm{tol} \cdot s_1\}

    Range 0 (only for X = 0) to min(n, d); scale invariant. ``tol`` decides everything, so it has no
    default; it must be in [0, 1), else ``ValueError``. The exact rank does not collapse with depth, only
    the distance to equal rows does.

    >>> import torch
    >>> numerical_rank(torch.diag(torch.tensor([1.0, 1e-2, 1e-4])), tol=1e-3)
    tensor(2)

    Source: chapter `measure-your-own-model`.
    """
    x = measurable("x", x)
    if not 0 <= tol < 1:
        raise ValueError(f"tol: expected a number in [0, 1), got {tol}; use for example tol=1e-6")
    largest = x.abs().amax((-2, -1), keepdim=True)
    singular = singular_values(x / torch.where(largest > 0, largest, 1))
    return (singular > tol * singular[..., :1]).sum(-1)


def isometry_gap(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""How far the tokens are from orthogonal and equally long: arithmetic over geometric mean.

    .. math:: \log\frac{\mathrm{tr}\,G}{n} - \frac1n \log\det G, \qquad G = XX^\top

    Range [0, inf], 0 when the tokens are orthogonal and of one length, infinite when they are linearly
    dependent; scale and rotation invariant. Needs n <= d, else det G = 0 always and it raises. Singular
    values below d eps s_1 count as zero, as they are rounding.

    >>> import torch
    >>> isometry_gap(torch.diag(torch.tensor([2.0, 1.0])))
    tensor(0.2231)

    Source: chapter `measure-your-own-model`.
    """
    x = measurable("x", x)
    tokens, dim = x.shape[-2:]
    require_shape("x", x, "no more tokens than features", tokens <= dim)
    singular = _spectrum(x)
    singular = torch.where(singular > dim * torch.finfo(x.dtype).eps, singular, 0)
    return singular.square().mean(-1).log() - 2 * singular.log().mean(-1)
