"""CONTRIBUTING tells the truth: the import graph is the code's, every file is there, every command is known."""

import ast
import re

from tests.book.notebook_rules import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
ROOMS = sorted(path.parent.name for path in (ROOT / "ranklib").glob("*/__init__.py"))
TASKS = ["a sentence", "a constant", "a figure", "a measure", "an architecture", "an exercise", "a chapter"]


def drawn() -> dict[str, set[str]]:
    """Room -> the rooms that it imports from, as CONTRIBUTING draws it, from top to bottom."""
    picture = re.search(r"```\nroom +imports from\n(.*?)```", TEXT, re.S)[1].strip().split("\n")
    assert len(picture) < 20
    return {
        room: set(re.findall(r"\w+", rest)) for room, _, rest in (line.partition(" ") for line in picture)
    }


def imports(text: str) -> set[str]:
    """The rooms that a file imports from, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name.split(".")[1] for name in found if name.startswith("ranklib.")} & set(ROOMS)


def test_the_import_graph_is_the_codes():
    graph = {
        room: set().union(*(imports(p.read_text()) for p in (ROOT / "ranklib" / room).rglob("*.py"))) - {room}
        for room in ROOMS
    }
    assert drawn() == graph, "draw the graph of CONTRIBUTING.md as the imports are, or leave the import out"


def test_no_room_imports_from_one_below_it():
    """So there is no circle either."""
    rooms = list(drawn())
    upward = [
        f"{room} from {other}"
        for room in rooms
        for other in drawn()[room]
        if other not in rooms[: rooms.index(room)]
    ]
    assert not upward, f"a room imports only from rooms above it in CONTRIBUTING.md: {upward}"


def test_imports_are_found_wherever_they_stand():
    text = "from ranklib import theory\ndef f():\n    import ranklib.paper.norms\n    from ranklib.model.softmax import x"
    assert imports(text) == {"theory", "paper", "model"}


def test_each_of_the_seven_tasks_names_its_files_and_its_check():
    rows = dict(re.findall(r"^\| (an? [a-z]+) \| (.*) \|$", TEXT, re.M))
    assert list(rows) == TASKS
    assert all("make check" in row for row in rows.values())


def test_every_file_and_command_that_is_named_is_there():
    named = set(re.findall(r"`((?:ranklib|tests|sphinxext|chapters|benchmarks)/[\w./-]*)`", TEXT))
    missing = [
        name for name in sorted(named) if not re.search("[A-Z]{4}", name) and not (ROOT / name).exists()
    ]
    assert not missing, f"CONTRIBUTING.md names files that are not there: {missing}"
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"`make ([a-z]+)", TEXT + (ROOT / "README.md").read_text())) <= targets
