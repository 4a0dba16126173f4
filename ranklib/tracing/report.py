"""What the command ``trace`` writes: a table, a record with provenance, a drawing of the measures by layer."""

import json
import math
import time
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import torch

from ranklib._provenance import current_device, provenance
from ranklib.book.pictures import use_book_style
from ranklib.book.style import PANEL, role, shade_floor
from ranklib.tracing import models as pretrained
from ranklib.tracing.layerwise import Trace, trace

RESIDUALS = ("composite_residual", "relative_residual")
FLOOR = 9  # a relative residual below so many units of rounding is not trusted: 2e-15 in float64
DTYPES = {"float64": torch.float64, "float32": torch.float32}


def report(
    model: str,
    *,
    text: Path | None = None,
    samples: int | None = None,
    tokens: int = 128,
    without: Iterable[str] = (),
    as_released: bool = False,
    measures: Iterable[str] = RESIDUALS[:1],
    dtype: str = "float64",
    out: Path | None = None,
) -> None:
    """Measure every layer of a model on a text; print the table, write trace.csv, trace.json and trace.svg.

    ``model`` as in :func:`~ranklib.tracing.models.load_model`; ``text``: a file, one sample a paragraph, by
    default the book's biographies; the first ``samples`` of them, cut to ``tokens``; the switches and
    measures of :func:`~ranklib.tracing.layerwise.trace`; ``dtype`` "float64" or "float32"; ``out``: the folder, by
    default ``trace-MODEL`` here. Raises as those two do, and ``ValueError`` for a text that cannot be read or
    a folder that cannot be written.
    """
    start = time.perf_counter()
    texts, source = _texts(text)
    network, tokenizer, title = pretrained.load_model(model)
    inputs = pretrained.tokenise(tokenizer, texts[:samples], tokens)
    pretrained.require_fits(network, inputs)
    _require_pairs(inputs, text)
    folder = _folder(out or Path(f"trace-{Path(model).resolve().name}"))
    result = trace(
        network.to(current_device(), DTYPES[dtype]),
        inputs,
        measures=measures,
        without=without,
        as_released=as_released,
        batch_size=8,
    )
    least, most = int(result.tokens.min()), int(result.tokens.max())
    floor = FLOOR * torch.finfo(DTYPES[dtype]).eps
    print(f"{title}\ntext: {source}, {least if least == most else f'{least} to {most}'} tokens\n{result}")
    if any(bool((result.mean(name) < floor).any()) for name in RESIDUALS if name in result.measures):
        print(f"a residual below {floor:.0e} is rounding of {dtype}, not a value of the model")
    result.to_csv(folder / "trace.csv")
    origin = provenance([], time.perf_counter() - start)
    origin["versions"]["transformers"] = version("transformers")
    about = {
        "model": title,
        "class": result.model,
        "text": source,
        "text_sha256": sha256("\n\n".join(texts).encode()).hexdigest(),
        "tokens": result.tokens.tolist(),
        "without": result.without,
        "as_released": result.as_released,
        "dtype": dtype,
        "floor": floor,
        "mean": {name: _plain(result.mean(name)) for name in result.measures},
        "std": {name: _plain(result.std(name)) for name in result.measures},
        "provenance": origin,
    }
    (folder / "trace.json").write_text(json.dumps(about, indent=1, allow_nan=False) + "\n")
    draw(result, folder / "trace.svg", floor)
    print(f"wrote trace.csv, trace.json and trace.svg into {folder}")


def _texts(path: Path | None) -> tuple[list[str], str]:
    """The paragraphs, and one line that says where they are from."""
    if path is None:
        from ranklib.book.texts import biographies

        return [person.text for person in biographies()], "the book's biographies"
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "no text in UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise ValueError(f"--text: expected a text file, got {path} ({reason}); check it") from error
    blocks = [" ".join(block.split()) for block in text.replace("\r\n", "\n").split("\n\n")]
    return [block for block in blocks if block], f"{path.name}, one sample a paragraph"


def _require_pairs(inputs: dict[str, torch.Tensor], text: Path | None) -> None:
    """Every sample has two tokens: one token alone is equal to itself, and that is no collapse."""
    counts = inputs["attention_mask"].sum(1).tolist()
    if min(counts) < 2:
        raise ValueError(
            f"--text: expected at least 2 tokens in every paragraph, got {min(counts)} in paragraph "
            f"{counts.index(min(counts)) + 1} of {text}; make it longer or leave it out"
        )


def _folder(path: Path) -> Path:
    """The folder for the files, made before the run, so that a long run is not lost."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"--out: expected a folder that can be written, got {path} ({error.strerror}); give another"
        ) from error
    return path


def _plain(values: torch.Tensor) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in values.tolist()]


def draw(result: Trace, path: Path, floor: float) -> None:
    """One panel a measure: its mean over the samples, and the range of the samples, by layer.

    A measure that is not negative and spans more than a factor of 100 is drawn as its log10, with the floor
    of the number format hatched where the measure is a relative residual; another one that is not negative
    is drawn from zero, so that a small change looks small.
    """
    from matplotlib.figure import Figure

    use_book_style()
    panels = len(result.measures)
    figure = Figure(figsize=(PANEL[0], PANEL[1] * panels))
    bare = {"skip", "attention_skip"} & set(result.without)
    line = role("skip" if not bare else "attention" if "mlp" in result.without else "mlp")
    for number, name in enumerate(result.measures):
        axes = figure.add_subplot(panels, 1, number + 1)
        curves = {
            "mean": result.mean(name),
            "low": result.of(name).amin(1),
            "high": result.of(name).amax(1),
        }
        low, high = float(curves["low"].min()), float(curves["high"].max())
        logarithmic = low >= 0 and high > 100 * low
        label = name.replace("_", " ")
        if logarithmic:
            least = floor / 100 if name in RESIDUALS else floor**2  # a zero has no logarithm
            curves = {key: value.clamp(min=least).log10() for key, value in curves.items()}
            label = f"log₁₀ {label}"
        layers = range(len(curves["mean"]))
        axes.plot(layers, curves["mean"], **line)
        axes.fill_between(layers, curves["low"], curves["high"], color=line["color"], alpha=0.2, linewidth=0)
        if logarithmic and name in RESIDUALS and curves["low"].min() < math.log10(floor) + 1:
            bottom = min(math.log10(floor), float(curves["low"].min())) - 1
            shade_floor(axes, math.log10(floor), bottom)
            axes.set_ylim(bottom=bottom)
        if low >= 0 and not logarithmic:
            axes.set_ylim(bottom=0)
        if number == 0:
            axes.set_title(f"{result.model}, without {', '.join(result.without) or 'nothing'}")
        axes.set(xlabel="layer" if number == panels - 1 else "", ylabel=label)
        axes.locator_params(nbins=5)
        axes.xaxis.get_major_locator().set_params(integer=True)
    figure.savefig(path, metadata={"Date": None})
