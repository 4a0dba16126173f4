"""The recorded runs of :mod:`ranklib.experiments.arcs`: train one step, then let the models draw."""

import torch
from torch import Tensor

from ranklib.experiments.arcs import (
    arc_model,
    carried_inputs,
    free_run,
    gap,
    growth,
    outcome,
    radial_theory,
    step_jacobians,
    trained_beta,
)
from ranklib.experiments.tasks import arc_steps
from ranklib.experiments.token_model import TokenModel
from ranklib.experiments.training import Recipe, round_floats, score, train


def run_arcs(
    seed: int,
    device: torch.device,
    dims: list,
    models: int,
    points: int,
    stride: int,
    every: int,
    recipe: dict,
    released: dict,
) -> dict:
    """Teacher forcing on two arcs, then free runs: each variant and width, ``models`` models in one batch.

    As described: pairs in strides around the circle; as released: in order. ``relative``: mean squared error
    of one step, over that of standing still. Lists hold one entry a model; ``run``, about fifty pairs of a
    free run, is of the first model only. Source: chapter `drawing-arcs`.
    """
    x, y = arc_steps(points)
    order = [step for first in range(stride) for step in range(first, len(x), stride)]
    still = float((y - x).square().mean())
    seeds = range(seed * models, (seed + 1) * models)

    def one(name: str, dim: int, as_released: bool) -> dict:
        model = arc_model(name, dim, released=as_released)
        options = released if as_released else recipe
        carried = as_released and name == "skip"
        inputs = carried_inputs(x, options["batch"]) if carried else x
        places = range(len(x)) if as_released else order
        data = [part[list(places)].float().expand(models, -1, -1, -1) for part in (inputs, y)]
        held = tuple(part.float().expand(models, -1, -1, -1) for part in (inputs, y))
        trained = train(model, *data, Recipe(**options), seeds, test=held, device=device, every=every)
        measured = [_arc(model, v, x, y, inputs, carried, still) for v in trained.vectors.double().cpu()]
        curve = {"step": [c["step"] for c in trained.curve]}
        curve["relative"] = [[value / still for value in c["score"]] for c in trained.curve]
        found = {"curve": curve} | {key: [m[key] for m in measured] for key in measured[0]}
        return found | {"run": found["run"][0]}

    kinds, names = ("described", "released"), ("bare", "skip", "mlp")
    return round_floats(
        {k: {n: {str(d): one(n, d, k == "released") for d in dims} for n in names} for k in kinds}
    )


def _arc(
    model: TokenModel, vector: Tensor, x: Tensor, y: Tensor, inputs: Tensor, carried: bool, still: float
) -> dict:
    """What is recorded of one trained model; see :func:`run_arcs`."""
    target = torch.cat([x, y[-1:]])
    run = free_run(model, vector, x[0], len(x), carried)
    away = (run - target).square().mean((1, 2)).sqrt()
    thin = max(1, len(x) // 50)
    plain = model.norm == "none" and not model.mlp_dim
    return {
        "relative": score(model, vector[None], inputs[None], y[None])[0] / still,
        "outcome": outcome(run, target),
        "beta": trained_beta(model, vector),
        "growth": growth(step_jacobians(model, vector, x), x),
        "theory": radial_theory(model, vector, x) if plain else {},
        "error": away[:41].tolist(),
        "gap": gap(run)[::thin].tolist(),
        "run": run[::thin].flatten(1).tolist(),
    }
