"""The comparison of stored and fresh outputs: what must turn it red does, and what may differ does not."""

import copy
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from scripts.run_notebooks import FIXED, normalise

pytestmark = pytest.mark.slow  # whole runs of notebooks

ROOT = Path(__file__).resolve().parents[2]
CHAPTER = ROOT / "chapters" / "front-page.ipynb"
# The root of the width, by which scores are divided, becomes another power.
CONSTANT = (r"(dim_qk|shape\[-1\])( ?\*\* ?)0\.5\b", r"\g<1>\g<2>0.55")
BAR = "for _ in tqdm(range(3), desc='rows'):\n    pass"
PLAIN_BAR = "for _ in plain(range(3), desc='lines', file=sys.stdout):\n    pass"
FIGURE = "fig, ax = plt.subplots()\nax.plot([0, 1])\nplt.show()"
VECTOR = "rl.explore(draw_line, a=[1, 2], names={'a': 'Top'})"
IMPORTS = """
from tqdm import tqdm as plain
from tqdm.auto import tqdm

def draw_line(a):
    fig, ax = plt.subplots()
    ax.plot([0, a])
    ax.set(ylim=(0, 2))
    return fig, f"A line up to {a}."
"""
PATH, OTHER_PATH = r'<path d="[^"]*"', '<path d="M 0 0"'
HTML, SVG = "text/html", "image/svg+xml"
# Name -> (source of the cell, kind of output, pattern, replacement, verdict)
ALTERATIONS = {
    "bar as it is": (BAR, "text/plain", "", "", "green"),
    "bar with another clock": (
        PLAIN_BAR,
        "text",
        r"\d\d:\d\d<[^\]]*(?=\][^\]]*$)",
        "77:77<88:88, 99.99it/s",
        "green",
    ),
    "bar with another name": (PLAIN_BAR, "text", "lines(?!.*lines)", "words", "red"),
    "bar with another count": (PLAIN_BAR, "text", "3/3(?!.*3/3)", "2/3", "red"),
    "figure with another line": (FIGURE, SVG, PATH, OTHER_PATH, "green"),
    "figure of another size": (FIGURE, "text/plain", r"Figure size \d+", "Figure size 7", "red"),
    "vector with another line": (VECTOR, HTML, PATH, OTHER_PATH, "green"),
    "vector with another sentence": (VECTOR, HTML, 'data-seen="', 'data-seen="Not ', "red"),
    "vector with another range": (VECTOR, HTML, 'max="1"', 'max="2"', "red"),
    "vector with other values": (VECTOR, HTML, r'data-texts="1\|2"', 'data-texts="1|3"', "red"),
    "vector without a frame": (
        VECTOR,
        HTML,
        '<template class="rank-frame-of".*?</template>',
        "",
        "red",
    ),
}


def options() -> list[str]:
    """The options for nbval that the Makefile uses."""
    line = re.search(r"^NBVAL := (.*)$", (ROOT / "Makefile").read_text(), re.M)[1]
    found = line.split()
    assert "--nbval" in found and any("sanitize" in option for option in found)
    return [option.replace("=tests/", f"={ROOT}/tests/") for option in found]


def library(folder: Path, old: str = "", new: str = "") -> Path:
    """A copy of the library, with one constant replaced."""
    shutil.copytree(ROOT / "ranklib", folder / "ranklib", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "results", folder / "results")
    if old:
        changed = 0
        for path in folder.glob("ranklib/**/*.py"):
            text, count = re.subn(old, new, path.read_text())
            path.write_text(text)
            changed += count
        assert changed, f"the library does not hold {old!r} any more; choose another constant"
    return folder


