"""The rooms of the library lie on floors: a room imports from the floors below its own, so there is no circle."""

import ast
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


def imported(path: Path) -> set[str]:
    """The rooms that a file imports from, also inside its functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module == "ranklib":
            names |= {f"ranklib.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("ranklib.")}


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT / "ranklib")) for path in FILES])
def test_a_room_imports_from_the_floors_below(path):
    room = path.relative_to(ROOT / "ranklib").parts[0].removesuffix(".py")
    assert room in FLOOR, f"{room}: a new room needs its floor in FLOORS"
    up = {other for other in imported(path) - {room} if FLOOR.get(other, len(FLOORS)) >= FLOOR[room]}
    assert not up, (
        f"{path.name}: expected imports from floors below {room}, got {up}; move what both need down"
    )
