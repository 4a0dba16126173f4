"""Derivations that verify themselves: named steps, each decided by sympy or attacked by a search.

>>> print(derivation("composite_triangle").report())
composite_triangle
 1  two rows and their sum        sympy: simplifies to zero
 2  the sum is larger             sympy: decided
 3  two pairs of tokens           sympy: simplifies to zero
 4  residuals fail too            sympy: decided
 5  a square example              sympy: simplifies to zero
 6  the sum of squares is larger  sympy: decided
6 of 6 steps verified
"""

from collections.abc import Iterable

from . import (
    arcs,
    breaks,
    centres,
    layernorm,
    lengths,
    many_heads,
    masks,
    measures,
    mlps,
    one_head,
    paths,
    residual,
    scores,
    sharpness,
    skips,
    softmax,
    tilts,
)
from .engine.steps import Derivation, DerivationError, Report, Step, by_lemma, distinct, identity, inequality

CHAPTERS = (
    *(residual, centres, scores, softmax, paths, tilts, one_head, sharpness, many_heads, breaks),
    *(skips, mlps, layernorm, masks, measures, arcs, lengths),
)
DERIVATIONS = {name: build for chapter in CHAPTERS for name, build in chapter.DERIVATIONS.items()}
"""What builds each derivation, by name."""


def derivation(name: str) -> Derivation:
    """The derivation of that name, built afresh; raises ``ValueError`` for an unknown name.

    Example
    -------
    >>> derivation("softmax_shift").claim
    'Adding one number to a whole row of scores changes nothing; adding it to a column does.'
    """
    if name not in DERIVATIONS:
        known = ", ".join(sorted(DERIVATIONS))
        raise ValueError(f"derivation: expected one of {known}, got {name!r}; check the name")
    return DERIVATIONS[name]()


def check_all(names: Iterable[str] = tuple(DERIVATIONS)) -> dict[str, Report]:
    """Verify the derivations of these names; raise :class:`DerivationError` at the first failing step.

    Example
    -------
    >>> {name: report.ok for name, report in check_all(["softmax_shift", "safe_softmax"]).items()}
    {'softmax_shift': True, 'safe_softmax': True}
    """
    return {name: derivation(name).check() for name in names}


__all__ = [
    "DERIVATIONS",
    "Derivation",
    "DerivationError",
    "Report",
    "Step",
    "by_lemma",
    "check_all",
    "derivation",
    "distinct",
    "identity",
    "inequality",
]
