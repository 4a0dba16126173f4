"""Rules for a stored chapter that neither nbval nor the build looks at. Each yields the faults it finds."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

from scripts.run_notebooks import identifiers

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
PICTURES = {"image/png", "image/svg+xml", "image/jpeg"}
FRAMES_LIMIT = 1_000_000
# Built from parts, so that no file of the repository holds such a path itself.
MACHINE_PATH = re.compile(
    "|".join(
        ["/" + d + "/" for d in ("home", "root", "work", "tmp")]
        + [r"C:\\+Users", "site-" + "packages", "ipykernel" + r"_\d"]
    )
)
RAW_MARKUP = re.compile(r"^\s*(?:>\s*)*:{3,}|^\s*`{3,}\{|\{[a-z][a-z:+-]*\}`|^\([\w-]+\)=\s*$", re.M)
BANNED = re.compile(r"\binteract(?:ive)?\b|\bOutput\(|\bPlay\(")
EXERCISE = re.compile(r"^> \*\*Exercise \(", re.M)
RETURNS_OUTPUT = {"explore", "derivation", "check"}


def code_of(nb: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in nb.cells if cell.cell_type == "code"]


def prose_of(nb: NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")


def without_code(markdown: str) -> str:
    return re.sub(
        r"^(`{3,}|~{3,})(?!\{).*?^\1`*\s*$|(?<![`}])`[^`\n]+`(?!`)", "", markdown, flags=re.M | re.S
    )


def kinds(cell: NotebookNode) -> set[str]:
    return {kind for output in cell.outputs for kind in output.get("data", {})}


def text_of(output: NotebookNode) -> str:
    """What an output says, without the bytes of pictures."""
    parts = [output.get("text", ""), *output.get("traceback", [])]
    parts += [
        str(value)
        for kind, value in output.get("data", {}).items()
        if kind not in PICTURES - {"image/svg+xml"}
    ]
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
    return (
        len(text) >= 20
        and text.endswith(".")
        and " " in text
        and not re.search(r"\w\.(png|svg|jpe?g)\b", text)
    )


# ---------------------------------------------------------------- the rules: notebook -> faults


def run_in_order(nb):
    if nb.metadata.get("kernelspec", {}).get("name") != "python3":
        yield "the kernel is not python3"
    counts = [cell.execution_count for cell in code_of(nb)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"expected one run from top to bottom, got execution counts {counts}; run 'make run CHAPTER=NAME'"


def run_as_it_stands(nb):
    """'make run' names each cell after its text, so code that was edited later shows."""
    for cell, identifier in zip(nb.cells, identifiers(nb), strict=True):
        if cell.cell_type == "code" and cell.get("id") != identifier:
            yield f"edited after the last run, 'make run CHAPTER=NAME' runs it again: {head(cell)}"


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
            yield from (
                f"path of a machine: {match!r} in: {head(cell)}" for match in MACHINE_PATH.findall(text)
            )


def promised_outputs(nb):
    for cell in code_of(nb):
        body = parsed(cell).body
        expressions = [s.value for s in certain(body) if isinstance(s, ast.Expr)]
        if any(called(e) == "print" for e in expressions) and not any(
            o.get("name") == "stdout" for o in cell.outputs
        ):
            yield f"prints, and nothing is stored: {head(cell)}"
        draws = any(called(s.value) == "subplots" for s in certain(body) if isinstance(s, ast.Assign))
        if draws and not PICTURES & kinds(cell):
            yield f"draws, and no picture is stored: {head(cell)}"
        if body and isinstance(body[-1], ast.Expr) and not cell.source.rstrip().endswith(";"):
            value = body[-1].value
            if (
                not isinstance(value, (ast.Call, ast.Constant)) or called(value) in RETURNS_OUTPUT
            ) and not cell.outputs:
                yield f"ends in a value, and nothing is stored: {head(cell)}"
            if called(value) == "explore" and "text/html" not in kinds(cell):
                yield f"explores, and no frames are stored: {head(cell)}"


def plain_markdown(nb):
    for match in RAW_MARKUP.findall(without_code(prose_of(nb))):
        yield f"markup that Colab shows raw: {match.strip()!r}"


def no_dead_widgets(nb):
    for cell in code_of(nb):
        yield from (
            f"{match!r} is dead in the built page: {head(cell)}" for match in BANNED.findall(cell.source)
        )


def figures_are_described_and_asserted(nb):
    cells = code_of(nb)
    for before, cell in zip([None, *cells], cells):
        if PICTURES & kinds(cell):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
            if not is_sentence(alt):
                yield (
                    f"figure without a sentence as alt text, got {alt!r}; write what it shows into the cell's "
                    f"metadata, mystnb: image: alt: {head(cell)}"
                )
            if not asserts(cell):
                yield f"figure whose arrays are not asserted; assert in its cell what the caption says: {head(cell)}"
        if calls(cell, "explore") and not asserts(cell) and not (before and asserts(before)):
            yield f"slider whose arrays are asserted neither here nor in the cell before: {head(cell)}"


def captions_stand_below_figures(nb):
    for cell, below in zip(nb.cells, [*nb.cells[1:], None], strict=True):
        if cell.cell_type == "code" and PICTURES & kinds(cell):
            if below is None or not below.source.startswith("**Figure"):
                yield (
                    "figure without a caption; begin the Markdown below it with "
                    f"'**Figure.** *One sentence that says what to see.*': {head(cell)}"
                )


def exercises_are_whole(nb):
    """Four to six of them, or none: the text, its hints, a cell that checks, and a folded solution, in this order."""
    pieces = [
        (cell.cell_type, part)
        for cell in nb.cells
        for part in re.split(r"(?=^> \*\*Exercise)", cell.source, flags=re.M)
    ]
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
            yield f"exercise without a title, write '> **Exercise (Title).**': {title}"
        prose = "\n".join(part for kind, part in group if kind == "markdown")
        if not re.search(r"<details>\s*<summary>Solution</summary>.*?</details>", prose, re.S):
            yield (
                "exercise without a folded solution; add <details> with <summary>Solution</summary> "
                f"below its cell: {title}"
            )
        if not any(kind == "code" and re.search(r"\bcheck\w*\(|\bassert\b", part) for kind, part in group):
            yield f"exercise without a cell that checks; end one in rl.check(its label, answer): {title}"
        after = "\n".join(part for i, (_, part) in enumerate(group) if "code" in (k for k, _ in group[:i]))
        if "<summary>Hint" in after:
            yield f"hint below the cell for the answer; put it above the cell: {title}"
        if re.search(r"<summary>Solution</summary>\s*\d+[.)] ", prose):
            yield f"answer that is shown as the first point of a list; write `7`. instead of 7. there: {title}"


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
    for target, place in re.findall(r"\]\(([^)#\s]+)(?:#([^)\s]*))?\)", without_code(prose_of(nb))):
        if re.match(r"[a-z]+:", target):
            continue
        if not (ROOT / "chapters" / target).is_file():
            yield f"link to a file that is not there: {target}"
        elif place and place not in places_of(target):
            yield (
                f"link to a place that the site does not find: {target}#{place}; link a heading by its words, "
                "or a box or figure by its label"
            )


@cache
def places_of(name: str) -> set[str]:
    """What a link into a chapter finds on the site: headings by their words, labels of boxes and figures."""
    text = without_code(prose_of(read(ROOT / "chapters" / name)))
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    words = {re.sub(r"[^\w\s-]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return words | set(re.findall(r'^(?:> )?\*\*[^*]*\*\* <a id="([\w-]+)"></a>', text, re.M))


def formulas_in_quotations_are_on_one_line(nb):
    """JupyterLab takes formulas out before it reads Markdown: the > of a second line becomes mathematics."""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            for line in without_code(cell.source).split("\n"):
                marks = re.findall(r"(?<!\\)\$\$?", line)
                odd = marks.count("$") % 2 or marks.count("$$") % 2
                if re.match(r"\s*(?:[-*]\s+)?>", line) and odd:
                    yield f"formula that begins or ends on another line of a quotation: {line[:60]}"
                if re.match(r"\s*>.*\\(?:\[|\]|begin\{(?:align|equation))", line) and "$" not in line:
                    yield f"formula without dollars in a quotation: {line[:60]}"


def links_find_their_place(nb):
    """Outside of the book only an anchor is a target: headings have other names in each program."""
    text = without_code(prose_of(nb))
    places = re.findall(r'<a id="([\w-]+)"></a>', text)
    yield from (f"place that is named twice: {p}" for p in sorted({p for p in places if places.count(p) > 1}))
    for goal in sorted(set(re.findall(r"\]\(#([^)\s]+)\)", text)) - set(places)):
        yield f'link without a target: put <a id="{goal}"></a> there'


def labels_are_targets(nb):
    for label in re.findall(r"^>.*<!--\s*([\w-]+)", prose_of(nb), re.M):
        yield f'label in a comment, which no link finds: write <a id="{label}"></a>'
    for cell in nb.cells:
        if cell.cell_type == "markdown" and re.search(r'^<a id="[^"]+"></a>\s*\Z', cell.source, re.M):
            yield f"a target not in the cell of its heading: move it there: {cell.source.strip()[-60:]}"
    for target, heading in re.findall(r'^<a id="([\w-]+)"></a>\n+#+ (.+)', prose_of(nb), re.M):
        slug = "-".join(re.sub(r"[^\w\s-]", "", heading.lower()).split())
        if target != slug:
            yield f"the site gives this heading the target {slug!r}, not {target!r}: rename one: {heading}"


def hidden_cells_are_folded(nb):
    """The book's tag means nothing elsewhere: JupyterLab and Colab have their own words."""
    for cell in code_of(nb):
        hidden = bool({"hide-input", "hide-cell"} & set(cell.metadata.get("tags", [])))
        folded = cell.metadata.get("jupyter", {}).get("source_hidden", False)
        if not hidden == folded == (cell.metadata.get("cellView") == "form"):
            yield f"hidden in one program and open in another: {head(cell)}"


