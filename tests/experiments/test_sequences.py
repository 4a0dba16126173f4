"""The recorded trainings at a toy size: what a record holds, and that a seed decides it."""

import json
from functools import cache

import pytest
import torch

from ranklib.experiments.registry import EXPERIMENTS, TRAINED

RECIPE = {"rate": 1e-3, "steps": 3, "batch": 5}
TOY = {
    "arcs": {
        "dims": [4],
        "models": 2,
        "points": 20,
        "stride": 2,
        "every": 2,
        "recipe": RECIPE,
        "released": RECIPE,
    },
    "sorting": {
        "dim": 4,
        "heads": 2,
        "depth": 2,
        "letters": 3,
        "tokens": 3,
        "train": 7,
        "test": 5,
        "every": 2,
        "recipes": {"released": RECIPE, "reference": RECIPE},
    },
    "hull": {
        "dim": 4,
        "heads": 2,
        "depth": 2,
        "tokens": 5,
        "train": 7,
        "test": 5,
        "every": 2,
        "recipes": {"reference": ["paper", RECIPE], "released": ["released", RECIPE]},
        "released_seeds": 1,
    },
    "memorisation": {
        "dim": 4,
        "heads": 2,
        "depth": 2,
        "texts": 3,
        "tokens": 47,
        "every": 2,
        "cases": {"text": ["text", 0, RECIPE], "synthetic": ["synthetic", 3, RECIPE]},
        "once": ["synthetic"],
    },
}


def fresh(name: str, seed: int) -> dict:
    return EXPERIMENTS[name].run(seed, torch.device("cpu"), **TOY[name])


toy = cache(fresh)


def test_all_four_are_registered_in_two_sizes_with_the_papers_models():
    assert [e.name for e in TRAINED] == list(TOY) and all(EXPERIMENTS[e.name] is e for e in TRAINED)
    shapes = {n: [EXPERIMENTS[n].sizes["paper"][k] for k in ("depth", "heads", "dim")] for n in list(TOY)[1:]}
    assert shapes == {"sorting": [6, 2, 48], "hull": [6, 3, 84], "memorisation": [6, 2, 250]}
    assert all(set(e.sizes["quick"]) == set(e.sizes["paper"]) == set(TOY[e.name]) for e in TRAINED)


@pytest.mark.slow
@pytest.mark.parametrize("name", TOY)
def test_a_seed_decides_the_record_and_json_keeps_it(name):
    first, again, other = toy(name, 0), fresh(name, 0), toy(name, 1)
    assert json.loads(json.dumps(first)) == first == again != other


@pytest.mark.parametrize("name", ["sorting", "hull"])
def test_a_classifier_is_evaluated_three_ways_with_five_and_twenty_paths(name):
    out = toy(name, 0)
    for case in ("released", "reference"):
        paths = out[case]["paths"]
        assert set(paths) == {"frozen", "recomputed", "exact"} and paths["exact"]["error"] < 1e-12
        assert {n: [len(r) for r in rows] for n, rows in paths["frozen"]["sampled"].items()} == {
            "5": [5, 5, 5],
            "20": [5, 5, 5],
        }
        assert out[case]["curve"]["step"] == [2, 3] and len(out[case]["curve"]["score"]) == 2
    assert ("released" in toy(name, 1)) == (name != "hull")


def test_memorisation_is_held_against_its_ceiling_on_text_and_on_synthetic_tokens():
    out = toy("memorisation", 0)
    for case in ("text", "synthetic"):
        assert out[case]["accuracy"] <= out[case]["ceiling"] + 1e-5 < 1
    assert "text" in toy("memorisation", 1) and "synthetic" not in toy("memorisation", 1)
