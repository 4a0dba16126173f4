"""Two sizes of one experiment: which one runs, and a record that survives being killed."""

import json
import re

import pytest
import torch

from ranklib.experiments.record import Experiment, current_size, load_record, record

SEEDS = range(3, 8)


class Counting:
    """An experiment's function that notes its calls and can die at one of them."""

    def __init__(self, dies_at: int | None = None):
        self.calls, self.dies_at = [], dies_at

    def __call__(self, seed, device, scale, tokens=2):
        self.calls.append(seed)
        if seed == self.dies_at:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(seed)
        return {"values": (scale * torch.randn(tokens, generator=generator, dtype=torch.float64)).tolist()}


def experiment(run, **sizes) -> Experiment:
    sizes = {"quick": {"scale": 1.0}, "paper": {"scale": 10.0, "tokens": 5}} | sizes
    return Experiment("counting", run, sizes, {"quick": range(2), "paper": SEEDS}, minutes=0.1)


def without_provenance(result: dict) -> dict:
    return {key: value for key, value in result.items() if key != "provenance"}


def test_the_variable_decides_the_size(monkeypatch):
    for size in ("quick", "paper"):
        monkeypatch.setenv("RANKLIB_SIZE", size)
        assert current_size() == size
    monkeypatch.setenv("RANKLIB_SIZE", "huge")
    with pytest.raises(ValueError, match="expected 'quick' or 'paper', got 'huge'; unset it"):
        current_size()


@pytest.mark.parametrize("gpu,size", [(False, "quick"), (True, "paper")])
def test_without_the_variable_the_device_decides_the_size(monkeypatch, gpu, size):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    for unset in (
        lambda: monkeypatch.delenv("RANKLIB_SIZE", raising=False),
        lambda: monkeypatch.setenv("RANKLIB_SIZE", ""),
    ):
        unset()
        assert current_size() == size


def test_a_call_runs_the_seeds_of_its_size(monkeypatch):
    run = Counting()
    monkeypatch.setenv("RANKLIB_SIZE", "quick")
    result = experiment(run)()
    assert run.calls == [0, 1]
    assert result == {
        "name": "counting",
        "size": "quick",
        "parameters": {"scale": 1.0},
        "runs": result["runs"],
    }
    assert list(result["runs"]) == ["0", "1"] and len(result["runs"]["0"]["values"]) == 2
    assert result["runs"]["0"] != result["runs"]["1"]
    with pytest.raises(ValueError, match="size: expected 'quick' or 'paper', got 'huge'"):
        experiment(run)("huge")


def test_a_record_equals_a_call_and_has_its_provenance(tmp_path):
    (path,) = record([experiment(Counting())], tmp_path)
    assert path == tmp_path / "counting.json"
    kept = load_record("counting", tmp_path)
    assert without_provenance(kept) == experiment(Counting())("paper")
    origin = kept["provenance"]
    assert set(origin) == {"commit", "seeds", "device", "versions", "seconds"}
    assert origin["seeds"] == list(SEEDS) and origin["seconds"] >= 0
    assert set(origin["versions"]) == {"python", "torch", "numpy", "scipy"}
    assert origin["versions"]["torch"] == torch.__version__
    assert origin["commit"] is None or re.fullmatch("[0-9a-f]{40}( with changes)?", origin["commit"])
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["counting.json"]
    assert not list((tmp_path / ".partial").iterdir())


def test_a_quick_record_takes_the_quick_size(tmp_path):
    record([experiment(Counting())], tmp_path, size="quick")
    assert without_provenance(load_record("counting", tmp_path)) == experiment(Counting())("quick")


@pytest.mark.parametrize("killed_at", SEEDS)
def test_a_killed_record_goes_on_with_the_missing_seeds_and_ends_the_same(tmp_path, killed_at):
    record([experiment(Counting())], tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        record([experiment(Counting(dies_at=killed_at))], tmp_path / "killed")
    assert not (tmp_path / "killed" / "counting.json").exists()
    second = Counting()
    record([experiment(second)], tmp_path / "killed")
    assert second.calls == list(range(killed_at, SEEDS.stop))
    a, b = (load_record("counting", tmp_path / folder) for folder in ("whole", "killed"))
    assert without_provenance(a) == without_provenance(b)
    assert list(b["runs"]) == [str(s) for s in SEEDS]


def test_a_finished_record_is_kept(tmp_path):
    (path,) = record([experiment(Counting())], tmp_path)
    before, again = path.read_bytes(), Counting()
    assert record([experiment(again)], tmp_path) == [] and again.calls == []
    assert path.read_bytes() == before


def test_changed_parameters_or_seeds_are_recorded_anew(tmp_path):
    record([experiment(Counting())], tmp_path)
    wider = Counting()
    record([experiment(wider, paper={"scale": 20.0, "tokens": 5})], tmp_path)
    assert wider.calls == list(SEEDS)
    assert load_record("counting", tmp_path)["parameters"]["scale"] == pytest.approx(20.0)
    fewer = Counting()
    changed = Experiment(
        "counting", fewer, {"paper": {"scale": 20.0, "tokens": 5}}, {"paper": range(2)}, minutes=0.1
    )
    record([changed], tmp_path)
    assert fewer.calls == [0, 1] and list(load_record("counting", tmp_path)["runs"]) == ["0", "1"]


def test_unfinished_seeds_of_other_parameters_are_not_used(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        record([experiment(Counting(dies_at=6))], tmp_path)
    wider = Counting()
    record([experiment(wider, paper={"scale": 20.0})], tmp_path)
    assert wider.calls == list(SEEDS)


def test_tuples_among_the_parameters_do_not_force_a_new_run(tmp_path):
    def run(seed, device, depths):
        calls.append(seed)
        return {"sum": sum(depths)}

    calls = []
    same = Experiment("depths", run, {"paper": {"depths": (1, 2)}}, {"paper": range(2)}, minutes=0.1)
    record([same], tmp_path)
    record([same], tmp_path)
    assert calls == [0, 1]


def test_a_dead_experiment_leaves_the_record_of_the_one_before(tmp_path):
    other = Experiment("other", Counting(), {"paper": {"scale": 1.0}}, {"paper": range(1)}, minutes=0.1)
    with pytest.raises(KeyboardInterrupt):
        record([other, experiment(Counting(dies_at=3))], tmp_path)
    assert load_record("other", tmp_path)["runs"]["0"]


def test_a_missing_record_says_what_there_is_and_how_to_make_it(tmp_path):
    (tmp_path / "width.json").write_text(json.dumps({}))
    with pytest.raises(
        FileNotFoundError, match=r"depth\.json, got none; record it with 'make results'.*\['width'\]"
    ):
        load_record("depth", tmp_path)
