"""Statements that say nothing are refused: sides built equal, arithmetic, a difference that is a letter."""

from typing import Any

import sympy as sp

from .evaluate import Given
from .notation import Named, Operator


def says_nothing(lhs: Any, relation: str, rhs: Any, given: Given) -> str:
    """Why the statement is empty, or nothing: sides built equal, arithmetic, or a difference that is a letter.

    >>> p, q, r = sp.symbols("p q r")
    >>> says_nothing(p - r, "=", (p - q) + (q - r), {})
    'its sides are built equal'
    >>> says_nothing(sp.Integer(200), "<", sp.Integer(216), {})
    'it compares two numbers'
    """
    if relation == ":=":
        return ""
    if lhs == rhs or _spelt(lhs, given) == _spelt(rhs, given):
        return "its sides are built equal"
    if all(_plain_number(side) for side in (lhs, rhs)):
        return "it compares two numbers"
    if relation in ("<=", "<", ">=", ">") and isinstance(rhs, sp.Expr):
        gap = lhs - rhs if relation in (">=", ">") else rhs - lhs
        if gap.is_nonnegative and (gap.is_Rational or (gap.is_Symbol and not lhs.has(Operator, Named))):
            return "its sides differ by a letter or a number"
    return ""


def _spelt(side: Any, given: Given) -> Any:
    """Letters and named functions written out, and nothing computed."""
    values = {key: entry for key, entry in given.items() if isinstance(key, sp.Symbol)}
    if isinstance(side, sp.Expr) and not side.has(sp.Sum, sp.Derivative, sp.Limit, sp.Integral, sp.Subs):
        side = side.subs(
            {
                key: value
                for key, value in values.items()
                if isinstance(value, sp.Expr) and not value.is_number
            }
        )
        return side.replace(lambda e: isinstance(e, Named), lambda e: e.definition(*e.args))
    return side


def _plain_number(side: Any) -> bool:
    entries = list(side) if isinstance(side, sp.MatrixBase) else [side]
    return all(sp.sympify(entry).is_Rational for entry in entries)
