"""Inputs of a model, a batch at a time, and which of their tokens are real."""

import inspect
from collections.abc import Iterable, Iterator, Mapping

from torch import Tensor, nn

# Which entries of a mask are real tokens, by the mask's name.
_REAL = {
    "attention_mask": lambda mask: mask != 0,
    "input_mask": lambda mask: mask == 0,
    "src_key_padding_mask": lambda mask: mask == 0,
}
Batch = tuple[tuple, dict]  # positional and keyword arguments of the model


def read_batch(item: object) -> tuple[Batch, int]:
    """One mapping or tensor as arguments of the model, and its batch size."""
    if isinstance(item, Tensor):
        args, kwargs = (item,), {}
    elif isinstance(item, Mapping):
        args, kwargs = (), dict(item)
    else:
        raise TypeError(
            f"inputs: expected mappings of tensors or tensors, got {type(item).__name__}; "
            'pass what a tokenizer returns with return_tensors="pt"'
        )
    named = (*enumerate(args), *kwargs.items())
    shapes = {name: tuple(value.shape) for name, value in named if isinstance(value, Tensor)}
    sizes = {shape[0] for shape in shapes.values() if shape}
    size = max(sizes, default=0)
    if sizes - {1, size} or not size:
        raise ValueError(
            f"inputs: expected tensors with one leading batch size, got {shapes}; make them agree"
        )
    return (args, kwargs), size


def slice_batch(batch: Batch, size: int, start: int, stop: int) -> Batch:
    """Samples ``start`` to ``stop`` of a batch; what is no tensor with one row a sample stays whole."""

    def part(value):
        whole = isinstance(value, Tensor) and value.ndim and len(value) == size
        return value[start:stop] if whole else value

    args, kwargs = batch
    return tuple(map(part, args)), {name: part(value) for name, value in kwargs.items()}


def batches(inputs: Tensor | Mapping | Iterable, batch_size: int | None) -> Iterator[tuple[Batch, int]]:
    """The inputs in batches of at most ``batch_size`` samples, each with its number of samples."""
    for item in [inputs] if isinstance(inputs, Tensor | Mapping) else inputs:
        batch, size = read_batch(item)
        step = batch_size or size
        for start in range(0, size, step):
            stop = min(start + step, size)
            yield slice_batch(batch, size, start, stop), stop - start


def prepare_batch(model: nn.Module, batch: Batch) -> Batch:
    """On the model's device and in its dtype, and no cache of keys, values or states."""
    weight = next((p for p in model.parameters() if p.is_floating_point()), None)

    def moved(value):
        if weight is None or not isinstance(value, Tensor):
            return value
        return value.to(weight.device, weight.dtype if value.is_floating_point() else None)

    args, kwargs = batch
    known = inspect.signature(model.forward).parameters
    off = {name: False for name in ("use_cache", "use_mems") if name in known and not args}
    return tuple(map(moved, args)), off | {name: moved(value) for name, value in kwargs.items()}


def real_tokens(kwargs: dict, size: int) -> Tensor | None:
    """Which tokens are real, (batch, tokens), or None if no mask says so."""
    for name, rule in _REAL.items():
        mask = kwargs.get(name)
        if mask is None:
            continue
        if tuple(mask.shape[:1]) != (size,) or mask.ndim != 2 or not ((mask == 0) | (mask == 1)).all():
            raise ValueError(
                f"{name}: expected zeros and ones of shape (batch, tokens), got shape {tuple(mask.shape)} "
                f"from {mask.min().item():.3g} to {mask.max().item():.3g}; pass the tokenizer's mask"
            )
        real = rule(mask)
        if not real.any(1).all():
            raise ValueError(f"{name}: expected a real token in every sample, got none in one; leave it out")
        return real
    return None
