"""What the command trace writes: tables, records and drawings, with padding, cuts and one token."""

import csv
import json

import pytest
import torch

from ranklib.measures.tokens import composite_residual, mean_cosine
from ranklib.tracing.layerwise import Trace
from ranklib.tracing.report import draw
from tests.tracing import word_model
from tests.tracing.word_model import SAMPLES, WORDS, call

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")
folder, text = word_model.folder, word_model.text


def hidden_states(folder, texts):
    model = transformers.BertModel.from_pretrained(folder).double().eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        return [
            torch.cat(model(**tokenizer(t, return_tensors="pt"), output_hidden_states=True).hidden_states)
            for t in texts
        ]


def test_trace_writes_what_the_model_computes(folder, text, tmp_path, capsys):
    out = tmp_path / "out"
    names = "composite_residual,mean_cosine"
    assert call("trace", folder, "--text", text, "--measures", names, "--out", out) == 0
    wanted = hidden_states(folder, SAMPLES)
    rows = list(csv.DictReader((out / "trace.csv").open()))
    assert len(rows) == 4 * 3 * 2
    for row in rows:
        state = wanted[int(row["sample"])][int(row["layer"])]
        measure = {"composite_residual": composite_residual, "mean_cosine": mean_cosine}[row["measure"]]
        assert float(row["value"]) == pytest.approx(float(measure(state)), rel=1e-9)
    about = json.loads((out / "trace.json").read_text())
    assert about["tokens"] == [7, 8, 6] and about["dtype"] == "float64" and about["class"] == "BertModel"
    first = [float(composite_residual(states[0])) for states in wanted]
    assert about["mean"]["composite_residual"][0] == pytest.approx(sum(first) / 3)
    assert {"commit", "versions", "device", "seconds"} <= set(about["provenance"])
    assert about["provenance"]["versions"]["transformers"] == transformers.__version__
    assert "<svg" in (out / "trace.svg").read_text() and "mean cosine" in (out / "trace.svg").read_text()
    printed = capsys.readouterr()
    assert "composite_residual" in printed.out and "text.txt" in printed.out and "sample" in printed.err


def test_parts_cuts_and_the_floor(folder, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    arguments = [
        "--text",
        text,
        "--tokens",
        5,
        "--samples",
        2,
        "--without",
        "skip, mlp",
        "--dtype",
        "float32",
    ]
    capsys.readouterr()
    assert call("trace", folder, *arguments) == 0
    about = json.loads((tmp_path / "trace-small/trace.json").read_text())
    assert about["floor"] == 9 * torch.finfo(torch.float32).eps
    below = about["mean"]["composite_residual"][-1] < about["floor"]
    assert ("below 1e-06 is rounding of float32" in capsys.readouterr().out) == below
    assert about["tokens"] == [5, 5] and about["without"] == ["skip", "mlp"] and about["dtype"] == "float32"
    assert about["mean"]["composite_residual"][-1] < 1e-5
    assert "log₁₀" in (tmp_path / "trace-small/trace.svg").read_text()


def test_the_text_is_the_biographies_by_default(folder, tmp_path):
    assert call("trace", folder, "--samples", 2, "--out", tmp_path) == 0
    about = json.loads((tmp_path / "trace.json").read_text())
    assert about["text"] == "the book's biographies" and about["tokens"] == [128, 128]


@pytest.fixture
def bare(folder, tmp_path):
    """The same model with a tokenizer that adds no tokens and knows no padding and no end."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: i for i, word in enumerate(["?", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    place = tmp_path / "bare"
    place.mkdir()
    for file in ("config.json", "model.safetensors"):
        (place / file).write_bytes((folder / file).read_bytes())
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="?").save_pretrained(place)
    return place


def test_padding_needs_no_token_of_its_own(bare, text, tmp_path):
    assert call("trace", bare, "--text", text, "--out", tmp_path / "out") == 0
    about = json.loads((tmp_path / "out/trace.json").read_text())
    model = transformers.BertModel.from_pretrained(bare).double().eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(bare)
    with torch.no_grad():
        last = [model(**tokenizer(t, return_tensors="pt")).last_hidden_state for t in SAMPLES]
    wanted = sum(float(composite_residual(x[0])) for x in last) / 3
    assert about["mean"]["composite_residual"][-1] == pytest.approx(wanted, rel=1e-9)


def test_one_token_alone_is_no_collapse(bare, tmp_path, capsys):
    (tmp_path / "short.txt").write_text("one two three\n\nfour\n")
    assert call("trace", bare, "--text", tmp_path / "short.txt", "--out", tmp_path / "out") == 2
    assert "at least 2 tokens in every paragraph, got 1 in paragraph 2 of" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [0.0, 0.5, torch.nan])
def test_measures_that_stand_still_are_drawn(value, tmp_path):
    values = torch.full((3, 2, 1), value, dtype=torch.float64)
    result = Trace(values, ("relative_residual",), torch.tensor([5, 5]), "Model")
    draw(result, tmp_path / "trace.svg", 2.2e-16)
    drawn = (tmp_path / "trace.svg").read_text()
    assert "Model, without nothing" in drawn and "log₁₀" not in drawn
