"""Measures of collapse of tokens X (rows), one formula each.

Those by singular values are in :mod:`ranklib.measures.spectrum`, those of attention matrices in
:mod:`ranklib.measures.attention`.

They disagree by design (chapter `measure-your-own-model`): a large feature fakes collapse in the stable rank,
noise about equal rows hides it from the participation ratio, and rank one does not mean equal rows. Report at
least ``relative_residual``, ``mean_cosine`` and ``effective_rank`` together.

Below J = 11^T/n replaces every row by the mean row.
Every function raises ``TypeError`` or ``ValueError`` for a tensor that is not floating-point, that
contains NaN or infinity or that has no rows or columns, and ``ValueError`` where the measure is not
defined. Half precision is computed and returned in float32. Leading axes are batch axes.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import measurable, require_all, require_nonzero, require_shape
from ranklib.paper.centres import deviations, raw_mean_centre
from ranklib.paper.norms import raw_composite


def _frobenius(x: Tensor) -> Tensor:
    """Frobenius norm that neither underflows nor overflows in the squares."""
    largest = x.abs().amax((-2, -1), keepdim=True)
    scaled = x / torch.where(largest > 0, largest, 1)
    return scaled.square().sum((-2, -1)).sqrt() * largest[..., 0, 0]


def _unit_rows(x: Tensor) -> Tensor:
    x = measurable("x", x)
    require_shape("x", x, "at least two tokens", x.shape[-2] >= 2)
    largest = x.abs().amax(-1, keepdim=True)
    remedy = "leave out padding rows first"
    require_all("x", largest[..., 0] > 0, "rows that are not zero", "rows that are zero", remedy)
    scaled = x / largest
    return scaled / scaled.square().sum(-1, keepdim=True).sqrt()


def composite_residual(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The composite about the mean, relative to the composite of X.

    .. math:: \|X - JX\|_{1,\infty} \,/\, \|X\|_{1,\infty}

    Range [0, 2(1 - 1/n)], 0 when all tokens are equal; scale invariant. Can exceed 1, and is not rotation
    invariant. About the mean, not about the best centre; for that see ``residual_size``.

    >>> import torch
    >>> composite_residual(torch.eye(4, dtype=torch.float64))
    tensor(1.5000, dtype=torch.float64)

    Source: chapter `measure-your-own-model`; the measure of the paper's experiments.
    """
    x = measurable("x", x)
    require_nonzero(x, "a matrix", "there is nothing to be relative to; use mean_residual(x)")
    return raw_composite(deviations(x)) / raw_composite(x)


