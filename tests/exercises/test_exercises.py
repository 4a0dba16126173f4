"""The checks of the exercises: the printed solution is right, and each misconception is named."""

import math
import re
from pathlib import Path

import nbformat
import pytest
import torch

from ranklib.exercises import check, load_exercises
from ranklib.exercises.answers import exercise
from ranklib.paper.centres import mean_residual
from ranklib.paper.least import residual_size_exact
from ranklib.paper.norms import composite

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*.ipynb"))


def family(n, k):
    """One column e_1 and k columns (1, -1, ..., -1)/n: the family of Theorem (Mean centre)."""
    x = torch.full((n, k + 1), -1 / n, dtype=torch.float64)
    x[0], x[1:, 0], x[0, 0] = 1 / n, 0, 1
    return x


EXERCISES = load_exercises()


def said(capsys, name, answer=None):
    check(name, answer)
    return capsys.readouterr().out.strip()


def incomplete(exercise):
    """What was forgotten at an exercise, as a sentence with the remedy; None if nothing was."""
    kinds = ("right", "wrong", "malformed")
    if lacking := [kind for kind in kinds if getattr(exercise, kind) in ((), [], None)]:
        file = exercise.check.__module__.replace(".", "/") + ".py"
        return (
            f"exercise {exercise.label!r}: expected right, wrong and malformed answers, got no "
            f"{' and no '.join(lacking)}; add them to @exercise(...) above its check in {file}"
        )
    return None


def misjudged(exercise, answer, wanted, text):
    file = exercise.check.__module__.replace(".", "/") + ".py"
    return (
        f"exercise {exercise.label!r}: @exercise(...) says that {answer!r} {wanted}, the check says {text!r}; "
        f"correct one of the two in {file}"
    )


@pytest.mark.parametrize("name", EXERCISES)
def test_right_wrong_and_malformed(name, capsys):
    given = EXERCISES[name]
    assert not incomplete(given), incomplete(given)
    for answer in given.right:
        text = said(capsys, name, answer)
        assert text == f"{name}: right.", misjudged(given, answer, "is right", text)
    for answer, word in given.wrong:
        text = said(capsys, name, answer)
        found = text.startswith(f"{name}: not yet; ") and re.search(word, text)
        assert found, misjudged(given, answer, f"is wrong, with {word!r} in the reply", text)
        assert not text.startswith(f"{name}: not yet; expected")
    assert "expected" in said(capsys, name, given.malformed)
    assert "no answer yet" in said(capsys, name)


def test_a_forgotten_answer_is_named_with_the_remedy():
    @exercise(right=[1], malformed="one")
    def halved(answer):
        return None

    assert incomplete(halved) == (
        "exercise 'halved': expected right, wrong and malformed answers, got no wrong; "
        f"add them to @exercise(...) above its check in {__name__.replace('.', '/')}.py"
    )


def test_unknown_exercise():
    with pytest.raises(ValueError, match="expected one of .*three-tokens"):
        check("four-tokens", 1)


def unmatched(labels, calls, checks, slug):
    """One sentence, with the remedy, for each exercise that lacks its check, cell or text."""
    file = f"ranklib/exercises/{slug.replace('-', '_')}.py"
    for label in sorted({*labels, *calls, *checks}):
        function = label.replace("-", "_")
        if label not in checks:
            yield f"exercise {label!r} of {slug} has no check: write @exercise(...) def {function} in {file}"
        if label not in labels:
            yield f"{file}: {function} has no exercise: label one '<a id=\"ex-{label}\"></a>' in chapters/{slug}.ipynb"
        if label not in calls:
            yield f"exercise {label!r} of {slug} has no cell: add one that ends in rl.check({label!r}, answer)"


def labels_and_calls(path):
    cells = nbformat.read(path, 4).cells
    text, code = ("\n".join(c.source for c in cells if c.cell_type == kind) for kind in ("markdown", "code"))
    return re.findall(r'<a id="ex-([\w-]+)"></a>', text), re.findall(r'^rl\.check\("([\w-]+)"', code, re.M)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_exercise_has_a_check_and_every_check_an_exercise(path):
    room = f"ranklib.exercises.{path.stem.replace('-', '_')}"
    checks = [e.label for e in EXERCISES.values() if e.check.__module__ == room]
    labels, calls = labels_and_calls(path)
    assert not [*unmatched(labels, calls, checks, path.stem)]
    assert labels == calls and len(labels) == len(checks), (
        f"{path.stem}: cells stand in another order than text"
    )


def test_labels_are_used_once_in_the_book():
    labels = [label for path in CHAPTERS for label in labels_and_calls(path)[0]]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    assert not twice, f"exercises in two places of the book: {twice}; give one of each another label"


def test_what_is_forgotten_is_named_with_the_remedy():
    assert [*unmatched(["a-b"], ["a-b"], [], "one-head")] == [
        "exercise 'a-b' of one-head has no check: write @exercise(...) def a_b in ranklib/exercises/one_head.py"
    ]
    assert "has no cell: add one that ends in rl.check('a', answer)" in [*unmatched("a", "", "a", "mlps")][0]
    assert "label one '<a id=\"ex-a\"></a>' in chapters/mlps.ipynb" in [*unmatched("", "a", "a", "mlps")][0]


def test_what_the_solution_of_worst_mean_says():
    """The identity gives 1.9; the family needs about a thousand columns for 1.89; one column gives 1.34."""
    identity = torch.eye(20).double()
    assert math.isclose(mean_residual(identity) / residual_size_exact(identity).upper, 1.9, rel_tol=1e-9)
    one = identity[:, :1]
    assert math.isclose(mean_residual(one) / residual_size_exact(one).upper, 1.34, abs_tol=0.005)
    ratios = {k: mean_residual(family(20, k)) / composite(family(20, k)) for k in (800, 1100)}
    assert ratios[800] < 1.89 < ratios[1100]
