"""One pattern for every computation that has two sizes: quick in the chapter, paper size recorded once.

An experiment is a function ``run(seed, device, **size)`` that returns lists of numbers, and two sizes. The
chapter runs it at :func:`current_size`; ``make results`` records it at paper size, seed by seed, with
provenance; :func:`load_record` reads the record, wherever ``ranklib`` is installed.
"""

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm.auto import tqdm

from ranklib._provenance import current_device, provenance

SIZES = ("quick", "paper")
"""The two sizes of an experiment: "quick" for tests and chapters, "paper" for the records."""
_PACKAGE = Path(__file__).resolve().parent.parent  # installed, the records lie inside it
RESULTS = next(p / "results" for p in (_PACKAGE, _PACKAGE.parent) if (p / "results").is_dir())


def current_size() -> str:
    """``"paper"`` where there is a GPU, ``"quick"`` elsewhere; the variable ``RANKLIB_SIZE`` overrides both.

    Raises
    ------
    ValueError
        ``RANKLIB_SIZE`` names no size.
    """
    size = os.environ.get("RANKLIB_SIZE") or ("paper" if torch.cuda.is_available() else "quick")
    if size not in SIZES:
        raise ValueError(f"RANKLIB_SIZE: expected 'quick' or 'paper', got {size!r}; unset it or choose one")
    return size


@dataclass(frozen=True)
class Experiment:
    """A computation with two sizes.

    Attributes
    ----------
    name
        The record is ``results/NAME.json``.
    run
        ``run(seed, device, **sizes[size])`` returns a dict of numbers and nested lists of numbers.
    sizes
        Keyword arguments of ``run`` for ``"quick"`` and ``"paper"``.
    seeds
        The seeds of each size.
    minutes
        Expected wall time at paper size on two cores.
    """

    name: str
    run: Callable[..., dict]
    sizes: dict[str, dict]
    seeds: dict[str, range]
    minutes: float | int

    def __call__(self, size: str | None = None, device: torch.device | None = None) -> dict:
        """Run all seeds at one size; the result has the layout of :func:`load_record`, without provenance."""
        size, device = size or current_size(), device or current_device()
        if size not in SIZES:
            raise ValueError(f"size: expected 'quick' or 'paper', got {size!r}; choose one")
        runs = {str(s): self.run(s, device, **self.sizes[size]) for s in self.seeds[size]}
        return {"name": self.name, "size": size, "parameters": _plain(self.sizes[size]), "runs": runs}


def _plain(parameters: dict) -> dict:
    """As JSON gives them back: tuples are lists, so that a record compares equal to what is asked for."""
    return json.loads(json.dumps(parameters))


def load_record(name: str, folder: Path | None = None) -> dict:
    """The record of an experiment: ``name``, ``size``, ``parameters``, ``runs`` by seed, ``provenance``.

    Raises
    ------
    FileNotFoundError
        There is no such record.

    Example
    -------
    >>> load_record("depth")["provenance"]["device"]
    'cpu'
    """
    path = (folder or RESULTS) / f"{name}.json"
    if not path.exists():
        there = sorted(p.stem for p in path.parent.glob("*.json"))
        raise FileNotFoundError(
            f"expected a record {path.name}, got none; record it with 'make results'; there are {there}"
        )
    return json.loads(path.read_text())


def record(experiments: Iterable[Experiment], folder: Path | None = None, size: str = "paper") -> list[Path]:
    """Record experiments, seed by seed, with progress; a killed call goes on where it stopped.

    A finished record is made again only if its parameters or seeds changed; delete it to force a run.
    Unfinished seeds lie in ``folder/.partial``.
    """
    folder = folder or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    experiments, written = list(experiments), []
    for e in experiments:
        print(f"{e.name}: about {e.minutes:g} min on two cores")
    for e in experiments:
        path = folder / f"{e.name}.json"
        wanted = {"name": e.name, "size": size, "parameters": _plain(e.sizes[size])}
        seeds = [str(s) for s in e.seeds[size]]
        if path.exists():
            old = json.loads(path.read_text())
            if {k: old[k] for k in wanted} == wanted and list(old["runs"]) == seeds:
                print(f"{e.name}: recorded already")
                continue
        partial = folder / ".partial" / f"{e.name}-{size}.json"
        state = json.loads(partial.read_text()) if partial.exists() else {}
        if {k: state.get(k) for k in wanted} != wanted:
            state = wanted | {"runs": {}, "seconds": {}}
        for seed in tqdm(seeds, desc=e.name):
            if seed in state["runs"]:
                continue
            start = time.perf_counter()
            state["runs"][seed] = e.run(int(seed), current_device(), **e.sizes[size])
            state["seconds"][seed] = time.perf_counter() - start
            partial.parent.mkdir(exist_ok=True)
            scratch = partial.with_suffix(".new")
            scratch.write_text(json.dumps(state))
            scratch.replace(partial)  # a kill leaves the old file or the new one, never half of one
        done = wanted | {"runs": {s: state["runs"][s] for s in seeds}}
        done["provenance"] = provenance(list(map(int, seeds)), sum(state["seconds"][s] for s in seeds))
        path.write_text(json.dumps(done, indent=1) + "\n")
        partial.unlink()
        written.append(path)
    return written
