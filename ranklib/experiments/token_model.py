"""Small transformers that predict for every token: the same function for one model and for many at once.

All parameters of a model lie in one vector, so that a stack of models is a matrix, and an optimiser, a
checkpoint and ``torch.func.vmap`` see one tensor. :meth:`TokenModel.network` gives the same layers as a
``Network``.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from ranklib._checks import require_int, require_shape
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import ACTIVATIONS, NORMS, Layer, Network

EPS = 1e-5


@dataclass(frozen=True)
class TokenModel:
    """Embedding, layers of attention, with an MLP where ``mlp_dim`` > 0, and a linear readout.

    ``inputs``: size of the vocabulary if ``symbols``, else number of features; ``outputs``: classes or
    features; ``positions``: number of learned positions, 0 for none; ``embed_dim``: width of a hidden ReLU
    layer of the embedding, 0 for none. ``skip`` is the skip of the attention, ``mlp_skip`` that of the MLP.
    With ``norm`` "post" or "pre" there is also a LayerNorm behind the embedding. ``heads`` must divide
    ``dim``. Raises ``ValueError`` for sizes that do not fit. Source: chapter `which-paths`; the paper's
    section 4.2.

    >>> model = TokenModel(depth=2, dim=6, heads=2, inputs=5, outputs=3)
    >>> vector = model.draw(torch.Generator().manual_seed(0))
    >>> model(vector, torch.tensor([[0, 4, 4, 1]])).shape
    torch.Size([1, 4, 3])
    """

    depth: int
    dim: int
    heads: int
    inputs: int
    outputs: int
    symbols: bool = True
    positions: int = 0
    embed_dim: int = 0
    mlp_dim: int = 0
    activation: str = "relu"
    skip: bool = True
    mlp_skip: bool = True
    norm: str = "post"

    def __post_init__(self) -> None:
        for name in ("depth", "dim", "heads", "inputs", "outputs"):
            require_int(name, getattr(self, name), 1)
        for name in ("positions", "embed_dim", "mlp_dim"):
            require_int(name, getattr(self, name), 0)
        if self.dim % self.heads:
            raise ValueError(f"heads: expected a divisor of dim={self.dim}, got {self.heads}; choose one")
        for name, known in (("norm", NORMS), ("activation", tuple(ACTIVATIONS))):
            if getattr(self, name) not in known:
                got = getattr(self, name)
                raise ValueError(f"{name}: expected one of {known}, got {got!r}; choose one of them")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter; the order is that in the vector."""
        d, shapes = self.dim, {}

        def linear(name: str, fan_in: int, fan_out: int, bias: bool = True) -> None:
            shapes[name] = (fan_in, fan_out)
            if bias:
                shapes[name + ".bias"] = (fan_out,)

        def norm(name: str) -> None:
            if self.norm != "none":
                shapes[name + ".gain"] = shapes[name + ".bias"] = (d,)

        if self.embed_dim:
            linear("embed", self.inputs, self.embed_dim, not self.symbols)
            linear("embed_out", self.embed_dim, d)
        else:
            linear("embed", self.inputs, d, not self.symbols)
        if self.positions:
            shapes["positions"] = (self.positions, d)
        norm("embed_norm")
        for layer in range(self.depth):
            linear(f"{layer}.qkv", d, 3 * d)
            linear(f"{layer}.out", d, d)
            norm(f"{layer}.norm_1")
            if self.mlp_dim:
                linear(f"{layer}.mlp_in", d, self.mlp_dim)
                linear(f"{layer}.mlp_out", self.mlp_dim, d)
                norm(f"{layer}.norm_2")
        linear("readout", d, self.outputs)
        return shapes

    def draw(
        self, generator: torch.Generator, dtype: torch.dtype = torch.float32
    ) -> Float[Tensor, " parameters"]:
        """One random parameter vector: weights N(0, 1 / (3 fan-in)), tables N(0, 1), biases 0, gains 1.

        >>> TokenModel(1, 2, 1, 3, 2).draw(torch.Generator().manual_seed(0)).shape
        torch.Size([44])
        """
        parts = []
        for name, shape in self.shapes().items():
            if len(shape) == 2:
                table = name == "positions" or (name == "embed" and self.symbols)
                scale = 1.0 if table else (3 * shape[0]) ** -0.5
                parts.append(scale * torch.randn(shape, generator=generator, dtype=dtype))
            else:
                parts.append(torch.full(shape, float(name.endswith(".gain")), dtype=dtype))
        return torch.cat([part.flatten() for part in parts])

    def split(self, vector: Float[Tensor, "*models parameters"]) -> dict[str, Float[Tensor, "..."]]:
        """The parameters by name, views of the vector; leading axes stay in front."""
        shapes = self.shapes()
        sizes = [math.prod(shape) for shape in shapes.values()]
        require_shape("vector", vector, f"(..., {sum(sizes)})", vector.shape[-1:] == (sum(sizes),))
        parts = vector.split(sizes, -1)
        return {n: p.unflatten(-1, shape) for (n, shape), p in zip(shapes.items(), parts)}

    def __call__(
        self, vector: Float[Tensor, " parameters"], x: Shaped[Tensor, "batch tokens *features"]
    ) -> Float[Tensor, "batch tokens outputs"]:
        """What one model predicts: x holds integers (batch, tokens), or features (batch, tokens, inputs)."""
        return self.apply(self.split(vector), x)

    def apply(
        self, p: dict[str, Float[Tensor, "..."]], x: Shaped[Tensor, "batch tokens *features"]
    ) -> Float[Tensor, "batch tokens outputs"]:
        """As a call, with the parameters of :meth:`split`."""
        z, size = self.embed(p, x).flatten(0, 1), x.shape[:2]
        for layer in range(self.depth):
            parts = [("norm_1", self.skip, self._attention), ("norm_2", self.mlp_skip, self._mlp)]
            for norm, skip, branch in parts if self.mlp_dim else parts[:1]:
                y = self._norm(p, f"{layer}.{norm}", z) if self.norm == "pre" else z
                y = branch(p, layer, y, size)
                z = z + y if skip else y
                z = self._norm(p, f"{layer}.{norm}", z) if self.norm == "post" else z
        return self.readout(p, z).unflatten(0, size)

    def embed(
        self, p: dict[str, Float[Tensor, "..."]], x: Shaped[Tensor, "batch tokens *features"]
    ) -> Float[Tensor, "batch tokens dim"]:
        """The tokens that enter the first layer."""
        z = F.embedding(x, p["embed"]) if self.symbols else self._linear(p, "embed", x)
        z = self._linear(p, "embed_out", F.relu(z)) if self.embed_dim else z
        z = z + p["positions"][: x.shape[1]] if self.positions else z
        return z if self.norm == "none" else self._norm(p, "embed_norm", z)

    def readout(
        self, p: dict[str, Float[Tensor, "..."]], z: Float[Tensor, "*batch dim"]
    ) -> Float[Tensor, "*batch outputs"]:
        """The linear map from the last layer's tokens to the outputs."""
        return self._linear(p, "readout", z)

    @torch.no_grad()
    def network(self, vector: Float[Tensor, " parameters"]) -> Network:
        """The layers, with copied weights: X^0 is :meth:`embed`, and :meth:`readout` of X^L the prediction.

        >>> model = TokenModel(depth=2, dim=6, heads=3, inputs=5, outputs=3, mlp_dim=4, positions=7)
        >>> vector = model.draw(torch.Generator().manual_seed(0), torch.float64)
        >>> x, p = torch.tensor([[0, 4, 4, 1]]), model.split(vector)
        >>> torch.allclose(model.readout(p, model.network(vector)(model.embed(p, x))), model(vector, x))
        True
        """
        p, h = self.split(vector), self.heads
        return Network([self._layer(p, layer, h) for layer in range(self.depth)])

    def _layer(self, p: dict, layer: int, heads: int) -> Layer:
        names = ("q", "k", "v")
        weights = zip(names, p[f"{layer}.qkv"].chunk(3, -1), p[f"{layer}.qkv.bias"].chunk(3, -1))
        options = {}
        for name, weight, bias in weights:
            options["w_" + name] = weight.unflatten(-1, (heads, -1)).transpose(0, 1)
            options["b_" + name] = bias.unflatten(-1, (heads, -1))
        out = p[f"{layer}.out"]
        attention = SelfAttention(**options, w_o=out.unflatten(0, (heads, -1)), b_o=p[f"{layer}.out.bias"])
        mlp = None
        if self.mlp_dim:
            parts = [_module(p[f"{layer}.{n}"], p[f"{layer}.{n}.bias"]) for n in ("mlp_in", "mlp_out")]
            mlp = nn.Sequential(parts[0], ACTIVATIONS[self.activation](), parts[1])
        norms = {}
        for name in ("norm_1", "norm_2") if self.norm != "none" else ():
            if f"{layer}.{name}.gain" in p:
                norms[name] = nn.LayerNorm(self.dim, EPS, dtype=out.dtype, device=out.device)
                norms[name].weight.copy_(p[f"{layer}.{name}.gain"])
                norms[name].bias.copy_(p[f"{layer}.{name}.bias"])
        return Layer(attention, mlp, skip=self.skip, mlp_skip=self.mlp_skip, norm=self.norm, **norms)

    def _attention(self, p: dict, layer: int, z: Tensor, size: tuple[int, int]) -> Tensor:
        """Rows of all sequences in one matrix, so that each projection is one product."""
        qkv = self._linear(p, f"{layer}.qkv", z).reshape(*size, 3, self.heads, self.dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.mT * (self.dim // self.heads) ** -0.5, -1)
        return self._linear(p, f"{layer}.out", (weights @ v).transpose(1, 2).reshape(z.shape))

    def _mlp(self, p: dict, layer: int, z: Tensor, size: tuple[int, int]) -> Tensor:
        z = getattr(F, self.activation)(self._linear(p, f"{layer}.mlp_in", z))
        return self._linear(p, f"{layer}.mlp_out", z)

    def _linear(self, p: dict, name: str, z: Tensor) -> Tensor:
        z = z @ p[name]
        return z + p[name + ".bias"] if name + ".bias" in p else z

    def _norm(self, p: dict, name: str, z: Tensor) -> Tensor:
        return F.layer_norm(z, (self.dim,), p[name + ".gain"], p[name + ".bias"], EPS)


def _module(weight: Tensor, bias: Tensor) -> nn.Linear:
    linear = nn.utils.skip_init(nn.Linear, *weight.shape, dtype=weight.dtype, device=weight.device)
    linear.weight.copy_(weight.T)
    linear.bias.copy_(bias)
    return linear
