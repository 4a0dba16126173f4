"""The residual of a real model far below rounding: its blocks as layers, its tokens carried exactly.

A forward pass in float64 shows a residual down to 1e-15 of the tokens. Here the weights of a BERT-like or
ALBERT model become :class:`~ranklib.model.layers.Layer` objects in float64, each compared with the block that
it stands for, and :mod:`ranklib.exact.propagation` carries the model's own embeddings through them at any
size.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from tqdm.auto import tqdm

from ranklib.exact.propagation import trajectory
from ranklib.exact.state import ResidualState
from ranklib.paper.norms import composite
from ranklib.tracing.conversion import as_network, find_base, find_part, to_double

LAYER_SWITCHES = {
    "attention_skip": {"skip": False},
    "mlp_skip": {"mlp_skip": False},
    "skip": {"skip": False, "mlp_skip": False},
    "mlp": {"mlp": False},
    "norm": {"norm": "none"},
}
"""What may be left out, by its name in ``without``, as switches of ``Layer``."""


@dataclass(frozen=True, eq=False)
class DeepTrace:
    """log10 of the residual about the token mean after every layer, at any size; -inf where rows are equal.

    ``log10_residual``: of sqrt(||R||_1 ||R||_inf), R = X - 1 mean^T; ``log10_relative``: the same over
    sqrt(||X||_1 ||X||_inf). Both (layers, samples), layer 0 the embeddings, as from
    :func:`~ranklib.tracing.layerwise.trace`. Source: chapter `real-transformers`.
    """

    log10_residual: Float[Tensor, "layers samples"]
    log10_relative: Float[Tensor, "layers samples"]

    def constants(self) -> Float[Tensor, "steps samples"]:
        """log10 a_{l+1} - 3 log10 a_l of the relative residual a: about constant where the law is cubic.

        >>> curve = torch.tensor([[-1.0], [-2.5], [-7.0]])
        >>> DeepTrace(curve, curve).constants()[:, 0].tolist()
        [0.5, 0.5]
        """
        return self.log10_relative[1:] - 3 * self.log10_relative[:-1]

    def rows(self) -> list[dict]:
        """One dict a layer and sample: layer, sample, log10_residual, log10_relative."""
        return [
            {
                "layer": layer,
                "sample": sample,
                "log10_residual": float(self.log10_residual[layer, sample]),
                "log10_relative": float(self.log10_relative[layer, sample]),
            }
            for layer in range(self.log10_relative.shape[0])
            for sample in range(self.log10_relative.shape[1])
        ]


@torch.no_grad()
def embeddings(model: nn.Module, inputs: Mapping[str, Any]) -> list[Float[Tensor, "tokens dim"]]:
    """What enters the model's first block, one matrix a sample, in float64, without padding.

    ``inputs``: what the tokenizer gives: input_ids (samples, tokens) and, where there are, attention_mask
    (1 for a real token) and token_type_ids. Raises ``ValueError`` for a wrong shape, ids outside the
    vocabulary, or a sample without a real token; and as :func:`as_network` does. Source: chapter
    `real-transformers`.

    >>> from transformers import BertConfig, BertModel
    >>> sizes = dict(hidden_size=6, num_attention_heads=2, intermediate_size=5, num_hidden_layers=3)
    >>> ids, mask = torch.tensor([[1, 2, 3], [4, 5, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    >>> model = BertModel(BertConfig(vocab_size=7, **sizes))
    >>> [tuple(x.shape) for x in embeddings(model, {"input_ids": ids, "attention_mask": mask})]
    [(3, 6), (2, 6)]
    """
    base, config = find_base(model)
    ids, mask, types = _check_inputs(inputs, config)
    names = ("embeddings_project", "encoder.embedding_hidden_mapping_in")
    parts = [part for part in (find_part(base, name) for name in names) if part is not None]
    x = to_double(base.embeddings)(input_ids=ids, token_type_ids=types)
    for part in parts:
        x = to_double(part)(x)
    return [rows[real] for rows, real in zip(x, mask, strict=True)]


@torch.no_grad()
def deep_trace(
    model: nn.Module,
    inputs: Mapping[str, Any],
    *,
    without: Iterable[str] = (),
    progress: bool = False,
) -> DeepTrace:
    """log10 of the residual of every layer and sample, exact at any size, from the model's own embeddings.

    ``without``: parts left out of every layer, among "attention_skip", "mlp_skip", "skip" (both), "mlp" (with
    its skip and its LayerNorm) and "norm". Padding takes no part: each sample is its real tokens. One sample
    of 128 tokens through BERT-base takes about a second. Raises ``ValueError`` for an unknown part or a model
    where the method does not apply; see :func:`as_network` and :func:`embeddings`. What is resolved stands at
    the head of :mod:`ranklib.exact.propagation`. Source: chapter `real-transformers`.

    >>> from transformers import BertConfig, BertModel
    >>> sizes = dict(hidden_size=6, num_attention_heads=2, intermediate_size=5, num_hidden_layers=7)
    >>> model = BertModel(BertConfig(vocab_size=7, **sizes))
    >>> found = deep_trace(model, {"input_ids": torch.tensor([[1, 2, 3]])}, without=("skip", "mlp"))
    >>> found.log10_relative.shape, bool(found.log10_relative[7, 0] < -300)
    (torch.Size([8, 1]), True)
    """
    network = as_network(model).switched(**layer_switches(without))
    residual, relative = [], []
    for x in tqdm(embeddings(model, inputs), desc="samples", disable=not progress):
        states = trajectory(ResidualState.of(x), network)
        sizes = [state.log10_size() for state in states]
        residual.append(sizes)
        relative.append([size - _log10_tokens(state) for size, state in zip(sizes, states, strict=True)])
    return DeepTrace(*(torch.tensor(values, dtype=torch.float64).T for values in (residual, relative)))


def layer_switches(without: Iterable[str]) -> dict[str, Any]:
    """The arguments of ``Network.switched`` that leave out the named parts.

    >>> layer_switches(["skip", "mlp"])
    {'skip': False, 'mlp_skip': False, 'mlp': False}
    """
    without = [without] if isinstance(without, str) else list(without)
    found = {}
    for name in without:
        if name not in LAYER_SWITCHES:
            raise ValueError(
                f"without: expected names among {tuple(LAYER_SWITCHES)}, got {name!r}; choose from these"
            )
        found |= LAYER_SWITCHES[name]
    return found


def _log10_tokens(state: ResidualState) -> float:
    """log10 sqrt(||X||_1 ||X||_inf); a residual below the range of float64 does not change it."""
    tiny = state.exponent < -1000
    tokens = state.common.expand_as(state.mantissa) if tiny else state.dense()
    size = float(composite(tokens))
    return math.log10(size) if size else -math.inf


def _check_inputs(inputs: Mapping[str, Any], config: Any) -> tuple[Tensor, Tensor, Tensor]:
    """input_ids, the mask of the real tokens and the token types (0 where none are given), on the CPU."""
    ids = inputs.get("input_ids") if hasattr(inputs, "get") else None
    if not isinstance(ids, Tensor) or ids.ndim != 2 or 0 in ids.shape or ids.is_floating_point():
        got = f"shape {tuple(ids.shape)}, {ids.dtype}" if isinstance(ids, Tensor) else type(ids).__name__
        raise ValueError(
            f"inputs: expected input_ids, integers of shape (samples, tokens), got {got}; "
            'use tokenizer(texts, padding=True, return_tensors="pt")'
        )
    if not 0 <= int(ids.min()) <= int(ids.max()) < config.vocab_size:
        raise ValueError(
            f"inputs: expected ids from 0 to {config.vocab_size - 1}, got {int(ids.min())} to "
            f"{int(ids.max())}; use the model's own tokenizer"
        )
    mask, types = inputs.get("attention_mask"), inputs.get("token_type_ids")
    for name, value in (("attention_mask", mask), ("token_type_ids", types)):
        if value is not None and tuple(value.shape) != tuple(ids.shape):
            raise ValueError(
                f"inputs: expected {name} of shape {tuple(ids.shape)} as input_ids has, got "
                f"{tuple(value.shape)}; take both from one call of the tokenizer"
            )
    mask = torch.ones_like(ids) if mask is None else mask
    if not mask.bool().any(1).all():
        raise ValueError("inputs: expected a real token in every sample, got one of padding alone; drop it")
    types = torch.zeros_like(ids) if types is None else types
    return ids.cpu(), mask.bool().cpu(), types.cpu()
