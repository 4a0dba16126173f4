"""The recorded run on arcs at a toy size."""

import torch

from ranklib.experiments.arc_runs import run_arcs

RECIPE = {"rate": 1e-3, "steps": 3, "batch": 5}
TOY = {"dims": [4], "models": 2, "points": 20, "stride": 2, "every": 2, "recipe": RECIPE, "released": RECIPE}


def test_arcs_are_drawn_as_described_and_as_released():
    out = run_arcs(0, torch.device("cpu"), **TOY)
    for kind in ("described", "released"):
        assert set(out[kind]) == {"bare", "skip", "mlp"}
        for panel in out[kind].values():
            assert len(panel["4"]["outcome"]) == len(panel["4"]["beta"]) == len(panel["4"]["gap"]) == 2
    theory = {name: panel["4"]["theory"][0] for name, panel in out["described"].items()}
    assert theory["bare"]["factor"] > 0 and theory["skip"]["factor"] > 0 and theory["mlp"] == {}
