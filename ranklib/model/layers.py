"""Transformer layers and networks with every sub-layer behind a switch.

A layer is attention and, if it has one, an MLP; each may have a skip connection, and normalisation stands
after the sum ("post"), before the branch ("pre") or nowhere ("none"). ``switched`` gives the same parameters
under other switches, so two networks can be compared that differ in one thing only.
"""

import copy
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ranklib._checks import require_instance, require_int, require_positive
from ranklib.model.attention import SelfAttention

NORMS = ("none", "post", "pre")
"""Where a layer normalises: nowhere, after each branch is added, or before each branch."""
ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}
"""The activations that ``Layer.random`` knows by name."""


class SubLayer(NamedTuple):
    """One step X <- after(skip X + branch(before(X))); a norm that is None is left out."""

    branch: nn.Module
    skip: float | int
    before: nn.Module | None
    after: nn.Module | None


class Layer(nn.Module):
    """One layer: attention, then the MLP, each with its skip and its normalisation.

    post: X <- LN1(skip X + SA(X)), then X <- LN2(mlp_skip X + MLP(X));
    pre: X <- skip X + SA(LN1(X)), then X <- mlp_skip X + MLP(LN2(X));
    none: the same without LN. Without an MLP the second step is left out, its skip and LN2 included.

    ``skip`` and ``mlp_skip`` are switches, or numbers: the strength of the skip. The modules are used as they
    are, not copied. Raises ``ValueError`` for an unknown norm, a skip that is not finite, or a norm without
    its module; ``TypeError`` for an attention that is no ``SelfAttention``. Source: chapter `mlps` (MLP) and
    chapter `layernorm` (normalisation); the paper's section 3.

    >>> one = torch.ones(1, 1, 1, dtype=torch.float64)
    >>> attention = SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    >>> x = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    >>> [round(v, 3) for v in Layer(attention, skip=False)(x)[:, 0].tolist()]
    [0.762, -0.762]
    >>> [round(v, 3) for v in Layer(attention)(x)[:, 0].tolist()]
    [1.762, -1.762]
    """

    def __init__(
        self,
        attention: SelfAttention,
        mlp: nn.Module | None = None,
        *,
        skip: float | int = True,
        mlp_skip: float | int = True,
        norm: str = "none",
        norm_1: nn.Module | None = None,
        norm_2: nn.Module | None = None,
    ) -> None:
        super().__init__()
        require_instance("attention", attention, SelfAttention)
        if norm not in NORMS:
            raise ValueError(f"norm: expected one of {NORMS}, got {norm!r}; choose one of them")
        for name, strength in (("skip", skip), ("mlp_skip", mlp_skip)):
            if not float("-inf") < strength < float("inf"):
                raise ValueError(f"{name}: expected a finite number, got {strength}; use True or False")
        for name, module, needed in (("norm_1", norm_1, True), ("norm_2", norm_2, mlp is not None)):
            if module is None and needed and norm != "none":
                raise ValueError(f"{name}: expected a module for norm={norm!r}, got None; use nn.LayerNorm")
        self.attention, self.mlp, self.norm_1, self.norm_2 = attention, mlp, norm_1, norm_2
        self.skip, self.mlp_skip, self.norm = skip, mlp_skip, norm

    @classmethod
    def random(
        cls,
        dim: int,
        heads: int = 1,
        *,
        generator: torch.Generator,
        mlp_dim: int | None = None,
        activation: str = "relu",
        skip: float | int = True,
        mlp_skip: float | int = True,
        norm: str = "none",
        dtype: torch.dtype = torch.float64,
        scale: float | int = 1.0,
        biases: bool = False,
    ) -> "Layer":
        """A layer with ``SelfAttention.random`` and an MLP dim -> mlp_dim -> dim (none if mlp_dim is None).

        MLP weights are independent N(0, scale^2 / fan_in); its biases are zero, or of the same variance with
        ``biases``. LayerNorm starts with gain 1 and bias 0. Raises ``ValueError`` for an unknown activation
        and where ``SelfAttention.random`` or ``Layer`` does.

        >>> layer = Layer.random(6, 2, generator=torch.Generator().manual_seed(0), mlp_dim=5)
        >>> [type(part).__name__ for part in layer.mlp]
        ['Linear', 'ReLU', 'Linear']
        """
        attention = SelfAttention.random(
            dim, heads, generator=generator, dtype=dtype, scale=scale, biases=biases
        )
        mlp = None
        if mlp_dim is not None:
            mlp = _random_mlp(dim, mlp_dim, activation, generator, dtype, scale, biases)
        options = {"dtype": dtype, "device": generator.device}
        norms = [None, None] if norm == "none" else [nn.LayerNorm(dim, **options) for _ in range(2)]
        return cls(attention, mlp, skip=skip, mlp_skip=mlp_skip, norm=norm, norm_1=norms[0], norm_2=norms[1])

    @classmethod
    def from_torch(cls, module: nn.TransformerEncoderLayer) -> "Layer":
        """The same layer as a ``torch.nn.TransformerEncoderLayer``, with copied weights.

        Raises ``ValueError`` for dropout in training mode or an activation other than relu and gelu.

        >>> module = torch.nn.TransformerEncoderLayer(6, 2, 5, dropout=0, norm_first=True)
        >>> Layer.from_torch(module).norm
        'pre'
        """
        require_instance("module", module, nn.TransformerEncoderLayer)
        dropouts = [part.p for part in module.modules() if isinstance(part, nn.Dropout)]
        if module.training and any(dropouts):
            raise ValueError(f"module: expected no dropout, got {dropouts}; build it so or call eval()")
        mlp = nn.Sequential(module.linear1, _activation(module.activation), module.linear2)
        return cls(
            SelfAttention.from_torch(module.self_attn),
            copy.deepcopy(mlp),
            norm="pre" if module.norm_first else "post",
            norm_1=copy.deepcopy(module.norm1),
            norm_2=copy.deepcopy(module.norm2),
        )

    def switched(
        self,
        *,
        skip: float | int | None = None,
        mlp_skip: float | int | None = None,
        mlp: bool | None = None,
        norm: str | None = None,
    ) -> "Layer":
        """The same parameters (shared, not copied) with other switches; None leaves one as it is.

        ``mlp=False`` removes the MLP with its skip and its norm. Raises ``ValueError`` for ``mlp=True`` or a
        norm where the layer has no such part.

        >>> layer = Layer.random(6, 2, generator=torch.Generator().manual_seed(0), mlp_dim=5)
        >>> bare = layer.switched(skip=False, mlp=False)
        >>> bare.skip, bare.mlp, bare.attention is layer.attention
        (False, None, True)
        """
        if mlp and self.mlp is None:
            raise ValueError("mlp: expected False or None without an MLP, got True; build the layer with one")
        return Layer(
            self.attention,
            None if mlp is False else self.mlp,
            skip=self.skip if skip is None else skip,
            mlp_skip=self.mlp_skip if mlp_skip is None else mlp_skip,
            norm=self.norm if norm is None else norm,
            norm_1=self.norm_1,
            norm_2=self.norm_2,
        )

    def sublayers(self) -> Iterator[SubLayer]:
        """The steps of the layer in their order, attention first: everything that walks a layer walks these.

        >>> layer = Layer.random(6, generator=torch.Generator().manual_seed(0), mlp_dim=5, norm="pre")
        >>> [(step.before is not None, step.after is not None) for step in layer.sublayers()]
        [(True, False), (True, False)]
        """
        parts = (self.attention, self.skip, self.norm_1), (self.mlp, self.mlp_skip, self.norm_2)
        for branch, skip, norm in parts:
            if branch is not None:
                before, after = (norm if self.norm == place else None for place in ("pre", "post"))
                yield SubLayer(branch, skip, before, after)

    def forward(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch tokens dim"]:
        """The layer's formula under its switches; ``mask`` as in ``SelfAttention.attention``."""
        if self.norm == "pre":  # otherwise attention, the first to see x, checks it
            self.attention.check_input(x)
        for branch, skip, before, after in self.sublayers():
            given = x if before is None else before(x)
            x = _add(x, skip, branch(given, mask) if branch is self.attention else branch(given))
            x = x if after is None else after(x)
        return x


class Network(nn.Module):
    """Layers one after the other: X^0 = X and X^l = layer_l(X^{l-1}).

    Raises ``TypeError`` for an entry that is no ``Layer``, ``ValueError`` without layers or with layers of
    different dim. Source: chapter `path-decomposition` and chapter `one-head`; the paper's sections 2 and 3.

    >>> generator = torch.Generator().manual_seed(0)
    >>> network = Network.random(depth=3, dim=5, skip=False, generator=generator)
    >>> x = torch.randn(7, 5, dtype=torch.float64, generator=generator)
    >>> spread = [(y - y.mean(0)).abs().max().item() for y in network.trace(x)]
    >>> len(spread), spread[3] < 0.1 * spread[0]
    (4, True)
    """

    def __init__(self, layers: Iterable[Layer]) -> None:
        super().__init__()
        layers = list(layers)
        if not layers:
            raise ValueError("layers: expected at least one layer, got none; pass [Layer(...)]")
        for layer in layers:
            require_instance("layers", layer, Layer)
        dims = {layer.attention.dims.dim for layer in layers}
        if len(dims) > 1:
            raise ValueError(f"layers: expected one dim, got {sorted(dims)}; make them equal")
        self.layers = nn.ModuleList(layers)

    @classmethod
    def random(
        cls, depth: int, dim: int, heads: int = 1, *, generator: torch.Generator, **options
    ) -> "Network":
        """``depth`` independent draws of ``Layer.random(dim, heads, generator=generator, **options)``."""
        require_int("depth", depth, 1)
        return cls(Layer.random(dim, heads, generator=generator, **options) for _ in range(depth))

    def switched(self, **switches) -> "Network":
        """The same parameters, shared, with ``Layer.switched(**switches)`` in every layer.

        >>> network = Network.random(depth=2, dim=5, generator=torch.Generator().manual_seed(0))
        >>> [layer.skip for layer in network.switched(skip=False).layers]
        [False, False]
        """
        return Network(layer.switched(**switches) for layer in self.layers)

    def trace(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> list[Float[Tensor, "*batch tokens dim"]]:
        """The list X^0 ... X^L; raises as ``SelfAttention`` does."""
        states = [x]
        for layer in self.layers:
            states.append(layer(states[-1], mask))
        return states

    def forward(
        self, x: Float[Tensor, "*batch tokens dim"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch tokens dim"]:
        """X^L."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


def require_plain(network: Network, remedy: str = 'use network.switched(mlp=False, norm="none")') -> None:
    """Raise ``TypeError`` or ``ValueError`` unless the network is made of attention and skips only."""
    require_instance("network", network, Network)
    for layer in network.layers:
        if layer.mlp is not None or layer.norm != "none":
            mlp = "no MLP" if layer.mlp is None else "an MLP"
            raise ValueError(
                f"network: expected layers of attention and skip only, got {mlp} and norm={layer.norm!r}; {remedy}"
            )


def _add(x: Tensor, strength: float | int, branch: Tensor) -> Tensor:
    return float(strength) * x + branch if strength else branch


def _activation(given) -> nn.Module:
    """The module behind what ``TransformerEncoderLayer`` keeps as its activation, a function or a module."""
    for function, kind in ((F.relu, nn.ReLU), (torch.relu, nn.ReLU), (F.gelu, nn.GELU)):
        if given is function:
            return kind()
    if isinstance(given, tuple(ACTIVATIONS.values())):
        return given
    raise ValueError(f"module: expected activation relu or gelu, got {given}; build it with one of them")


def _random_mlp(
    dim: int, width: int, activation: str, generator, dtype: torch.dtype, scale: float | int, biases: bool
) -> nn.Module:
    require_int("mlp_dim", width, 1)
    require_positive("scale", scale)
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation: expected one of {tuple(ACTIVATIONS)}, got {activation!r}; choose one")
    options = {"dtype": dtype, "device": generator.device}
    parts = []
    for fan_in, fan_out in ((dim, width), (width, dim)):
        linear = nn.utils.skip_init(nn.Linear, fan_in, fan_out, **options)  # no draw from the global state
        with torch.no_grad():
            linear.weight.normal_(0, scale / fan_in**0.5, generator=generator)
            linear.bias.zero_()
            if biases:
                linear.bias.normal_(0, scale / fan_in**0.5, generator=generator)
        parts.append(linear)
    return nn.Sequential(parts[0], ACTIVATIONS[activation](), parts[1])
