"""Numbers of chapters and figures, which ``_toc.yml`` and the order of captions give: none is typed by hand.

In the notebook, where there are no numbers, and in the book:

  [*Skip connections*](skip-connections.ipynb#two-sides)  becomes "Chapter 7": a link whose text is the title
  **Figure.** *The cliff.*                                becomes "Figure 7.1."
  **Figure (Cliff).** <a id="fig-cliff"></a> *The cliff.*     becomes "Figure 7.1.", with a label
  [Figure (Cliff)](#fig-cliff)                            becomes "Figure 7.1", linked, from any chapter
  chapter `skip-connections`                              becomes "Chapter 7", in outputs: sources of derivations
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from sphinxext.plain_markdown import split_fences

TITLE = re.compile(r"^# (.+)$", re.M)
CAPTION = re.compile(r"^\*\*Figure(?: \(([^)]+)\))?\.\*\*(?: <a id=\"(fig-[\w-]+)\"></a>)?", re.M)
CHAPTER_LINK = re.compile(r"\[\*([^\]*]+)\*\]\(([\w-]+)\.ipynb((?:#[\w-]+)?)\)")
FIGURE_LINK = re.compile(r"\[[^\]]+\]\((?:[\w-]+\.ipynb)?#(fig-[\w-]+)\)")
SLUG = re.compile(r"chapter `([\w-]+)`")


@dataclass(frozen=True)
class Numbers:
    """Number and title of each chapter by its slug, and the number of each labelled figure."""

    chapters: dict[str, int]
    titles: dict[str, str]
    figures: dict[str, str]


def prose(notebook: dict) -> str:
    """The Markdown of a notebook, without code fences."""
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join(part for cell in cells for is_code, part in split_fences(cell) if not is_code)


def read_numbers(root: Path) -> Numbers:
    """The numbers of the book in ``root``: chapters in the order of ``_toc.yml``, figures in that of captions."""
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    listed = [entry["file"] for part in toc["parts"] if part.get("numbered") for entry in part["chapters"]]
    chapters = {Path(file).name: number for number, file in enumerate(listed, 1)}
    texts = {path.stem: prose(json.loads(path.read_text())) for path in root.glob("chapters/*.ipynb")}
    if missing := sorted(set(chapters) - set(texts)):
        raise FileNotFoundError(
            f"_toc.yml: expected a notebook for each chapter, got none for {', '.join(missing)}; add "
            f"chapters/{missing[0]}.ipynb or take the line out"
        )
    figures = {
        match[2]: f"{number}.{place}"
        for slug, number in chapters.items()
        for place, match in enumerate(CAPTION.finditer(texts[slug]), 1)
    }
    titles = {slug: found[1] for slug, text in texts.items() if (found := TITLE.search(text))}
    return Numbers(chapters, titles, {label: number for label, number in figures.items() if label})


def numbering(slug: str, numbers: Numbers) -> Callable[[str], str]:
    """A function that writes the numbers into the cells of one chapter, given in their order."""
    place = 0

    def caption(match: re.Match) -> str:
        nonlocal place
        place += 1
        name = f" ({match[1]})" if match[1] else ""
        target = f"({match[2]})=\n" if match[2] else ""
        return f"{target}**Figure {numbers.chapters[slug]}.{place}{name}.**"

    def chapter_link(match: re.Match) -> str:
        text, target, anchor = match.groups()
        if target not in numbers.chapters:
            return match[0]
        if (text := " ".join(re.sub(r"\n> ?", " ", text).split())) != numbers.titles[target]:
            raise ValueError(
                f"{slug}: expected the title of {target}, {numbers.titles[target]!r}, between the asterisks of a link "
                f"to it, got {text!r}; write the title, or leave the asterisks out"
            )
        return f"[Chapter {numbers.chapters[target]}]({target}.ipynb{anchor})"

    def figure_link(match: re.Match) -> str:
        if match[1] not in numbers.figures:
            raise ValueError(
                f"{slug}: expected a figure with the label {match[1]}, got none; write "
                f"'**Figure (Name).** <a id=\"{match[1]}\"></a>' before its caption"
            )
        return f"[Figure {numbers.figures[match[1]]}](#{match[1]})"

    def write(text: str) -> str:
        parts = []
        for is_code, part in split_fences(text):
            if not is_code:
                part = CAPTION.sub(caption, part) if slug in numbers.chapters else part
                part = FIGURE_LINK.sub(figure_link, CHAPTER_LINK.sub(chapter_link, part))
            parts.append(part)
        return "".join(parts)

    return write


def name_chapters(text: str, numbers: Numbers) -> str:
    """Slugs of chapters in an output, replaced by their numbers."""
    return SLUG.sub(lambda m: f"Chapter {numbers.chapters[m[1]]}" if m[1] in numbers.chapters else m[0], text)


def on_source_read(app, docname, source):
    root, path = Path(app.srcdir), Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    app.env.note_dependency(str(root / "_toc.yml"))  # a page is read again when numbers may have changed
    numbers = read_numbers(root)
    write, notebook = numbering(path.stem, numbers), json.loads(source[0])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = write("".join(cell["source"]))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "text/markdown" in data:
                data["text/markdown"] = name_chapters("".join(data["text/markdown"]), numbers)
    source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", on_source_read, priority=400)  # before plain_markdown
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
