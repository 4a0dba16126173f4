"""Checks of the readers' answers: a wrong one is told which misconception it looks like, where one is known.

Each check is a function of the answer that returns None if it is right, and otherwise a sentence. It computes
the truth; none is stored. One file a chapter, named after its notebook; each has its table ``CHECKS``.
"""

from collections.abc import Callable

from ranklib.exercises import (
    attention_and_residual,
    drawing_arcs,
    layernorm,
    many_heads,
    masks_and_positions,
    measure_your_own_model,
    mlps,
    one_head,
    path_decomposition,
    real_transformers,
    skip_connections,
    softmax_shift_invariance,
    where_it_breaks,
    which_paths,
)
from ranklib.exercises.answers import Form

CHAPTERS = (
    *(
        attention_and_residual,
        softmax_shift_invariance,
        path_decomposition,
        one_head,
        many_heads,
        where_it_breaks,
        skip_connections,
    ),
    *(
        mlps,
        layernorm,
        masks_and_positions,
        real_transformers,
        measure_your_own_model,
        drawing_arcs,
        which_paths,
    ),
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
