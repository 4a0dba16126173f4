"""The front door and the rooms behind it: what they offer, what importing costs, what chapters use of them."""

import ast
import importlib
import re
import subprocess
import sys
from types import ModuleType

import pytest

import ranklib as rl
from tests.book.notebook_rules import CHAPTERS, ROOT, code_of, parsed, prose_of, read

ROOMS = sorted(
    path.parent.name for path in (ROOT / "ranklib").glob("*/__init__.py") if path.parent.name != "results"
)
HEAVY = {"torch", "scipy", "sympy", "matplotlib", "ipywidgets", "transformers"}
NAMES = {path.stem: read(path) for path in CHAPTERS}


def uses(name: str) -> tuple[list[str], dict[str, set[str]]]:
    """Import lines of ranklib in a chapter, and for each imported package the names that follow it."""
    lines, packages = [], {}
    trees = [parsed(cell) for cell in code_of(NAMES[name])]
    for node in [node for tree in trees for node in ast.walk(tree)]:
        if isinstance(node, ast.Import | ast.ImportFrom) and "ranklib" in ast.unparse(node).replace(".", " "):
            lines.append(ast.unparse(node))
            packages |= {alias.asname or alias.name: set() for alias in node.names}
    for node in [node for tree in trees for node in ast.walk(tree)]:
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in packages:
            packages[node.value.id].add(node.attr)
    return lines, packages


def test_the_door_costs_nothing_until_a_name_is_used():
    ask = "import sys; import ranklib; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert "ranklib" in loaded.split() and not HEAVY & set(loaded.split())


def test_a_layer_needs_neither_plots_nor_widgets():
    ask = "import sys; import ranklib as rl; rl.SelfAttention; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert "torch" in loaded.split() and not (HEAVY - {"torch"}) & set(loaded.split())


@pytest.mark.parametrize("package", ["ranklib", *(f"ranklib.{room}" for room in ROOMS)])
def test_every_offered_name_is_there(package):
    """A name that is also a module of the room would turn into the module on import."""
    module = importlib.import_module(package)
    modules = {path.stem for path in (ROOT / package.replace(".", "/")).glob("*.py")}
    assert module.__all__ and len(set(module.__all__)) == len(module.__all__)
    assert not modules & set(module.__all__), "rename the module or the function"
    for name in module.__all__:
        assert not isinstance(getattr(module, name), ModuleType) and name in dir(module), name


def test_the_door_offers_what_the_rooms_offer():
    rooms = [importlib.import_module(f"ranklib.{room}") for room in ROOMS]
    for name in rl.__all__:
        assert sum(getattr(room, name, None) is getattr(rl, name) for room in rooms) == 1, name


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="ranklib: expected one of its names, got 'residual_sise'; dir"):
        rl.residual_sise  # noqa: B018
    with pytest.raises(AttributeError, match="ranklib.paper: expected one of its names"):
        rl.paper.nothing  # noqa: B018
    assert not hasattr(rl, "__wrapped__")


@pytest.mark.parametrize("name", [n for n in NAMES if code_of(NAMES[n])])
def test_a_chapter_uses_the_front_door_and_one_room(name):
    lines, packages = uses(name)
    rooms = sorted(set(packages) - {"rl"})
    allowed = ["import ranklib as rl", *(f"from ranklib import {room}" for room in rooms)]
    assert lines == allowed and len(rooms) <= 1 and set(rooms) <= set(ROOMS), (
        f"{name}: expected 'import ranklib as rl' and at most 'from ranklib import ROOM', got {lines}; a name "
        "that several rooms' chapters need belongs into ranklib/__init__.py"
    )
    assert packages["rl"] <= set(rl.__all__), f"{name}: {packages['rl'] - set(rl.__all__)} not at the door"
    for room in rooms:
        offered = set(importlib.import_module(f"ranklib.{room}").__all__)
        assert packages[room] and packages[room] <= offered - set(rl.__all__), (
            f"{name}: of {room}.{packages[room] - offered} nothing is offered, "
            f"and {packages[room] & set(rl.__all__)} stand at the front door"
        )


def test_the_front_door_holds_only_what_chapters_use():
    used = {name for chapter in NAMES if code_of(NAMES[chapter]) for name in uses(chapter)[1]["rl"]}
    used |= {name for nb in NAMES.values() for name in re.findall(r"`rl\.(\w+)", prose_of(nb))}
    used |= set(importlib.import_module("ranklib.book").__all__)  # what draws figures is offered whole
    assert set(rl.__all__) <= used, f"offer from their rooms only: {set(rl.__all__) - used}"
