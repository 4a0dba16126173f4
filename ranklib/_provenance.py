"""Where numbers come from: the commit, the device and the versions that gave them."""

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import torch

_CODE = Path(__file__).resolve().parent


def current_device() -> torch.device:
    """The GPU if there is one, otherwise the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def provenance(seeds: list[int], seconds: float) -> dict:
    """Where numbers come from: commit, seeds, device, versions and wall time in seconds."""

    def git(*args):
        done = subprocess.run(["git", *args], cwd=_CODE, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".")
    device = current_device()
    return {
        "commit": commit and commit + ("" if not changed else " with changes"),
        "seeds": seeds,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "versions": {
            "python": platform.python_version(),
            **{p: version(p) for p in ("torch", "numpy", "scipy")},
        },
        "seconds": round(seconds, 1),
    }
