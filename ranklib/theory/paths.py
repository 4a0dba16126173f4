"""Every output is a sum over paths: single paths, their numbers, their matrices, what they add.

A path through L layers is a tuple with one entry for each layer, the first layer first: a head 0..H-1, or
None for the skip. Its length is the number of heads in it. "Frozen" means: every attention matrix is the one
of the full forward pass. It depends on the whole layer below, so paths are not independent networks. The sums
of all paths of one length are in :mod:`ranklib.theory.path_sums`.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ranklib._checks import (
    require_dtype,
    require_float_traced,
    require_instance,
    require_int,
    require_shape,
)
from ranklib.model.layers import Network, require_plain

Path = tuple[int | None, ...]
MOST_PATHS = 10**6
NO_LIST = "use network.switched(mlp=False, norm='none'), or length_spectrum without attentions"


def count_paths(heads: int, depth: int, length: int) -> int:
    """The number of paths of one length, C(L, k) H^k, as an exact integer.

    All lengths together have (1 + H)^L. Raises ``TypeError`` or ``ValueError`` unless heads >= 1, depth >= 1
    and 0 <= length <= depth are integers. Source: Proposition (Lengths) in chapter `path-decomposition`; the
    paper's section 3.

    >>> count_paths(12, 12, 12), sum(count_paths(12, 12, k) for k in range(13)) == 13**12
    (8916100448256, True)
    """
    _require_sizes(heads, depth)
    _require_length(length, depth)
    return math.comb(depth, length) * heads**length


def length_distribution(heads: int, depth: int) -> Float[Tensor, " lengths"]:
    """The share of the paths that has each length 0..L: Binomial(L, H / (H + 1)), in float64.

    Raises as :func:`count_paths`. Source: Proposition (Lengths) in chapter `path-decomposition`.

    >>> [f"{share:.1e}" for share in length_distribution(12, 12)[[6, 10, 11, 12]].tolist()]
    ['1.2e-04', '1.8e-01', '3.8e-01', '3.8e-01']
    """
    _require_sizes(heads, depth)
    counts = [count_paths(heads, depth, length) for length in range(depth + 1)]
    return torch.tensor([count / (1 + heads) ** depth for count in counts], dtype=torch.float64)


def enumerate_paths(heads: int, depth: int, skip: bool = True) -> Iterator[Path]:
    """All (1 + H)^L paths one after the other, or the H^L without a skip.

    Raises as :func:`count_paths`, and ``ValueError`` for more than a million. Source: chapter
    `path-decomposition`, Definition (Path).

    >>> list(enumerate_paths(1, 2))
    [(None, None), (None, 0), (0, None), (0, 0)]
    """
    _require_sizes(heads, depth)
    choices = ([None] if skip else []) + list(range(heads))
    if len(choices) ** depth > MOST_PATHS:
        raise ValueError(
            f"paths: expected at most {MOST_PATHS} to enumerate, got {len(choices)}^{depth}; "
            "use length_spectrum, which sums them without listing them, or sample_paths"
        )
    return itertools.product(choices, repeat=depth)


def sample_paths(
    heads: int, depth: int, number: int, generator: torch.Generator, length: int | None = None
) -> list[Path]:
    """``number`` independent draws, uniform among all paths, or among those of one ``length``.

    Raises as :func:`count_paths`, and unless ``number`` is an integer >= 0. Source: chapter
    `path-decomposition`, Proposition (Lengths).

    >>> paths = sample_paths(3, 5, 100, torch.Generator().manual_seed(0), length=2)
    >>> {sum(choice is not None for choice in path) for path in paths}
    {2}
    """
    _require_sizes(heads, depth)
    require_int("number", number, 0)
    require_instance("generator", generator, torch.Generator)
    options = {"generator": generator, "device": generator.device}
    if length is None:
        choices = torch.randint(-1, heads, (number, depth), **options)
    else:
        _require_length(length, depth)
        places = torch.rand(number, depth, dtype=torch.float64, **options).argsort(-1)
        choices = torch.randint(heads, (number, depth), **options).where(places < length, -1)
    return [tuple(None if choice < 0 else choice for choice in row) for row in choices.tolist()]


def frozen_attention(
    network: Network, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
) -> list[Float[Tensor, "*batch _ tokens tokens"]]:
    """The L attention tensors (\\*batch, heads, tokens, tokens) of one forward pass of any network.

    They carry gradients; detach them to freeze them for the gradient too. Raises as ``SelfAttention`` does.
    Source: Definition (Path) in chapter `path-decomposition`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> network = Network.random(depth=3, dim=6, heads=2, generator=generator)
    >>> x = torch.randn(5, 6, dtype=torch.float64, generator=generator)
    >>> [tuple(p.shape) for p in frozen_attention(network, x)]
    [(2, 5, 5), (2, 5, 5), (2, 5, 5)]
    """
    require_instance("network", network, Network)
    attentions = []
    for layer, state in zip(network.layers, network.trace(x, mask)):
        before = next(layer.sublayers()).before
        attentions.append(layer.attention.attention(state if before is None else before(state), mask))
    return attentions


def path_matrices(
    network: Network, attentions: Sequence[Float[Tensor, "*batch _ tokens tokens"]], path: Path
) -> tuple[Float[Tensor, "*batch tokens tokens"], Float[Tensor, "dim dim"]]:
    r"""The two matrices of a path: a row-stochastic one for tokens, and one for features that knows no input.

    .. math:: P_{path} = P^L_{h_L} \cdots P^1_{h_1}, \qquad W_{path} = W^1_{h_1} \cdots W^L_{h_L}

    A skip of strength s is the pair P = I, W = sI; where it is off, W_path = 0. Raises ``TypeError`` or
    ``ValueError`` for a network with MLPs or norms, attentions that do not fit it, or a path that is no tuple
    with a head or None for each layer. Source: Theorem (Path decomposition) in chapter `path-decomposition`;
    the paper's Theorem 2.1.

    >>> generator = torch.Generator().manual_seed(0)
    >>> network = Network.random(depth=2, dim=6, heads=2, generator=generator)
    >>> x = torch.randn(5, 6, dtype=torch.float64, generator=generator)
    >>> p_path, w_path = path_matrices(network, frozen_attention(network, x), (1, None))
    >>> torch.allclose(p_path.sum(-1), torch.ones(5).double())
    True
    >>> torch.allclose(w_path, network.layers[0].attention.w[1])
    True
    """
    require_plain(network, NO_LIST)
    require_attentions(network, attentions)
    _require_path(network, path)
    tokens, dim = attentions[0].shape[-1], network.layers[0].attention.dims.dim
    options = {"dtype": attentions[0].dtype, "device": attentions[0].device}
    p_path = torch.eye(tokens, **options).expand(*attentions[0].shape[:-3], tokens, tokens)
    w_path = torch.eye(dim, **options)
    for layer, p, head in zip(network.layers, attentions, path):
        if head is None:
            w_path = float(layer.skip) * w_path
        else:
            p_path = p[..., head, :, :] @ p_path
            w_path = w_path @ layer.attention.w_v[head] @ layer.attention.w_o[head]
    return p_path, w_path


def path_output(
    network: Network,
    x: Float[Tensor, "*batch tokens dim"],
    attentions: Sequence[Float[Tensor, "*batch _ tokens tokens"]],
    path: Path,
) -> Float[Tensor, "*batch tokens dim"]:
    """What one path adds to the output: P_path X W_path, layer by layer, without forming either.

    The outputs of all paths and the bias row add up to the forward pass. Raises as :func:`path_matrices`, and
    for tokens that the network cannot take. Source: Theorem (Path decomposition) in chapter
    `path-decomposition`.

    >>> from ranklib import Layer, SelfAttention
    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> network = Network([Layer(SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one))] * 2)
    >>> x = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    >>> p = frozen_attention(network, x)
    >>> [round(path_output(network, x, p, path)[0].item(), 4) for path in enumerate_paths(1, 2)]
    [0.5, 0.1846, 0.1225, 0.0452]
    """
    require_plain(network, NO_LIST)
    require_attentions(network, attentions, x)
    _require_path(network, path)
    for layer, p, head in zip(network.layers, attentions, path):
        if head is None:
            x = float(layer.skip) * x
        else:
            x = p[..., head, :, :] @ (x @ layer.attention.w_v[head]) @ layer.attention.w_o[head]
    return x


def bias_row(network: Network) -> Float[Tensor, " dim"]:
    r"""The one row c_L that all biases together add to every token, whatever the input and the mask.

    .. math:: c_0 = 0, \qquad c_l = W_l^\top c_{l-1} + b_l, \qquad W_l = \sum_h W^l_h + s_l I

    s_l is the strength of the skip. Since P 1 = 1, no attention enters. Raises ``TypeError`` or
    ``ValueError`` for a network with MLPs or norms; for those see ``bias_part``. Source: Proposition (Bias
    row) in chapter `path-decomposition`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> network = Network.random(depth=3, dim=5, biases=True, generator=generator)
    >>> zero = torch.zeros(7, 5, dtype=torch.float64)
    >>> torch.allclose(network(zero), bias_row(network).expand(7, 5))
    True
    """
    require_plain(network, NO_LIST)
    row = torch.zeros_like(network.layers[0].attention.bias)
    for layer in network.layers:
        attention = layer.attention
        through_heads = (row @ attention.w_v)[:, None] @ attention.w_o
        row = through_heads.sum((0, 1)) + float(layer.skip) * row + attention.bias
    return row


def _require_sizes(heads: int, depth: int) -> None:
    require_int("heads", heads, 1)
    require_int("depth", depth, 1)


def _require_length(length: int, depth: int) -> None:
    require_int("length", length, 0)
    if length > depth:
        raise ValueError(f"length: expected at most depth={depth}, got {length}; use length={depth}")


def require_attentions(network: Network, attentions: Sequence[Tensor], x: Tensor | None = None) -> None:
    """Raise unless there is one tensor for each layer, all for the same batch and tokens, those of ``x``."""
    depth, several = len(network.layers), isinstance(attentions, (list, tuple))
    if not several or len(attentions) != depth:
        got = f"{len(attentions)} of them" if several else type(attentions).__name__
        raise ValueError(
            f"attentions: expected a list of {depth} tensors, one a layer, got {got}; "
            "use frozen_attention(network, x)"
        )
    if x is not None:
        network.layers[0].attention.check_input(x)
    for layer, p in zip(network.layers, attentions):
        heads = layer.attention.dims.heads
        require_float_traced("attentions", p)
        require_dtype("attentions", p, layer.attention.w_q.dtype, "the network")
        batch, tokens = attentions[0].shape[:-3], attentions[0].shape[-1]
        if x is not None:
            batch, tokens = x.shape[:-2], x.shape[-2]
        expected = (*batch, heads, tokens, tokens)
        ok = p.ndim >= 3 and p.shape == expected
        require_shape("attentions", p, f"(*batch, heads, tokens, tokens) = {expected}", ok)


def _require_path(network: Network, path: Path) -> None:
    heads = [layer.attention.dims.heads for layer in network.layers]
    good = isinstance(path, tuple) and len(path) == len(heads)
    for choice, most in zip(path if good else (), heads):
        whole = isinstance(choice, int) and not isinstance(choice, bool)
        good = good and (choice is None or (whole and 0 <= choice < most))
    if not good:
        raise ValueError(
            f"path: expected a tuple of {len(heads)} entries, None or a head below {heads}, got {path!r}; "
            "use enumerate_paths or sample_paths"
        )
