"""Derivations that verify themselves: named steps, and for each one what decided it.

A step shows what is checked: its formula is printed from the two sides that sympy, ball arithmetic or a
search gets. Nothing here is imported before it is asked for.

>>> print(derivation("composite_triangle").report())
composite_triangle
 1  two rows             intervals: 1 box
 2  two pairs of tokens  intervals: 1 box
 3  a column and a row   intervals: 1 box
3 of 3 steps verified
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine.derivation import Derivation, Report

TOPICS = (
    *("layer", "centres", "median", "scores", "softmax", "safe_softmax", "paths", "path_lengths"),
    *(
        "tilts",
        "diameters",
        "columns",
        "one_head",
        "depth",
        "sharpness",
        "many_heads",
        "cancelling_heads",
        "families",
    ),
    *("constant_four", "skips", "skip_examples", "mlps", "mlp_examples", "mlp_shapes"),
    *(
        "layernorm",
        "layernorm_examples",
        "masks",
        "forgetting",
        "positions",
        "blocks",
        "measures",
        "arcs",
        "lengths",
    ),
)
ENGINE = {
    "Derivation": "derivation",
    "DerivationError": "derivation",
    "Report": "derivation",
    **dict.fromkeys(
        ("Step", "by_intervals", "by_lemma", "by_search", "definition", "distinct", "identity", "inequality"),
        "steps",
    ),
}
__all__ = ["DERIVATIONS", "EXPRESSIONS", "all_derivations", "check_all", "derivation", *ENGINE]

DERIVATIONS: dict[str, Any]
"""Name -> the function that builds the derivation of that name; made when it is first asked for."""
EXPRESSIONS: dict[str, Any]
"""Name of a function of the bounds -> the expression that the derivations use for it."""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in ENGINE:
        return getattr(import_module(f".engine.{ENGINE[name]}", __name__), name)
    if name == "EXPRESSIONS":
        return import_module(".expressions", __name__).EXPRESSIONS
    if name == "DERIVATIONS":
        return registry()
    if name == "all_derivations":
        return import_module(".page", __name__).all_derivations
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def registry() -> dict[str, Any]:
    """Name -> the function that builds the derivation of that name, in the order of the topics."""
    topics = (import_module(f".{topic}", __name__) for topic in TOPICS)
    return {build.__name__: build for topic in topics for build in topic.DERIVATIONS}


def derivation(name: str) -> "Derivation":
    """The derivation of that name, built afresh; raises ``ValueError`` for an unknown name.

    Example
    -------
    >>> derivation("softmax_shift").claim
    'Adding one number to a whole row of scores changes nothing; adding it to a column does.'
    """
    known = registry()
    if name not in known:
        raise ValueError(
            f"derivation: expected one of {', '.join(sorted(known))}, got {name!r}; check the name"
        )
    return known[name]()


def check_all(names: Iterable[str] | None = None) -> "dict[str, Report]":
    """Verify the derivations of these names, or all; raise ``DerivationError`` at the first failing step.

    Example
    -------
    >>> {name: report.ok for name, report in check_all(["softmax_shift", "safe_softmax"]).items()}
    {'softmax_shift': True, 'safe_softmax': True}
    """
    return {name: derivation(name).check() for name in names or registry()}
