"""Each chapter is run, clean, checked, and readable as plain Markdown; each planted fault is noticed."""

import copy
import json
import re
from collections.abc import Callable

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output

from tests.book.notebook_rules import (
    CHAPTERS,
    EXERCISE,
    FRAMES_LIMIT,
    PICTURES,
    RULES,
    a_badge_stands_on_top,
    calls,
    captions_stand_below_figures,
    clean_outputs,
    code_of,
    exercises_are_whole,
    faults,
    figures_are_described_and_asserted,
    folds_are_well_formed,
    formulas_in_quotations_are_on_one_line,
    hidden_cells_are_folded,
    kinds,
    labels_are_targets,
    links_find_chapters,
    links_find_their_place,
    no_dead_widgets,
    no_machine_paths,
    pictures_need_no_trust,
    plain_markdown,
    promised_outputs,
    prose_of,
    read,
    references_agree,
    run_as_it_stands,
    run_in_order,
    the_notebook_is_light,
)

# ---------------------------------------------------------------- the chapters


def test_there_are_chapters():
    assert CHAPTERS, "expected chapters/*.ipynb, found none"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_chapter_has_no_fault(path):
    nb = read(path)
    nbformat.validate(nb)
    found = faults(nb)
    assert not found, "\n".join(found)


def setup_text(nb: NotebookNode) -> str:
    """The first code cell down to the line that installs; all of it if none does."""
    first = code_of(nb)[0].source
    above, install, below = first.partition("%pip install")
    return above + install + below.partition("\n")[0]


def test_every_chapter_with_code_begins_with_the_same_setup():
    setups = {path.stem: setup_text(read(path)) for path in CHAPTERS if code_of(read(path))}
    assert setups and len(set(setups.values())) == 1, (
        f"the setup cells differ: {json.dumps(setups, indent=1)}"
    )
    text = next(iter(setups.values()))
    assert text.startswith("# Setup.") and text.splitlines()[-1].strip().startswith("%pip install")


# ---------------------------------------------------------------- each fault, planted


def chapter_with(wanted: Callable[[NotebookNode], bool]) -> NotebookNode:
    for path in CHAPTERS:
        nb = read(path)
        if wanted(nb):
            return nb
    raise AssertionError("no chapter to plant this fault in")


def first(nb: NotebookNode, wanted: Callable[[NotebookNode], bool]) -> NotebookNode | None:
    return next((cell for cell in code_of(nb) if wanted(cell)), None)


def prints(cell):
    return any(o.get("name") == "stdout" for o in cell.outputs) and re.search("^print", cell.source, re.M)


def pictured(cell):
    return PICTURES & kinds(cell)


def code_cell(cell):
    return True


def explores(cell):
    return calls(cell, "explore") and "text/html" in kinds(cell)


def cites(nb):
    return "(#cite-" in prose_of(nb)


def exercised(nb):
    return EXERCISE.search(prose_of(nb))


def edit_prose(nb, pattern: str, new: str, count: int = 0):
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(pattern, new, cell.source, count=count, flags=re.M)


def unrun(nb):
    for cell in code_of(nb):
        cell.execution_count, cell.outputs = None, []


def out_of_order(nb):
    a, b = code_of(nb)[:2]
    a.execution_count, b.execution_count = b.execution_count, a.execution_count


def run_twice(nb):
    for cell in code_of(nb):
        cell.execution_count += 7


def add_output(output):
    def plant(nb):
        code_of(nb)[-1].outputs.append(output)

    return plant


def add_text(text):
    def plant(nb):
        next(c for c in nb.cells if c.cell_type == "markdown").source += f"\n\n{text}\n"

    return plant


def add_code(source):
    def plant(nb):
        nb.cells.append(new_code_cell(source, execution_count=len(code_of(nb)) + 1))

    return plant


def edit_cell(wanted, change):
    def plant(nb):
        change(first(nb, wanted))

    return plant


def drop_asserts(nb, wanted):
    cells = code_of(nb)
    at = cells.index(first(nb, wanted))
    for cell in cells[max(0, at - 1) : at + 1]:
        cell.source = re.sub(r"\bassert\b", "bool", cell.source).replace("bool ", "_ = ")


def grow_frames(cell):
    next(o for o in cell.outputs if "text/html" in o.get("data", {})).data["text/html"] += " " * FRAMES_LIMIT


def drop_kind(cell, kind):
    for output in cell.outputs:
        output.get("data", {}).pop(kind, None)


def unfold_frame(cell):
    data = next(o for o in cell.outputs if "text/html" in o.get("data", {})).data
    data["text/html"] = re.sub(
        r"<template[^>]*><!--(<svg.*?)--></template>", r"\1", data["text/html"], count=1, flags=re.S
    )


def drop_exercises(nb):
    seen = 0
    for cell in list(nb.cells):
        if cell.cell_type == "markdown" and EXERCISE.search(cell.source):
            seen += 1
            if seen > 3:
                cell.source = re.sub(r"^> \*\*Exercise", "> **Problem", cell.source, flags=re.M)


