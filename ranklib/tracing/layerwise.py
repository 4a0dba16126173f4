"""Measures of every layer's tokens, taken in hooks while a transformer runs."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from tqdm.auto import tqdm

from ranklib._checks import require_int
from ranklib.measures.table import MEASURES
from ranklib.tracing.batches import batches, prepare_batch, read_batch
from ranklib.tracing.blocks import blocks
from ranklib.tracing.recorder import Watch
from ranklib.tracing.switches import switched_off, switches


@dataclass(frozen=True, eq=False)
class Trace:
    """Measures of the tokens after every layer, one value for each layer, sample and measure.

    ``values`` is float64 on the CPU; layer 0 is the input of the first block, layer l the output of block l.
    NaN stands where a measure is not defined for that sample (its docstring says when: a stream that is zero,
    a single token); no other value is made up. ``tokens``: how many real tokens each sample has.
    ``model``: the class of the model. ``without``, ``as_released``: what was switched off.
    Source: chapter `real-transformers`.
    """

    values: Float[Tensor, "layer sample measure"]
    measures: tuple[str, ...]
    tokens: Int[Tensor, " sample"]
    model: str
    without: tuple[str, ...] = ()
    as_released: bool = False

    def of(self, measure: str) -> Float[Tensor, "layer sample"]:
        """One measure, layers x samples. Raises ``ValueError`` if it was not taken."""
        if measure not in self.measures:
            raise ValueError(
                f"measure: expected one of {self.measures}, got {measure!r}; "
                f"trace with measures=({measure!r},)"
            )
        return self.values[..., self.measures.index(measure)]

    def mean(self, measure: str) -> Float[Tensor, " layer"]:
        """The mean over the samples, layer by layer; NaN where it is not defined for a sample."""
        return self.of(measure).mean(1)

    def std(self, measure: str) -> Float[Tensor, " layer"]:
        """The standard deviation of these samples (division by their number), layer by layer."""
        return self.of(measure).std(1, correction=0)

    def rows(self) -> list[dict]:
        """The tidy table: a dict of layer, sample, measure and value for each value."""
        return [
            {"layer": layer, "sample": sample, "measure": measure, "value": value}
            for layer, samples in enumerate(self.values.tolist())
            for sample, row in enumerate(samples)
            for measure, value in zip(self.measures, row, strict=True)
        ]

    def to_csv(self, path: str | Path) -> None:
        """Write ``rows()`` with a header; every value at full precision."""
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, ["layer", "sample", "measure", "value"])
            writer.writeheader()
            writer.writerows(self.rows())

    def __str__(self) -> str:
        off = ", ".join(self.without) or "nothing"
        samples = f"{len(self.tokens)} sample{'s' * (len(self.tokens) > 1)}"
        head = f"{self.model}, {samples}, without {off}{' (as released)' * self.as_released}"
        cells = [["layer", *map(str, range(len(self.values)))]]
        for name in self.measures:
            pairs = zip(self.mean(name).tolist(), self.std(name).tolist(), strict=True)
            cells.append([name, *(f"{mean:.3g} ± {std:.1g}" for mean, std in pairs)])
        widths = [max(map(len, column)) for column in cells]
        table = ["  ".join(map(str.rjust, row, widths)) for row in zip(*cells, strict=True)]
        undefined = int(self.values.isnan().sum())
        note = [f"{undefined} values are NaN: the measure is not defined there"] * bool(undefined)
        return "\n".join([head, *table, *note])


def trace(
    model: nn.Module,
    inputs: Tensor | Mapping | Iterable,
    *,
    measures: str | Iterable[str] = ("composite_residual",),
    without: str | Iterable[str] = (),
    as_released: bool = False,
    batch_size: int | None = None,
    progress: bool = True,
) -> Trace:
    """The chosen measures of every layer's tokens, for each sample, in one pass and without stored states.

    Any stack of blocks: a Hugging Face encoder, decoder or ViT, ``nn.TransformerEncoder``,
    ``ranklib.Network``. Each block's output is measured in a hook and let go, so that memory does not grow
    with depth. The model runs as it is, on its own device and in its own dtype, without gradients, in
    evaluation mode (dropout off); afterwards its hooks, modes and modules are as they were, also after an
    exception.

    Parameters
    ----------
    model
        See ``ranklib.tracing.blocks``. A decoder runs without its cache.
    inputs
        One mapping of keyword tensors, as a tokenizer or an image processor returns it, with any leading
        batch size; or a tensor (batch, tokens, dim) for a model that takes one; or an iterable of either,
        read one at a time. They are moved to the model's device, floating-point ones to its dtype. Where an
        ``attention_mask`` (or an ``input_mask`` or a ``src_key_padding_mask``) marks padding, the measures
        see the real tokens only.
    measures
        Names in ``ranklib.MEASURES``.
    without, as_released
        What to switch off, as in ``ranklib.tracing.switches.switched_off``.
    batch_size
        How many samples run together; None runs every mapping or tensor as it is given.

    Raises
    ------
    ValueError
        An unknown measure or switch; no single stack of blocks; blocks that are not called one on the
        output of the other; a switch on a model where the skip connections cannot be told for sure; inputs
        of different batch sizes; a stream that is no (batch, tokens, dim) or contains NaN or infinity (the
        message gives the layer); a measure that is not defined for any sample at layer 0.
    TypeError
        Inputs that are neither mappings nor tensors, or a model that is no module.

    Example
    -------
    >>> import ranklib
    >>> generator = torch.Generator().manual_seed(0)
    >>> network = ranklib.Network.random(depth=3, dim=5, mlp_dim=7, norm="pre", generator=generator)
    >>> x = torch.randn(2, 7, 5, dtype=torch.float64, generator=generator)
    >>> result = trace(network, x, measures=["mu", "mean_cosine"], progress=False)
    >>> result.values.shape, bool((result.of("mu")[0] == ranklib.mu(x)).all())
    (torch.Size([4, 2, 2]), True)

    Source: chapter `real-transformers`; the relative residual against depth is the paper's experiment.
    """
    chosen, names, found = _measures(measures), switches(without), blocks(model)
    if batch_size is not None:
        require_int("batch_size", batch_size, 1)
    _require_batch_first(model, found)
    watch = Watch(chosen)
    tables, tokens = [], []
    total = read_batch(inputs)[1] if isinstance(inputs, Tensor | Mapping) else None
    with ExitStack() as stack:
        stack.enter_context(_plain_run(model))
        stack.enter_context(switched_off(model, names, as_released=as_released))
        stack.enter_context(watch.on(found))
        bar = stack.enter_context(tqdm(total=total, unit="sample", desc="trace", disable=not progress))
        for batch, size in batches(inputs, batch_size):
            for table, counts in watch.run(model, prepare_batch(model, batch), size):
                tables.append(table)
                tokens.append(counts)
            bar.update(size)
    if not tables:
        raise ValueError("inputs: expected at least one sample, got none; pass a batch")
    depths = {len(table) for table in tables}
    if len(depths) > 1:
        got = sorted(depths)
        raise ValueError(f"model: expected as many layers in every batch, got {got}; trace them apart")
    values = torch.cat(tables, 1)
    for i, name in enumerate(chosen):
        if values[0, :, i].isnan().all():
            raise ValueError(f"{name}: not defined for any sample at layer 0: {watch.undefined[name]}")
    return Trace(values, chosen, torch.cat(tokens), type(model).__name__, names, as_released)


def _measures(names: str | Iterable[str]) -> tuple[str, ...]:
    chosen = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    if not chosen:
        raise ValueError("measures: expected at least one name, got none; use for example ('mu',)")
    for name in chosen:
        if name not in MEASURES:
            known = tuple(MEASURES)
            raise ValueError(f"measures: expected names among {known}, got {name!r}; choose from them")
    return chosen


def _require_batch_first(model: nn.Module, found: list[nn.Module]) -> None:
    bare = isinstance(model, nn.TransformerEncoder | nn.Sequential | nn.TransformerEncoderLayer)
    if bare and any(isinstance(b, nn.TransformerEncoderLayer) and not b.self_attn.batch_first for b in found):
        raise ValueError("model: expected batch_first=True, got False; build the layers with it")


@contextmanager
def _plain_run(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, no gradients, and none of torch's fused encoder layers."""
    training = [module for module in model.modules() if module.training]
    fused = torch.backends.mha.get_fastpath_enabled()
    try:
        for module in training:
            module.training = False
        torch.backends.mha.set_fastpath_enabled(False)
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for module in training:
            module.training = True
