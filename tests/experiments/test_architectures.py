"""The recorded runs on BERT, ALBERT, XLNet, MiniLM and MPNet, at their quick sizes."""

import doctest
import importlib
import math

import pytest
import torch

from ranklib.experiments.architectures import BARE, BASE, VARIANTS, initialise, label_inputs
from ranklib.experiments.registry import ARCHITECTURES
from ranklib.measures.tokens import composite_residual
from ranklib.tracing import models as pretrained
from ranklib.tracing.deep import deep_trace

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")
CPU = torch.device("cpu")
SMALL = {"dim": 12, "heads": 2, "depth": 3, "mlp": 10, "vocabulary": 200}
RUNS = {experiment.name: experiment for experiment in ARCHITECTURES}
MILLIONS = {"bert": 109.5, "albert": 11.7, "xlnet": 116.7}  # published sizes of the three base models


def quick(name):
    return RUNS[name]("quick", CPU)["runs"]["0"]


def needs(model):
    # Trained weights are optional; the records hold their numbers. The reason says what to install.
    if reason := pretrained.why_missing(model):
        pytest.skip(reason)


@pytest.mark.parametrize("name", BASE)
def test_the_base_sizes_are_the_published_ones(name):
    with torch.device("meta"):
        model = initialise(name, 0)
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(MILLIONS[name], abs=0.05)


@pytest.mark.parametrize("name", BASE)
def test_a_seed_decides_the_weights_and_nothing_else_moves(name):
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, again, other = (list(initialise(name, seed, **SMALL).parameters()) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ValueError, match="architecture: expected one of .*got 'gpt'; choose"):
        initialise("gpt", 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", BASE)
def test_curves_at_initialisation(name):
    """Full against the model's own hidden states, attention against deep traces; layer 0 is common to all."""
    found = quick(f"init-{name}")
    kind = found.pop("vocabulary"), found.pop("transformers")
    assert kind[0] in ("bert-base-uncased", "words") and kind[1] == transformers.__version__
    assert list(found) == [*VARIANTS, "attention, float32"]
    size = dict(RUNS[f"init-{name}"].sizes["quick"])
    samples, tokens = size.pop("samples"), size.pop("tokens")
    model = initialise(size.pop("architecture"), 0, **size).double()
    inputs, _ = label_inputs(samples, tokens, size["vocabulary"])
    with torch.no_grad():
        states = model(**inputs, output_hidden_states=True).hidden_states
    full = torch.stack([composite_residual(state) for state in states[-size["depth"] :]])
    assert found["full"]["mean"][1:] == pytest.approx(full.mean(1).tolist(), rel=1e-9)
    assert found["full"]["std"][1:] == pytest.approx(full.std(1, correction=0).tolist(), rel=1e-6)
    for curve in found.values():
        assert len(curve["mean"]) == size["depth"] + 1 == len(curve["std"])
        assert curve["mean"][0] == pytest.approx(found["full"]["mean"][0], rel=1e-5)
    if name != "xlnet":
        deep = (10 ** deep_trace(model, inputs, without=BARE).log10_relative).mean(1)
        assert found["attention"]["mean"][:2] == pytest.approx(deep[:2].tolist(), rel=1e-9)
        assert deep[-1] < 1e-30 and found["attention"]["mean"][-1] < 1e-15
    assert found["attention + skip"]["mean"][-1] > 0.1 > 1e-6 > found["attention + mlp"]["mean"][-1]
    assert found["attention"]["mean"][-1] <= found["attention, float32"]["mean"][-1] < 1e-5
    if name != "xlnet":  # ALBERT's released switch keeps GELU, skip and LayerNorm; BERT's is the clean one
        same = found["attention + skip"] == found["attention + skip, as released"]
        assert same == (name == "bert")


def test_position_terms_slow_the_collapse_down():
    """Without them the exponent triples a layer; with them it grows by about the same a layer."""
    found = quick("positions-xlnet")
    with_terms, without = found["attention"]["mean"], found["attention, no position terms"]["mean"]
    assert with_terms[0] == without[0]
    ratios = [b / a for a, b in zip(with_terms[1:], with_terms[2:], strict=False)]
    assert max(ratios) / min(ratios) < 30
    assert without[3] < 1e-15 and with_terms[3] > 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deep-bert", "deep-albert", "deep-minilm"])
def test_deep_runs_obey_the_cubic_law(name):
    if name == "deep-minilm":
        needs("minilm")
    found = quick(name)
    logs, constants = found["log10_relative"], found["constants"]
    assert len(logs) == len(constants) + 1 and len(logs[0]) == RUNS[name].sizes["quick"]["samples"]
    for layer, row in enumerate(constants):
        assert row == pytest.approx([b - 3 * a for a, b in zip(logs[layer], logs[layer + 1], strict=True)])
    last = [b / a for a, b in zip(logs[-2], logs[-1], strict=True)]
    assert min(last) > 2.5 and max(last) < 3.5
    assert all(math.isfinite(x) and x < -15 for x in logs[-1])


@pytest.mark.slow
def test_trained_minilm():
    needs("minilm")
    found = quick("trained-minilm")
    assert "sentence-transformer fine-tune" in found["weights"]
    assert found["full"]["mean"][6] > 0.3 and found["attention"]["mean"][5] < 1e-8
    assert found["attention"] == found["attention, as released"]
    assert found["attention + mlp"] != found["attention + mlp, as released"]


def test_wordpieces_are_the_ids_where_the_package_is():
    needs("minilm")
    inputs, about = label_inputs(32, 128, 30522)
    ids = inputs["input_ids"]
    assert ids.shape == (32, 128) and about["vocabulary"] == "bert-base-uncased"
    assert (ids[:, 0] == 101).all() and (ids[:, -1] == 102).all()  # [CLS] and [SEP]
    assert torch.equal(label_inputs(2, 128, 500)[0]["input_ids"], ids[:2] % 500)


@pytest.mark.parametrize("name", ["experiments.architectures", "tracing.deep", "tracing.models", "__main__"])
def test_the_examples_of_the_docstrings(name):
    found = doctest.testmod(importlib.import_module(f"ranklib.{name}"))
    assert found.failed == 0 and found.attempted > 0
