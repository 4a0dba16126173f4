"""Plant one fault at a time in a copy of the tree, and show which command turns red.

All faults, or those whose module or reason holds one of the words given as arguments. For each, the fast tests of
the module run first, then those of its room, then all that ``make check`` runs, then the slow tests that ``make
test`` adds, until something fails. Browser, Colab and notebook runs are left out: what only they could see has no fault here.
"""

import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKERS = int(os.environ.get("WORKERS", "2"))
LIMIT = 1200  # seconds for one run of pytest


class Fault(NamedTuple):
    """One slip: in ``ranklib/MODULE.py`` the text ``old`` becomes ``new``."""

    module: str
    old: str
    new: str
    why: str


FAULTS = [
    Fault("model/softmax", "x @ (w_k @ b_q[..., None])).mT", "x @ (w_k @ b_q[..., None]))", "a swapped axis"),
    Fault("model/attention", "(scale / dim**0.5)", "(scale / (dim + 1) ** 0.5)", "the law of the weights"),
    Fault("model/layers", "float(strength) * x + branch", "float(strength) * x - branch", "a sign"),
    Fault("model/positions", "place - place[:, None] + len(place) - 1", "place[:, None] - place + len(place) - 1",
          "keys for queries"),
    Fault("paper/norms", "size.sum(-2).amax(-1).sqrt() * size.sum(-1)", "size.sum(-2).amax(-1).sqrt() * size.sum(-2)",
          "columns twice"),
    Fault("paper/centres", "x.amin(-2) / 2 + x.amax(-2) / 2", "x.amin(-2) / 2 + x.mean(-2) / 2", "mean for largest"),
    Fault("paper/least", "torch.where(width > 0, width / self.lower", "torch.where(width > 0, width / self.upper", "relative to the wrong end"),
    Fault("paper/certificate", "max(0.5 * float(np.abs(y - y[far])", "max(0.55 * float(np.abs(y - y[far])",
          "a lower bound too large"),
    Fault("paper/constants", "largest * _vartheta(osc) / 4", "largest * _vartheta(osc) / 4.04", "a wrong constant"),
    Fault("paper/sizes", "e.amax(-1) - e.amin(-1)", "e.amax(-2) - e.amin(-2)", "a swapped axis"),
    Fault("paper/bounds", "vartheta(2 * s.lam), s.q * s.w_inf", "vartheta(2 * s.lam), s.q * s.w_1", "columns for rows"),
    Fault("paper/checks", "entry.power * sizes.log10_rho", "(entry.power - 1) * sizes.log10_rho", "a power of rho"),
    Fault("exact/verdicts", "inside = high <= upper", "inside = low <= upper",
          "certified by the lower end"),
    Fault("paper/depth", "(3.0**depth - 1) / 2", "(3.0**depth - 1) / 3", "the exponent of c"),
    Fault("paper/enclosure", "value * (1 + width), centre", "value * (1 - width), centre", "an enclosure that is none"),
    Fault("paper/counterexamples", "/ w / 16", "/ w / 15", "a wrong constant"),
    Fault("paper/movers", "total + weight * (gain - 1), total + gain - 1", "total + weight * (gain - 1), total + gain",
          "an off-by-one in a sum of weights"),
    Fault("paper/special_queries", "expm1(level) + moved[0])", "expm1(level) + moved[1])", "the wrong column"),
    Fault("theory/sizes", "sizes[norm]() / attention.dims.dim_qk**0.5", "sizes[norm]() / attention.dims.dim_qk", "a root forgotten"),
    Fault("theory/slack", "p=1).amax((1, 2)) / 2", "p=1).amax((1, 2))", "a total variation twice as large"),
    Fault("theory/diameters", "return (osc / 4).tanh()", "return (osc / 4.04).tanh()", "a wrong constant of the bound"),
    Fault("theory/paths", "p[..., head, :, :] @ p_path", "p_path @ p[..., head, :, :]", "the order of the layers"),
    Fault("theory/path_sums", "variance + module.eps", "variance - module.eps", "a sign"),
    Fault("theory/skips", "max(strength - s_1, 0) * max(strength - s_inf, 0)",
          "max(strength - s_1, 0) * max(strength - s_1, 0)", "one norm twice"),
    Fault("theory/mlps", "high * minus - low * plus - own)", "high * minus - low * plus + own)", "a sign"),
    Fault("theory/layernorm", "x.shape[-1] ** 0.75 / least", "x.shape[-1] ** 0.5 / least", "a wrong power"),
    Fault("theory/masks", "factors *= float(dobrushin(p))", "factors *= float(dobrushin(p.mT.softmax(-1)))",
          "another matrix"),
    Fault("theory/block", "moved = (rows - rows[..., k : k + 1, :]).abs().sum(-1) / 2",
          "moved = (rows - rows[..., k : k + 1, :]).abs().sum(-1)", "a factor two"),
    Fault("exact/scaled", "times_power(mantissa, -shift), exponent + shift", "times_power(mantissa, -shift), exponent - shift",
          "a sign"),
    Fault("exact/softmax", "(excess - total) / (1 +", "(excess - total) / (1 -", "a sign of second order"),
    Fault("exact/modules", "(8 / math.pi) ** 0.5 * (z + 0.044715", "(8 / math.pi) ** 0.5 * (z + 0.04472",
          "a digit of a constant"),
    Fault("exact/propagation", "float(skip) * state.common + branch.common", "float(skip) * state.common - branch.common",
          "a sign"),
    Fault("exact/state", "common = common + times_power(mean, exponent)", "common = common - times_power(mean, exponent)",
          "a sign"),
    Fault("measures/tokens", "(tokens * (tokens - 1))", "(tokens * tokens)", "pairs with themselves"),
    Fault("measures/spectrum", "- 2 * singular.log().mean(-1)", "- singular.log().mean(-1)", "a factor two"),
    Fault("measures/attention", "(1 - sizes.topk(2).values[..., 1])", "(1 - sizes.topk(2).values[..., 0])", "an off-by-one"),
    Fault("tracing/switches", "args if self.is_stream(args[0]) else args[::-1]", "args[::-1] if self.is_stream(args[0]) else args",
          "the branch for the stream"),
    Fault("tracing/deep", "- 3 * self.log10_relative[:-1]", "- 2 * self.log10_relative[:-1]", "a wrong power"),
    Fault("tracing/recorder", "x[chosen][self.real.to(x.device)[chosen]]", "x[chosen][self.real.to(x.device).flip(0)[chosen]]",
          "padding of another sample"),
    Fault("tracing/batches", "stop = min(start + step, size)", "stop = min(start + step, size - 1)", "an off-by-one"),
    Fault("experiments/arcs", "(run[..., 0, :] - run[..., 1, :])", "(run[..., 0, :] + run[..., 1, :])", "a sign"),
    Fault("experiments/tasks", "2 * math.pi * torch.arange", "math.pi * torch.arange", "half the circle"),
    Fault("experiments/token_model", "(self.dim // self.heads) ** -0.5", "self.dim**-0.5", "all heads' width for one's"),
    Fault("experiments/training", "step + 1 == recipe.steps", "step + 1 == recipe.steps - 1", "an off-by-one"),
    Fault("experiments/path_accuracy", "math.log1p(-1 / paths)", "math.log1p(-1 / (paths + 1))", "an off-by-one"),
    Fault("experiments/voice_albert", "values.to(scale.dtype) - zero_point", "values.to(scale.dtype) + zero_point", "a sign"),
    Fault("proofs/engine/search", "if worst < -TOLERANCE:", "if worst < -1e6 * TOLERANCE:", "a blind search"),
    Fault("proofs/engine/decide", "difference = (rhs - lhs).doit()", "difference = (lhs - rhs).doit()", "the wrong way round"),
]  # fmt: skip


