"""Exercises ask for what is not on the page, know many slips, take rounded answers, and no answer breaks them."""

import math
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
import torch

from ranklib.exercises import check, load_exercises
from tests.book.notebook_rules import text_of
from tests.book.test_form import FIRST_EDITION, main_line

ROOT = Path(__file__).parents[2]
EXERCISES = load_exercises()
SOLUTION = re.compile(r"<details>\s*<summary>(?:Solution|Hint).*?</details>", re.S)
REWRITTEN = {slug for slug in main_line() if slug not in FIRST_EDITION}


def slug_of(exercise):
    return exercise.check.__module__.rsplit(".", 1)[-1].replace("_", "-")


MAIN = [name for name, exercise in EXERCISES.items() if slug_of(exercise) in REWRITTEN]


def is_real(value):
    return isinstance(value, float) and math.isfinite(value)


def written(value: float) -> set[str]:
    """How three and four significant digits of a number may stand on a page; nothing for a number with fewer."""
    forms = {f"{value:.{digits}g}" for digits in (3, 4)}
    return {form for form in forms if "e" not in form and len(form.replace(".", "").strip("-0")) >= 3}


def page_of(slug: str) -> str:
    """What a reader sees before he opens a solution: the text and the printed outputs."""
    cells = nbformat.read(ROOT / f"chapters/{slug}.ipynb", 4).cells
    parts = []
    for cell in cells:
        if cell.cell_type == "markdown":
            parts.append(SOLUTION.sub("", cell.source))
        elif "rl.check(" not in cell.source:
            parts += [
                text_of(output) for output in cell.outputs if "image/svg+xml" not in output.get("data", {})
            ]
    page = re.sub(r"<svg.*?</svg>", "", "\n".join(parts), flags=re.S)
    sentences = re.findall(r'data-seen="([^"]*)"', page)
    return "\n".join([re.sub(r"<[^>]+>", " ", page), *sentences])


def stands_on(page: str, value: float) -> list[str]:
    return [
        form for form in sorted(written(value)) if re.search(rf"(?<![\d.]){re.escape(form)}(?!\d|\.\d)", page)
    ]


@pytest.mark.parametrize("name", MAIN)
def test_no_answer_stands_on_its_page(name):
    page = page_of(slug_of(EXERCISES[name]))
    for value in filter(is_real, EXERCISES[name].right):
        assert not stands_on(page, value), (
            f"{name}: {stands_on(page, value)} stands on the page; ask for another number"
        )


def test_an_answer_on_the_page_is_found():
    assert stands_on("It is 2.10 or 2.096.", 2.0963) == ["2.096"]
    assert not stands_on("It is 12.096, 2.0961 or 2.", 2.0963) and not written(0.5) and not written(1e-12)


def too_few(name, slips):
    """Five wrong answers, each with its own reply; None, or a sentence with the remedy."""
    file = EXERCISES[name].check.__module__.replace(".", "/") + ".py"
    return slips < 5 and (
        f"exercise {name!r}: expected five slips with a sentence each, got {slips}; add wrong answers to its "
        f"@exercise(wrong=...) and what its check says to each, in {file}"
    )


@pytest.mark.parametrize("name", MAIN)
def test_at_least_five_slips_have_a_sentence_of_their_own(name, capsys):
    said = set()
    for answer, _ in EXERCISES[name].wrong:
        check(name, answer)
        said.add(capsys.readouterr().out)
    assert not too_few(name, len(said)), too_few(name, len(said))


@pytest.mark.parametrize("name", MAIN)
def test_three_digits_are_enough(name, capsys):
    for value in filter(is_real, EXERCISES[name].right):
        check(name, float(f"{value:.3g}"))
        said = capsys.readouterr().out.strip()
        assert said == f"{name}: right.", (
            f"exercise {name!r}: three digits of the right answer {value} are refused; compare with close(...) "
            f"and an unrounded value in its check, which said {said!r}"
        )


def _raise(*_):
    raise ZeroDivisionError("of the reader's own function")


class Odd:
    def __eq__(self, other):
        raise TypeError("not to be compared")

    __hash__ = None


ANYTHING = [
    *(
        0,
        -1,
        10**400,
        True,
        math.nan,
        math.inf,
        -math.inf,
        1e308,
        1j,
        "",
        "0.5",
        b"x",
        (),
        [],
        {},
        set(),
        ...,
    ),
    *(
        (0, math.inf),
        (math.nan,) * 3,
        [[]],
        [[1, 2], [3]],
        (1, "a"),
        range(3),
        [1] * 100,
        {"a": 1},
        int,
        Odd(),
    ),
    *(
        torch.zeros(0),
        torch.tensor(math.nan),
        torch.eye(2, dtype=torch.int8),
        torch.ones(2, 3, 4),
        np.zeros((2, 2)),
    ),
    *(
        np.array(["a"]),
        _raise,
        lambda: None,
        lambda x: x,
        lambda x: None,
        lambda x: torch.full_like(x, math.nan),
    ),
    *(lambda x, y: x, lambda n: -n, lambda x: "text", lambda x: 1000 * abs(x)),
]


@pytest.mark.parametrize("name", EXERCISES)
def test_no_answer_breaks_a_check(name, capsys):
    for answer in ANYTHING:
        check(name, answer)
        assert capsys.readouterr().out.startswith(f"{name}: ")
