"""The book's experiments by name, each with its two sizes: see :mod:`ranklib.experiments.record` for the pattern."""

from collections.abc import Callable, Iterable

from ranklib.experiments import voice_albert
from ranklib.experiments.arc_runs import run_arcs
from ranklib.experiments.architectures import at_initialisation, deep, position_terms, with_trained_weights
from ranklib.experiments.random_networks import depth, path_cost, spectrum, trained
from ranklib.experiments.record import Experiment
from ranklib.experiments.sequences import run_hull, run_memorisation, run_sorting
from ranklib.tracing import models as pretrained

_NARROW = {"dim": 24, "heads": 4, "depth": 4, "mlp": 48, "vocabulary": 500}
_PAPER = {"samples": 32, "tokens": 128}
_QUICK = {"samples": 3, "tokens": 16}


def _experiment(
    name: str, run: Callable, quick: dict, paper: dict, minutes: int, seeds: int = 1
) -> Experiment:
    ranges = {"quick": range(1), "paper": range(seeds)}
    return Experiment(name, run, {"quick": quick, "paper": paper}, ranges, minutes)


ARCHITECTURES = [
    *(
        _experiment(
            f"init-{name}",
            at_initialisation,
            {"architecture": name} | _QUICK | _NARROW,
            {"architecture": name} | _PAPER,
            minutes,
        )
        for name, minutes in (("bert", 3), ("albert", 3), ("xlnet", 4))
    ),
    *(
        _experiment(
            f"trained-{name}",
            with_trained_weights,
            {"model": name} | _QUICK,
            {"model": name} | _PAPER | size,
            minutes,
        )
        for name, minutes, size in (("minilm", 1, {}), ("mpnet", 4, {}), ("albert-ipa", 3, {"samples": 8}))
    ),
    _experiment("positions-xlnet", position_terms, _QUICK | _NARROW, _PAPER, 2),
    *(
        _experiment(f"deep-{name}", deep, {"model": name} | quick, {"model": name} | paper, 1, seeds)
        for name, quick, paper, seeds in (
            ("bert", _QUICK | _NARROW, {"samples": 4, "tokens": 128}, 3),
            ("albert", _QUICK | _NARROW, {"samples": 4, "tokens": 128}, 3),
            ("minilm", _QUICK, {"samples": 32, "tokens": 128}, 1),
        )
    ),
]


MEMORISE = {"rate": 5e-4, "steps": 300, "batch": 8, "linear": True}
TRAINED = [
    Experiment(
        name="arcs",
        run=run_arcs,
        sizes={
            "quick": {
                "dims": [8],
                "models": 3,
                "points": 200,
                "stride": 4,
                "every": 100,
                "recipe": {"rate": 1e-2, "steps": 250, "batch": 25, "linear": True},
                "released": {"rate": 1e-5, "steps": 70, "batch": 30},
            },
            "paper": {
                "dims": [32, 64, 128],
                "models": 4,
                "points": 1000,
                "stride": 20,
                "every": 400,
                "recipe": {"rate": 1e-2, "steps": 4000, "batch": 25, "linear": True},
                "released": {"rate": 1e-5, "steps": 1190, "batch": 30},
            },
        },
        seeds={"quick": range(1), "paper": range(2)},
        minutes=15,
    ),
    Experiment(
        name="sorting",
        run=run_sorting,
        sizes={
            "quick": {
                "dim": 16,
                "heads": 2,
                "depth": 3,
                "letters": 4,
                "tokens": 4,
                "train": 200,
                "test": 100,
                "every": 30,
                "recipes": {"reference": {"rate": 1e-2, "steps": 150, "batch": 32}},
            },
            "paper": {
                "dim": 48,
                "heads": 2,
                "depth": 6,
                "letters": 10,
                "tokens": 8,
                "train": 1000,
                "test": 1000,
                "every": 221,
                "recipes": {
                    "released": {"rate": 1e-5, "steps": 2210, "batch": 30},
                    "reference": {"rate": 5e-4, "steps": 2210, "batch": 30},
                },
            },
        },
        seeds={"quick": range(1), "paper": range(3)},
        minutes=5,
    ),
    Experiment(
        name="hull",
        run=run_hull,
        sizes={
            "quick": {
                "dim": 16,
                "heads": 2,
                "depth": 3,
                "tokens": 6,
                "train": 500,
                "test": 100,
                "every": 50,
                "recipes": {"reference": ["paper", {"rate": 5e-3, "steps": 150, "batch": 32}]},
                "released_seeds": 0,
            },
            "paper": {
                "dim": 84,
                "heads": 3,
                "depth": 6,
                "tokens": 10,
                "train": 10000,
                "test": 300,
                "every": 334,
                "recipes": {
                    "reference": ["paper", {"rate": 5e-4, "steps": 2004, "batch": 30}],
                    "reference, released data": ["released", {"rate": 5e-4, "steps": 2004, "batch": 30}],
                    "released": [
                        "released",
                        {
                            "rate": 1e-5,
                            "steps": 23380,
                            "batch": 30,
                            "decay": 1e-3,
                            "milestones": [5010, 10020, 13360, 16700, 20040],
                            "factor": 0.91,
                        },
                    ],
                },
                "released_seeds": 1,
            },
        },
        seeds={"quick": range(1), "paper": range(2)},
        minutes=15,
    ),
    Experiment(
        name="memorisation",
        run=run_memorisation,
        sizes={
            "quick": {
                "dim": 32,
                "heads": 2,
                "depth": 3,
                "texts": 4,
                "tokens": 24,
                "every": 25,
                "cases": {"text": ["text", 0, {"rate": 3e-3, "steps": 100, "batch": 4, "linear": True}]},
                "once": [],
            },
            "paper": {
                "dim": 250,
                "heads": 2,
                "depth": 6,
                "texts": 32,
                "tokens": 128,
                "every": 20,
                "cases": {
                    "text": ["text", 0, MEMORISE],
                    "synthetic": ["synthetic", 0, MEMORISE],
                    "text, MLP": ["text", 250, MEMORISE],
                    "released": ["text", 250, MEMORISE | {"rate": 3e-4, "steps": 200, "decoupled": True}],
                },
                "once": ["text, MLP", "released"],
            },
        },
        seeds={"quick": range(1), "paper": range(1)},
        minutes=12,
    ),
]


