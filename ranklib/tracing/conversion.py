"""A BERT-like or ALBERT model's blocks as layers of this library, in float64, each compared with its block."""

import copy
from typing import Any

import torch
from torch import nn

from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network

HIDDEN_ACTIVATIONS = {
    "gelu": lambda: nn.GELU(),
    "gelu_new": lambda: nn.GELU("tanh"),
    "gelu_pytorch_tanh": lambda: nn.GELU("tanh"),
    "relu": lambda: nn.ReLU(),
}
"""The activations of ``config.hidden_act`` for which there is an exact difference formula."""

# Where the parts of a block are. A model that has other parts is refused; one that has these parts but does
# something else with them is caught by ``_require_same``.
_BERT = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "output": "attention.output.dense",
    "norm_1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm_2": "output.LayerNorm",
}
_ALBERT = {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "output": "attention.dense",
    "norm_1": "attention.LayerNorm",
    "up": "ffn",
    "down": "ffn_output",
    "norm_2": "full_layer_layer_norm",
}
_WORST = 1e-10


@torch.no_grad()
def as_network(model: nn.Module) -> Network:
    """The blocks of a Hugging Face BERT-like or ALBERT model as a :class:`~ranklib.model.layers.Network`,
    float64.

    A block is X <- LN1(X + SA(X)), X <- LN2(X + MLP(X)), with its own LayerNorm eps, biases and activation.
    A block that several layers share becomes one ``Layer`` that the network holds several times. Every block
    is run once beside its layer on random tokens; they must agree to 1e-10. Weights are copied to the CPU.
    Raises ``ValueError`` for any other model: relative positions, a causal mask, LayerNorm before the branch,
    cross attention, an unknown activation. Source: chapter `real-transformers`.

    >>> from transformers import BertConfig, BertModel
    >>> sizes = dict(hidden_size=6, num_attention_heads=2, intermediate_size=5, num_hidden_layers=3)
    >>> network = as_network(BertModel(BertConfig(vocab_size=7, **sizes)))
    >>> len(network.layers), network.layers[0].attention.dims.dim_qk
    (3, 3)
    """
    base, config = find_base(model)
    blocks, places = _blocks(base)
    if config.hidden_act not in HIDDEN_ACTIVATIONS:
        raise _refusal(f"the activation {config.hidden_act!r}, not among {', '.join(HIDDEN_ACTIVATIONS)}")
    layers = {}
    for number, block in enumerate(blocks):
        if id(block) not in layers:
            layer = _layer(block, places, config)
            _require_same(layer, block, number)
            layers[id(block)] = layer
    return Network(layers[id(block)] for block in blocks)


def to_double(module: nn.Module) -> nn.Module:
    """A copy of the module on the CPU, in float64, without dropout."""
    return copy.deepcopy(module).to("cpu", torch.float64).eval()


def _refusal(got: str) -> ValueError:
    return ValueError(
        "model: expected a BERT-like or ALBERT encoder (absolute positions, no causal mask, LayerNorm after "
        f"each sum), got {got}; use ranklib.tracing.layerwise.trace, which works down to the float64 floor"
    )


def find_part(module: nn.Module, path: str) -> Any:
    """The part of a module at a dotted path, or None."""
    for name in path.split("."):
        module = getattr(module, name, None)
    return module


def find_base(model: nn.Module) -> tuple[nn.Module, Any]:
    """The model without its head, and its configuration; raises where the positions or the mask forbid it."""
    base = getattr(model, getattr(model, "base_model_prefix", "") or " ", model)
    config, kind = getattr(base, "config", None), type(model).__name__
    if config is None or find_part(base, "encoder") is None or find_part(base, "embeddings") is None:
        raise _refusal(kind)
    obstacles = {
        "relative positions": getattr(config, "position_embedding_type", "absolute") != "absolute"
        or any("relative" in name for name, _ in base.named_modules()),
        "a causal mask": getattr(config, "is_decoder", False),
        "cross attention": getattr(config, "add_cross_attention", False),
    }
    for obstacle, there in obstacles.items():
        if there:
            raise _refusal(f"{kind} with {obstacle}")
    return base, config


def _blocks(base: nn.Module) -> tuple[list[nn.Module], dict[str, str]]:
    """The blocks in the order in which the model calls them, and where their parts are."""
    encoder, config = base.encoder, base.config
    groups = getattr(encoder, "albert_layer_groups", None)
    if groups is None:
        blocks, places = list(getattr(encoder, "layer", None) or []), _BERT
    else:
        depth = config.num_hidden_layers
        order = [int(i / (depth / len(groups))) for i in range(depth)]
        blocks, places = [layer for i in order for layer in groups[i].albert_layers], _ALBERT
    if not blocks:
        raise _refusal(f"{type(base).__name__} without layers that are known here")
    for block in blocks:
        missing = [path for path in places.values() if find_part(block, path) is None]
        if missing:
            raise _refusal(f"{type(block).__name__} without {missing[0]}")
    return blocks, places


def _layer(block: nn.Module, places: dict[str, str], config: Any) -> Layer:
    parts = {name: to_double(find_part(block, path)) for name, path in places.items()}
    heads, dim = config.num_attention_heads, config.hidden_size
    weights = {"w_o": parts["output"].weight.T.reshape(heads, -1, dim), "b_o": parts["output"].bias}
    for name in ("query", "key", "value"):
        weights["w_" + name[0]] = parts[name].weight.T.reshape(dim, heads, -1).transpose(0, 1)
        weights["b_" + name[0]] = parts[name].bias.reshape(heads, -1)
    mlp = nn.Sequential(parts["up"], HIDDEN_ACTIVATIONS[config.hidden_act](), parts["down"])
    return Layer(SelfAttention(**weights), mlp, norm="post", norm_1=parts["norm_1"], norm_2=parts["norm_2"])


def _require_same(layer: Layer, block: nn.Module, number: int) -> None:
    """Raise unless the layer gives what the model's own block gives, on tokens drawn for this comparison."""
    generator = torch.Generator().manual_seed(number)
    x = torch.randn(1, 5, layer.attention.dims.dim, generator=generator, dtype=torch.float64)
    wanted = to_double(block)(x)
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    error = float((layer(x) - wanted).abs().max() / wanted.abs().max())
    if not error < _WORST:
        kind = type(block).__name__
        raise _refusal(f"layer {number}, {kind}, that does something else (relative difference {error:.1e})")
