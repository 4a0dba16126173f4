"""Every public name has a docstring, and every name that a room offers is on the page of the library."""

import ast
import importlib
import sys
import tomllib

import pytest
import yaml

from tests.book.notebook_rules import ROOT

sys.path.insert(0, str(ROOT / "sphinxext"))
from sphinxext.library_page import ROOMS, blocks, offered, wrapped
from sphinxext.numbers_of_the_book import read_numbers

# The exercises of a chapter are described by the chapter.
FILES = [
    p
    for p in sorted((ROOT / "ranklib").rglob("*.py"))
    if p.parent.name != "exercises" or p.stem in ("__init__", "answers")
]


def undocumented(text: str) -> list[str]:
    """Public functions, classes and methods without a docstring; a method's may stand at the class it extends."""
    tree = ast.parse(text)
    methods = [n for c in tree.body if isinstance(c, ast.ClassDef) for n in c.body]
    public = [
        n
        for n in [*tree.body, *methods]
        if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name[0] != "_"
    ]
    # torch says what its hooks do, sympy what a shape is.
    said = {"forward", "jvp", "vmap", "backward", "shape"}
    said |= {n.name for n in methods if isinstance(n, ast.FunctionDef) and ast.get_docstring(n)}
    return [n.name for n in public if not ast.get_docstring(n) and n.name not in said]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_public_name_has_a_docstring(path):
    assert undocumented(path.read_text()) == [], "say in a docstring what each does, or begin its name with _"


def test_a_missing_docstring_is_noticed():
    assert undocumented(
        "def f():\n    pass\n\nclass C:\n    'x'\n    def m(self): pass\n    def _n(self): pass"
    ) == [
        "f",
        "m",
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_every_offered_name_has_a_signature_and_a_text(room):
    module = importlib.import_module(f"ranklib.{room}")
    found = offered(module)
    assert [name for name, _, _ in found] == list(module.__all__)
    assert [name for name, head, text in found if not head or not text] == [], (
        "a constant has its text as a string below its assignment"
    )


def test_every_room_is_on_the_page():
    rooms = {p.parent.name for p in (ROOT / "ranklib").glob("*/__init__.py")}
    assert rooms == set(ROOMS), "add the room to ROOMS of sphinxext/library_page.py"


def test_docstrings_become_paragraphs_formulas_examples_and_links():
    text = "It is ``x``, see :func:`f` in chapter `mlps`.\n\n.. math:: a = b\n\nRaises\n------\nValueError\n    Bad.\n\n>>> 1\n1"
    kinds = [type(node).__name__ for node in blocks(text, read_numbers(ROOT), {"f": "room-f"})]
    assert kinds == ["paragraph", "math_block", "paragraph", "definition_list", "literal_block"]
    first = blocks(text, read_numbers(ROOT), {"f": "room-f"})[0]
    assert "room-f" in str(first) and "/chapters/mlps" in str(first) and "Chapter" in first.astext()


class Unique(yaml.SafeLoader):
    """YAML in which a key stands once in its mapping."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice in {node.start_mark}: {sorted(keys)}"
        return super().construct_mapping(node, deep)


YAML = [*ROOT.glob("*.yml"), *ROOT.glob("*.cff"), *ROOT.glob(".github/**/*.yml")]


@pytest.mark.parametrize("path", YAML, ids=lambda p: p.name)
def test_no_key_stands_twice_in_a_yaml_file(path):
    assert yaml.load(path.read_text(), Unique)


def test_a_key_that_stands_twice_is_noticed():
    with pytest.raises(AssertionError, match="a key stands twice"):
        yaml.load("a:\n  b: 1\n  b: 2\n", Unique)


def test_a_long_signature_has_one_argument_a_line():
    head = "f(x: Float[Tensor, 'tokens dim'], *, first: int=1, second: tuple[int, int]=(1, 2)) -> tuple[int, int]"
    lines = wrapped(head).split("\n")
    assert lines[:2] == ["f(", "    x: Float[Tensor, 'tokens dim'],"] and lines[-1] == ") -> tuple[int, int]"
    assert [line.strip().rstrip(",") for line in lines[2:-1]] == [
        "*",
        "first: int=1",
        "second: tuple[int, int]=(1, 2)",
    ]
    assert wrapped("f(x)") == "f(x)"


def test_the_command_is_installed_under_the_name_of_the_library():
    script = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["ranklib"]
    module, _, function = script.partition(":")
    assert callable(getattr(importlib.import_module(module), function))
