"""The blocks of a transformer, found by structure and without a table of model families."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ranklib._checks import require_instance

# Queries, keys, values and output, or a fused product, its output and the two maps of an MLP. One expert, one
# head of an attention layer or one convolution has fewer.
LEAST_MATRICES = 4


def blocks(model: nn.Module) -> list[nn.Module]:
    """The blocks of ``model`` in order, each module once (ALBERT has one, which it calls many times).

    A stack is a ``ModuleList`` or ``Sequential`` whose children are of one class and have at least four
    weight matrices each. It is the outermost one, unless its children hold nothing but a stack themselves, as
    ALBERT's groups do.

    Raises ``TypeError`` if ``model`` is no module; ``ValueError`` if there is no stack, or more than one
    beside each other (an encoder and a decoder, a text and an image tower): pass the part that is meant.

    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, batch_first=True), 3)
    >>> blocks(encoder) == list(encoder.layers)
    True

    Source: chapter `real-transformers`.
    """
    require_instance("model", model, nn.Module)
    stacks = list(_stacks(model, ""))
    if len(stacks) != 1:
        got = ", ".join(name or "the model itself" for name, _ in stacks) or "none"
        raise ValueError(
            f"model: expected one stack of blocks of one class, got {got}; "
            "pass the part with one stack, for example model.encoder"
        )
    return _unwrap(stacks[0][1])


def _is_stack(module: nn.Module) -> bool:
    children = list(module.children())
    return (
        isinstance(module, nn.ModuleList | nn.Sequential)
        and len({type(child) for child in children}) == 1
        and all(sum(p.ndim >= 2 for p in child.parameters()) >= LEAST_MATRICES for child in children)
    )


def _stacks(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """The outermost stacks, with their names."""
    if _is_stack(module):
        yield name, module
    else:
        for leaf, child in module.named_children():
            yield from _stacks(child, f"{name}.{leaf}" if name else leaf)


def _unwrap(stack: nn.Module) -> list[nn.Module]:
    found = []
    for child in stack.children():
        inner = list(_stacks(child, ""))
        wraps = len(inner) == 1 and set(inner[0][1].parameters()) == set(child.parameters())
        found += _unwrap(inner[0][1]) if wraps else [child]
    return found


def stream_in(arguments: tuple, keywords: dict) -> Tensor:
    """What a block is called with: its first floating-point tensor with at least two axes."""
    for value in (*arguments, *keywords.values()):
        if isinstance(value, Tensor) and value.is_floating_point() and value.ndim >= 2:
            return value
    raise ValueError(
        f"block: expected a call with the stream, got {len(arguments)} arguments and {sorted(keywords)} "
        "without a floating-point matrix; pass the part of the model whose blocks take the tokens"
    )


def stream_out(output) -> Tensor:
    """What a block returns: its output, or the first entry of it."""
    stream = output if isinstance(output, Tensor) else output[0] if isinstance(output, tuple | list) else None
    if not isinstance(stream, Tensor):
        raise ValueError(
            f"block: expected a tensor or a tuple that begins with one, got {type(output).__name__}; "
            "wrap the block so that it returns the stream first"
        )
    return stream


def with_stream(output, stream: Tensor):
    """``output`` with another stream."""
    return stream if isinstance(output, Tensor) else type(output)((stream, *output[1:]))


def same_stream(given: Tensor, returned: Tensor) -> bool:
    """Whether a block is called with what the block before it returned, perhaps moved to another device."""
    if given is returned:
        return True
    if given.shape != returned.shape:
        return False
    return torch.equal(given, returned.to(given.device))
