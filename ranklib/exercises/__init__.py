"""Checks of the readers' answers: a wrong one is told which misconception it looks like, where one is known.

Each check is a function of the answer that returns None if it is right, and otherwise a sentence. It computes
the truth; none is stored. One file a chapter; each has its table ``CHECKS``.
"""

from collections.abc import Callable

from ranklib.exercises import (
    chapter1,
    chapter2,
    chapter3,
    chapter4,
    chapter5,
    chapter6,
    chapter7,
    chapter8,
    chapter9,
    chapter10,
    chapter11,
    chapter12,
    chapter13,
    chapter14,
)
from ranklib.exercises.answers import Form

CHAPTERS = (
    *(chapter1, chapter2, chapter3, chapter4, chapter5, chapter6, chapter7),
    *(chapter8, chapter9, chapter10, chapter11, chapter12, chapter13, chapter14),
)
CHECKS: dict[str, Callable] = {
    name: function for chapter in CHAPTERS for name, function in chapter.CHECKS.items()
}
"""One check for each exercise; the key is the exercise's label without ``ex-``."""


__all__ = ["CHECKS", "check"]


def check(exercise: str, answer=None) -> None:
    """Print whether ``answer`` solves an exercise of the book; a known misconception is named.

    Parameters
    ----------
    exercise
        A key of ``CHECKS``, for example ``"midpoint"``.
    answer
        In the form that the exercise asks for; None prints an invitation.

    Raises
    ------
    ValueError
        There is no such exercise.

    Example
    -------
    >>> check("midpoint", 6)
    midpoint: right.
    >>> check("midpoint")
    midpoint: no answer yet. Write it where the cell says None.
    """
    if exercise not in CHECKS:
        raise ValueError(
            f"check: expected one of {', '.join(CHECKS)}, got {exercise!r}; copy the name from the exercise"
        )
    if answer is None:
        print(f"{exercise}: no answer yet. Write it where the cell says None.")
        return
    try:
        trouble = CHECKS[exercise](answer)
    except Form as form:
        shown = f"shape {tuple(answer.shape)}" if hasattr(answer, "shape") else repr(answer)
        trouble = f"expected {form}, got {shown}."
    print(f"{exercise}: right." if trouble is None else f"{exercise}: not yet; {trouble}")