def a_badge_stands_on_top(nb):
    first = nb.cells[0]
    link = (
        r"\]\(https://colab\.research\.google\.com/github/[\w.-]+/[\w.-]+/blob/main/chapters/[\w-]+\.ipynb\)$"
    )
    if "colab-badge" not in first.metadata.get("tags", []) or not re.search(link, first.source):
        yield "no Colab badge in a first cell with the tag colab-badge; copy the first cell of another chapter"


def pictures_need_no_trust(nb):
    """What a notebook from elsewhere shows: PNG for each figure, one picture and one sentence for each slider."""
    for cell in code_of(nb):
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/svg+xml" in data and "image/png" not in data:
                yield f"figure without a PNG: {head(cell)}"
            if "rank-explore" in (markup := data.get("text/html", "")):
                left = re.sub(r"<template.*?</template>", "", markup, flags=re.S)
                if (
                    len(re.findall(r'<img alt="[^"]+" src="data:image/png;base64,', left)) != 1
                    or "<svg" in left
                ):
                    yield f"slider that shows not exactly one picture: {head(cell)}"
                if re.search(r"<(?:input|fieldset|legend|button)", left):
                    yield f"slider whose controls are left when its markup is cleaned: {head(cell)}"


def the_notebook_is_light(nb):
    if (size := len(nbformat.writes(nb).encode())) > FRAMES_LIMIT:
        yield f"the notebook takes {size} bytes, expected at most {FRAMES_LIMIT}"


RULES: list[Callable] = [
    run_in_order,
    run_as_it_stands,
    clean_outputs,
    no_machine_paths,
    promised_outputs,
    plain_markdown,
    no_dead_widgets,
    figures_are_described_and_asserted,
    captions_stand_below_figures,
    the_notebook_is_light,
    formulas_in_quotations_are_on_one_line,
    links_find_their_place,
    labels_are_targets,
    hidden_cells_are_folded,
    a_badge_stands_on_top,
    pictures_need_no_trust,
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
    entries = re.findall(
        r"^@\w+\{([\w-]+),(.*?)(?=^@|\Z)", (ROOT / "references.bib").read_text(), re.M | re.S
    )
    return {
        key: simple(re.search(r"\btitle\s*=\s*[{\"](.*?)[}\"]\s*,?\s*(?:\w+\s*=|\}\s*$)", body, re.S)[1])
        for key, body in entries
    }


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)
