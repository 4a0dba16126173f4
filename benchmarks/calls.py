"""One call of every public function that computes from tensors, found by its room and its parameters' names.

A new function needs no entry here as long as its parameters are called as elsewhere; one that does raises
``KeyError`` with the name of the parameter.
"""

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module

import torch

from ranklib.exact.state import ResidualState
from ranklib.model.layers import Layer, Network
from ranklib.paper.least import residual_size
from ranklib.paper.sizes import layer_sizes

ROOMS = ("model", "measures", "paper", "theory", "exact")
SIZES = {"small": (16, 32, 4), "large": (128, 768, 12)}  # tokens, features, heads
DEPTH = 3
HOLDS_TENSORS = ("Tensor", "SelfAttention", "Layer", "Network", "Module", "ResidualState", "jaxtyping")
OWN: dict[str, dict] = {}  # what a function needs beside its parameters' names


def arguments(tokens: int, dim: int, heads: int) -> dict[str, object]:
    """A value for every name of a parameter; tensors are float64."""
    generator = torch.Generator().manual_seed(0)

    def randn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, scores, width = randn(tokens, dim), randn(tokens, tokens), dim // heads
    layer = Layer.random(dim, heads, generator=generator, mlp_dim=dim, skip=False)
    network = Network.random(DEPTH, dim, heads, generator=generator, skip=True)
    attentions = [layer.attention.attention(x).detach() for layer in network.layers]
    return {
        **{name: x for name in ("x", "a", "residual", "mantissa")},
        **{name: scores for name in ("scores", "e", "bias", "key_score")},
        **{name: randn(dim, width) / dim**0.5 for name in ("w_q", "w_k")},
        **{name: torch.tensor(0.5, dtype=torch.float64) for name in ("osc", "lam", "t", "value")},
        **{name: 0.5 for name in ("d", "rho")},
        **{
            "centre": x.mean(0),
            "p": scores.softmax(-1),
            "ps": [scores.softmax(-1)] * DEPTH,
            "w": randn(dim, dim),
        },
        **{"mask": torch.ones(tokens, tokens, dtype=torch.bool).tril(), "table": randn(2 * tokens - 1)},
        **{"angles": randn(width // 2), "attention": network.layers[0].attention, "network": network},
        **{"layer": layer, "mlp": layer.mlp, "phi": layer.mlp, "y": x[0], "module": torch.nn.LayerNorm(dim)},
        **{
            "layers": [layer.attention for layer in network.layers],
            "state": ResidualState.of(x),
            "attentions": attentions,
            "path": (0,) * DEPTH,
        },
        **{"tol": 1e-3, "eps": 1e-5, "exponent": 0, "tokens": tokens, "depth": DEPTH, "c": 1.0, "b_q": None},
        **{"b_k": None, "sizes": layer_sizes(network.layers[0].attention, x), "name": "unconditional"},
        **{"omega": 1.0, "nu": 1.0, "least": residual_size(x), "activation": torch.nn.GELU()},
    }


def public_functions() -> Iterator[tuple[str, Callable]]:
    """``room.name`` and the function, for every function that a room shows at its door."""
    for room in ROOMS:
        package = import_module(f"ranklib.{room}")
        for name in package.__all__:
            if inspect.isfunction(getattr(package, name)):
                yield f"{room}.{name}", getattr(package, name)


def computing_calls(size: str) -> dict[str, Callable[[], object]]:
    """A call without arguments for every public function one of whose parameters is, or holds, tensors."""
    values, calls = arguments(*SIZES[size]), {}
    own = OWN | {"theory.measure_slack": {"layer": values["layer"].switched(mlp=False)}}
    for name, function in public_functions():
        needed = {
            key: str(parameter.annotation)
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
        }
        if any(kind in annotation for annotation in needed.values() for kind in HOLDS_TENSORS):
            given = own.get(name, {})
            unknown = [key for key in needed if key not in values | given]
            if unknown:
                raise KeyError(
                    f"{name}: expected parameters that benchmarks/calls.py knows, got {unknown}; "
                    "add a value to arguments(), or to OWN for this function alone"
                )
            calls[name] = partial(
                function, **{key: values[key] for key in needed if key not in given} | given
            )
    layers = {"model.SelfAttention": values["attention"], "model.Network": values["network"]}
    return calls | {name: partial(module, values["x"]) for name, module in layers.items()}
