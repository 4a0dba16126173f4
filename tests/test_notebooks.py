"""What neither nbval nor the build looks at: each chapter is run, clean, checked, and readable as plain Markdown."""

import ast
import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_output

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
PICTURES = {"image/png", "image/svg+xml", "image/jpeg"}
FRAMES_LIMIT = 1_000_000
# Built from parts, so that no file of the repository holds such a path itself.
MACHINE_PATH = re.compile("|".join(["/" + d + "/" for d in ("home", "root", "work", "tmp")] + [r"C:\\+Users", "site-" + "packages", "ipykernel" + r"_\d"]))
RAW_MARKUP = re.compile(r"^\s*(?:>\s*)*:{3,}|^\s*`{3,}\{|\{[a-z][a-z:+-]*\}`|^\([\w-]+\)=\s*$", re.M)
BANNED = re.compile(r"\binteract(?:ive)?\b|\bOutput\(|\bPlay\(")
EXERCISE = re.compile(r"^> \*\*Exercise \(", re.M)
RETURNS_OUTPUT = {"explore", "derivation", "check"}


def code_of(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def prose_of(nb: NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def without_code(markdown: str) -> str:
    return re.sub(r"^(`{3,}|~{3,})(?!\{).*?^\1`*\s*$|(?<![`}])`[^`\n]+`(?!`)", "", markdown, flags=re.M | re.S)


def kinds(cell: NotebookNode) -> set[str]:
    return {kind for output in cell.outputs for kind in output.get("data", {})}


def text_of(output: NotebookNode) -> str:
    """What an output says, without the bytes of pictures."""
    parts = [output.get("text", ""), *output.get("traceback", [])]
    parts += [str(value) for kind, value in output.get("data", {}).items() if kind not in PICTURES - {"image/svg+xml"}]
    return re.sub(r"data:image/[\w+]+;base64,[A-Za-z0-9+/=]*", "", "\n".join(parts))


def parsed(cell: NotebookNode) -> ast.Module:
    return ast.parse(TransformerManager().transform_cell(cell.source))


def called(node: ast.AST) -> str:
    """The last name of a called function, '' for what is no call."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", ""))


def certain(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that a run of the cell reaches for sure, or for every non-empty loop."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.For, ast.With, ast.Try)):
            yield from certain(statement.body)


def asserts(cell: NotebookNode) -> bool:
    return any(isinstance(node, ast.Assert) for node in ast.walk(parsed(cell)))


def calls(cell: NotebookNode, name: str) -> bool:
    return any(called(node) == name for node in ast.walk(parsed(cell)))


def head(cell: NotebookNode) -> str:
    return cell.source.partition("\n")[0][:60]


def is_sentence(text: str) -> bool:
    return len(text) >= 20 and text.endswith(".") and " " in text and not re.search(r"\w\.(png|svg|jpe?g)\b", text)


# ---------------------------------------------------------------- the rules: notebook -> faults


def run_in_order(nb):
    if nb.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "the kernel is not python3"
    counts = [cell.execution_count for cell in code_of(nb)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"expected one run from top to bottom, got execution counts {counts}; run 'make run'"


def clean_outputs(nb):
    for cell in code_of(nb):
        for output in cell.outputs:
            if output.output_type == "error":
                yield f"stored error {output.ename} in: {head(cell)}"
            if output.get("name") == "stderr":
                yield f"output on stderr in: {head(cell)}"
            if any("widget" in kind for kind in output.get("data", {})):
                yield f"stored widget in: {head(cell)}"
    if "widgets" in nb.metadata:
        yield "stored widget state"


def no_machine_paths(nb):
    for cell in nb.cells:
        for text in [cell.source, *map(text_of, cell.get("outputs", []))]:
            yield from (f"path of a machine: {match!r} in: {head(cell)}" for match in MACHINE_PATH.findall(text))


def promised_outputs(nb):
    for cell in code_of(nb):
        body = parsed(cell).body
        expressions = [s.value for s in certain(body) if isinstance(s, ast.Expr)]
        if any(called(e) == "print" for e in expressions) and not any(o.get("name") == "stdout" for o in cell.outputs):
            yield f"prints, and nothing is stored: {head(cell)}"
        draws = any(called(s.value) == "subplots" for s in certain(body) if isinstance(s, ast.Assign))
        if draws and not PICTURES & kinds(cell):
            yield f"draws, and no picture is stored: {head(cell)}"
        if body and isinstance(body[-1], ast.Expr) and not cell.source.rstrip().endswith(";"):
            value = body[-1].value
            if (not isinstance(value, (ast.Call, ast.Constant)) or called(value) in RETURNS_OUTPUT) and not cell.outputs:
                yield f"ends in a value, and nothing is stored: {head(cell)}"
            if called(value) == "explore" and "text/html" not in kinds(cell):
                yield f"explores, and no frames are stored: {head(cell)}"


def plain_markdown(nb):
    for match in RAW_MARKUP.findall(without_code(prose_of(nb))):
        yield f"markup that Colab shows raw: {match.strip()!r}"


def no_dead_widgets(nb):
    for cell in code_of(nb):
        yield from (f"{match!r} is dead in the built page: {head(cell)}" for match in BANNED.findall(cell.source))


def figures_are_described_and_asserted(nb):
    cells = code_of(nb)
    for before, cell in zip([None, *cells], cells):
        if PICTURES & kinds(cell):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            if not is_sentence(alt):
                yield f"figure without a sentence as alt text, got {alt!r}: {head(cell)}"
            if not asserts(cell):
                yield f"figure whose arrays are not asserted: {head(cell)}"
        if calls(cell, "explore") and not asserts(cell) and not (before and asserts(before)):
            yield f"slider whose arrays are asserted neither here nor in the cell before: {head(cell)}"


def frames_fit(nb):
    size = sum(len(o.data["text/html"].encode()) for c in code_of(nb) for o in c.outputs if "text/html" in o.get("data", {}))
    if size > FRAMES_LIMIT:
        yield f"frames take {size} bytes, expected at most {FRAMES_LIMIT}"


def exercises_are_whole(nb):
    """Four to six of them, or none. After each stand a cell that checks and a folded solution."""
    pieces = [(cell.cell_type, part) for cell in nb.cells for part in re.split(r"(?=^> \*\*Exercise)", cell.source, flags=re.M)]
    groups = []
    for kind, part in pieces:
        if kind == "markdown" and part.startswith("> **Exercise"):
            groups.append([])
        if groups:
            groups[-1].append((kind, part))
    if groups and not 4 <= len(groups) <= 6:
        yield f"{len(groups)} exercises, expected 4 to 6"
    for group in groups:
        title = group[0][1].partition("\n")[0]
        if not EXERCISE.match(title):
            yield f"exercise without a title: {title}"
        prose = "\n".join(part for kind, part in group if kind == "markdown")
        if not re.search(r"<details>\s*<summary>Solution</summary>.*?</details>", prose, re.S):
            yield f"exercise without a folded solution: {title}"
        if not any(kind == "code" and re.search(r"\bcheck\w*\(|\bassert\b", part) for kind, part in group):
            yield f"exercise without a cell that checks: {title}"


def folds_are_well_formed(nb):
    """Blank lines around the Markdown of a fold, and as many ends as beginnings, in each cell."""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            if cell.source.count("<details") != cell.source.count("</details>"):
                yield f"fold that is not closed in its cell: {head(cell)}"
            if re.search(r"</summary>[^\n]*\n[^\n]*\S|\S[^\n]*\n</details>", cell.source):
                yield f"fold without blank lines around its text: {head(cell)}"
            if re.search(r"<details[^>]*\bopen\b", cell.source):
                yield f"fold that is open: {head(cell)}"


def references_agree(nb):
    text, bib = prose_of(nb), titles()
    listed = dict(re.findall(r'<a id="cite-([\w-]+)"></a>((?:.|\n(?!\s*\n|- ))*)', text))
    cited = set(re.findall(r"\(#cite-([\w-]+)\)", text))
    yield from (f"cited and not listed: {key}" for key in sorted(cited - set(listed)))
    yield from (f"listed and not cited: {key}" for key in sorted(set(listed) - cited))
    for key, entry in listed.items():
        if key not in bib:
            yield f"not in references.bib: {key}"
        elif bib[key] not in simple(entry):
            yield f"another title than in references.bib: {key}"


def links_find_chapters(nb):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", without_code(prose_of(nb))):
        if not re.match(r"[a-z]+:", target) and not (ROOT / "chapters" / target).is_file():
            yield f"link to a file that is not there: {target}"


RULES: list[Callable] = [
    run_in_order,
    clean_outputs,
    no_machine_paths,
    promised_outputs,
    plain_markdown,
    no_dead_widgets,
    figures_are_described_and_asserted,
    frames_fit,
    exercises_are_whole,
    folds_are_well_formed,
    references_agree,
    links_find_chapters,
]


def faults(nb: NotebookNode) -> list[str]:
    return [f"{rule.__name__}: {fault}" for rule in RULES for fault in rule(nb)]


def simple(text: str) -> str:
    return re.sub(r"\W+", " ", re.sub(r"[{}*]", "", text)).strip().lower()


def titles() -> dict[str, str]:
    """Key -> title of each entry of references.bib, in small letters, without braces and punctuation."""
    entries = re.findall(r"^@\w+\{([\w-]+),(.*?)(?=^@|\Z)", (ROOT / "references.bib").read_text(), re.M | re.S)
    return {key: simple(re.search(r"\btitle\s*=\s*[{\"](.*?)[}\"]\s*,?\s*(?:\w+\s*=|\}\s*$)", body, re.S)[1]) for key, body in entries}


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


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
    assert setups and len(set(setups.values())) == 1, f"the setup cells differ: {json.dumps(setups, indent=1)}"
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


def drop_exercises(nb):
    seen = 0
    for cell in list(nb.cells):
        if cell.cell_type == "markdown" and EXERCISE.search(cell.source):
            seen += 1
            if seen > 3:
                cell.source = re.sub(r"^> \*\*Exercise", "> **Problem", cell.source, flags=re.M)


def drop_checks(nb):
    at = next(i for i, cell in enumerate(nb.cells) if cell.cell_type == "markdown" and EXERCISE.search(cell.source))
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
    ("other kernel", run_in_order, code, lambda nb: nb.metadata.kernelspec.update(name="conda-env")),
    ("missing print", promised_outputs, has(prints), edit_cell(prints, lambda c: c.update(outputs=[]))),
    ("missing picture", promised_outputs, has(pictured), edit_cell(pictured, lambda c: c.update(outputs=[]))),
    ("missing frames", promised_outputs, has(explores), edit_cell(explores, lambda c: c.update(outputs=[]))),
    ("missing print in a loop", promised_outputs, code, add_code("for i in range(3):\n    print(i)")),
    ("missing value", promised_outputs, code, add_code("x = 1\nx")),
    ("stored error", clean_outputs, code, add_output(new_output("error", ename="E", evalue="", traceback=[]))),
    ("stderr", clean_outputs, code, add_output(new_output("stream", name="stderr", text="Warning"))),
    ("widget view", clean_outputs, code, add_output(new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {}}))),
    ("widget state", clean_outputs, code, lambda nb: nb.metadata.update(widgets={})),
    ("path in an output", no_machine_paths, code, add_output(new_output("stream", name="stdout", text=MACHINE))),
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
    ("no alt text", figures_are_described_and_asserted, has(pictured), edit_cell(pictured, lambda c: c.metadata.pop("mystnb"))),
    (
        "file name as alt text",
        figures_are_described_and_asserted,
        has(pictured),
        edit_cell(pictured, lambda c: c.metadata.mystnb.image.update(alt="the picture in a1b2c3d4.png.")),
    ),
    ("figure not asserted", figures_are_described_and_asserted, has(pictured), lambda nb: drop_asserts(nb, pictured)),
    ("slider not asserted", figures_are_described_and_asserted, has(explores), lambda nb: drop_asserts(nb, explores)),
    ("large frames", frames_fit, has(explores), edit_cell(explores, grow_frames)),
    ("three exercises", exercises_are_whole, exercised, drop_exercises),
    ("exercise without check", exercises_are_whole, exercised, drop_checks),
    ("exercise without solution", exercises_are_whole, exercised, lambda nb: edit_prose(nb, "<summary>Solution", "<summary>Hint")),
    ("exercise without title", exercises_are_whole, exercised, lambda nb: edit_prose(nb, r"Exercise \([^)]*\)", "Exercise")),
    ("open fold", folds_are_well_formed, code, add_text("<details open>\n<summary>A</summary>\n\nb\n\n</details>")),
    ("fold not closed", folds_are_well_formed, code, add_text("<details>\n<summary>A</summary>\n\nb")),
    ("fold without blank lines", folds_are_well_formed, code, add_text("<details>\n<summary>A</summary>\n$b$\n</details>")),
    ("citation without entry", references_agree, cites, lambda nb: edit_prose(nb, r'<a id="cite-[\w-]+"></a>', "")),
    ("entry without citation", references_agree, cites, lambda nb: edit_prose(nb, r"\(#cite-[\w-]+\)", "(#references)")),
    ("unknown key", references_agree, cites, lambda nb: edit_prose(nb, r"cite-\w+", "cite-nobody1900nothing")),
    ("other title", references_agree, cites, lambda nb: edit_prose(nb, r"(</a>[^(]*\(\d{4}\)\. )\S+", r"\1Whatever")),
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
        "> **Theorem (A).** <!-- thm-a --> text",
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
        ("ranklib.use_book_style()", []),
        ("'''Words only.'''", []),
        ("%pip list", []),
        ("x", [html("1")]),
    ],
)
def test_a_cell_that_promises_nothing_may_be_silent(source, outputs):
    nb = NotebookNode(cells=[new_code_cell(source, outputs=outputs)])
    assert list(promised_outputs(nb)) == []
