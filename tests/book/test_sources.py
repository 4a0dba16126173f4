"""A docstring that names a statement of the book names one that is there; notation matches the code."""

import re
from pathlib import Path

import nbformat

import ranklib

ROOT = Path(__file__).parents[2]
CHAPTER_FILES = {
    "1": "attention-and-residual",
    "2": "softmax-shift-invariance",
    "3": "path-decomposition",
    "4": "one-head",
    "5": "many-heads",
    "6": "where-it-breaks",
    "7": "skip-connections",
    "8": "mlps",
    "9": "layernorm",
    "10": "masks-and-positions",
    "11": "real-transformers",
    "12": "measure-your-own-model",
    "13": "drawing-arcs",
    "14": "which-paths",
}
STATEMENT = re.compile(
    r"\b(Theorem|Lemma|Proposition|Corollary|Definition|Exercise|Figure) (?:\(([^)]+)\)|([\d.]+\d))"
)
SOURCE = re.compile(r"Chapter (\d+), ((?:\w+ (?:\([^)]+\)|[\d.]+\d)(?:,? and |, )?)+)")


def statements(chapter: str) -> set[str]:
    text = "\n".join(
        c.source
        for c in nbformat.read(ROOT / f"chapters/{CHAPTER_FILES[chapter]}.ipynb", 4).cells
        if c.cell_type == "markdown"
    )
    heads = re.findall(r"\*\*(Theorem|Lemma|Proposition|Corollary|Definition|Exercise) \(([^)]+)\)", text)
    figures = re.findall(r"\*\*(Figure) ([\d.]+\d)\.\*\*", text)
    return {f"{kind} ({name})" for kind, name in heads} | {f"{kind} {number}" for kind, number in figures}


def unknown(source: str) -> list[str]:
    """The statements that a text attributes to a written chapter, but which are not in it."""
    joined = re.sub(r'"\s*\n\s*"|\s+', " ", source)
    return [
        f"Chapter {chapter}, {m[0]}"
        for chapter, rest in SOURCE.findall(joined)
        if chapter in CHAPTER_FILES
        for m in STATEMENT.finditer(rest)
        if m[0] not in statements(chapter)
    ]


def test_statements_named_in_the_library_exist():
    found = 0
    for path in sorted((ROOT / "ranklib").rglob("*.py")):
        text = path.read_text()
        found += len(SOURCE.findall(text))
        assert unknown(text) == [], path.name
    assert found > 20


def test_an_invented_statement_is_noticed():
    assert unknown("Source: Chapter 1, Theorem (Perpetual motion).") == [
        "Chapter 1, Theorem (Perpetual motion)"
    ]
    assert unknown("Source: Chapter 1, Theorem (Mean centre).") == []


def test_chapter_numbers_are_those_of_the_table_of_contents():
    files = re.findall(r"file: chapters/([\w-]+)", (ROOT / "_toc.yml").read_text())
    assert [files[int(n) - 1] for n in CHAPTER_FILES] == list(CHAPTER_FILES.values())


def test_names_of_the_notation_page_are_names_of_the_code():
    """Symbols that the written chapters use; those of later chapters are listed under the table."""
    page = nbformat.read(ROOT / "chapters/notation.ipynb", 4).cells[0].source
    later = {"osc", "lam", "beta", "c", "base"}
    names = set(re.findall(r"`([a-z_]+)(?:\([a-z]*\)\[l\])?`", page.split("Words that")[0])) - later
    code = "\n".join(p.read_text() for p in (ROOT / "ranklib").rglob("*.py"))
    code += "\n".join(
        c.source
        for p in (ROOT / "chapters").glob("*.ipynb")
        for c in nbformat.read(p, 4).cells
        if c.cell_type == "code"
    )
    assert len(names) > 25
    assert [n for n in sorted(names) if not re.search(rf"\b{n}\b", code)] == []
    assert callable(ranklib.composite) and callable(ranklib.residual_size)
