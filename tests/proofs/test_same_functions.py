"""The functions that derivations speak of are those that the code computes: compared at sample points.

Derivations import nothing from the code. ``ranklib.proofs.EXPRESSIONS`` holds what they mean by a name of
``ranklib.paper.constants``; what they mean by a letter stands in ``ranklib.proofs.engine.notation``.
"""

import inspect
import math

import pytest
import sympy as sp
import torch

from ranklib.paper import constants
from ranklib.proofs import EXPRESSIONS
from ranklib.proofs.engine import notation
from ranklib.proofs.expressions import T

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


def test_every_constant_has_its_expression():
    assert set(EXPRESSIONS) == CONSTANTS, (
        "write a new constant of ranklib/paper/constants.py into ranklib/proofs/expressions.py"
    )


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
