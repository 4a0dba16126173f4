"""The repository as a whole: one public address, no trace of a machine, and a package that installs."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ADDRESS = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
# Built from parts, so that this file does not hold what it looks for.
MACHINE = ["/" + place for place in ("work/", "root/", "home/", "tmp/bash")] + ["C:" + r"\Users"]
REGISTRY = [
    name + ending for name, ending in (("pypi", ".org"), ("pythonhosted", ".org"), ("registry.npmjs", ".org"))
]
REGISTRY += ["download.pytorch" + ".org", "deb.debian" + ".org", "npmjs" + ".com", "anaconda" + ".org"]


def tracked() -> list[Path]:
    """Files that git knows, or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = {name for name in listed.stdout.decode().split("\0") if name}
    return sorted(path for path in map(ROOT.joinpath, names) if path.is_file())


def text_files() -> dict[str, str]:
    """Name and text of each tracked file, without the bytes of pictures."""
    texts = {}
    for path in tracked():
        data = path.read_bytes()
        if b"\0" not in data:
            text = re.sub(r"[A-Za-z0-9+/=]{200,}", "", data.decode())
            texts[path.relative_to(ROOT).as_posix()] = text
    return texts


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)


def copy_to(folder: Path) -> Path:
    for path in tracked():
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return folder


# ---------------------------------------------------------------- the public address


def has_code(text: str) -> bool:
    return any(cell["cell_type"] == "code" for cell in json.loads(text)["cells"])


def test_the_address_stands_in_the_configuration_and_in_each_setup_cell_alone():
    found = {name: text.count(ADDRESS) for name, text in text_files().items() if ADDRESS in text}
    setups = {p.relative_to(ROOT).as_posix(): 1 for p in CHAPTERS if has_code(p.read_text())}
    assert setups, "expected chapters with a setup cell, found none"
    assert found == {"_config.yml": 1} | setups


def test_all_repository_addresses_are_this_one():
    for path in CHAPTERS:
        nb = json.loads(path.read_text())
        code = ["".join(cell["source"]) for cell in nb["cells"] if cell["cell_type"] == "code"]
        if code:
            assert re.findall(r'^REPOSITORY = "(.*)"$', code[0], re.M) == [ADDRESS]


def test_the_address_can_be_changed_to_and_fro(tmp_path):
    copy = copy_to(tmp_path)
    before = {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    longer = ADDRESS + "-second.edition"

    def change(new):
        done = run(sys.executable, copy / "scripts/set_repository.py", new)
        assert done.returncode == 0, done.stderr

    for new in ("https://github.com/someone-else/another.book", longer, "https://github.com/a/b"):
        change(new + ".git")
        after = {p: p.read_text() for p in before if b"\0" not in before[p]}
        assert not [
            p.name for p, text in after.items() if re.search(re.escape(ADDRESS) + r"(?![\w.-])", text)
        ]
        holding = {p for p, text in after.items() if new in text and new.encode() not in before[p]}
        assert holding == {p for p, data in before.items() if ADDRESS.encode() in data}
    change(ADDRESS + "/")
    assert {p: p.read_bytes() for p in copy.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize(
    "new", [[], ["book"], ["https://github.com/only-owner"], ["https://example.org/a/b"], ["a", "b"]]
)
def test_a_wrong_address_is_refused_and_changes_nothing(tmp_path, new):
    copy = copy_to(tmp_path)
    before = (copy / "_config.yml").read_bytes()
    done = run(sys.executable, copy / "scripts/set_repository.py", *new)
    assert done.returncode == 1 and "expected an address like" in done.stderr
    assert (copy / "_config.yml").read_bytes() == before


# ---------------------------------------------------------------- no trace of a machine, and small files


def lines_with(patterns: list[str]) -> list[str]:
    return [
        f"{name}:{number}: {pattern}"
        for name, text in text_files().items()
        for number, line in enumerate(text.splitlines(), 1)
        for pattern in patterns
        if pattern in line
    ]


def test_no_file_holds_a_path_of_a_machine():
    assert lines_with(MACHINE) == []


def test_no_file_names_the_host_of_a_package_registry():
    assert lines_with(REGISTRY) == []


def test_the_search_finds_what_is_there():
    assert any(line.startswith("tests/book/test_repository.py:") for line in lines_with(["def lines_with"]))
    assert {"Makefile", "_config.yml", "ranklib/book/style.py"} <= set(text_files())


def test_files_of_the_library_stay_short():
    long = {p.name: n for p in ROOT.glob("ranklib/**/*.py") if (n := len(p.read_text().splitlines())) >= 330}
    assert long == {}, "split these files, one topic each"


def test_the_readme_is_short_and_names_only_targets_that_exist():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) < 150
    named = set(
        re.findall(r"\bmake ([a-z][\w-]*)", "\n".join(re.findall(r"```.*?```|`[^`]+`", readme, re.S)))
    )
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M))
    assert named and named <= targets, f"README names {named - targets}, the Makefile has {targets}"