def drop_checks(nb):
    at = next(
        i for i, cell in enumerate(nb.cells) if cell.cell_type == "markdown" and EXERCISE.search(cell.source)
    )
    nb.cells[at:] = [cell for cell in nb.cells[at:] if cell.cell_type == "markdown"]


def html(text):
    return new_output("execute_result", data={"text/html": text, "text/plain": "x"}, execution_count=1)


def code(nb):
    return len(code_of(nb)) > 1


def has(wanted):
    return lambda nb: first(nb, wanted)


MACHINE = "/" + "home/someone/book"
PLANTED = [
    ("unrun notebook", run_in_order, code, unrun),
    ("unrun notebook has no outputs", promised_outputs, has(prints), unrun),
    ("out-of-order count", run_in_order, code, out_of_order),
    ("run in a kernel that ran before", run_in_order, code, run_twice),
    (
        "code edited after the run",
        run_as_it_stands,
        code,
        edit_cell(code_cell, lambda c: c.update(source="x = 1")),
    ),
    (
        "no caption",
        captions_stand_below_figures,
        has(pictured),
        lambda nb: edit_prose(nb, r"^\*\*Figure", "Figure"),
    ),
    ("other kernel", run_in_order, code, lambda nb: nb.metadata.kernelspec.update(name="conda-env")),
    ("missing print", promised_outputs, has(prints), edit_cell(prints, lambda c: c.update(outputs=[]))),
    ("missing picture", promised_outputs, has(pictured), edit_cell(pictured, lambda c: c.update(outputs=[]))),
    ("missing frames", promised_outputs, has(explores), edit_cell(explores, lambda c: c.update(outputs=[]))),
    ("missing print in a loop", promised_outputs, code, add_code("for i in range(3):\n    print(i)")),
    ("missing value", promised_outputs, code, add_code("x = 1\nx")),
    (
        "stored error",
        clean_outputs,
        code,
        add_output(new_output("error", ename="E", evalue="", traceback=[])),
    ),
    ("stderr", clean_outputs, code, add_output(new_output("stream", name="stderr", text="Warning"))),
    (
        "widget view",
        clean_outputs,
        code,
        add_output(new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {}})),
    ),
    ("widget state", clean_outputs, code, lambda nb: nb.metadata.update(widgets={})),
    (
        "path in an output",
        no_machine_paths,
        code,
        add_output(new_output("stream", name="stdout", text=MACHINE)),
    ),
    ("path in an HTML output", no_machine_paths, code, add_output(html(f"<p>{MACHINE}</p>"))),
    ("path in code", no_machine_paths, code, add_code(f"path = '{MACHINE}'")),
    ("Windows path", no_machine_paths, code, add_code("path = 'C:" + "\\\\Users\\\\someone'")),
    ("path in prose", no_machine_paths, code, add_text(f"see {MACHINE}")),
    ("colon directive", plain_markdown, code, add_text(":::{note}\ntext\n:::")),
    ("backtick directive", plain_markdown, code, add_text("```{note}\ntext\n```")),
    ("role", plain_markdown, code, add_text("see {prf:ref}`thm-a`")),
    ("citation role", plain_markdown, code, add_text("see {cite:p}`dong2021attention`")),
    ("equation role", plain_markdown, code, add_text("see {eq}`eq-a`")),
    ("label", plain_markdown, code, add_text("(sec-scores)=\n## Scores")),
    ("interact", no_dead_widgets, code, add_code("from ipywidgets import interact")),
    ("output widget", no_dead_widgets, code, add_code("out = widgets.Output()")),
    ("player widget", no_dead_widgets, code, add_code("play = widgets.Play(max=3)")),
    (
        "no alt text",
        figures_are_described_and_asserted,
        has(pictured),
        edit_cell(pictured, lambda c: c.metadata.pop("mystnb")),
    ),
    (
        "file name as alt text",
        figures_are_described_and_asserted,
        has(pictured),
        edit_cell(pictured, lambda c: c.metadata.mystnb.image.update(alt="the picture in a1b2c3d4.png.")),
    ),
    (
        "figure not asserted",
        figures_are_described_and_asserted,
        has(pictured),
        lambda nb: drop_asserts(nb, pictured),
    ),
    (
        "slider not asserted",
        figures_are_described_and_asserted,
        has(explores),
        lambda nb: drop_asserts(nb, explores),
    ),
    ("large frames", the_notebook_is_light, has(explores), edit_cell(explores, grow_frames)),
    ("formula on lines", formulas_in_quotations_are_on_one_line, code, add_text("> so\n>\n> $$\n> a\n> $$")),
    ("inline formula on lines", formulas_in_quotations_are_on_one_line, code, add_text("> so $a +\n> b$")),
    (
        "bare environment",
        formulas_in_quotations_are_on_one_line,
        code,
        add_text("> \\begin{align}\n> a\n> \\end{align}"),
    ),
    (
        "link to a heading",
        links_find_their_place,
        code,
        add_text("[there](#some-heading)\n\n## Some heading"),
    ),
    ("two places", links_find_their_place, code, add_text('<a id="x-y"></a>\n\n<a id="x-y"></a>')),
    ("label in a comment", labels_are_targets, code, add_text("> **Theorem (A).** <!-- thm-a --> It is.")),
    ("open hidden cell", hidden_cells_are_folded, code, lambda nb: code_of(nb)[0].metadata.pop("jupyter")),
    ("no form in Colab", hidden_cells_are_folded, code, lambda nb: code_of(nb)[0].metadata.pop("cellView")),
    ("no badge", a_badge_stands_on_top, code, lambda nb: nb.cells.pop(0)),
    (
        "figure without PNG",
        pictures_need_no_trust,
        has(pictured),
        edit_cell(pictured, lambda c: drop_kind(c, "image/png")),
    ),
    ("two pictures", pictures_need_no_trust, has(explores), edit_cell(explores, unfold_frame)),
    ("three exercises", exercises_are_whole, exercised, drop_exercises),
    ("exercise without check", exercises_are_whole, exercised, drop_checks),
    (
        "exercise without solution",
        exercises_are_whole,
        exercised,
        lambda nb: edit_prose(nb, "<summary>Solution", "<summary>Hint"),
    ),
    (
        "hint below the cell for the answer",
        exercises_are_whole,
        exercised,
        lambda nb: edit_prose(
            nb,
            "^<details>\n<summary>Solution",
            "<details>\n<summary>Hint 3</summary>\n\na\n\n</details>\n\n\\g<0>",
        ),
    ),
    (
        "answer that is a list",
        exercises_are_whole,
        exercised,
        lambda nb: edit_prose(nb, "<summary>Solution</summary>\n", "\\g<0>\n7. And why.\n"),
    ),
    (
        "exercise without title",
        exercises_are_whole,
        exercised,
        lambda nb: edit_prose(nb, r"Exercise \([^)]*\)", "Exercise"),
    ),
    (
        "open fold",
        folds_are_well_formed,
        code,
        add_text("<details open>\n<summary>A</summary>\n\nb\n\n</details>"),
    ),
    ("fold not closed", folds_are_well_formed, code, add_text("<details>\n<summary>A</summary>\n\nb")),
    (
        "fold without blank lines",
        folds_are_well_formed,
        code,
        add_text("<details>\n<summary>A</summary>\n$b$\n</details>"),
    ),
    (
        "citation without entry",
        references_agree,
        cites,
        lambda nb: edit_prose(nb, r'<a id="cite-[\w-]+"></a>', ""),
    ),
    (
        "entry without citation",
        references_agree,
        cites,
        lambda nb: edit_prose(nb, r"\(#cite-[\w-]+\)", "(#references)"),
    ),
    (
        "unknown key",
        references_agree,
        cites,
        lambda nb: edit_prose(nb, r"cite-\w+", "cite-nobody1900nothing"),
    ),
    (
        "other title",
        references_agree,
        cites,
        lambda nb: edit_prose(nb, r"(</a>[^(]*\(\d{4}\)\. )\S+", r"\1Whatever"),
    ),
    ("dead place", links_find_chapters, code, add_text("[there](one-head.ipynb#no-such-place)")),
    ("dead link", links_find_chapters, code, add_text("[Chapter 99](no-such-chapter.ipynb#there)")),
]


