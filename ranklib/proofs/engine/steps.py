"""Derivations as lists of small steps, each decided by sympy or attacked by a search.

Nothing is taken on trust: a derivation verifies itself before it shows itself.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import sympy as sp

from .decide import Verdict, decided, differs, searched, simplifies_to_zero
from .search import Number

LATEX_RELATION = {"=": "=", "<=": r"\le", "<": "<", "!=": r"\neq"}
WIDTH = 40  # a display formula wider than this is broken at its relation


class DerivationError(AssertionError):
    """A step of a derivation is not verified; the message names it, what is left over and a remedy."""


@dataclass(frozen=True)
class Step:
    """One statement ``lhs relation rhs``, why it holds (a sentence), and the check that verifies it.

    Made by :func:`identity`, :func:`inequality`, :func:`by_lemma` and :func:`distinct`. ``latex`` replaces
    the printed statement where the symbolic one is too large; each of its lines becomes a line.
    """

    name: str
    lhs: Any
    relation: str
    rhs: Any
    why: str
    assumptions: str
    latex: str
    check: Callable[[Any, Any], Verdict] = field(repr=False)

    def verify(self) -> Verdict:
        """Run the check on both sides; an error of sympy's is an error, never a success."""
        return self.check(self.lhs, self.rhs)

    def display(self) -> str:
        """The statement as a displayed formula, broken at the relation where it would be too wide."""
        sign = LATEX_RELATION[self.relation]
        lines = self.latex.splitlines() or [sp.latex(self.lhs), f"{sign} {sp.latex(self.rhs)}"]
        if not self.latex and formula_width(" ".join(lines)) <= WIDTH:
            lines = [" ".join(lines)]
        if len(lines) > 1:
            rows = [rf"&{line} \\" for line in lines[:-1]] + [f"&{lines[-1]}"]
            lines = [r"\begin{aligned}", *rows, r"\end{aligned}"]
        return "\n".join(["$$", *lines, "$$"])


def formula_width(latex: str) -> int:
    r"""About how many characters wide a line of LaTeX is when typeset.

    >>> formula_width(r"\sqrt{\alpha_1} \le \tanh 2")
    9
    """
    silent = r"\\(begin|end)\{\w+\}|\\(left|right|mathbf|text|operatorname|frac|tfrac|[bB]ig)(?![A-Za-z])"
    text = re.sub(silent, "", latex)
    text = re.sub(r"\\(?=(tanh|sinh|cosh|log|max|min|lim|det)(?![A-Za-z]))", "", text)
    return len(re.sub(r"[{}_^&\s$]|\\\\|\\[,;!]", "", re.sub(r"\\[A-Za-z]+", "c", text)))


@dataclass(frozen=True)
class Report:
    """The verdicts of a derivation's steps, in order; ``str(report)`` is a plain-text table."""

    name: str
    rows: tuple[tuple[str, Verdict], ...]

    @property
    def ok(self) -> bool:
        """True when every step is verified."""
        return all(verdict.ok for _, verdict in self.rows)

    def __str__(self) -> str:
        width = max(len(step) for step, _ in self.rows)
        lines = [
            f"{number:2d}  {step:<{width}}  {verdict.method if verdict.ok else 'FAILED: ' + verdict.obtained}"
            for number, (step, verdict) in enumerate(self.rows, 1)
        ]
        passed = sum(verdict.ok for _, verdict in self.rows)
        return "\n".join([self.name, *lines, f"{passed} of {len(lines)} steps verified"])


@dataclass(frozen=True)
class Derivation:
    """A named claim and the steps that lead to it; showing it verifies it.

    Raises
    ------
    ValueError
        There is no step, or two steps share a name.

    Example
    -------
    >>> a, b = sp.symbols("a b", real=True)
    >>> square = identity("square", (a - b) ** 2, a**2 - 2 * a * b + b**2, "Multiply out.")
    >>> mean = inequality("mean", 2 * a * b, a**2 + b**2, "A square is not negative.", form=(a - b) ** 2)
    >>> print(Derivation("am_gm", "2ab is at most a^2 + b^2.", (square, mean), "the book").report())
    am_gm
     1  square  sympy: simplifies to zero
     2  mean    sympy: decided
    2 of 2 steps verified
    """

    name: str
    claim: str
    steps: tuple[Step, ...] = field(repr=False)
    source: str

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"derivation {self.name!r}: expected at least one step and distinct names, got {names}; "
                "add a step or rename one"
            )

    def verify(self) -> Report:
        """Verify every step (once) and return the report, whatever it says."""
        return self._verified

    @cached_property
    def _verified(self) -> Report:
        return Report(self.name, tuple((step.name, step.verify()) for step in self.steps))

    def check(self) -> Report:
        """Verify every step; raise :class:`DerivationError` at the first that is not verified."""
        report = self.verify()
        for step, verdict in report.rows:
            if not verdict.ok:
                raise DerivationError(
                    f"derivation {self.name!r}, step {step!r} is not verified: expected {verdict.expected}, "
                    f"obtained {verdict.obtained}; {verdict.remedy}"
                )
        return report

    def report(self) -> str:
        """The steps and how each was verified, as plain text; raises if one is not."""
        return str(self.check())

    def _repr_markdown_(self) -> str:
        parts = [f"**Derivation** (`{self.name}`). {self.claim}"]
        for number, (step, (_, verdict)) in enumerate(zip(self.steps, self.check().rows), 1):
            given = f" ({step.assumptions})" if step.assumptions else ""
            parts += [f"**{number}. {step.name[0].upper()}{step.name[1:]}**{given}", step.display()]
            parts += [f"{step.why} *Verified by {verdict.method}.*"]
        return "\n\n".join([*parts, f"Source: {self.source}"]) + "\n"


