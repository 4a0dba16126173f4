"""Steps of a derivation: one statement, one reason, and how it is decided.

What a step shows is printed from the expressions that are checked, so one cannot differ from the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sympy as sp

from .decide import Verdict, decided, differs, enclosed, searched, simplifies_to_zero
from .emptiness import says_nothing
from .evaluate import Given, scope, unfold
from .printer import RELATIONS, formula_width, terms, typeset
from .search import Number

WIDTH = 40  # a display formula wider than this is broken, at its relation first and then at its sums


@dataclass(frozen=True)
class Step:
    """One statement ``lhs relation rhs``, why it holds (a sentence), and what decides it.

    Made by :func:`identity`, :func:`inequality`, :func:`by_intervals`, :func:`by_lemma`, :func:`by_search`,
    :func:`distinct` and :func:`definition`. ``given`` fills in sizes and letters before the check.
    """

    name: str
    lhs: Any
    relation: str
    rhs: Any
    why: str
    kind: str
    given: Given = field(default_factory=dict, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def sides(self) -> tuple[Any, Any]:
        """Both sides as they are checked: letters filled in, operators computed, the smaller one first."""
        left, right = (unfold(side, self.given) for side in (self.lhs, self.rhs))
        return (right, left) if self.relation in (">=", ">") else (left, right)

    def verify(self) -> Verdict:
        """Decide the statement; an error of sympy's is an error, never a success."""
        if self.relation == ":=":
            return Verdict(True, "definition")
        left, right = self.sides()
        if self.relation == "=":
            return simplifies_to_zero(left, right)
        if self.relation == "!=":
            return differs(left, right, self.options.get("at", {}))
        if self.kind == "intervals":
            return enclosed(left, right, **self.options)
        if "box" in self.options:
            box = self.options["box"] or {
                symbol: _usual_range(symbol)
                for symbol in sorted(left.free_symbols | right.free_symbols, key=str)
            }
            return searched(left, right, **{**self.options, "box": box})
        strict = self.relation in ("<", ">")
        form, grows_in = self.options.get("form"), self.options.get("grows_in")
        form = None if form is None else unfold(form, self.given)
        return decided(left, right, strict, form, grows_in)

    def label(self) -> str:
        """The kind in words, with what the statement is a model of or cites."""
        about = scope((self.lhs, self.rhs), self.given, self.options.get("over") or ())
        lemma = self.options.get("lemma")
        kind = f"{self.kind} ({lemma})" if lemma else self.kind
        domain = self.options.get("over") or {}
        ranges = [
            rf"${typeset(low)} \le {typeset(s)} \le {typeset(high)}$" for s, (low, high) in domain.items()
        ]
        return "; ".join([kind, *ranges, *([about] if about else [])])

    def display(self) -> str:
        """The statement as a displayed formula, broken where it would be too wide."""
        sign = RELATIONS[self.relation]
        whole = f"{typeset(self.lhs)} {sign} {typeset(self.rhs)}"
        if formula_width(whole) <= WIDTH:
            return f"$$\n{whole}\n$$"
        left, right = packed(terms(self.lhs)), packed(terms(self.rhs))
        lines = [left[0], *(rf"\quad {line}" for line in left[1:])]
        lines += [f"{sign} {right[0]}", *(rf"\quad {line}" for line in right[1:])]
        rows = [rf"&{line} \\" for line in lines[:-1]] + [f"&{lines[-1]}"]
        return "\n".join(["$$", r"\begin{aligned}", *rows, r"\end{aligned}", "$$"])

    def with_given(self, given: Given) -> "Step":
        """The same step, with more sizes and letters filled in; its own come first."""
        return replace(self, given={**given, **self.given})


def packed(parts: list[str]) -> list[str]:
    """Summands in lines that are as full as the width allows.

    >>> packed(["a", "+ b", "+ " + "c" * 39])
    ['a + b', '+ ccccccccccccccccccccccccccccccccccccccc']
    """
    lines = [parts[0]]
    for part in parts[1:]:
        if formula_width(f"{lines[-1]} {part}") < WIDTH - 2:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return lines


