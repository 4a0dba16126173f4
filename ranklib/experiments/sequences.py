"""The recorded trainings: arcs, sorting, hull, memorisation. Each trains, then measures what was trained.

Training is in float32, all measuring in float64 unless said. A ``recipe`` is the keyword arguments of
:class:`~ranklib.experiments.training.Recipe`; "released" has the optimiser of the released code, "reference"
reaches the accuracy that the paper states. Neither has its dropout.
"""

import torch
from torch import Tensor

from ranklib.book.texts import biographies
from ranklib.experiments.path_accuracy import WAYS, coverage, evaluate_exact, evaluate_paths
from ranklib.experiments.tasks import (
    convex_hull,
    expected_ceiling,
    hull_share,
    memorisation_ceiling,
    number_texts,
    random_labels,
    shuffled_symbols,
    sorting,
    sorting_baseline,
)
from ranklib.experiments.token_model import TokenModel
from ranklib.experiments.training import Recipe, round_floats, train


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
    return round_floats({"accuracy": paths["exact"]["model"], "curve": curve, "paths": paths})


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
    """Sort letters: curve and path accuracies for each recipe, on fresh sequences.

    Source: chapter `which-paths`.
    """
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

    Source: chapter `which-paths`.
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
    chapter `which-paths`.
    """
    generator = torch.Generator().manual_seed(10_000 + seed)
    text, words = number_texts([entry.text for entry in biographies()[:texts]], tokens)
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
