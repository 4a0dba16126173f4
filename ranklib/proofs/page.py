"""All derivations on one page, by statement, each folded."""

from collections import Counter
from dataclasses import dataclass

from . import DERIVATIONS, derivation
from .engine.derivation import Derivation


@dataclass(frozen=True)
class Page:
    """The derivations to show; made by :func:`all_derivations`."""

    derivations: tuple[Derivation, ...]

    def __repr__(self) -> str:
        return f"{len(self.derivations)} derivations"

    def _repr_markdown_(self) -> str:
        kinds = Counter(step.kind for built in self.derivations for step in built.steps)
        rows = "\n".join(f"| {kind} | {count} |" for kind, count in kinds.most_common())
        head = f"{len(self.derivations)} derivations, {sum(kinds.values())} steps.\n\n| decided by | steps |\n|---|---|\n{rows}"
        folds = (
            built.markdown(f"<b>{built.statement}</b> (<code>{built.name}</code>)")
            for built in self.derivations
        )
        return "\n\n".join([head, *folds])


def all_derivations() -> Page:
    """Every derivation of the book, verified; the page prints them in the order of the topics.

    Example
    -------
    >>> len(all_derivations().derivations) > 70
    True
    """
    return Page(tuple(derivation(name) for name in DERIVATIONS))
