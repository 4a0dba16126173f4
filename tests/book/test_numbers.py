"""Numbers of chapters and figures come from ``_toc.yml`` and the order of captions; none is typed by hand."""

import filecmp
import json
import re
import shutil
import sys
from types import SimpleNamespace

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from tests.book.notebook_rules import CHAPTERS, ROOT, read

sys.path.insert(0, str(ROOT / "sphinxext"))
from sphinxext.numbers_of_the_book import name_chapters, numbering, on_source_read, read_numbers

BOOK = read_numbers(ROOT)
TYPED = re.compile(r"\b(?:[Cc]hapters?(?: |\n *)\d+|[Ff]igures?(?: |\n *)\d+\.\d+)")
WRITTEN = [
    *(p for folder in ("ranklib", "scripts", "benchmarks") for p in sorted((ROOT / folder).rglob("*.py"))),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ranklib/book/biographies.json")),
]


def typed(text: str) -> list[str]:
    return TYPED.findall(text)


@pytest.mark.parametrize("path", [*WRITTEN, *CHAPTERS], ids=lambda p: str(p.relative_to(ROOT)))
def test_no_number_is_typed_by_hand(path):
    if path.suffix == ".ipynb":
        nb = read(path)
        text = "\n".join(
            [cell.source for cell in nb.cells] + [json.dumps(c.get("outputs", "")) for c in nb.cells]
        )
    else:
        text = path.read_text()
    assert typed(text) == [], (
        "write [*Title*](slug.ipynb), **Figure.** or [Figure (Name)](#fig-name) in chapters, chapter `slug` "
        "and Figure (Name) in code; the build gives the numbers"
    )


@pytest.mark.parametrize("text", ["as in Chapter 4", "chapters 3", "Figure 11.2", "see chapter\n7"])
def test_a_typed_number_is_noticed(text):
    assert typed(text)


def test_the_papers_figure_may_have_its_number():
    assert not typed("the paper's Figure 2, Theorem 2.3, section 4.2")


def unlisted(names, files):
    """A sentence, with the remedy, for each notebook that the table of contents lacks."""
    for name in sorted(set(names) - {*files, "front-page"}):
        yield f"chapters/{name}.ipynb is on no page: add a line '- file: chapters/{name}' to _toc.yml"


def test_chapters_are_counted_in_the_order_of_the_table_of_contents():
    files = re.findall(r"file: chapters/([\w-]+)", (ROOT / "_toc.yml").read_text())
    numbered = [name for name in files if name in BOOK.chapters]
    assert list(BOOK.chapters) == numbered and list(BOOK.chapters.values()) == [*range(1, len(numbered) + 1)]
    assert set(files) - set(numbered) == {"derivations", "how-fast", "notation", "questions"}
    assert not [*unlisted({p.stem for p in CHAPTERS}, files)]
    assert {*files, "front-page"} == {p.stem for p in CHAPTERS}


def test_labels_of_figures_are_used_once():
    labels = re.findall(
        r'<a id="(fig-[\w-]+)"></a>', "".join(c.source for p in CHAPTERS for c in read(p).cells)
    )
    assert sorted(labels) == sorted(BOOK.figures)


def written(*cells, slug="mlps", numbers=BOOK):
    write = numbering(slug, numbers)
    return [write(cell) for cell in cells]


def test_links_captions_and_labels_get_numbers():
    title, here = BOOK.titles["one-head"], BOOK.chapters["mlps"]
    number = BOOK.chapters["one-head"]
    assert written(f"See [*{title}*](one-head.ipynb#two-tokens).") == [
        f"See [Chapter {number}](one-head.ipynb#two-tokens)."
    ]
    assert written(f"> [*{title.replace(' ', chr(10) + '> ', 1)}*](one-head.ipynb)")[0].startswith(
        "> [Chapter"
    )
    assert written("**Figure.** *A*", "text", '**Figure (B).** <a id="fig-b"></a> *B*') == [
        f"**Figure {here}.1.** *A*",
        "text",
        f"(fig-b)=\n**Figure {here}.2 (B).** *B*",
    ]
    label, figure = next(iter(BOOK.figures.items()))
    assert written(f"[Figure (X)](other.ipynb#{label})") == [f"[Figure {figure}](#{label})"]
    assert name_chapters("Lemma (A) in chapter `one-head`.", BOOK) == f"Lemma (A) in Chapter {number}."


