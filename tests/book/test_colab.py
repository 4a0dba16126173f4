"""A chapter opened in Colab: its setup cell adds this library and changes no version, every cell runs."""

import ast
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.slow  # an environment of its own

ROOT = Path(__file__).resolve().parents[2]
COLAB = ROOT / ".venv-colab"
EVERY = {p.stem: p for p in sorted(ROOT.glob("chapters/*.ipynb")) if '"cell_type": "code"' in p.read_text()}
# A chapter with sliders, one that loads a model, one that reads records: make test runs these, make test COLAB=all
# all of them, as the workflow does once a week.
SOME = ("front-page", "measure-your-own-model", "which-paths")
CHAPTERS = [EVERY[name] for name in (EVERY if os.environ.get("COLAB") == "all" else SOME) if name in EVERY]
ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
PRESENT = "import sys, types\nsys.modules.setdefault('google.colab', types.ModuleType('google.colab'))\n"
EXECUTE = """
import sys, nbformat, nbclient
nb = nbformat.read(sys.argv[1], as_version=4)
for cell in nb.cells:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
where = {"metadata": {"path": sys.argv[2]}}
client = nbclient.NotebookClient(nb, timeout=300, kernel_name="python3", resources=where)
client.execute()
nbformat.write(nb, sys.argv[1])
"""


def run(*command, **options) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, (
        f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    )
    return done.stdout


@pytest.fixture(scope="module")
def remote(tmp_path_factory) -> Path:
    """A git repository with one commit: the working tree as it is."""
    folder = tmp_path_factory.mktemp("remote")
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in set(listed.split("\0")) - {""}:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    run("git", "init", "--quiet", cwd=folder)
    run("git", "add", "--all", cwd=folder)
    run(
        "git",
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.org",
        "commit",
        "--quiet",
        "-m",
        "as it is",
        cwd=folder,
    )
    return folder


class Machine:
    """A throw-away layer over the Colab-like environment, which itself stays as it is."""

    def __init__(self, folder: Path, remote: Path):
        self.folder, self.python = folder, folder / "layer" / "bin" / "python"
        run(COLAB / "bin" / "python", "-m", "venv", "--without-pip", folder / "layer")
        (self.site,) = (folder / "layer" / "lib").glob("python*/site-packages")
        (below,) = (COLAB / "lib").glob("python*/site-packages")
        (self.site / "below.pth").write_text(f"{below}\n")
        startup = folder / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "colab.py").write_text(PRESENT)
        kernel = folder / "jupyter" / "kernels" / "python3"
        kernel.mkdir(parents=True)
        argv = [str(self.python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (kernel / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"})
        )
        dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "RANKLIB_SIZE")
        self.env = {k: v for k, v in os.environ.items() if k not in dropped} | {
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_PATH": str(folder / "jupyter"),
            "JUPYTER_DATA_DIR": str(folder / "jupyter"),
            "RANKLIB_SIZE": "quick",
            "OMP_NUM_THREADS": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{remote.as_uri()}.insteadOf",
            "GIT_CONFIG_VALUE_0": ADDRESS,
        }

    def freeze(self) -> dict[str, str]:
        """Name -> version of every distribution that the kernel sees; the layer hides what lies below."""
        all_of = "[(d.metadata['Name'].lower(), d.version) for d in m.distributions()]"
        listed = run(self.python, "-c", f"import importlib.metadata as m; print({all_of})", env=self.env)
        return dict(reversed(ast.literal_eval(listed)))

    def added(self) -> dict[str, dict]:
        """Name -> wheel tags and files of every distribution in the layer."""
        found = {}
        for info in self.site.glob("*.dist-info"):
            name = re.search(r"^Name: (.*)$", (info / "METADATA").read_text(), re.M)[1].lower()
            tags = re.findall(r"^Tag: (.*)$", (info / "WHEEL").read_text(), re.M)
            files = [line.split(",")[0] for line in (info / "RECORD").read_text().splitlines()]
            found[name] = {"tags": tags, "files": files}
        return found

    def execute(self, chapter: Path) -> list[dict]:
        """Run a chapter alone in an empty folder; its cells with their fresh outputs."""
        folder = self.folder / chapter.stem
        folder.mkdir()
        copy = folder / chapter.name
        shutil.copy(chapter, copy)
        run(self.python, "-c", EXECUTE, copy, folder, cwd=folder, env=self.env)
        return [cell for cell in json.loads(copy.read_text())["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def machine(tmp_path_factory, remote) -> Iterator[Machine]:
    assert (COLAB / "bin" / "python").exists(), (
        "expected the Colab-like environment, found none: run 'make test'"
    )
    yield Machine(tmp_path_factory.mktemp("colab"), remote)


@pytest.fixture(scope="module")
def installed(machine) -> tuple[dict, dict]:
    """Versions before and after the setup cell of the first chapter that has one, run alone and unchanged."""
    before = machine.freeze()
    assert "ranklib" not in before
    nb = json.loads(CHAPTERS[0].read_text())
    nb["cells"] = [next(cell for cell in nb["cells"] if cell["cell_type"] == "code")]
    alone = machine.folder / "setup.ipynb"
    alone.write_text(json.dumps(nb))
    machine.execute(alone)
    return before, machine.freeze()


def test_there_are_chapters_to_run():
    assert set(SOME) <= set(EVERY), f"SOME: expected names of chapters, got {SOME}; there are {sorted(EVERY)}"
    assert os.environ.get("COLAB", "some") in ("some", "all"), "COLAB: expected some or all; correct it"


def test_the_environment_is_like_colab_and_lacks_the_library(machine):
    ask = "import sys, IPython, ipywidgets; print(IPython.version_info[0], ipywidgets.version_info[0])"
    assert run(machine.python, "-c", ask, env=machine.env).split() == ["7", "7"]
    done = subprocess.run(
        [COLAB / "bin" / "python", "-c", "import ranklib"], cwd=machine.folder, env=machine.env
    )
    assert done.returncode == 1


def test_the_setup_cell_adds_the_library_and_changes_no_version(installed):
    before, after = installed
    assert "ranklib" in after
    assert {name: after.get(name) for name in before} == before
    assert len(set(after) - set(before)) <= 5, f"more than helpers was added: {set(after) - set(before)}"


def test_what_the_setup_cell_adds_is_pure_python(machine, installed):
    """All but python-flint, whose ball arithmetic proves inequalities: it needs nothing and replaces nothing."""
    before, after = installed
    added = machine.added()
    assert set(added) == set(after) - set(before)
    for name, found in added.items():
        if name == "python-flint":
            continue
        assert found["tags"] and all(tag.endswith("-none-any") for tag in found["tags"]), (
            f"{name}: {found['tags']}"
        )
        assert not [f for f in found["files"] if re.search(r"\.(so|pyd|dylib|dll)\b", f)], name


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda p: p.stem)
def test_chapter_runs_alone(machine, installed, chapter):
    cells = machine.execute(chapter)
    stored = [cell for cell in json.loads(chapter.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [c["execution_count"] for c in cells] == list(range(1, len(stored) + 1))
    for cell, old in zip(cells, stored, strict=True):
        kinds = {kind for output in cell["outputs"] for kind in output.get("data", {})}
        if any("rank-explore" in "".join(o.get("data", {}).get("text/html", "")) for o in old["outputs"]):
            assert "application/vnd.jupyter.widget-view+json" in kinds, "the slider has no live view"
        assert not [o for o in cell["outputs"] if o.get("name") == "stderr"], cell["source"]
