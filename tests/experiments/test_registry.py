"""The table of recorded runs: which can run here, and what the others need."""

import pytest

from ranklib.experiments import architectures
from ranklib.experiments.registry import ARCHITECTURES, EXPERIMENTS, possible
from ranklib.tracing import models as pretrained

RUNS = {experiment.name: experiment for experiment in ARCHITECTURES}


@pytest.fixture
def no_minilm(monkeypatch):
    find = pretrained.importlib.util.find_spec
    monkeypatch.setattr(
        pretrained.importlib.util, "find_spec", lambda n, *rest: None if "minilm" in n else find(n, *rest)
    )


def test_runs_without_their_weights_are_named_with_a_remedy(no_minilm, monkeypatch):
    for name in ("RANKLIB_MPNET", "RANKLIB_KOKORO"):
        monkeypatch.delenv(name, raising=False)
    able, lines = possible(EXPERIMENTS.values())
    left_out = set(EXPERIMENTS) - {experiment.name for experiment in able}
    assert left_out == {"trained-minilm", "trained-mpnet", "trained-albert-ipa", "deep-minilm"}
    assert len(lines) == 4 and all("not run" in x and "pip" in x and "expected" in x for x in lines)


def test_without_transformers_only_the_other_runs_are_left(monkeypatch):
    find = pretrained.importlib.util.find_spec
    monkeypatch.setattr(
        pretrained.importlib.util,
        "find_spec",
        lambda n, *rest: None if n == "transformers" else find(n, *rest),
    )
    able, lines = possible(EXPERIMENTS.values())
    assert not {experiment.name for experiment in able} & set(RUNS) and len(lines) == len(RUNS)
    assert "depth" in {experiment.name for experiment in able}


def test_every_run_is_registered_with_a_time():
    assert set(RUNS) < set(EXPERIMENTS) and all(experiment.minutes > 0 for experiment in ARCHITECTURES)
    assert architectures.MEASURE == "composite_residual"
