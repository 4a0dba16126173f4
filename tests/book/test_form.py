"""The form of the main line: few boxes and little open code, many pictures and predictions, a bridge at both ends."""

import re

import pytest
import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.book.notebook_rules import EXERCISE, PICTURES, ROOT, code_of, kinds, prose_of, read

# Chapters that still have the form of the first edition. A chapter that is rewritten leaves the table.
FIRST_EDITION: set[str] = set()
PARTS = ("The collapse", "What counteracts the collapse")
STATEMENTS = ("Theorem", "Lemma", "Proposition", "Corollary", "Definition")
BOX = re.compile(r"^> \*\*([A-Z][a-z]+)[^\n]*(?:\n>[^\n]*)*", re.M)
FOLD = re.compile(r"<details>.*?</details>", re.S)
PREDICTION = re.compile(r"^> \*\*Predict\.\*\*[^\n]*(?:\n>[^\n]*)*", re.M)
CHOICES = re.compile(r"\(a\).*\(b\)", re.S)
SETUP = "REPOSITORY ="
HIDDEN = {"hide-input", "hide-cell", "remove-cell", "remove-input"}


def main_line() -> list[str]:
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"]
    files = [chapter["file"] for part in parts if part["caption"] in PARTS for chapter in part["chapters"]]
    return [file.removeprefix("chapters/") for file in files]


def open_cells(nb: NotebookNode) -> list[NotebookNode]:
    """Code that the page shows: not folded, not the setup cell, not one that waits for an answer."""
    return [
        cell
        for cell in code_of(nb)
        if not HIDDEN & set(cell.metadata.get("tags", []))
        and SETUP not in cell.source
        and not re.match(r"(?:# Checked|rl\.derivation\()", cell.source)
        and "rl.check(" not in cell.source
    ]


def runs_of_boxes(prose: str) -> list[list[str]]:
    """Kinds of the boxes that follow each other with nothing but folds between them."""
    rest, runs, end = FOLD.sub("", prose), [], None
    for box in BOX.finditer(rest):
        follows = end is not None and not rest[end : box.start()].strip()
        runs = [*runs[:-1], [*runs[-1], box[1]]] if follows else [*runs, [box[1]]]
        end = box.end()
    return runs


def faults_of_form(nb: NotebookNode) -> list[str]:
    prose = prose_of(nb)
    main = prose.split("\n## Exercises")[0]
    runs = runs_of_boxes(main)
    boxes = [kind for run in runs for kind in run]
    lines = [len([line for line in cell.source.splitlines() if line.strip()]) for cell in open_cells(nb)]
    pictures = [cell for cell in code_of(nb) if kinds(cell) & (PICTURES | {"text/html"})]
    predictions = PREDICTION.findall(main)
    counts = {
        "boxes before the exercises, at most 14": (len(boxes), len(boxes) <= 14),
        "boxes in a row, at most 2": (max(map(len, runs), default=0), max(map(len, runs), default=0) <= 2),
        "statements, at most 6": (
            n := sum(kind in STATEMENTS for kind in boxes),
            n <= 6,
        ),
        "open lines of code, at most 60": (sum(lines), sum(lines) <= 60),
        "lines of the longest open cell, at most 15": (max(lines, default=0), max(lines, default=0) <= 15),
        "figures, at least 6": (len(pictures), len(pictures) >= 6),
        "predictions with choices, at least 5": (
            n := sum(bool(CHOICES.search(text)) for text in predictions),
            n >= 5,
        ),
        "predictions without choices, none": (
            n := sum(not CHOICES.search(text) for text in predictions),
            n == 0,
        ),
        "exercises, at least 6": (n := len(EXERCISE.findall(prose)), n >= 6),
        "hints, at least one an exercise": (n := len(re.findall(r"<summary>Hint", prose)), n >= 6),
    }
    found = [f"{what}: got {count}" for what, (count, good) in counts.items() if not good]
    found += [
        f"no section '## {head}'"
        for head in ("What we use", "What we have, what is missing, next")
        if f"## {head}" not in prose
    ]
    return found


@pytest.mark.parametrize("slug", [slug for slug in main_line() if slug not in FIRST_EDITION])
def test_a_chapter_of_the_main_line_has_the_form_of_the_book(slug):
    found = faults_of_form(read(ROOT / f"chapters/{slug}.ipynb"))
    assert not found, "\n".join(found)


def test_rewritten_chapters_left_the_table():
    assert set(main_line()) >= FIRST_EDITION
    late = {slug for slug in FIRST_EDITION if not faults_of_form(read(ROOT / f"chapters/{slug}.ipynb"))}
    assert not late, f"{late} have the form; take them out of FIRST_EDITION"


def test_what_breaks_the_form_is_named():
    box = "> **Lemma (A).** <a id='a'></a>\n> Text.\n\n"
    text = new_markdown_cell(
        f"{box}<details>\n<summary>Proof</summary>\n\nx\n\n</details>\n\n{box}{box}> **Predict.** What?\n"
    )
    code = new_code_cell("\n".join(f"x = {i}" for i in range(16)))
    found = "\n".join(faults_of_form(new_notebook(cells=[text, code])))
    assert "boxes in a row, at most 2: got 4" in found
    assert "lines of the longest open cell, at most 15: got 16" in found
    assert "predictions without choices, none: got 1" in found
    assert "no section '## What we use'" in found and "figures, at least 6: got 0" in found
