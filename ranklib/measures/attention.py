"""Measures of an attention matrix P, one formula each. Row i of P says which keys query i looks at.

Every function raises ``TypeError`` or ``ValueError`` for a tensor that is not floating-point or that
contains NaN or infinity, and ``ValueError`` unless the rows are probabilities: non-negative, with sum 1
within the square root of the dtype's precision. Half precision is computed and returned in float32.
Leading axes, heads for example, are batch axes.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import measurable, require_all, require_shape
from ranklib._threads import eigenvalues


def _attention(p: Tensor) -> Tensor:
    """``p`` if its rows are non-negative and sum to 1 within the square root of the dtype's precision."""
    given, p = p, measurable("p", p)
    tol = torch.finfo(given.dtype).eps ** 0.5
    remedy = "normalise each row over the keys, p = scores.softmax(-1)"
    require_all("p", p >= 0, "non-negative weights", "entries that are negative", remedy)
    total = p.sum(-1)
    good = (total - 1).abs() <= tol
    require_all("p", good, f"rows that sum to 1 within {tol:.1e}", "rows that do not", remedy)
    return p


def _square_attention(p: Tensor) -> Tensor:
    p = _attention(p)
    ok = p.shape[-1] == p.shape[-2] and p.shape[-1] >= 2
    require_shape("p", p, "a square attention matrix with at least two tokens", ok)
    return p


def attention_entropy(p: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries"]:
    r"""The entropy of each row of attention, in nats.

    .. math:: -\sum_j P_{ij} \log P_{ij}, \qquad 0 \log 0 = 0

    Range [0, log n], one number for each query. *Low* is entropy collapse (each query looks at one key),
    *high* is uniform mixing: they are opposite troubles. Rows that are not probabilities raise
    ``ValueError``.

    >>> import torch
    >>> attention_entropy(torch.tensor([[0.5, 0.5], [0.0, 1.0]]))
    tensor([0.6931, 0.0000])

    Source: chapter `measure-your-own-model`.
    """
    return torch.special.entr(_attention(p)).sum(-1)


def spectral_gap(p: Float[Tensor, "*batch tokens tokens"]) -> Float[Tensor, "*batch"]:
    r"""One minus the modulus of the second eigenvalue: how fast powers of P forget, in the end.

    .. math:: 1 - |\lambda_2(P)|, \qquad |\lambda_1| \ge |\lambda_2| \ge \dots

    Range [0, 1]; 1 where P has equal rows, 0 where tokens never mix. For a non-normal P it says nothing
    about a single layer: look at ``dobrushin`` too. Needs two tokens and rows that
    are probabilities, else ``ValueError``.

    >>> import torch
    >>> spectral_gap(torch.tensor([[0.75, 0.25], [0.25, 0.75]]))
    tensor(0.5000)

    Source: chapter `measure-your-own-model`.
    """
    sizes = eigenvalues(_square_attention(p)).abs()
    return (1 - sizes.topk(2).values[..., 1]).clamp(0, 1)


def dobrushin(p: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch"]:
    r"""The largest total-variation distance of two rows of attention.

    .. math:: \tau(P) = \tfrac12 \max_{ik} \|P_i - P_k\|_1

    Range [0, 1], 0 where all rows are equal. Submultiplicative, tau(PQ) <= tau(P) tau(Q), and osc(PX) <=
    tau(P) osc(X): a certificate for a stack of layers. It is 1 as soon as two queries share no key, which
    says nothing about several layers. Rows that are not probabilities raise ``ValueError``.

    >>> import torch
    >>> dobrushin(torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25]]))
    tensor(0.2500)

    Source: chapter `measure-your-own-model`; the coefficient is Dobrushin's.
    """
    p = _attention(p)
    return (torch.cdist(p, p, p=1.0).amax((-2, -1)) / 2).clamp(max=1)
