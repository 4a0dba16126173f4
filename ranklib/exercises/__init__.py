"""Checks of the readers' answers: a wrong one is told which misconception it looks like, where one is known.

One file a chapter, named after its notebook. Each exercise is a function of the answer that returns None if it
is right, and otherwise a sentence; it computes the truth, none is stored. Above it stand answers that the tests
give: right ones, wrong ones with a word of the sentence, and one of another form.
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ranklib.exercises.answers import Exercise, Form

__all__ = ["check", "load_exercises"]


@cache
def load_exercises() -> dict[str, Exercise]:
    """All exercises by their label, without ``ex-``; the files are found, not listed.

    >>> load_exercises()["midpoint"].check(6)
    """
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Exercise)]
    return {exercise.label: exercise for exercise in found}


def check(exercise: str, answer=None) -> None:
    """Print whether ``answer`` solves an exercise of the book; a known misconception is named.

    Parameters
    ----------
    exercise
        Its label in the chapter, for example ``"midpoint"``.
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
    exercises = load_exercises()
    if exercise not in exercises:
        raise ValueError(
            f"check: expected one of {', '.join(exercises)}, got {exercise!r}; copy the name from the exercise"
        )
    if answer is None:
        print(f"{exercise}: no answer yet. Write it where the cell says None.")
        return
    try:
        trouble = exercises[exercise].check(answer)
    except Form as form:
        shown = f"shape {tuple(answer.shape)}" if hasattr(answer, "shape") else repr(answer)
        trouble = f"expected {form}, got {shown}."
    print(f"{exercise}: right." if trouble is None else f"{exercise}: not yet; {trouble}")
