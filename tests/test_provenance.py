"""Where numbers come from is known inside and outside a git repository."""

import platform

import torch

from ranklib import _provenance


def test_provenance_is_known_outside_a_git_repository(tmp_path, monkeypatch):
    monkeypatch.setattr(_provenance, "_CODE", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert _provenance.provenance([1], 0.04)["commit"] is None
    assert round(10 * _provenance.provenance([1], 0.06)["seconds"], 9) == 1


def test_provenance_names_versions_seeds_and_device():
    found = _provenance.provenance([3, 5], 1.26)
    assert found["seeds"] == [3, 5] and round(10 * found["seconds"], 9) == 13
    assert found["versions"]["python"] == platform.python_version()
    assert torch.__version__.startswith(found["versions"]["torch"].split("+")[0])
    assert (found["device"] == "cpu") == (_provenance.current_device().type == "cpu")
