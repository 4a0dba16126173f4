r"""What counteracts the collapse, in the size of the diameter theorem: skip, MLP, LayerNorm, positions, masks, all.

Each part changes one factor of ``diam SA(X) <= tau(diam X) diam X`` (:mod:`ranklib.theory.diameters`). Near equal
tokens the factor without parts is 0, hence the cube; a part that makes it positive makes the collapse geometric, and
a skip makes it 1.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ranklib._checks import require_float, require_instance, require_shape
from ranklib.exact.verdicts import Bounds
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer
from ranklib.model.softmax import require_mask
from ranklib.theory.diameters import layer_share, tilt_range
from ranklib.theory.mlps import slope_range
from ranklib.theory.sizes import diameter, operator_size, require_norm


def bound_skip(attention: SelfAttention, d: float, skip: float = 1.0, norm: str = "l2", **parts) -> Bounds:
    r"""One attention layer with a skip of strength alpha, from both sides.

    .. math:: (|\alpha| - \tau(d))\,d \le \mathrm{diam}(\alpha X + \mathrm{SA}(X)) \le (|\alpha| + \tau(d))\,d

    With alpha = 1 a small diameter changes by a share of at most c d^2 a layer: the slope at 0 is 1. ``parts`` are
    the position range and the mask contraction of ``layer_share``. Raises ``TypeError`` or ``ValueError`` as
    ``layer_share`` does, and for a skip that is not finite. Source: Theorem (Skip) in chapter `skip-connections`.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> found = bound_skip(SelfAttention(w_q=one, w_k=one, w_v=-one, w_o=one), 0.2)
    >>> round(found.lower, 4), round(found.upper, 4)
    (0.198, 0.202)
    """
    if isinstance(skip, Tensor) or not float("-inf") < skip < float("inf"):
        raise ValueError(f"skip: expected a finite number, got {skip}; use 1.0 for an ordinary skip")
    share = layer_share(attention, d, norm, **parts)
    require_shape("d", share, "one number", share.ndim == 0)
    return Bounds.of(max(abs(skip) - share.item(), 0.0) * float(d), (abs(skip) + share.item()) * float(d))


@torch.no_grad()
def mlp_size(mlp: nn.Module, norm: str = "l2") -> float:
    r"""A Lipschitz constant of an MLP, row by row, in the norm of the diameter.

    .. math:: \mathrm{diam}\,f(X) \le \lambda\,\mathrm{diam}\,X, \qquad
              \lambda = \prod_i \|W_i\| \prod_j \sup|\varphi_j'|

    mlp: an ``nn.Linear`` or an ``nn.Sequential`` of linear maps and activations with a known slope. Biases
    cancel. Raises ``TypeError`` for other modules, ``ValueError`` for an unknown norm. Source: Theorem (MLP) in
    chapter `mlps`.

    >>> linear = nn.Linear(2, 2)
    >>> _ = linear.weight.data.copy_(torch.tensor([[3.0, 0.0], [0.0, 1.0]]))
    >>> round(mlp_size(nn.Sequential(linear, nn.ReLU(), linear)), 4)
    9.0
    """
    require_instance("mlp", mlp, nn.Module)
    require_norm(norm)
    size = 1.0
    for part in mlp if isinstance(mlp, nn.Sequential) else [mlp]:
        if isinstance(part, nn.Linear):
            size *= float(operator_size(part.weight.mT, norm))
        else:
            size *= max(abs(slope) for slope in slope_range(part))
    return size


def norm_size(module: nn.Module, x: Float[Tensor, "*batch tokens dim"]) -> Float[Tensor, "*batch"]:
    r"""How much LayerNorm or RMSNorm can stretch the diameter of these tokens, in the Euclidean norm.

    .. math:: \mathrm{diam}\,N(X) \le \frac{\max_k|g_k|}{s}\,\mathrm{diam}\,X, \qquad
              s = \min_i \sqrt{\|z_i\|^2/d + \varepsilon}

    z is the token, for LayerNorm after the subtraction of its mean; g is the gain. 1/s is the exact Lipschitz
    constant on the tokens with at least that deviation.

    Raises ``TypeError`` for a module that is neither ``nn.LayerNorm`` nor ``nn.RMSNorm``, ``ValueError`` for
    NaN, infinity, a wrong width, or a token of deviation zero without epsilon. Source: Theorem (Stretch) in chapter
    `layernorm`.

    >>> round(norm_size(nn.LayerNorm(2, eps=0.0), torch.tensor([[3.0, 1.0], [0.5, -0.5]])).item(), 4)
    2.0
    """
    if not isinstance(module, nn.LayerNorm | nn.RMSNorm):
        raise TypeError(f"module: expected nn.LayerNorm or nn.RMSNorm, got {type(module).__name__}; pass one")
    require_float("x", x)
    wanted = tuple(module.normalized_shape)
    require_shape("x", x, f"(..., tokens, {wanted[-1]})", x.ndim >= 2 and x.shape[-1:] == wanted)
    centred = x - x.mean(-1, keepdim=True) if isinstance(module, nn.LayerNorm) else x
    eps = torch.finfo(x.dtype).eps if module.eps is None else module.eps
    least = (centred.square().mean(-1) + eps).sqrt().amin(-1)
    if not (least > 0).all():
        raise ValueError("x: expected tokens that vary, got one of deviation 0; pass a module with eps > 0")
    gain = 1.0 if module.weight is None else module.weight.detach().abs().amax().item()
    return gain / least


def position_range(bias: Float[Tensor, "*heads tokens keys"]) -> Float[Tensor, "*heads"]:
    r"""How far the position terms of two query rows differ, up to a constant of each row.

    .. math:: b = \max_{i,k}\,\mathrm{osc}_j\,(B_{ij} - B_{kj})

    bias: finite position terms of each head; a mask is no bias (``mask_contraction``). Raises as ``tilt_range``.
    Source: Proposition (Position terms) in chapter `masks-and-positions`.

    >>> position_range(torch.tensor([[0.0, -1.0], [-1.0, 0.0]])).item()
    2.0
    """
    return tilt_range(bias)


def mask_contraction(
    scores: Float[Tensor, "*batch tokens tokens"], mask: Bool[Tensor, "..."]
) -> Float[Tensor, "*batch"]:
    r"""How far one row of scores is averaged differently under the masks of two queries.

    .. math:: m = \max_{i,k}\,\mathrm{TV}\bigl(\mathrm{softmax}(s_k \mid M_i), \mathrm{softmax}(s_k \mid M_k)\bigr)

    With it ``diam SA(X) <= sum_h nu_h min(1, m_h + tanh(omega_h d^2 / 4)) d``. At a common row all rows s_k agree and m
    is the contraction coefficient of the masked attention: 1/2 for a causal pair with equal scores. It is 1 as
    soon as two queries share no key.

    Raises ``TypeError`` or ``ValueError`` for scores with NaN or infinity, a mask that is not boolean, does not
    fit, or leaves a row empty. Source: Proposition (Masks) in chapter `masks-and-positions`.

    >>> mask_contraction(torch.zeros(2, 2), torch.tensor([[True, False], [True, True]])).item()
    0.5
    """
    require_float("scores", scores)
    ok = scores.ndim >= 2 and scores.shape[-1] == scores.shape[-2] > 0
    require_shape("scores", scores, "(..., tokens, tokens) with at least one token", ok)
    require_mask(mask, scores)
    mask = mask.broadcast_to(scores.shape)
    largest = scores.new_zeros(scores.shape[:-2])
    for k in range(scores.shape[-1]):
        rows = scores[..., k : k + 1, :].expand(scores.shape).masked_fill(~mask, -torch.inf).softmax(-1)
        moved = (rows - rows[..., k : k + 1, :]).abs().sum(-1) / 2
        largest = torch.maximum(largest, moved.amax(-1))
    return largest


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockBound(Bounds):
    """A bound of a block and its parts: shares of attention and MLP with the stretch of their norms."""

    attention: float
    mlp: float
    stretch_1: float
    stretch_2: float


@torch.no_grad()
def bound_block(
    layer: Layer, x: Float[Tensor, "tokens dim"], mask: Bool[Tensor, "..."] | None = None, **parts
) -> BlockBound:
    r"""The diameter after a whole block, Euclidean, from both sides.

    .. math:: (|\beta| - \lambda\,\tfrac{g_2}{s_2})(|\alpha| - \tau(e)\,\tfrac{g_1}{s_1})\,d \le d' \le
              (|\beta| + \lambda\,\tfrac{g_2}{s_2})(|\alpha| + \tau(e)\,\tfrac{g_1}{s_1})\,d,
              \qquad e = \tfrac{g_1}{s_1} d

    for pre-norm; s_1 and s_2 are the least deviations of what the norms see, g their largest gains. For post-norm
    the stretches multiply from outside and nothing is promised from below. Without an MLP its factor is 1. A part
    that is larger than its skip makes the lower bound 0. ``parts``: the position range and the mask contraction of
    ``layer_share``, for the attention of this layer.

    Raises ``TypeError`` for anything but a ``Layer``, ``ValueError`` for NaN, infinity or a wrong shape, and as the
    parts do. Source: Theorem (Whole block) in chapter `whole-block`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> layer = Layer.random(6, 2, generator=generator, mlp_dim=12, norm="pre")
    >>> x = torch.randn(5, 6, dtype=torch.float64, generator=generator)
    >>> found = bound_block(layer, x)
    >>> bool(found.lower <= diameter(layer(x)) <= found.upper)
    True
    """
    require_instance("layer", layer, Layer)
    layer.attention.check_input(x)
    require_shape("x", x, "(tokens, dim), one sample", x.ndim == 2)
    d = diameter(x).item()
    attend = layer.switched(mlp=False) if layer.mlp is not None else layer
    middle = attend(x, mask)
    pre, post = layer.norm == "pre", layer.norm == "post"
    stretch_1 = norm_size(layer.norm_1, x).item() if pre else 1.0
    share = layer_share(layer.attention, stretch_1 * d, **parts).item() * stretch_1
    lower, upper = max(abs(layer.skip) - share, 0.0), abs(layer.skip) + share
    if post:
        before = Layer(layer.attention, skip=layer.skip)(x, mask)
        stretch_1 = norm_size(layer.norm_1, before).item()
        lower, upper = 0.0, upper * stretch_1
    if layer.mlp is None:
        return BlockBound.of(
            lower * d, upper * d, attention=share, mlp=0.0, stretch_1=stretch_1, stretch_2=1.0
        )
    stretch_2 = norm_size(layer.norm_2, middle).item() if pre else 1.0
    size = mlp_size(layer.mlp) * stretch_2
    lower, upper = lower * max(abs(layer.mlp_skip) - size, 0.0), upper * (abs(layer.mlp_skip) + size)
    if post:
        stretch_2 = norm_size(layer.norm_2, layer.mlp_skip * middle + layer.mlp(middle)).item()
        lower, upper = 0.0, upper * stretch_2
    return BlockBound.of(
        lower * d, upper * d, attention=share, mlp=size, stretch_1=stretch_1, stretch_2=stretch_2
    )
