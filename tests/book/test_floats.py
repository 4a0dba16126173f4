"""No test, docstring or chapter hangs on the last bit of a float; the rest of that kind is found by rounding noise."""

import ast
import doctest
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.book.notebook_rules import CHAPTERS, code_of, parsed, read

ROOT = Path(__file__).resolve().parents[2]
DIGITS = 9
"""Of a printed float, at most. The last ones of more would be rounding."""
BITS = 30
"""Of a float that is compared by ==, at most: such values every processor finds, as 0, 1/4 or 3."""


def inexact(node: ast.expr) -> bool:
    """Whether node is an expression of constants, math and numbers, whose value has many bits."""
    if {name.id for name in ast.walk(node) if isinstance(name, ast.Name)} - {"math"}:
        return False
    try:
        value = eval(compile(ast.Expression(node), "", "eval"), {"math": math})
    except Exception:
        return False
    return isinstance(value, float) and math.isfinite(value) and math.frexp(value)[0] * 2**BITS % 1 != 0


def computed(node: ast.expr) -> bool:
    """Whether a value comes from arithmetic or a call; decimals that round() leaves and what is only read do not."""
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "round":
        return False
    return isinstance(node, ast.BinOp) or any(isinstance(part, ast.Call) for part in ast.walk(node))


def exact_comparisons(tree: ast.AST) -> Iterator[str]:
    """Comparisons by == or != of a float with many bits, which rounding can change."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or "approx" in ast.unparse(node):
            continue
        sides = [node.left, *node.comparators]
        for operator, a, b in zip(node.ops, sides, sides[1:]):
            exact = isinstance(operator, (ast.Eq, ast.NotEq)) and (inexact(a) or inexact(b))
            if exact and (computed(a) or computed(b)):
                yield f"line {node.lineno}: {ast.unparse(node)}; compare with a tolerance"


def long_floats(text: str) -> Iterator[str]:
    """Printed floats with more digits than processors share, or of which torch prints 4. or 4.0000 by the last bit."""
    for found in re.findall(r"(?<![\w.])\d+\.\d+(?:e[+-]?\d+)?", text):
        if len(found.partition("e")[0].replace(".", "").strip("0")) > DIGITS:
            yield f"prints {found}; show fewer digits"
    for found in re.findall(r"tensor\(([^()]*)", text):
        if numbers := re.findall(r"\d+\.\d*", found):
            if all(re.fullmatch(r"\d+\.0+", n) for n in numbers):
                yield f"prints {numbers}, where another processor may print {numbers[0].rstrip('0')}; round them"


def examples(source: str) -> Iterator[doctest.Example]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            yield from doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")


def faults_of_tests(source: str) -> list[str]:
    return list(exact_comparisons(ast.parse(source)))


def faults_of_docstrings(source: str) -> list[str]:
    found = []
    for example in examples(source):
        found += [*exact_comparisons(ast.parse(example.source)), *long_floats(example.want)]
    return found


def faults_of_chapter(path: Path) -> list[str]:
    found = []
    for cell in code_of(read(path)):
        found += exact_comparisons(parsed(cell))
        for output in cell.outputs:
            plain = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            found += long_floats(plain)
    return found


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_test_compares_the_last_bit():
    found = {named(p): faults_of_tests(p.read_text()) for p in sorted(ROOT.glob("tests/**/*.py"))}
    assert len(found) > 30 and not {name: faults for name, faults in found.items() if faults}


def test_no_docstring_prints_or_compares_the_last_bit():
    found = {named(p): faults_of_docstrings(p.read_text()) for p in sorted(ROOT.glob("ranklib/**/*.py"))}
    assert len(found) > 30 and not {name: faults for name, faults in found.items() if faults}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem)
def test_no_chapter_prints_or_compares_the_last_bit(path):
    assert not faults_of_chapter(path)


@pytest.mark.parametrize(
    "source, bad",
    [
        ("assert bound(0) == 0.5**0.5", True),
        ("assert f(x).item() == math.log10(2)", True),
        ("assert found[3] == math.sqrt(3 / 8)", True),
        ("assert 1 < f(3) != -0.1", True),
        ("assert f(3) == 0.25 and g() == 3 and h() == 2**-1074", False),
        ("assert round(f(3), 2) == 0.34", False),
        ("assert config.eps == 1e-05 and rate['a'] == 0.0005", False),
        ("assert f(3) == pytest.approx(0.1) and abs(f(3) - 0.1) < 1e-9", False),
    ],
)
def test_planted_comparisons(source, bad):
    assert bool(faults_of_tests(source)) == bad
    assert bool(faults_of_docstrings(f'"""A formula.\n\n>>> {source}\n"""')) == bad


@pytest.mark.parametrize(
    "printed, bad",
    [
        ("0.30000000000000004", True),
        ("(1.0, 3.14159265358979)", True),
        ("tensor([0.1667])", False),
        ("tensor(4.0000)", True),
        ("tensor([4., 1.5000])", False),
        ("tensor([4., 0.])", False),
    ],
)
def test_planted_outputs(printed, bad):
    assert bool(faults_of_docstrings(f'"""A number.\n\n>>> f(3)\n{printed}\n"""')) == bad
