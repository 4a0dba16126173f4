"""Small work runs on one thread, and the front door asks OpenMP to sleep before torch is loaded."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_info

import ranklib as rl
from ranklib import _threads
from ranklib._threads import one_blas_thread

ROOT = Path(__file__).resolve().parents[1]


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_one_thread_inside_and_as_before_outside():
    np.linalg.svd(np.ones((3, 2)))
    before, torch_threads = blas_threads(), torch.get_num_threads()
    assert before, "numpy has brought no BLAS"
    for _ in range(2):
        with one_blas_thread():
            assert set(blas_threads()) == {1} and torch.get_num_threads() == torch_threads
        assert blas_threads() == before


def test_decompositions_run_on_one_thread(monkeypatch):
    threads = []

    def spy(function):
        return lambda *given: threads.append(torch.get_num_threads()) or function(*given)

    for name in ("svdvals", "eigvals"):
        monkeypatch.setattr(torch.linalg, name, spy(getattr(torch.linalg, name)))
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rl.stable_rank(torch.eye(3))
        rl.spectral_gap(torch.full((3, 3), 1 / 3))
        assert threads == [1, 1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert _threads.singular_values(torch.eye(2)).tolist() == [1.0, 1.0]


def test_the_front_door_asks_waiting_threads_to_sleep_and_keeps_a_users_choice():
    code = "import ranklib, os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    for given, wanted in ({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"):
        environment = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | given
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=ROOT, capture_output=True, text=True
        )
        assert done.stdout.split() == [wanted, "False"], done.stderr


def test_chapters_import_the_library_before_torch():
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        cells = json.loads(path.read_text())["cells"]
        code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
        if "import torch" in code:
            assert 0 <= code.find("import ranklib") < code.find("import torch"), (
                f"{path.name}: expected ranklib before torch, got it after; threads would spin beside a busy core"
            )