def identity(name: str, lhs: Any, rhs: Any, why: str, **given: Any) -> Step:
    """The step ``lhs = rhs``, for expressions or matrices: every entry of the difference reduces to 0.

    ``given=`` maps letters to what is put in for them before the check. Raises ``TypeError`` for a side that
    is no sympy expression, matrix or integer, and ``ValueError`` for floats (not exact), unequal shapes, and
    for a statement that says nothing: sides built equal, or arithmetic.

    Example
    -------
    >>> x = sp.Symbol("x")
    >>> identity("square", (x + 1) ** 2, x**2 + 2 * x + 1, "Multiply out.").verify().ok
    True
    >>> identity("wrong", (x + 1) ** 2, x**2 + 1, "The cross term is lost.").verify().obtained
    'a difference of 2*x'
    """
    return _step(name, lhs, "=", rhs, why, "identity", **given)


def definition(name: str, lhs: Any, rhs: Any, why: str, **given: Any) -> Step:
    """A definition: shown with := and not checked, since there is nothing to check.

    >>> x = sp.Symbol("x")
    >>> definition("a letter", sp.Symbol("y"), x**2, "A short name.").verify().method
    'definition'
    """
    return _step(name, lhs, ":=", rhs, why, "definition", **given)


def inequality(
    name: str,
    lhs: Any,
    rhs: Any,
    why: str,
    *,
    strict: bool = False,
    form: Any = None,
    grows_in: sp.Symbol | None = None,
    given: Given | None = None,
) -> Step:
    """The step ``lhs <= rhs`` (``<`` if ``strict``) for real scalars, decided by sympy's sign rules.

    ``form`` is another way to write ``rhs - lhs`` whose sign is plain, such as a square; that it equals the
    difference is verified too. ``grows_in=u``, for a symbol ``u >= 0``: the difference is decided at
    ``u = 0`` and its derivative in ``u``, or that one's derivative, from there on. Sides as in
    :func:`identity`.

    Example
    -------
    >>> u = sp.Symbol("u", nonnegative=True)
    >>> inequality("tanh", sp.tanh(u), u, "Its derivative is at most 1.", grows_in=u).verify().ok
    True
    >>> inequality("wrong", u, sp.tanh(u), "The wrong way round.", grows_in=u).verify().ok
    False
    """
    options = {"form": form, "grows_in": grows_in}
    return _step(name, lhs, "<" if strict else "<=", rhs, why, "inequality", given=given, options=options)


def by_intervals(
    name: str,
    lhs: Any,
    rhs: Any,
    why: str,
    *,
    over: Mapping[sp.Symbol, tuple[Any, Any]] | None = None,
    zeros: Mapping[Any, int] | None = None,
    times: Any = 1,
    given: Given | None = None,
) -> Step:
    """The step ``lhs < rhs``, proved on the whole interval of ``over`` by ball arithmetic and bisection.

    ``zeros`` maps the points where both sides are equal to the order of the difference there; without any
    the inequality is strict. Without ``over`` both sides are numbers. ``times`` is a positive factor that clears a denominator.

    Example
    -------
    >>> x = sp.Symbol("x", real=True)
    >>> step = by_intervals("chord", sp.exp(x), 1 + 2 * x, "Up to 1.256.",
    ...                     over={x: (0, sp.Rational(1256, 1000))}, zeros={0: 1})
    >>> step.relation, step.verify().method
    ('<=', 'intervals: 5 boxes')
    """
    options = {"over": dict(over or {}), "zeros": zeros, "times": times}
    return _step(name, lhs, "<=" if zeros else "<", rhs, why, "intervals", given=given, options=options)


def by_lemma(name: str, lhs: Any, rhs: Any, why: str, *, lemma: str, **domain: Any) -> Step:
    """The step ``lhs <= rhs`` by a cited lemma, and attacked by a search that tries to break it.

    The search covers ``box`` (symbol to range, by default -1 to 1, or its positive part; ``where`` restricts it) with random, small and edge points
    and refines the worst ones. It must come within ``near`` (relative slack) of equality, or it fails: a
    search that stays far away would not have noticed a wrong constant. NaN is a failure.

    Example
    -------
    >>> a, b = sp.symbols("a b", real=True)
    >>> step = by_lemma("triangle", abs(a + b), abs(a) + abs(b), "Equal signs give equality.",
    ...                 lemma="triangle inequality", box={a: (-1, 1), b: (-1, 1)})
    >>> step.verify().method
    'search: 5560 points, least slack 0.00, no violation'
    """
    return _attacked(name, lhs, rhs, why, "cited lemma and search", lemma=lemma, **domain)


