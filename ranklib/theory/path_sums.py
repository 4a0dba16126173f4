"""The sums of all paths of each length, in one sweep, and what the biases add beside them."""

import itertools
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ranklib._checks import require_instance
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Network, require_plain
from ranklib.theory.paths import NO_LIST, require_attentions


def length_spectrum(
    network: Network,
    x: Float[Tensor, "*batch tokens dim"],
    mask: Bool[Tensor, "..."] | None = None,
    attentions: Sequence[Float[Tensor, "*batch _ tokens tokens"]] | None = None,
) -> Float[Tensor, "lengths *batch tokens dim"]:
    r"""For each length 0..L the sum of the outputs of *all* paths of that length, in one sweep.

    .. math:: T_k \leftarrow s\,T_k + \sum_h P_h T_{k-1} W_h, \qquad T_0 = X \text{ at the start}

    All lengths together and :func:`bias_part` give the forward pass. After l layers there are l + 1 sums, so
    the sweep costs about (L + 1) / 2 forward passes with known attention. Beside attention and weights, no
    tensor in it is larger than L + 2 token matrices (of width H d_v where that is more than dim).

    Norms and MLPs are allowed where freezing makes them affine: LayerNorm with each token's 1 / sigma of the
    forward pass, ReLU with its pattern. They belong to every path and add no length; a path is then still a
    linear map of the tokens, but no longer P_path X W_path. Other norms and activations are refused.

    The attention is that of the forward pass on ``x`` under ``mask``. Gradients flow through it, as through
    1 / sigma, so the sum has the gradient of the forward pass. ``attentions`` (for networks without norms and
    MLPs, and without ``mask``) takes its place; detached ones give gradients along the paths only. Raises
    ``TypeError`` or ``ValueError`` for anything else. Source: Theorem (Length spectrum) in chapter
    `path-decomposition`.

    >>> from ranklib import Layer
    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> network = Network([Layer(SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one))] * 2)
    >>> x = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)  # 0.5 (1 + 0.2449 z) (1 + 0.3692 z)
    >>> [round(value, 4) for value in length_spectrum(network, x)[:, 0, 0].tolist()]
    [0.5, 0.307, 0.0452]
    """
    if attentions is None:
        _require_affine_when_frozen(network)
        network.layers[0].attention.check_input(x)
        return _sweep(network, torch.stack([x, x], -2), 1, mask)[..., 1:, :].movedim(-2, 0)
    if mask is not None:
        raise ValueError("mask: expected None with attentions, got both; the attentions are masked already")
    require_plain(network, NO_LIST)
    require_attentions(network, attentions, x)
    return _sweep(network, x.unsqueeze(-2), 0, None, attentions).movedim(-2, 0)


def bias_part(
    network: Network, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch tokens dim"]:
    r"""What all biases together add to the forward pass on ``x``: the frozen network applied to zero tokens.

    Of attention and skips alone it is ``bias_row`` under every token. A frozen LayerNorm multiplies each
    token by its own 1 / sigma, and a frozen ReLU by its own pattern, so behind them it is a matrix that
    depends on the token and on the input. Raises as :func:`length_spectrum`. Source: Proposition (Bias row)
    in chapter `path-decomposition`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> network = Network.random(3, 6, 2, norm="pre", mlp_dim=11, biases=True, generator=generator)
    >>> x = torch.randn(5, 6, dtype=torch.float64, generator=generator)
    >>> torch.allclose(length_spectrum(network, x).sum(0) + bias_part(network, x), network(x))
    True
    """
    _require_affine_when_frozen(network)
    network.layers[0].attention.check_input(x)
    return _sweep(network, torch.stack([x, torch.zeros_like(x)], -2), 2, mask)[..., 1, :]


def _sweep(network: Network, z: Tensor, known: int, mask, attentions: Sequence[Tensor] = ()) -> Tensor:
    """z (*batch, tokens, slots, dim) through all layers.

    The first ``known`` slots feel the biases: slot 0 is the forward pass, which fixes attention, 1 / sigma
    and ReLU for all. The other slots are the sums by length.
    """
    for layer, p in itertools.zip_longest(network.layers, attentions):
        for branch, skip, before, after in layer.sublayers():
            given = _norm(before, z, known)
            if branch is layer.attention:
                p = branch.attention(given[..., 0, :], mask) if p is None else p
                z = _by_length(float(skip) * z, _heads(branch, p, given, known), known)
            else:
                z = float(skip) * z + _mlp(branch, given, known)
            z = _norm(after, z, known)
    return z


def _by_length(skipped: Tensor, branch: Tensor, known: int) -> Tensor:
    """Skip plus heads: a skip keeps the length, a head adds one."""
    if skipped.shape[-2] == known:
        return skipped + branch
    branch = torch.cat([branch[..., :known, :], F.pad(branch[..., known:, :], (0, 0, 1, 0))], -2)
    return F.pad(skipped, (0, 0, 0, 1)) + branch


def _heads(attention: SelfAttention, p: Tensor, z: Tensor, known: int) -> Tensor:
    """sum_h (P_h (Z W_V,h)) W_O,h, all slots and all heads in three matrix products."""
    values = torch.einsum("...jkd,hdv->...hjkv", z, attention.w_v)
    mixed = torch.einsum("...hij,...hjkv->...hikv", p, values)
    return _add_bias(torch.einsum("...hikv,hvd->...ikd", mixed, attention.w_o), attention.bias, known)


def _norm(module: nn.LayerNorm | None, z: Tensor, known: int) -> Tensor:
    if module is None:
        return z
    variance = z[..., :1, :].var(-1, unbiased=False, keepdim=True)
    z = (z - z.mean(-1, keepdim=True)) * (variance + module.eps).rsqrt()
    z = z if module.weight is None else z * module.weight
    return _add_bias(z, module.bias, known)


def _mlp(mlp: nn.Sequential, z: Tensor, known: int) -> Tensor:
    for module in mlp:
        if isinstance(module, nn.Linear):
            z = _add_bias(z @ module.weight.T, module.bias, known)
        else:
            z = z * (z[..., :1, :] > 0)
    return z


def _add_bias(z: Tensor, bias: Tensor | None, known: int) -> Tensor:
    if bias is None or not known:
        return z
    return z + F.pad(bias.expand(known, -1), (0, 0, 0, z.shape[-2] - known))


def _require_affine_when_frozen(network: Network) -> None:
    """Raise unless each norm is a LayerNorm over the features and each MLP is made of Linear and ReLU."""
    require_instance("network", network, Network)
    for layer in network.layers:
        for norm in (norm for step in layer.sublayers() for norm in step[2:] if norm is not None):
            if not isinstance(norm, nn.LayerNorm) or norm.normalized_shape != (layer.attention.dims.dim,):
                raise ValueError(
                    f"network: expected LayerNorm over the features of a token, got {norm}; "
                    "use torch.nn.LayerNorm(dim), or network.switched(norm='none')"
                )
        sequence = isinstance(layer.mlp, nn.Sequential)
        for part in layer.mlp if sequence else () if layer.mlp is None else (layer.mlp,):
            if not sequence or not isinstance(part, (nn.Linear, nn.ReLU)):
                raise ValueError(
                    f"network: expected MLPs as a Sequential of Linear and ReLU, got {part}; a sum over "
                    "paths passes through ReLU, linear once its pattern is frozen, not through a curved "
                    "function; use activation='relu', or network.switched(mlp=False)"
                )
