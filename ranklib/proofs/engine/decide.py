"""The ways to verify a step: reduce to zero, decide a sign, enclose, attack by search, separate at a point."""

from dataclasses import dataclass
from typing import Any

import sympy as sp

from .intervals import digits, positive, positive_on_box
from .search import search


@dataclass(frozen=True)
class Verdict:
    """What verifying one step gave: ``ok``, the method, and on failure expected, obtained and remedy."""

    ok: bool
    method: str
    expected: str = ""
    obtained: str = ""
    remedy: str = ""


def reduced(expr: sp.Expr) -> sp.Expr:
    """A form that is 0 for a zero rational function of symbols, exponentials, roots and absolute values.

    >>> x = sp.Symbol("x", real=True)
    >>> reduced(sp.sinh(2 * x) - 2 * sp.sinh(x) * sp.cosh(x))
    0
    """
    expr = sp.expand(expr.doit())
    if expr != 0:
        expr = sp.expand(expr.rewrite(sp.Abs if expr.has(sp.Max, sp.Min) else sp.exp))
        expr = sp.factor(sp.cancel(sp.together(expr)))
    return expr


def simplifies_to_zero(lhs: Any, rhs: Any) -> Verdict:
    """``lhs = rhs``: every entry of the difference reduces to 0; one that does not is named."""
    left = next((rest for entry in _entries(lhs, rhs) if (rest := reduced(entry)) != 0), sp.S.Zero)
    expected, obtained = f"{_short(lhs)} = {_short(rhs)}", f"a difference of {_short(left)}"
    remedy = "correct a side, or write it so that the difference expands to zero"
    return Verdict(left == 0, "sympy: simplifies to zero", expected, obtained, remedy)


def decided(lhs: Any, rhs: Any, strict: bool, form: Any, grows_in: sp.Symbol | None) -> Verdict:
    """``lhs <= rhs``: the sign of the difference, of ``form``, or of the derivative in ``grows_in``."""
    difference = (rhs - lhs).doit().replace(sp.Abs, lambda value: sp.Abs(sp.factor(value)))
    goal = difference if form is None else sp.sympify(form)
    ok = all(symbol.is_real for symbol in difference.free_symbols) and reduced(difference - goal) == 0
    if grows_in is not None:
        ok = ok and bool(grows_in.is_nonnegative) and _grows(goal, grows_in, depth=3)
        goal = goal.subs(grows_in, 0)
    relation = "<" if strict else "<="
    expected = f"{_short(lhs)} {relation} {_short(rhs)}"
    obtained = f"a difference of {_short(difference)}, whose sign sympy does not confirm"
    remedy = "check the constant, add assumptions to the symbols, give form= or grows_in=, or use by_lemma"
    return Verdict(ok and _nonnegative(goal, strict), "sympy: decided", expected, obtained, remedy)


def enclosed(lhs: Any, rhs: Any, over: Any, times: Any = 1, zeros: Any = None) -> Verdict:
    """``lhs < rhs`` on the interval or box of ``over``, by ball arithmetic; equality at ``zeros`` alone (one symbol).

    ``times``, a factor that is positive by its symbols, clears a denominator.
    """
    factor = sp.sympify(times)
    function = (rhs - lhs) * factor if times == 1 else sp.expand((rhs - lhs) * factor)
    if not factor.is_positive:
        return Verdict(False, "intervals", "a positive factor", f"{_short(factor)}", "choose a positive one")
    if len(over) > 1:
        found = positive_on_box(function, over)
    else:
        [(symbol, (low, high))] = over.items() or [(None, (0, 0))]
        found = positive(function, symbol, low, high, zeros)
    expected = f"{_short(lhs)} <= {_short(rhs)} on the interval"
    remedy = "correct the constant or the interval, or name the points where both sides are equal"
    return Verdict(not found.trouble, f"intervals: {digits(found.boxes)}", expected, found.trouble, remedy)


def searched(lhs: Any, rhs: Any, lemma: str, **domain: Any) -> Verdict:
    """``lhs <= rhs``, cited: the search came close to equality and found no violation."""
    found = search(lhs, rhs, **domain)
    method = f"search: {found.valid} points, least slack {abs(found.slack):.2f}, no violation"
    expected = f"{_short(lhs)} <= {_short(rhs)} on the whole box"
    remedy = "correct the lemma, its constant, its box or its condition"
    return Verdict(not found.trouble, method, expected, found.trouble, remedy)


def differs(lhs: Any, rhs: Any, at: Any) -> Verdict:
    """``lhs != rhs``: at the point ``at`` some entry of the difference is a non-zero number."""
    values = [entry.doit().subs(at).evalf(30) for entry in _entries(lhs, rhs)]
    ok = all(v.is_number and v.is_finite for v in values) and any(abs(v) > sp.Float("1e-15") for v in values)
    short = sorted(f"{symbol} = {value}" for symbol, value in at.items())
    place = ", ".join(short) if len(short) <= 4 else "one point"
    obtained = f"differences {', '.join(sp.sstr(v, full_prec=False) for v in values)}"
    remedy = "choose a point that fixes every symbol and separates the sides"
    place = f" at {place}" if place else ""
    return Verdict(ok, f"sympy: non-zero{place}", f"different sides{place}", obtained, remedy)


def _nonnegative(expr: sp.Expr, strict: bool) -> bool:
    """The sign of some form of the expression is plain to sympy, or follows by cases."""
    if expr.is_negative:
        return False
    forms = (sp.sympify, sp.factor, reduced)
    return any(_has_sign(form(expr), strict) for form in forms) or _by_cases(sp.expand(expr), strict)


def _grows(expr: sp.Expr, symbol: sp.Symbol, depth: int) -> bool:
    """No pole, and the derivative is not negative: by its sign, or since it grows from such a value at 0."""
    if not sp.fraction(sp.together(expr.rewrite(sp.exp)))[1].is_nonzero:
        return False
    slope = expr.diff(symbol)
    if _nonnegative(slope, False):
        return True
    return depth > 1 and _nonnegative(slope.subs(symbol, 0), False) and _grows(slope, symbol, depth - 1)


def _has_sign(expr: sp.Expr, strict: bool) -> bool:
    return bool(expr.is_positive if strict else expr.is_nonnegative)


def _by_cases(expr: sp.Expr, strict: bool) -> bool:
    """A maximum (or ``|a|``) is one of its arguments, and at least each of them (and zero)."""
    if _has_sign(expr, strict):
        return True
    atoms = expr.atoms(sp.Max, sp.Abs)
    if not atoms:
        return _has_sign(sp.factor(expr), strict)
    outer = [a for a in atoms if not any(a != b and b.has(a) for b in atoms)]
    for quantifier, sign in ((all, "is_nonpositive"), (any, "is_nonnegative")):
        for atom in sorted(outer, key=sp.default_sort_key):
            slope = expr.coeff(atom, 1)
            rest = sp.expand(expr - slope * atom)
            if getattr(slope, sign) and not rest.has(atom):
                values = atom.args if isinstance(atom, sp.Max) else (atom.args[0], -atom.args[0])
                if quantifier is any and isinstance(atom, sp.Abs):
                    values += (sp.S.Zero,)
                return quantifier(_by_cases(sp.expand(slope * value + rest), strict) for value in values)
    return False


def _entries(lhs: Any, rhs: Any) -> list[sp.Expr]:
    return list(lhs - rhs) if isinstance(lhs, sp.MatrixBase) else [lhs - rhs]


def _short(side: Any) -> str:
    text = sp.sstr(side)
    return text if len(text) <= 300 else text[:297] + "..."