def identity(name: str, lhs: Any, rhs: Any, why: str, *, assumptions: str = "", latex: str = "") -> Step:
    """The step ``lhs = rhs``, for expressions or matrices: every entry of the difference reduces to 0.

    Raises ``TypeError`` for a side that is no sympy expression, matrix or integer, and ``ValueError`` for
    floats (not exact) or unequal shapes.

    Example
    -------
    >>> x = sp.Symbol("x")
    >>> identity("square", (x + 1) ** 2, x**2 + 2 * x + 1, "Multiply out.").verify().ok
    True
    >>> identity("wrong", (x + 1) ** 2, x**2 + 1, "The cross term is lost.").verify().obtained
    'a difference of 2*x'
    """
    return _step(name, lhs, "=", rhs, why, assumptions, latex, simplifies_to_zero)


def inequality(
    name: str,
    lhs: Any,
    rhs: Any,
    why: str,
    *,
    strict: bool = False,
    form: Any = None,
    grows_in: sp.Symbol | None = None,
    assumptions: str = "",
    latex: str = "",
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
    check = partial(decided, strict=strict, form=form, grows_in=grows_in)
    return _step(name, lhs, "<" if strict else "<=", rhs, why, assumptions, latex, check)


def by_lemma(
    name: str,
    lhs: Any,
    rhs: Any,
    why: str,
    *,
    lemma: str,
    box: Mapping[sp.Symbol, tuple[Number, Number]],
    where: Any = sp.true,
    points: int = 3000,
    near: Number = 0.01,
    seed: int = 0,
    assumptions: str = "",
    latex: str = "",
) -> Step:
    """The step ``lhs <= rhs`` that sympy cannot decide: a named lemma, and a search that tries to break it.

    The search covers ``box`` (symbol to range; ``where`` restricts it) with random, small and edge points
    and refines the worst ones. It must come within ``near`` (relative slack) of equality, or it fails: a
    search that stays far away would not have noticed a wrong constant. NaN is a failure.

    Example
    -------
    >>> a, b = sp.symbols("a b", real=True)
    >>> step = by_lemma("triangle", abs(a + b), abs(a) + abs(b), "Equal signs give equality.",
    ...                 lemma="triangle inequality", box={a: (-1, 1), b: (-1, 1)})
    >>> step.verify().method
    'lemma + search: triangle inequality, 5560 points, worst slack 0.00'
    """
    lhs, rhs = _exact(name, lhs), _exact(name, rhs)
    missing = (lhs.free_symbols | rhs.free_symbols) - set(box)
    if missing or not box or not all(low < high for low, high in box.values()):
        raise ValueError(
            f"step {name!r}: expected a range (low, high) with low < high for every symbol, got "
            f"{dict(box)}, without {sorted(map(str, missing))}; add or repair the ranges in box"
        )
    check = partial(searched, lemma=lemma, box=dict(box), where=where, points=points, near=near, seed=seed)
    return _step(name, lhs, "<=", rhs, why, assumptions, latex, check)


def distinct(
    name: str,
    lhs: Any,
    rhs: Any,
    why: str,
    *,
    at: Mapping[sp.Symbol, Any],
    assumptions: str = "",
    latex: str = "",
) -> Step:
    """The step ``lhs != rhs``: at the point ``at`` the two sides differ, in at least one entry.

    Example
    -------
    >>> x = sp.Symbol("x")
    >>> distinct("cube", x**3, x, "They agree at 0 and at 1 only.", at={x: 2}).verify().method
    'sympy: non-zero at x = 2'
    """
    return _step(name, lhs, "!=", rhs, why, assumptions, latex, partial(differs, at=dict(at)))


def _step(
    name: str, lhs: Any, relation: str, rhs: Any, why: str, assumptions: str, latex: str, check: Any
) -> Step:
    lhs, rhs = _exact(name, lhs), _exact(name, rhs)
    shapes = [getattr(side, "shape", None) for side in (lhs, rhs)]
    if shapes[0] != shapes[1] or (shapes[0] and relation in ("<=", "<")):
        raise ValueError(
            f"step {name!r}: expected two scalars, or for = and != two matrices of one shape, got shapes "
            f"{shapes[0]} and {shapes[1]}; transpose or multiply the sides so that they match"
        )
    return Step(name, lhs, relation, rhs, why, assumptions, latex, check)


def _exact(name: str, side: Any) -> Any:
    if not isinstance(side, (sp.Expr, sp.MatrixBase, int)):
        raise TypeError(
            f"step {name!r}: expected a sympy expression, matrix or integer, got {type(side).__name__}; "
            "build it from sympy symbols, with sp.Rational for fractions"
        )
    side = sp.sympify(side)
    if side.has(sp.Float, sp.nan):
        raise ValueError(f"step {name!r}: expected exact numbers, got {side}; use sp.Rational, not floats")
    return side.as_immutable() if isinstance(side, sp.MatrixBase) else side