def by_search(name: str, lhs: Any, rhs: Any, why: str, **domain: Any) -> Step:
    """The step ``lhs <= rhs`` that only a search supports: no violation was found. Arguments as for a lemma."""
    return _attacked(name, lhs, rhs, why, "search only", lemma="", **domain)


def _attacked(
    name: str,
    lhs: Any,
    rhs: Any,
    why: str,
    kind: str,
    *,
    lemma: str,
    box: Mapping[sp.Symbol, tuple[Number, Number]] | None = None,
    where: Any = sp.true,
    points: int = 3000,
    near: Number = 0.01,
    seed: int = 0,
    given: Given | None = None,
) -> Step:
    given, box = given or {}, dict(box or {})
    free = set()
    if box:
        free = unfold(_exact(name, lhs), given).free_symbols | unfold(_exact(name, rhs), given).free_symbols
    missing = free - set(box)
    if missing or not all(low < high for low, high in box.values()):
        raise ValueError(
            f"step {name!r}: expected a range (low, high) with low < high for every symbol, got "
            f"{dict(box)}, without {sorted(map(str, missing))}; add or repair the ranges in box"
        )
    options = {"lemma": lemma, "box": box, "where": where, "points": points, "near": near, "seed": seed}
    return _step(name, lhs, "<=", rhs, why, kind, given=given, options=options)


def _usual_range(symbol: sp.Symbol) -> tuple[Number, Number]:
    return (0.01, 1) if symbol.is_positive else (0, 1) if symbol.is_nonnegative else (-1, 1)


def distinct(
    name: str, lhs: Any, rhs: Any, why: str, *, at: Mapping[sp.Symbol, Any], given: Given | None = None
) -> Step:
    """The step ``lhs != rhs``: at the point ``at`` the two sides differ, in at least one entry.

    Example
    -------
    >>> x = sp.Symbol("x")
    >>> distinct("cube", x**3, x, "They agree at 0 and at 1 only.", at={x: 2}).verify().method
    'sympy: non-zero at x = 2'
    """
    return _step(name, lhs, "!=", rhs, why, "difference", given=given, options={"at": dict(at)})


def _step(
    name: str,
    lhs: Any,
    relation: str,
    rhs: Any,
    why: str,
    kind: str,
    *,
    given: Given | None = None,
    options: Mapping[str, Any] | None = None,
) -> Step:
    lhs, rhs, given = _exact(name, lhs), _exact(name, rhs), dict(given or {})
    shapes = [side.shape if isinstance(side, sp.MatrixBase | sp.MatrixExpr) else None for side in (lhs, rhs)]
    if shapes[0] != shapes[1] or (shapes[0] and relation in ("<=", "<")):
        raise ValueError(
            f"step {name!r}: expected two scalars, or for = and != two matrices of one shape, got shapes "
            f"{shapes[0]} and {shapes[1]}; transpose or multiply the sides so that they match"
        )
    if empty := says_nothing(lhs, relation, rhs, given):
        raise ValueError(
            f"step {name!r}: expected a statement that could be false, but {empty}; leave the step out, state "
            "what it stands for, or mark it as a definition"
        )
    return Step(name, lhs, relation, rhs, why, kind, given, dict(options or {}))


def _exact(name: str, side: Any) -> Any:
    if not isinstance(side, (sp.Expr, sp.MatrixBase, sp.MatrixExpr, int)):
        raise TypeError(
            f"step {name!r}: expected a sympy expression, matrix or integer, got {type(side).__name__}; "
            "build it from sympy symbols, with sp.Rational for fractions"
        )
    side = sp.sympify(side)
    if side.has(sp.Float, sp.nan):
        raise ValueError(f"step {name!r}: expected exact numbers, got {side}; use sp.Rational, not floats")
    return side.as_immutable() if isinstance(side, sp.MatrixBase) else side
