"""What every check of an answer needs: reading it in the form that was asked for, and comparing it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real

import torch

F64 = torch.float64
UNKNOWN = "this is not it. Try the smallest case by hand, or open the solution."


@dataclass(frozen=True)
class Exercise:
    """A check, which returns None for a right answer and else a sentence, with answers to try it on.

    ``right`` are right answers, ``wrong`` pairs of a wrong one and a word of what is said about it (empty where
    no misconception is known), ``malformed`` has another form than the exercise asks for.
    """

    check: Callable
    right: Sequence
    wrong: Sequence[tuple]
    malformed: object

    @property
    def label(self) -> str:
        """Its label in the chapter, without ``ex-``."""
        return self.check.__name__.replace("_", "-")


def exercise(*, right: Sequence = (), wrong: Sequence[tuple] = (), malformed=None) -> Callable:
    """Decorator that turns a check into an :class:`Exercise`, labelled by the check's name."""
    return lambda check: Exercise(check, right, wrong, malformed)


class Form(Exception):
    """The answer has another form than the exercise asks for; the message says which is wanted."""


def number(value) -> float:
    """A number or a tensor of one, as a float; raises :class:`Form` otherwise."""
    if not isinstance(value, Real | torch.Tensor) or getattr(value, "numel", lambda: 1)() != 1:
        raise Form("a number")
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise Form("a number") from None


def close(value, truth: Real) -> bool:
    """Equal to three digits, as a reader would write it."""
    return math.isclose(number(value), truth, rel_tol=5.1e-3, abs_tol=1e-9)


def pair_of(answer, what: str) -> tuple:
    """A pair, as a tuple; raises :class:`Form` otherwise."""
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise Form(f"a pair {what}")
    return tuple(answer)


def matrix(answer, rows: int | None = None, columns: int | None = None) -> torch.Tensor:
    """A finite float64 matrix of that many rows and columns; raises :class:`Form` otherwise."""
    try:
        x = torch.as_tensor(answer, dtype=F64)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        raise Form("a matrix, as a list of rows or a tensor") from None
    if (
        x.ndim != 2
        or (rows and len(x) != rows)
        or (columns and x.shape[1] != columns)
        or not x.isfinite().all()
    ):
        raise Form(f"a finite matrix with {rows or 'some'} rows and {columns or 'some'} columns")
    return x


def call(function, *arguments):
    """What the answer, a function, gives; raises :class:`Form` if it is none or fails."""
    if not callable(function):
        raise Form("a function")
    try:
        return function(*arguments)
    except Exception as error:
        raise Form(f"a function that runs (it raised {type(error).__name__}: {error})") from None
