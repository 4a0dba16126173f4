"""Hooks that measure the stream of a running transformer and keep the numbers only."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import torch
from torch import Tensor, nn

from ranklib.measures.table import MEASURES
from ranklib.tracing.batches import Batch, real_tokens, slice_batch
from ranklib.tracing.blocks import same_stream, stream_in, stream_out


class Watch:
    """The hooks: they measure the stream before the first block and after each, and keep the numbers only."""

    def __init__(self, measures: tuple[str, ...]) -> None:
        self.measures = measures
        self.undefined: dict[str, str] = {}  # why a measure is not defined, where it was not
        self.tokens_first: bool | None = None  # XLNet's stream is (tokens, batch, dim)

    @contextmanager
    def on(self, found: list[nn.Module]) -> Iterator[None]:
        """Within the context every block reports what enters and what leaves it."""
        with ExitStack() as stack:
            for block in found:
                stack.callback(block.register_forward_pre_hook(self.before, with_kwargs=True).remove)
                stack.callback(block.register_forward_hook(self.after).remove)
            yield

    def run(self, model: nn.Module, batch: Batch, size: int) -> list[tuple[Tensor, Tensor]]:
        """(layers, samples, measures) and real tokens of a batch, in two parts if its axes look alike."""
        args, kwargs = batch
        self.size, self.table, self.last, self.unclear = size, [], None, False
        self.real = real_tokens(kwargs, size)
        model(*args, **kwargs)
        self.last = None
        if self.unclear:  # as many tokens as samples: one sample tells which axis is which
            parts = [(slice_batch(batch, size, a, b), b - a) for a, b in ((0, 1), (1, size))]
            return [pair for part, samples in parts for pair in self.run(model, part, samples)]
        if not self.table:
            raise ValueError(
                "model: expected its blocks to run, got no call of any; see ranklib.tracing.blocks.blocks(model)"
            )
        return [(torch.stack(self.table), self.counts)]

    def before(self, block: nn.Module, args: tuple, kwargs: dict) -> None:
        """Hook: the first block records what enters; the others must get what the one before gave."""
        stream = stream_in(args, kwargs)
        if self.last is None:
            self.record(stream)
        elif not same_stream(stream, self.last):
            raise ValueError(
                "model: expected each block to be called with the output of the one before it, "
                f"got another tensor after layer {len(self.table) - 1}; trace a part where they are in a row"
            )

    def after(self, block: nn.Module, args: tuple, output: object) -> None:
        """Hook: record what a block gives."""
        self.last = stream_out(output)
        self.record(self.last)

    def record(self, stream: Tensor) -> None:
        """Measure one state of the stream, sample by sample."""
        x = self.batch_first(stream)
        if self.unclear:
            return
        samples, tokens = x.shape[:2]
        layer = len(self.table)
        if self.real is None:
            self.real = torch.ones(samples, tokens, dtype=torch.bool)
        if layer == 0:
            if self.real.shape[1] != tokens:
                raise ValueError(
                    f"mask: expected an entry for each of {tokens} tokens of the stream, got "
                    f"{self.real.shape[1]}; pass no mask, or pass the mask that belongs to the stream"
                )
            self.counts = self.real.sum(1).cpu()
        values = torch.empty(samples, len(self.measures), dtype=torch.float64)
        for count in self.counts.unique().tolist():
            of_count = self.counts == count
            y = x if count == tokens and of_count.all() else self.real_rows(x, of_count, count)
            for i, name in enumerate(self.measures):
                values[of_count, i] = self.measured(name, y, layer)
        self.table.append(values)

    def measured(self, name: str, x: Tensor, layer: int) -> Tensor:
        """The measure of each sample; NaN where it is not defined."""
        measure = MEASURES[name]
        try:
            return measure(x).cpu().double()
        except ValueError as reason:
            bad = int((~torch.isfinite(x)).sum())
            if bad:
                raise ValueError(
                    f"layer {layer}: expected a finite stream, got {bad} of {x.numel()} entries that are NaN "
                    "or infinite; check the weights and inputs, or run the model in a wider dtype"
                ) from None
            self.undefined[name] = str(reason)
        values = torch.full((len(x),), torch.nan, dtype=torch.float64)
        for i, sample in enumerate(x):
            with suppress(ValueError):
                values[i] = measure(sample).cpu().double()
        return values

    def real_rows(self, x: Tensor, of_count: Tensor, count: int) -> Tensor:
        """The real tokens of the samples that have ``count`` of them."""
        chosen = of_count.to(x.device)
        return x[chosen][self.real.to(x.device)[chosen]].unflatten(0, (-1, count))

    def batch_first(self, stream: Tensor) -> Tensor:
        """The stream as (batch, tokens, dim), if one can tell which axis is which."""
        fits = [stream.ndim == 3 and stream.shape[axis] == self.size for axis in (0, 1)]
        if self.tokens_first is None and all(fits):
            self.unclear = self.size > 1
            return stream
        if self.tokens_first is None and any(fits):
            self.tokens_first = fits[1]
        if not fits[bool(self.tokens_first)]:
            raise ValueError(
                "model: expected a stream (batch, tokens, dim) or (tokens, batch, dim) with batch "
                f"{self.size}, got shape {tuple(stream.shape)}; pass one sample per row of the inputs"
            )
        return stream.transpose(0, 1) if self.tokens_first else stream
