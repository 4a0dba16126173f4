"""The page of the library: every name that a room offers, with its signature and docstring, grouped by room.

``{library-page}`` in a page becomes one section a room. Names, signatures and texts are read from the code, so a
name that is offered is on the page. In docstrings ``code``, :func:`names`, chapter `slug`, formulas, examples
and the heads of sections (Parameters, Raises, Example) are understood; everything else is text.
"""

import ast
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from types import ModuleType

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx import addnodes

from sphinxext.numbers_of_the_book import read_numbers

ROOMS = "model paper theory exact measures tracing proofs experiments exercises book".split()
INLINE = re.compile(r"``(.+?)``|:\w+:`~?([^`]+)`|chapter `([\w-]+)`|`([^`]+)`", re.S)


def offered(room: ModuleType) -> list[tuple[str, str, str]]:
    """Name, signature and text of everything that a room offers, in its order."""
    found = []
    for name in room.__all__:
        value = inspect.unwrap(getattr(room, name))  # a cached function stands behind its cache
        if inspect.isclass(value) or inspect.isfunction(value):
            found.append((name, signature(value), inspect.getdoc(value) or ""))
        else:
            found.append((name, name, text_below(room, name)))
    return found


def signature(value) -> str:
    """The head of a function, or the name of a class with what makes one, as it stands in the code."""
    node = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]
    if isinstance(node, ast.ClassDef):
        fields = [ast.unparse(f) for f in node.body if isinstance(f, ast.AnnAssign)]
        builders = [f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
        return f"{node.name}({without_self(builders[0]) if builders else ', '.join(fields)})"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def without_self(function: ast.FunctionDef) -> str:
    return ast.unparse(function.args).removeprefix("self").removeprefix(", ")


def wrapped(head: str, width: int = 76) -> str:
    """One argument a line, where a signature is too long for a line of the page."""
    if len(head) <= width:
        return head
    start, _, rest = head.partition("(")
    arguments, end, returns = rest.rpartition(") -> ") if ") -> " in rest else (rest[:-1], ")", "")
    return (
        f"{start}(\n    " + re.sub(r", (?=\*?\w+(?:: |=)|\*, )", ",\n    ", arguments) + f",\n{end}{returns}"
    )


def text_below(room: ModuleType, name: str) -> str:
    """The string that stands below the assignment of a constant."""
    for path in sorted(Path(room.__file__).parent.glob("*.py")):
        body = ast.parse(path.read_text()).body
        for node, after in zip(body, body[1:]):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            if name in [getattr(target, "id", "") for target in targets] and isinstance(after, ast.Expr):
                return inspect.cleandoc(getattr(after.value, "value", ""))
    return ""


def blocks(text: str, numbers, ids: dict[str, str]) -> list[nodes.Node]:
    """A docstring as nodes: paragraphs, formulas, examples, heads of sections."""
    out = []
    for part in re.split(r"\n\s*\n", re.sub(r"^(\w[\w ]*)\n-{3,}$", r"\n**\1**\n", text, flags=re.M)):
        part = part.strip("\n")
        if not part.strip():
            continue
        if part.startswith(">>>"):
            out.append(nodes.literal_block(part, part, language="pycon"))
        elif part.startswith(".. math::"):
            formula = " ".join(part.removeprefix(".. math::").split())
            out.append(nodes.math_block(formula, formula, nowrap=False, number=None, label=None))
        elif head := re.fullmatch(r"\*\*(.+)\*\*", part):
            out.append(nodes.paragraph("", "", nodes.strong("", head[1])))
        elif re.search(r"^\S.*\n {4}\S", part):
            out.append(definitions(part, numbers, ids))
        else:
            out.append(nodes.paragraph("", "", *inline(part, numbers, ids)))
    return out


def definitions(part: str, numbers, ids: dict[str, str]) -> nodes.definition_list:
    """Lines at the margin are terms, indented ones say what they mean."""
    items = nodes.definition_list()
    for term, meaning in re.findall(r"^(\S.*)\n((?: {4}.*(?:\n|$))*)", part, re.M):
        body = nodes.paragraph("", "", *inline(textwrap.dedent(meaning).strip(), numbers, ids))
        items += nodes.definition_list_item(
            "", nodes.term("", "", nodes.literal(term, term)), nodes.definition("", body)
        )
    return items


def inline(text: str, numbers, ids: dict[str, str]) -> list[nodes.Node]:
    text, out, end = " ".join(text.split()), [], 0
    for match in INLINE.finditer(text):
        out.append(nodes.Text(text[end : match.start()]))
        code, target, slug, other = match.groups()
        name = (code or target or other or "").rpartition(".")[2] if target else code or other
        if slug in numbers.chapters:
            link = addnodes.pending_xref(
                "",
                refdomain="std",
                reftype="doc",
                refexplicit=True,
                reftarget=f"/chapters/{slug}",
                refwarn=True,
            )
            link += nodes.inline("", f"Chapter {numbers.chapters[slug]}")
            out.append(link)
        elif slug:
            out.append(nodes.Text(match[0]))
        elif name in ids:
            out.append(nodes.reference("", "", nodes.literal(name, name), refid=ids[name], internal=True))
        else:
            out.append(nodes.literal(name, name))
        end = match.end()
    return [*out, nodes.Text(text[end:])]


class LibraryPage(Directive):
    """Sections of all rooms; a page that has it is built afresh whenever it is read."""

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        numbers = read_numbers(Path(env.srcdir))
        front = set(importlib.import_module("ranklib").__all__)
        rooms = {room: importlib.import_module(f"ranklib.{room}") for room in ROOMS}
        ids = {name: f"{room}-{name}" for room, module in rooms.items() for name in module.__all__}
        sections = []
        for room, module in rooms.items():
            section = nodes.section("", nodes.title("", room), ids=[f"room-{room}"], names=[room])
            section += blocks(inspect.getdoc(module).split("\n\n")[0], numbers, ids)
            for name, head, text in offered(module):
                shown = wrapped(f"{'rl' if name in front else room}.{head}")
                item = nodes.container(ids=[f"{room}-{name}"], classes=["library-item"])
                item += nodes.literal_block(shown, shown, language="python")
                item += blocks(text, numbers, ids)
                section += item
            sections.append(section)
        for path in Path(rooms["model"].__file__).parents[1].rglob("*.py"):
            env.note_dependency(str(path))
        return sections


def setup(app):
    app.add_directive("library-page", LibraryPage)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