EXPERIMENTS = {
    e.name: e
    for e in [
        Experiment(
            name="depth",
            run=depth,
            sizes={
                "quick": {"tokens": 16, "dim": 48, "heads": 4, "depth": 6, "mlp": 96},
                "paper": {"tokens": 128, "dim": 768, "heads": 12, "depth": 12, "mlp": 3072},
            },
            seeds={"quick": range(3), "paper": range(8)},
            minutes=3,
        ),
        Experiment(
            name="spectrum",
            run=spectrum,
            sizes={
                "quick": {"tokens": 16, "dim": 48, "heads": 4, "depth": 6},
                "paper": {"tokens": 128, "dim": 768, "heads": 12, "depth": 12},
            },
            seeds={"quick": range(3), "paper": range(4)},
            minutes=3,
        ),
        Experiment(
            name="trained",
            run=trained,
            sizes={
                "quick": {"letters": 4, "tokens": 5, "dim": 16, "heads": 2, "depth": 2, "steps": 20},
                "paper": {"letters": 10, "tokens": 8, "dim": 48, "heads": 4, "depth": 4, "steps": 300},
            },
            seeds={"quick": range(1), "paper": range(4)},
            minutes=3,
        ),
        Experiment(
            name="path-cost",
            run=path_cost,
            sizes={
                "quick": {"tokens": 8, "dim": 16, "small": [[2, 2]], "large": [[4, 4]]},
                "paper": {
                    "tokens": 128,
                    "dim": 768,
                    "small": [[2, 2], [3, 2], [4, 2], [5, 2]],
                    "large": [[6, 2], [8, 4], [12, 12]],
                },
            },
            seeds={"quick": range(1), "paper": range(1)},
            minutes=1,
        ),
        *ARCHITECTURES,
        *TRAINED,
    ]
}
"""All experiments by name, with their sizes, seeds and expected minutes."""


def possible(experiments: Iterable[Experiment]) -> tuple[list[Experiment], list[str]]:
    """Those that can run here, and one line for each that cannot: what is missing and how to get it."""
    names = {experiment.name for experiment in ARCHITECTURES}
    able, lines = [], []
    for experiment in experiments:
        model = experiment.sizes["paper"].get("model")
        known = model if model in pretrained.KNOWN else None
        reason = pretrained.why_missing(known) if experiment.name in names else None
        if model == voice_albert.NAME:
            reason = voice_albert.missing()
        if reason is None:
            able.append(experiment)
        else:
            lines.append(f"{experiment.name}: not run; {reason}")
    return able, lines