@pytest.mark.parametrize(
    "text",
    [
        "[the theorem](one-head.ipynb)",
        "[*Notation*](notation.ipynb)",
        "```\n**Figure.** code\n```",
        "in the text: **Figure.** is no caption",
    ],
)
def test_other_text_stays(text):
    assert written(text) == [text]


def test_a_figure_that_is_not_there_is_an_error():
    with pytest.raises(
        ValueError, match=r"mlps: expected a figure with the label fig-none, got none; write '\*\*"
    ):
        written("[Figure (None)](#fig-none)")


def test_a_title_that_is_not_the_chapters_is_an_error():
    with pytest.raises(
        ValueError, match="mlps: expected the title of one-head, 'One head.* got 'Two heads'; write the"
    ):
        written("[*Two heads*](one-head.ipynb)")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_every_link_of_every_chapter_finds_its_number(path):
    assert as_built(ROOT, path.stem)


def copy_of_the_book(folder):
    for name in ("chapters", "sphinxext"):
        shutil.copytree(ROOT / name, folder / name)
    for name in ("_toc.yml", "_config.yml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def as_built(folder, slug):
    """The Markdown of a chapter as Sphinx gets it."""
    path = folder / f"chapters/{slug}.ipynb"
    env = SimpleNamespace(doc2path=lambda name: path, note_dependency=lambda file: None)
    source = [path.read_text()]
    on_source_read(SimpleNamespace(srcdir=folder, env=env), f"chapters/{slug}", source)
    cells = json.loads(source[0])["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def test_inserting_a_chapter_touches_the_table_of_contents_and_the_new_file(tmp_path):
    """A stub as third chapter: every later number moves, in text and figures, and no other file is edited."""
    book = copy_of_the_book(tmp_path)
    before = {slug: as_built(book, slug) for slug in BOOK.chapters}
    toc = book / "_toc.yml"
    third = list(BOOK.chapters)[2]
    toc.write_text(
        re.sub(
            rf"( +)- file: chapters/{third}\n", r"\1- file: chapters/stub\n\g<0>", toc.read_text(), count=1
        )
    )
    stub = new_notebook(cells=[new_markdown_cell(f"# Stub\n\n[*{BOOK.titles[third]}*]({third}.ipynb)\n")])
    nbformat.write(stub, book / "chapters/stub.ipynb")
    assert f"[Chapter 4]({third}.ipynb)" in as_built(book, "stub")

    def moved(match):
        return f"{match[1]} {int(match[2]) + (int(match[2]) >= 3)}{match[3]}"

    for slug, text in before.items():
        assert as_built(book, slug) == re.sub(r"\b(Chapter|Figure) (\d+)(\.\d+|\])", moved, text), slug
    shifted = read_numbers(book)
    assert shifted.chapters == {slug: number + (number >= 3) for slug, number in BOOK.chapters.items()} | {
        "stub": 3
    }
    compared = filecmp.dircmp(ROOT / "chapters", book / "chapters", ignore=[".ipynb_checkpoints"])
    assert (compared.diff_files, compared.left_only, compared.right_only) == ([], [], ["stub.ipynb"])


def test_a_chapter_that_is_only_in_the_table_of_contents_is_named(tmp_path):
    toc = (ROOT / "_toc.yml").read_text()
    (tmp_path / "_toc.yml").write_text(toc.replace("chapters/mlps", "chapters/mlp"))
    shutil.copytree(ROOT / "chapters", tmp_path / "chapters")
    with pytest.raises(
        FileNotFoundError, match="got none for mlp; add chapters/mlp.ipynb or take the line out"
    ):
        read_numbers(tmp_path)