@pytest.mark.parametrize("rule,wanted,plant", [p[1:] for p in PLANTED], ids=[p[0] for p in PLANTED])
def test_a_planted_fault_is_reported(rule, wanted, plant):
    whole = chapter_with(lambda nb: wanted(nb) and not list(rule(nb)))
    broken = copy.deepcopy(whole)
    plant(broken)
    assert list(rule(broken)), "the fault was not noticed"
    assert f"{rule.__name__}: " in "\n".join(faults(broken))


def test_every_rule_has_a_planted_fault():
    assert {p[1] for p in PLANTED} == set(RULES)


@pytest.mark.parametrize(
    "markdown",
    [
        "a formula $\\{x\\}$ and $\\frac{a}{b}$ and `code`",
        "```python\nx = {1: 2}\n```",
        "the words `{cite}` and `:::` in code",
        '> **Theorem (A).** <a id="thm-a"></a> text',
        "time 12:30, (see) = nothing",
    ],
)
def test_plain_text_is_not_taken_for_markup(markdown):
    nb = NotebookNode(cells=[NotebookNode(cell_type="markdown", source=markdown)])
    assert list(plain_markdown(nb)) == []


@pytest.mark.parametrize(
    "source,outputs",
    [
        ("def f():\n    print(1)", []),
        ("if unlucky:\n    print(1)", []),
        ("x = 1;", []),
        ("x;", []),
        ("rl.use_book_style()", []),
        ("'''Words only.'''", []),
        ("%pip list", []),
        ("x", [html("1")]),
    ],
)
def test_a_cell_that_promises_nothing_may_be_silent(source, outputs):
    nb = NotebookNode(cells=[new_code_cell(source, outputs=outputs)])
    assert list(promised_outputs(nb)) == []