def test_every_target_of_the_makefile_is_phony_and_explained():
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M)[1].split())
    assert set(re.findall(r"^([a-z][\w-]*):", makefile, re.M)) == phony
    assert set(re.findall(r"^([a-z][\w-]*):.*##", makefile, re.M)) == phony


# ---------------------------------------------------------------- the package

IMPORT = """
import random, sys, warnings
import matplotlib, numpy, torch, sympy
state = lambda: (
    random.getstate(), str(numpy.random.get_state()), torch.get_rng_state().tolist(),
    torch.get_default_dtype(),
    torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled(), torch.get_num_threads(),
    dict(matplotlib.rcParams), list(warnings.filters), numpy.get_printoptions(), repr(torch._tensor_str.PRINT_OPTS),
)
import ipywidgets, jaxtyping, matplotlib.pyplot, scipy.linalg, scipy.optimize, tqdm.auto
before = state()
import ranklib, pkgutil, importlib
for found in pkgutil.walk_packages(ranklib.__path__, "ranklib."):
    importlib.import_module(found.name)
after = state()
names = "random numpy torch dtype grad deterministic threads rcParams filters numpy-print torch-print".split()
changed = [n for n, a, b in zip(names, before, after, strict=True) if a != b]
print(changed, sum(m.startswith("ranklib") for m in sys.modules))
"""


def test_importing_the_library_changes_nothing():
    done = run(sys.executable, "-c", IMPORT, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    changed, _, modules = done.stdout.strip().rpartition(" ")
    assert changed == "[]" and int(modules) > 3
    assert done.stderr == ""


@pytest.mark.slow
def test_the_package_installs_with_its_records_and_without_the_book(tmp_path):
    source, target = copy_to(tmp_path / "source"), tmp_path / "target"
    done = run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index",
        "--disable-pip-version-check", "--wheel-dir", target, source,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (wheel,) = target.iterdir()
    assert wheel.name.endswith("-none-any.whl")
    done = run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        tmp_path / "site",
        wheel,
    )
    assert done.returncode == 0, done.stderr
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    records = {f"ranklib/results/{p.name}" for p in ROOT.glob("results/*.json")}
    modules = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("ranklib/**/*.py")}
    assert records and records | modules <= inside
    texts = {"ranklib/book/biographies.json"}
    assert texts <= inside
    extra = inside - records - modules - texts - {"ranklib/results/__init__.py"}
    assert not extra, "the book is no part of the package"
    name = sorted(ROOT.glob("results/*.json"))[0].stem
    ask = f"import ranklib.experiments.record as r, json; print(json.dumps([r.__file__, r.load_record({name!r})]))"
    done = run(
        sys.executable,
        "-P",
        "-c",
        ask,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    where, record = json.loads(done.stdout)
    assert where.startswith(str(tmp_path / "site"))
    assert record == json.loads((ROOT / f"results/{name}.json").read_text())