def spoil(fault: Fault, tree: Path) -> str:
    """Plant the fault in ``tree`` and return the sound text; raise if what it replaces is not there exactly once."""
    path = tree / "ranklib" / f"{fault.module}.py"
    text = path.read_text() if path.exists() else ""
    if text.count(fault.old) != 1:
        raise ValueError(
            f"ranklib/{fault.module}.py: expected the text {fault.old!r} once, got it {text.count(fault.old)} times; "
            "choose another line of the module for its fault in scripts/plant_faults.py"
        )
    path.write_text(text.replace(fault.old, fault.new))
    return text


def copy_tree(folder: Path) -> Path:
    """The files that git knows or would add, so that a fault never touches the tree itself."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.check_output(command, cwd=ROOT, text=True).split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def steps_for(fault: Fault, tree: Path) -> list[tuple[str, list[str]]]:
    """What to run in turn until something fails: the command that it is part of, and arguments for pytest."""
    room = fault.module.split("/")[0]
    own = f"tests/{room}/test_{Path(fault.module).name}.py"
    return [
        ("check", ["-m", "not slow", own if (tree / own).exists() else f"tests/{room}"]),
        ("check", ["-m", "not slow", f"tests/{room}"]),
        ("check", ["-m", "not slow", f"--ignore=tests/{room}", "--ignore=tests/book", "tests"]),
        ("test", ["-m", "slow", "--ignore=tests/book", "tests"]),
    ]


def preload() -> None:
    """Import once what every run needs; each run is then a fork, and imports this library and its tests alone."""
    for name in (
        "torch",
        "sympy",
        "mpmath",
        "scipy.optimize",
        "scipy.stats",
        "matplotlib.pyplot",
        "ipywidgets",
        "yaml",
    ):
        importlib.import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()


def fork_pytest(tree: Path, arguments: list[str]) -> int:
    """The process that runs pytest in ``tree`` with its output in ``tree``'s log; its status is pytest's."""
    if pid := os.fork():
        return pid
    status = 70
    try:
        signal.alarm(LIMIT)
        os.chdir(tree)
        sys.path.insert(0, str(tree))
        os.environ["PYTHONPATH"] = str(tree)
        log = os.open(log_of(tree), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        status = pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *arguments])
        sys.stdout.flush()
    finally:
        os._exit(status)


def log_of(tree: Path) -> Path:
    return tree.with_suffix(".log")


def first_red(tree: Path) -> str:
    """The first test that failed, or the end of the log if no test is named."""
    log = log_of(tree).read_text(errors="replace")
    named = re.search(r"^(?:FAILED|ERROR) (\S+)", log, re.M)
    return named[1] if named else log[-300:]


def judge(faults: list[Fault], folder: Path) -> Iterator[tuple[Fault, str, str, float]]:
    """Each fault with the command that catches it ('' if none), the test that fails, and the seconds it took."""
    trees = [copy_tree(folder / str(i)) for i in range(WORKERS)]
    _, status = os.waitpid(fork_pytest(trees[0], ["--collect-only", "--ignore=tests/book", "tests"]), 0)
    if status:
        sys.exit(
            f"expected tests that can be collected before any fault is planted; {first_red(trees[0])}; try 'make setup'"
        )
    waiting, running = list(faults), {}
    while waiting or running:
        while waiting and trees:
            fault, tree = waiting.pop(0), trees.pop()
            sound, steps = spoil(fault, tree), steps_for(fault, tree)
            running[fork_pytest(tree, steps[0][1])] = (fault, tree, sound, steps, time.monotonic())
        pid, status = os.wait()
        fault, tree, sound, steps, start = running.pop(pid)
        (command, _), *rest = steps
        green = os.waitstatus_to_exitcode(status) in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if green and rest:
            running[fork_pytest(tree, rest[0][1])] = (fault, tree, sound, rest, start)
            continue
        (tree / "ranklib" / f"{fault.module}.py").write_text(sound)
        trees.append(tree)
        yield (
            fault,
            "" if green else command,
            "survives" if green else first_red(tree),
            time.monotonic() - start,
        )


def main(words: list[str]) -> int:
    chosen = [f for f in FAULTS if not words or any(w in f.module or w in f.why for w in words)]
    if not chosen:
        sys.exit(
            f"ONLY: expected a part of a module's name, got {words}; there are {[f.module for f in FAULTS]}"
        )
    preload()
    print(f"{'module':28}{'fault':34}{'check':>6}{'test':>6}{'sec':>6}  first test that fails", flush=True)
    commands = []
    with tempfile.TemporaryDirectory() as folder:
        for fault, by, test, seconds in judge(chosen, Path(folder)):
            commands.append(by)
            seen = f"{'yes' if by == 'check' else 'no':>6}{'yes' if by else 'NO':>6}"
            print(f"{fault.module:28}{fault.why:34}{seen}{seconds:6.0f}  {test}", flush=True)
    survive = commands.count("")
    print(
        f"{len(commands)} faults: make check catches {commands.count('check')}, make test {len(commands) - survive}"
    )
    return survive


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
