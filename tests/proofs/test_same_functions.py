"""The functions that derivations speak of are those that the code computes: compared at sample points.

Derivations import nothing from the code and define their functions once, in ``ranklib.proofs.engine.notation``.
"""

import importlib
import importlib.util
import math

import pytest
import sympy as sp
import torch

from ranklib.paper import constants

if importlib.util.find_spec("ranklib.proofs.engine.notation") is None:
    pytest.skip("derivations do not name their functions in one place yet", allow_module_level=True)
notation = importlib.import_module("ranklib.proofs.engine.notation")

# Each named function of one variable, beside the code's.
SAME = {
    "Kappa": constants.kappa,
    "Vartheta": constants.vartheta,
    "BigF": constants.f_lambda,
    "SquareG": lambda t: constants.g_lambda(t).square(),
    "SquareC": lambda t: constants.const_osc(t).square(),
    "Sigma": torch.sigmoid,
    "Relu": torch.relu,
}
POINTS = ("1/100", "1/3", "1", "5/4", "151/20", "749/100")


def named() -> dict:
    return {
        name: kind
        for name, kind in vars(notation).items()
        if isinstance(kind, type) and getattr(kind, "letter", "") and hasattr(kind, "definition")
    }


def test_every_named_function_is_compared():
    assert set(named()) == set(SAME), "write beside a new function of the derivations the code's"


@pytest.mark.parametrize("name", SAME)
def test_the_derivations_and_the_code_mean_the_same(name):
    for point in map(sp.Rational, POINTS):
        exact = float(sp.N(named()[name].definition(point), 30))
        got = float(SAME[name](torch.tensor(float(point), dtype=torch.float64)))
        assert math.isclose(got, exact, rel_tol=1e-13), (name, point)
