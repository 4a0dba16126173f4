"""Code cells that only check something fold, in the book, to one line that says what was checked.

Such a cell begins with "# Checked: 500 random pairs", or it asserts and prints at most one line: that line then says
it. An exercise's cell waits for an answer in the notebook; the book does not show that it has none.
"""

import re

WAITING = "no answer yet"
SAID = re.compile(r"# Checked:? (.+)")


def quieten(cell: dict) -> None:
    """Set the tags and the fold's words of one code cell."""
    if WAITING in printed(cell):
        cell["outputs"] = []
        fold(cell, "Answer this in the notebook", "hide-input")
    elif re.match(r"(rl\.)?derivation\(", "".join(cell["source"])):
        cell["metadata"]["tags"] = ["remove-input"]  # the output is one line that unfolds
    elif "hide-output" in cell["metadata"].get("tags", []):
        fold(cell, "Show the output", "hide-output")
    elif words := checked(cell):
        fold(cell, f"Checked: {words}", "hide-cell" if printed(cell) else "hide-input")


def checked(cell: dict) -> str:
    """What a cell that only checks says about it, or nothing for another cell."""
    source, lines = "".join(cell["source"]), printed(cell).strip().splitlines()
    if said := SAID.match(source):
        return said[1].strip().rstrip(".")
    plain = all(output["output_type"] == "stream" for output in cell["outputs"])
    if not plain or len(lines) > 1 or not re.search(r"^\s*assert\b", source, re.M):
        return ""
    if lines:
        return lines[0]
    comment = re.match(r"# (.+)", source)
    return comment[1].rstrip(".") if comment else f"{count(source)} in this cell"


def count(source: str) -> str:
    number = len(re.findall(r"^\s*assert\b", source, re.M))
    return "one assertion" if number == 1 else f"{number} assertions"


def printed(cell: dict) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


def fold(cell: dict, words: str, tag: str) -> None:
    data = cell["metadata"]
    hiding = ("hide-input", "hide-output", "hide-cell")
    data["tags"] = [old for old in data.get("tags", []) if old not in hiding] + [tag]
    data.setdefault("mystnb", {}).update(code_prompt_show=words, code_prompt_hide=words)
