"""Derivations: a claim and the steps that lead to it. Showing one verifies it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .cache import verdicts
from .decide import Verdict
from .steps import Step

PLURALS = {
    "identity": "identities",
    "inequality": "inequalities",
    "intervals": "by intervals",
    "difference": "differences",
    "definition": "definitions",
    "search only": "by search only",
    "cited lemma and search": "by a cited lemma and a search",
}


class DerivationError(AssertionError):
    """A step of a derivation is not verified; the message names it, what is left over and a remedy."""


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

    ``given`` holds for every step. ``module`` is the topic it comes from: its verdicts are then cached.

    Raises
    ------
    ValueError
        There is no step, or two steps share a name.

    Example
    -------
    >>> import sympy as sp
    >>> from ranklib.proofs import identity, inequality
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
    given: Mapping[Any, Any] = field(default_factory=dict, repr=False)
    module: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        if not names or len(set(names)) < len(names):
            raise ValueError(
                f"derivation {self.name!r}: expected at least one step and distinct names, got {names}; "
                "add a step or rename one"
            )
        object.__setattr__(self, "steps", tuple(step.with_given(self.given) for step in self.steps))

    def verify(self) -> Report:
        """Verify every step (once) and return the report, whatever it says."""
        return self._verified

    @cached_property
    def _verified(self) -> Report:
        def run() -> tuple[Verdict, ...]:
            return tuple(step.verify() for step in self.steps)

        found = verdicts(self.name, self.module, run) if self.module else run()
        return Report(self.name, tuple(zip((step.name for step in self.steps), found, strict=True)))

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

    def summary(self) -> str:
        """How many steps there are, and how many of each kind."""
        counts = Counter(step.kind for step in self.steps)
        kinds = [
            f"{count} {kind if count == 1 and not PLURALS[kind].startswith('by') else PLURALS[kind]}"
            for kind, count in counts.most_common()
        ]
        return f"checked: {len(self.steps)} steps ({', '.join(kinds)})"

    @property
    def statement(self) -> str:
        """What it derives, by its name in the book: ``Theorem (Mean centre)``."""
        return self.source.split(";")[0].split(", ")[0].rstrip(".")

    def markdown(self, title: str) -> str:
        """One line that unfolds: a title and what was checked, then every step."""
        report = self.check()
        parts = [f"<details>\n<summary>{title}, {self.summary()}</summary>", self.claim]
        for number, (step, (_, verdict)) in enumerate(zip(self.steps, report.rows), 1):
            parts += [f"**{number}. {step.name[0].upper()}{step.name[1:]}** ({step.label()})", step.display()]
            shown = (
                "" if step.kind == "definition" else f" *{verdict.method[0].upper()}{verdict.method[1:]}.*"
            )
            parts += [step.why + shown]
        return "\n\n".join([*parts, f"Source: {self.source}", "</details>"]) + "\n"

    def _repr_markdown_(self) -> str:
        return self.markdown(f"Derivation (<code>{self.name}</code>)")