def nbval(notebooks: dict[str, NotebookNode], folder: Path, path: Path) -> dict[str, list[str]]:
    """'green' or 'red' for each code cell of each notebook, run by pytest with the library at ``path``."""
    folder.mkdir()
    for name, nb in notebooks.items():
        nbformat.write(nb, folder / f"{name}.ipynb")
    env = (
        {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
        | FIXED
        | {"PYTHONPATH": str(path)}
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        f"--rootdir={folder}",
    ]
    done = subprocess.run(
        [*command, "-c", os.devnull, *options(), "."], cwd=folder, env=env, capture_output=True, text=True
    )
    words = {"PASSED": "green", "FAILED": "red"}
    found = re.findall(r"^([\w-]+)(?:\.ipynb)?::.*?Cell \d+ ([A-Z]+)", done.stdout, re.M)
    verdicts = {name: [words[word] for found_name, word in found if found_name == name] for name in notebooks}
    for name, nb in notebooks.items():
        assert len(verdicts[name]) == len(code_of(nb)), done.stdout + done.stderr
    return verdicts


def code_of(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def place_of(nb: NotebookNode, wanted: str) -> int:
    """Which of the code cells is the first to have an output that holds these words."""
    return next(i for i, cell in enumerate(code_of(nb)) if wanted in str(cell.outputs))


def altered(cell: NotebookNode, kind: str, pattern: str, new: str) -> NotebookNode:
    """A copy of a cell whose stored output differs, in the last one of this kind that matches."""
    cell, changed = copy.deepcopy(cell), 0
    for output in reversed(cell.outputs):
        place, key = (output, "text") if kind == "text" else (output.get("data", {}), kind)
        if key in place and not changed:
            place[key], changed = re.subn(pattern, new, place[key], count=1, flags=re.S)
    assert changed, f"no {kind} output of {cell.source[:60]!r} holds {pattern!r}"
    return cell


@pytest.fixture(scope="module")
def chapter() -> NotebookNode:
    return nbformat.read(CHAPTER, as_version=4)


@pytest.fixture(scope="module")
def verdicts(chapter, tmp_path_factory) -> dict[str, list[str]]:
    """The cells of a real chapter with other pictures, with faults, and all the alterations."""
    folder = tmp_path_factory.mktemp("bites")
    faulty, repainted = copy.deepcopy(chapter), copy.deepcopy(chapter)
    cells, prints, explores = (
        code_of(faulty),
        place_of(chapter, "'stdout'"),
        place_of(chapter, "rank-explore"),
    )
    cells[prints] |= altered(cells[prints], "text", r"\d(?=\D*$)", "x")
    cells[explores] |= altered(cells[explores], HTML, 'class="rank-name">', 'class="rank-name">Other ')
    cells[-1].source += "\nraise RuntimeError('planted')"
    code_of(repainted)[explores] |= altered(code_of(repainted)[explores], HTML, PATH, OTHER_PATH)

    fresh = nbformat.v4.new_notebook(cells=[new_code_cell(code_of(chapter)[0].source + IMPORTS)])
    sources = list(dict.fromkeys(source for source, *_ in ALTERATIONS.values()))
    fresh.cells += map(new_code_cell, sources)
    NotebookClient(fresh, timeout=120, kernel_name="python3").execute(
        env=os.environ | FIXED | {"PYTHONPATH": str(ROOT)}
    )
    fresh = normalise(fresh)
    ran = {cell.source: cell for cell in fresh.cells}
    fresh.cells[1:] = [altered(ran[source], *change) for source, *change, _ in ALTERATIONS.values()]
    for i, cell in enumerate(fresh.cells):
        cell.id = f"cell-{i}"

    notebooks = {"repainted": repainted, "faulty": faulty, "alterations": fresh}
    found = nbval(notebooks, folder / "same", library(folder / "copy"))
    return found | nbval({"perturbed": chapter}, folder / "other", library(folder / "perturbed", *CONSTANT))


def test_a_chapter_is_green_also_when_bytes_of_its_pictures_differ(verdicts, chapter):
    assert verdicts["repainted"] == ["green"] * len(code_of(chapter))


def test_a_planted_raise_an_altered_print_and_an_altered_slider_are_red_and_only_these(verdicts, chapter):
    wrong = [i for i, verdict in enumerate(verdicts["faulty"]) if verdict == "red"]
    prints, explores = place_of(chapter, "'stdout'"), place_of(chapter, "rank-explore")
    assert wrong == sorted({prints, explores, len(code_of(chapter)) - 1})


def test_one_perturbed_constant_of_the_library_is_red(verdicts):
    assert verdicts["perturbed"][0] == "green" and "red" in verdicts["perturbed"]


@pytest.mark.parametrize("name", ALTERATIONS)
def test_an_altered_output_is_red_unless_only_a_picture_or_a_clock_differs(verdicts, name):
    assert verdicts["alterations"][0] == "green"
    assert verdicts["alterations"][1 + list(ALTERATIONS).index(name)] == ALTERATIONS[name][-1]
