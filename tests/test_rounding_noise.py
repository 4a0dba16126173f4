"""The noise is there, bounded, the same in every run, and nowhere that processors agree."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch
from nbformat.v4 import new_code_cell, new_notebook, new_output
from torch.utils._python_dispatch import _disable_current_modes

from tests.rounding_noise import ULPS, RoundingNoise, ShakenFunction, shake

X = torch.tensor([[0.3, -1.7, 2.9], [1e-3, 0.11, -77.7], [5.1, 1e-30, 0.7]])

KERNELS = {
    "@": lambda x: x @ x,
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "linear": lambda x: torch.nn.functional.linear(x, x, x[0]),
    "softmax": lambda x: x.softmax(-1),
    "exp": torch.exp,
    "exp, in place": lambda x: x.clone().exp_(),
    "exp, out": lambda x: torch.exp(x, out=torch.empty_like(x)),
    "power": lambda x: x.abs() ** 1.3,
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(0),
    "norm": lambda x: torch.linalg.matrix_norm(x),
    "layer norm": lambda x: torch.nn.functional.layer_norm(x, (3,)),
    "singular values": lambda x: torch.linalg.svd(x)[1],
    "eigenvalues": lambda x: torch.view_as_real(torch.linalg.eigvals(x)),
    "symmetric eigenvalues": lambda x: torch.linalg.eigh(x + x.T)[0],
    "inverse": torch.linalg.inv,
    "draws": lambda x: torch.randn(20, dtype=x.dtype, generator=torch.Generator().manual_seed(0)),
}


@pytest.fixture(autouse=True)
def silence():
    """Without the noise of the session, if it has some."""
    with _disable_current_modes():
        yield


def shaken(kernel, x, seed=1):
    with RoundingNoise(seed):
        return kernel(x)


def bits(x):
    return x.contiguous().view(torch.int64 if x.dtype == torch.float64 else torch.int32).long()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_shaken_by_at_most_two_units_as_the_seed_says(name, dtype):
    kernel, x = KERNELS[name], X.to(dtype)
    plain = kernel(x)
    steps = [bits(shaken(kernel, x, seed)) - bits(plain) for seed in range(1, 8)]
    assert max(step.abs().max() for step in steps) == ULPS or plain.numel() == 1
    assert any(step.any() for step in steps)
    assert len({tuple(step.flatten().tolist()) for step in steps}) > 1
    assert torch.equal(bits(shaken(kernel, x)), bits(shaken(kernel, x)))


def test_what_every_processor_shares_stays():
    for exact in (
        lambda x: x + x.T / 3,
        lambda x: x * x[0],
        lambda x: x.abs().sqrt(),
        lambda x: x**2,
        lambda x: x.relu().cumsum(0),
        lambda x: x.amax(-1),
    ):
        assert torch.equal(shaken(exact, X), exact(X))
    few = torch.tensor([0.0, 1.0, -3.0, 0.25, 2.0**-1000, 1234.0, torch.inf, -torch.inf, torch.nan])
    for values in (few.numpy(), few.double().numpy(), torch.tensor([2.0**-1074]).double().numpy()):
        after = values.copy()
        shake(after, 1)
        np.testing.assert_array_equal(after, values)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_value_passes_a_power_of_two(dtype):
    below, largest = np.nextafter(dtype(1), dtype(0)), np.finfo(dtype).max
    values = np.array([below, -below, np.finfo(dtype).smallest_subnormal * 3, largest], dtype=dtype)
    for seed in range(30):
        after = values.copy()
        shake(after, seed)
        assert (np.abs(after[:2]) < 1).all() and after[2] > 0 and np.isfinite(after[3])
        assert (np.sign(after) == np.sign(values)).all()


def attention(x):
    return torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None])


def gradient(x):
    x = x.clone().requires_grad_()
    (x @ x).tanh().square().sum().backward()
    return x.grad


@pytest.mark.parametrize("function", [attention, gradient, torch.linalg.svdvals])
def test_what_is_made_of_kernels_is_shaken(function):
    x = X.clamp(-2, 2).double()
    assert not torch.equal(shaken(function, x), function(x))
    assert torch.allclose(shaken(function, x), function(x))


def test_functions_of_numpy():
    plain = getattr(np.exp, "_function", np.exp)
    noisy, x = ShakenFunction(plain, 1), X.double().numpy()
    steps = noisy(x).view(np.int64) - plain(x).view(np.int64)
    assert steps.any() and np.abs(steps).max() <= ULPS
    out = np.empty_like(x)
    assert noisy(x, out=out) is out and (out == noisy(x)).all()
    assert type(noisy(0.3)) is np.float64 and noisy(0.0) == 1 and noisy.nin == 1


def test_the_option_reaches_tests_and_the_kernels_of_chapters(tmp_path):
    """A sum that this processor finds is asserted; under a seed that moves it, both the test and the cell fail."""
    total = f"float(torch.linspace(0.1, 0.7, 97).sum()) == {float(torch.linspace(0.1, 0.7, 97).sum())!r}"
    (tmp_path / "test_sum.py").write_text(f"import torch\n\ndef test_sum():\n    assert {total}\n")
    output = new_output("execute_result", {"text/plain": "True"}, execution_count=1)
    cell = new_code_cell(f"import torch\n{total}", outputs=[output], execution_count=1)
    nbformat.write(new_notebook(cells=[cell]), tmp_path / "sum.ipynb")
    seed = next(s for s in range(99) if not shaken(lambda x: eval(total, {"torch": torch}), X, s))
    assert eval(total, {"torch": torch})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "rounding_noise", "-p", "no:cacheprovider", "--nbval"]
        + ["--nbval-current-env", f"--rounding-noise={seed}", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "2 failed" in done.stdout, done.stdout + done.stderr
