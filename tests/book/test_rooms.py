"""The rooms of the library lie on floors: a room imports from the floors below its own, so there is no circle.

Nor is there one among the files of a room, also when they import inside functions.
"""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = (
    {"_checks", "_door", "_provenance", "_threads"},
    {"model", "book", "proofs"},
    {"exact"},
    {"paper"},
    {"measures"},
    {"theory", "tracing"},
    {"experiments"},
    {"exercises"},
    {"__main__"},
)
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
FILES = [path for path in sorted(ROOT.glob("ranklib/**/*.py")) if path != ROOT / "ranklib/__init__.py"]


def imported_names(text: str) -> set[str]:
    """Modules, and names of modules, that a file imports, also inside its functions."""
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def imported(path: Path) -> set[str]:
    """The rooms that a file imports from."""
    names = imported_names(path.read_text())
    return {name.split(".")[1] for name in names if name.startswith("ranklib.")}


def circle(texts: dict[str, str]) -> list[str]:
    """Modules that import each other in a circle, the first one that is found; [] if there is none."""
    graph = {name: imported_names(text) & set(texts) - {name} for name, text in texts.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT / "ranklib")) for path in FILES])
def test_a_room_imports_from_the_floors_below(path):
    room = path.relative_to(ROOT / "ranklib").parts[0].removesuffix(".py")
    assert room in FLOOR, f"{room}: a new room needs its floor in FLOORS"
    up = {other for other in imported(path) - {room} if FLOOR.get(other, len(FLOORS)) >= FLOOR[room]}
    assert not up, (
        f"{path.name}: expected imports from floors below {room}, got {up}; move what both need down"
    )


def test_no_files_import_each_other_in_a_circle():
    names = (".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES)
    texts = dict(zip(names, (path.read_text() for path in FILES), strict=True))
    found = circle(texts)
    assert not found, (
        f"expected no circle of imports, got {' -> '.join(found)}; move what both need to a third file"
    )


def test_a_circle_is_found_also_inside_functions():
    texts = {"a.x": "from a import y", "a.y": "def f():\n    from a.z import g", "a.z": "import a.x"}
    assert set(circle(texts)) == {"a.x", "a.y", "a.z"} and not circle(texts | {"a.z": ""})
