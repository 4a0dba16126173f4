"""The recorded trainings: arcs, sorting, hull, memorisation. Each trains, then measures what was trained.

Training is in float32, all measuring in float64 unless said. A ``recipe`` is the keyword arguments of
:class:`~ranklib.experiments.training.Recipe`; "released" has the optimiser of the released code, "reference" reaches
the accuracy that the paper states. Neither has its dropout.
"""

import torch
from torch import Tensor

from ranklib.book.biographies import biographies
from ranklib.experiments.arc_runs import run_arcs
from ranklib.experiments.path_accuracy import WAYS, coverage, evaluate_exact, evaluate_paths
from ranklib.experiments.record import Experiment
from ranklib.experiments.tasks import (
    convex_hull,
    expected_ceiling,
    hull_share,
    memorisation_ceiling,
    random_labels,
    shuffled_symbols,
    sorting,
    sorting_baseline,
    tokenise,
)
from ranklib.experiments.token_model import TokenModel
from ranklib.experiments.training import Recipe, rounded, train


def _classifier(
    model: TokenModel,
    seed: int,
    device: torch.device,
    recipe: dict,
    data: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    every: int,
    **options,
) -> dict:
    """Train on ``data``; the curve, and accuracies of the whole model and of its paths on ``test``."""
    batched = [part[None] for part in (*data, *test)]
    trained = train(
        model, *batched[:2], Recipe(**recipe), [seed], test=tuple(batched[2:]), device=device, every=every
    )
    dtype = options.pop("dtype", torch.float64)
    vector, (x, y) = trained.vectors[0].to(dtype), (part.to(device) for part in test)
    x = x.to(dtype) if x.is_floating_point() else x
    generator = torch.Generator().manual_seed(seed)
    paths = {way: evaluate_paths(model, vector, x, y, way, generator, **options) for way in WAYS}
    paths["exact"] = evaluate_exact(model, vector, x, y)
    curve = {key: [point[key] for point in trained.curve] for key in ("step", "loss", "score")}
    curve = {key: values if key == "step" else [v[0] for v in values] for key, values in curve.items()}
    return rounded({"accuracy": paths["exact"]["model"], "curve": curve, "paths": paths})


def run_sorting(
    seed: int,
    device: torch.device,
    dim: int,
    heads: int,
    depth: int,
    letters: int,
    tokens: int,
    train: int,
    test: int,
    every: int,
    recipes: dict,
) -> dict:
    """Sort letters: curve and path accuracies for each recipe, on fresh sequences. Source: Chapter 14."""
    generator = torch.Generator().manual_seed(10_000 + seed)
    data = sorting(train, generator, letters, tokens)
    fresh = sorting(test, generator, letters, tokens)
    model = TokenModel(depth, dim, heads, letters, letters, positions=tokens)
    done = {"baseline": sorting_baseline(letters, tokens), "coverage": coverage(heads, depth)}
    for name, recipe in recipes.items():
        done[name] = _classifier(model, seed, device, recipe, data, fresh, every)
    return done


def run_hull(
    seed: int,
    device: torch.device,
    dim: int,
    heads: int,
    depth: int,
    tokens: int,
    train: int,
    test: int,
    every: int,
    recipes: dict,
    released_seeds: int,
) -> dict:
    """Points on the hull; a recipe is (kind of data, keyword arguments), "released" for the first seeds only.

    Source: Chapter 14.
    """
    model = TokenModel(depth, dim, heads, 2, 2, symbols=False, embed_dim=dim)
    done = {"baseline": hull_share(tokens), "coverage": coverage(heads, depth)}
    for name, (kind, recipe) in recipes.items():
        if name == "released" and seed >= released_seeds:
            continue
        generator = torch.Generator().manual_seed(10_000 + seed)
        data, fresh = (convex_hull(n, generator, tokens, kind) for n in (train, test))
        found = _classifier(model, seed, device, recipe, data, fresh, every)
        done[name] = {"share": float(fresh[1].double().mean())} | found
    return done


def run_memorisation(
    seed: int,
    device: torch.device,
    dim: int,
    heads: int,
    depth: int,
    texts: int,
    tokens: int,
    every: int,
    cases: dict,
    once: list,
) -> dict:
    """Random labels on the biographies and on synthetic tokens with the same repeats, without positions.

    A case is ("text" or "synthetic", MLP width or 0, keyword arguments of the recipe); those in ``once`` run
    for seed 0 only. Evaluated on the training data, as there is nothing to generalise; in float32. Source:
    Chapter 14.
    """
    generator = torch.Generator().manual_seed(10_000 + seed)
    text, words = tokenise([entry.text for entry in biographies()[:texts]], tokens)
    labels = random_labels(text, generator)
    tables = {"text": text, "synthetic": shuffled_symbols(text, len(words), generator)}
    done = {"expected_ceiling": expected_ceiling(text), "words": len(words)}
    done["coverage"] = coverage(heads, depth)
    for name, (kind, width, recipe) in cases.items():
        if seed == 0 or name not in once:
            x, model = tables[kind], TokenModel(depth, dim, heads, len(words), 2, mlp_dim=width)
            data = (x, labels)
            found = _classifier(model, seed, device, recipe, data, data, every, dtype=torch.float32)
            done[name] = {"ceiling": memorisation_ceiling(x, labels)} | found
    return done


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