def mu(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The Euclidean distance of X from equal tokens.

    .. math:: \mu(X) = \|X - JX\|_F

    Range [0, inf), 0 when all tokens are equal; rotation invariant. On its own it depends on the size of
    the weights; divide by the size of X, as ``relative_residual`` does.

    >>> import torch
    >>> mu(torch.tensor([[1.0], [-1.0]]))
    tensor(1.4142)

    Source: chapter `measure-your-own-model`.
    """
    return _frobenius(deviations(measurable("x", x)))


def relative_residual(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The share of X that is not common to all tokens.

    .. math:: \mathrm{rel}(X) = \|X - JX\|_F \,/\, \|X\|_F

    Range [0, 1], 0 when all tokens are equal; scale and rotation invariant. One large feature that all
    tokens share makes it small although every other feature is alive.

    >>> import torch
    >>> relative_residual(torch.tensor([[1.0], [-1.0]]))
    tensor(1.)

    Source: chapter `measure-your-own-model`.
    """
    x = measurable("x", x)
    require_nonzero(x, "a matrix", "there is nothing to be relative to; use mu(x)")
    return _frobenius(deviations(x)) / _frobenius(x)


def hc_dc(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""High-frequency against constant part: what differs between tokens over what they share.

    .. math:: \|(I - J)X\|_F \,/\, \|JX\|_F = \mathrm{rel} / \sqrt{1 - \mathrm{rel}^2}

    HC is the high-frequency component (I - J)X and DC (a name from signal processing, "direct current")
    the constant component JX. Range [0, inf), 0 when all tokens are equal; scale and rotation invariant.
    Not defined where the mean row is zero, which raises; ``relative_residual`` is 1 there.

    >>> import torch
    >>> hc_dc(torch.tensor([[3.0], [1.0]]))
    tensor(0.5000)

    Source: chapter `measure-your-own-model`.
    """
    x = measurable("x", x)
    common = raw_mean_centre(x).unsqueeze(-2)
    constant = _frobenius(common) * x.shape[-2] ** 0.5
    remedy = "the ratio is infinite; use relative_residual(x)"
    good = constant > 4 * torch.finfo(x.dtype).eps * _frobenius(x)
    require_all("x", good, "a mean row that is not zero", "that are zero up to rounding", remedy)
    return _frobenius(deviations(x)) / constant


def oscillation(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The largest range of a feature over the tokens.

    .. math:: \mathrm{osc}(X) = \max_k\,(\max_i X_{ik} - \min_i X_{ik})

    Range [0, inf), 0 when all tokens are equal; unchanged by adding a common row. Certified through
    attention: osc(PX) <= dobrushin(P) osc(X). Not scale invariant, and one feature decides.

    >>> import torch
    >>> oscillation(torch.tensor([[0.0, 2.0], [1.0, -1.0]]))
    tensor(3.)

    Source: chapter `how-the-paper-measures`, the free lower bounds; chapter `measure-your-own-model`.
    """
    return raw_oscillation(measurable("x", x))


def raw_oscillation(x: Tensor) -> Tensor:
    """``oscillation`` for callers that have checked."""
    return (x.amax(-2) - x.amin(-2)).amax(-1)


def mean_cosine(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The mean cosine of two different tokens.

    .. math:: \frac{1^\top \hat G\, 1 - n}{n(n-1)}, \; \hat G = \hat X\hat X^\top, \hat X_i = X_i/\|X_i\|

    Range [-1/(n - 1), 1], 1 when all tokens point the same way; unchanged by positive scaling of any row.
    Centring first gives about -1/(n - 1) always, so it is not done. A value near 1 may be a shared offset
    (anisotropy) and no collapse. Needs two tokens and no zero row.

    >>> import torch
    >>> mean_cosine(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]))
    tensor(0.3333)

    Source: chapter `measure-your-own-model`.
    """
    unit = _unit_rows(x)
    tokens = unit.shape[-2]
    return (unit.sum(-2).square().sum(-1) - tokens) / (tokens * (tokens - 1))


def mean_average_distance(x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""The mean cosine distance of two different tokens (MAD), over all pairs.

    .. math:: \frac{1}{n(n-1)} \sum_{i \ne j} (1 - \hat X_i \cdot \hat X_j) = \frac{1}{n-1}\,\mu(\hat X)^2

    Range [0, n/(n - 1)], hence within [0, 2], 0 when all tokens point the same way; unchanged by positive
    scaling of any row. It is 1 - mean_cosine, computed as mu(Xhat)^2 / (n - 1), which does not cancel
    when the tokens almost agree. Blind to their lengths. Needs two tokens and no zero row.

    >>> import torch
    >>> mean_average_distance(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]))
    tensor(0.6667)

    Source: chapter `measure-your-own-model`.
    """
    unit = _unit_rows(x)
    tokens = unit.shape[-2]
    return _frobenius(deviations(unit)).square() / (tokens - 1)


def dirichlet_energy(
    x: Float[Tensor, "*batch tokens dim"],
    adjacency: Float[Tensor, "*batch tokens tokens"] | None = None,
) -> Float[Tensor, "*batch"]:
    r"""How much the tokens differ along the edges of a graph.

    .. math:: \tfrac12 \sum_{ij} a_{ij} \|X_i / \sqrt{d_i} - X_j / \sqrt{d_j}\|_2^2, \quad d_i = \sum_j a_{ij}

    The default is the complete graph with loops, a_ij = 1 and d_i = n; there the energy is exactly
    mu(X)^2. Range [0, inf); rotation invariant. Not scale invariant: divide by the squared size of X
    before comparing layers. With unequal degrees the zero set is X_i proportional to sqrt(d_i), not equal
    tokens. The adjacency must be symmetric and non-negative with positive degrees, else ``ValueError``.

    >>> import torch
    >>> x = torch.tensor([[1.0], [-1.0], [3.0]])
    >>> round(dirichlet_energy(x).item(), 5), round(mu(x).item() ** 2, 5)
    (8.0, 8.0)

    Source: chapter `measure-your-own-model`.
    """
    x = measurable("x", x)
    tokens = x.shape[-2]
    if adjacency is None:
        graph = x.new_ones((*x.shape[:-2], tokens, tokens))
    else:
        graph = measurable("adjacency", adjacency).to(x.dtype)
    wanted = (*x.shape[:-2], tokens, tokens)
    require_shape("adjacency", graph, f"a weight for each pair, {wanted}", tuple(graph.shape) == wanted)
    require_all("adjacency", graph >= 0, "non-negative weights", "that are negative", "drop those edges")
    require_all("adjacency", graph == graph.mT, "a symmetric graph", "that differ", "use (a + a.mT) / 2")
    degree = graph.sum(-1)
    remedy = "add loops, or leave these tokens out"
    require_all("adjacency", degree > 0, "positive degrees", "tokens without an edge", remedy)
    scaled = x / degree.sqrt().unsqueeze(-1)
    distance = torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist")
    return (graph * distance.square()).sum((-2, -1)) / 2
