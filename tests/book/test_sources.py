"""A docstring that names a statement of the book names one that is there; notation matches the code."""

import re
from functools import cache
from pathlib import Path

import nbformat
import pytest

import ranklib

ROOT = Path(__file__).parents[2]
KINDS = "Theorem|Lemma|Proposition|Corollary|Definition|Example|Exercise|Figure"
STATEMENT = re.compile(rf"\b({KINDS})s? \(([^)]+)\)(?: and \(([^)]+)\))?")
SOURCE = re.compile(
    rf"((?:\b(?:{KINDS})s? \([^)]+\)(?:, | and |, and )?(?:\([^)]+\))?)+) in chapter `([\w-]+)`"
)
SLUG = re.compile(r"chapters? ((?:`[\w-]+`(?:, | and )?)+)")
CHAPTERS = [path.stem for path in sorted(ROOT.glob("chapters/*.ipynb"))]


@cache
def statements(chapter: str) -> set[str]:
    cells = nbformat.read(ROOT / f"chapters/{chapter}.ipynb", 4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return {f"{kind} ({name})" for kind, name in re.findall(rf"\*\*({KINDS}) \(([^)]+)\)", text)}


def named(text: str) -> list[str]:
    """Kind and name of each statement, also of both in "Propositions (Position terms) and (Masks)"."""
    return [f"{kind} ({name})" for kind, *names in STATEMENT.findall(text) for name in names if name]


def unknown(source: str) -> list[str]:
    """Chapters that a text names and that are not there, and statements that are not where it says, or nowhere."""
    joined = " ".join(re.sub(r'"\s*\n\s*f?"|\n\s*(# )?', " ", source).split())
    slugs = {slug for group in SLUG.findall(joined) for slug in re.findall(r"`([\w-]+)`", group)}
    found = [f"chapter `{slug}`" for slug in sorted(slugs - set(CHAPTERS))]
    for group, slug in SOURCE.findall(joined):
        if slug in CHAPTERS:
            found += [f"{name} in chapter `{slug}`" for name in named(group) if name not in statements(slug)]
    anywhere = set().union(*map(statements, CHAPTERS))
    return found + [name for name in named(SOURCE.sub("", joined)) if name not in anywhere]


def misquoted(source: str) -> list[str]:
    """A sentence, with the remedy, for each unknown one."""
    return [
        f"{name} is not there: write 'Theorem (Name) in chapter `slug`', with the name of the statement as it stands "
        "in the chapter"
        for name in unknown(source)
    ]


FILES = sorted((ROOT / "ranklib").rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_statements_named_in_the_library_exist(path):
    assert not [*misquoted(path.read_text())]


def test_the_library_names_its_sources():
    assert sum(len(SOURCE.findall(path.read_text())) for path in FILES) > 70


@pytest.mark.parametrize(
    "text, trouble",
    [
        ("Source: Theorem (Mean centre) in chapter `how-the-paper-measures`.", []),
        ("(Propositions (Position terms) and\n    (Masks))", []),
        ("Theorem (Mean centre) in chapter\n    `one-head`", ["Theorem (Mean centre) in chapter `one-head`"]),
        ("Lemma (Perpetual motion)", ["Lemma (Perpetual motion)"]),
        ("Source: chapters `one-head` and `no-head`.", ["chapter `no-head`"]),
    ],
)
def test_an_invented_statement_is_noticed(text, trouble):
    assert unknown(text) == trouble


def test_names_of_the_notation_page_are_names_of_the_code():
    """Symbols that the written chapters use; those of later chapters are listed under the table."""
    page = "\n".join(cell.source for cell in nbformat.read(ROOT / "chapters/notation.ipynb", 4).cells)
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
