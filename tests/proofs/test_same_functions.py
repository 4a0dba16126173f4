"""The functions that derivations speak of are those that the code computes: compared at sample points.

Derivations import nothing from the code. ``ranklib.proofs.EXPRESSIONS`` holds what they mean by a name of
``ranklib.paper.constants``; what they mean by a letter stands in ``ranklib.proofs.engine.notation``.
"""

import ast
import inspect
import math
import re
from pathlib import Path

import pytest
import sympy as sp
import torch

from ranklib.paper import constants
from ranklib.proofs import EXPRESSIONS
from ranklib.proofs.engine import notation
from ranklib.proofs.expressions import T

ROOT = Path(__file__).resolve().parents[2]
STATEMENT = re.compile(r"\b((?:Theorem|Lemma|Proposition|Corollary) \([^)]+\))")
POINTS = ("1/100", "1/3", "1", "5/4", "151/20", "749/100")
# Letters that stand for no constant of a bound, beside the code's.
OTHERS = {"Sigma": torch.sigmoid, "Relu": torch.relu}
CONSTANTS = {
    name
    for name, function in inspect.getmembers(constants, inspect.isfunction)
    if function.__module__ == constants.__name__
    and not name.startswith("_")
    and inspect.signature(function).parameters
}
LETTERS = {
    name: kind
    for name, kind in vars(notation).items()
    if isinstance(kind, type) and getattr(kind, "letter", "")
}


def assert_same(function, expression):
    for point in map(sp.Rational, POINTS):
        exact = float(sp.N(expression.subs(T, point), 30))
        got = float(function(torch.tensor(float(point), dtype=torch.float64)))
        assert math.isclose(got, exact, rel_tol=1e-13), (point, got, exact)


def unexpressed(names):
    """A sentence, with the remedy, for each constant that the derivations do not know."""
    for name in sorted(set(names) - set(EXPRESSIONS)):
        yield (
            f"ranklib/paper/constants.py: nothing ties {name} to a proof; write its expression into "
            "ranklib/proofs/expressions.py"
        )


def sources():
    """What each derivation says that it proves, read from the files, which is faster than building them."""
    for path in sorted((ROOT / "ranklib/proofs").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Derivation":
                yield ast.unparse(node.args[3])


def underived(functions):
    """A sentence, with the remedy, for each constant whose source has no derivation."""
    proved = {name for source in sources() for name in STATEMENT.findall(source)}
    for function in functions:
        if not proved & {*STATEMENT.findall(inspect.getdoc(function) or "")}:
            yield (
                f"ranklib/paper/constants.py: no derivation proves where {function.__name__} comes from; name a "
                "statement after 'Source:' in its docstring, and write its derivation in ranklib/proofs/"
            )


def test_every_constant_has_a_derivation():
    assert not [*underived(getattr(constants, name) for name in CONSTANTS)]


def test_every_constant_has_its_expression():
    assert not [*unexpressed(CONSTANTS)]
    assert set(EXPRESSIONS) == CONSTANTS, "take out of ranklib/proofs/expressions.py what has gone"


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_derivations_and_the_code_mean_the_same(name):
    assert_same(getattr(constants, name), EXPRESSIONS[name])


def test_every_letter_stands_for_a_constant_or_is_compared_here():
    means = {name: kind.definition(T) for name, kind in LETTERS.items()}
    known = set(EXPRESSIONS.values())
    by_definition = {name for name, expression in means.items() if {expression, sp.sqrt(expression)} & known}
    assert set(LETTERS) == by_definition | set(OTHERS), (
        "write beside a new letter of the derivations the code's function"
    )


@pytest.mark.parametrize("name", OTHERS)
def test_a_letter_means_what_the_code_computes(name):
    assert_same(OTHERS[name], LETTERS[name].definition(T))
