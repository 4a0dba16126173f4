"""The search sees a wrong constant however small above rounding, and refuses to have seen nothing."""

import pytest
import sympy as sp

from ranklib.proofs.engine.search import search

X = sp.Symbol("x", real=True)
BOX = {X: (-3, 3)}


def trouble(lhs, rhs, where=sp.true, near=0.01):
    return search(lhs, rhs, BOX, where, 600, near, 0).trouble


@pytest.mark.parametrize("lost", [1, 10**-2, 10**-4, 10**-6])
def test_a_bound_that_is_too_small_is_broken(lost):
    assert trouble(2 * X, X**2 + 1 - sp.nsimplify(lost)).startswith("a relative slack of -")


def test_rounding_breaks_no_bound_and_equality_must_come_near():
    assert trouble(2 * X, X**2 + 1) == "" == trouble(2 * X, X**2 + 1 - sp.Rational(1, 10**10))
    assert "no point came near equality" in trouble(2 * X, 2 * X**2 + 2)
    assert "no valid point" in trouble(2 * X, X**2 + 1, where=X > 5)
    assert "NaN or infinity" in trouble(2 * X, X**2 + 1 + 0 * X + sp.log(X - 4))
