"""The checks of the exercises: the printed solution is right, and each misconception is named."""

import importlib
import math
import re
from pathlib import Path

import nbformat
import pytest
import torch

from ranklib.exercises import CHECKS, check
from ranklib.paper.centres import mean_residual
from ranklib.paper.least import residual_size_exact
from ranklib.paper.norms import composite

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("*.ipynb"))


def family(n, k):
    """One column e_1 and k columns (1, -1, ..., -1)/n: Chapter 1, Theorem (Mean centre)."""
    x = torch.full((n, k + 1), -1 / n, dtype=torch.float64)
    x[0], x[1:, 0], x[0, 0] = 1 / n, 0, 1
    return x


TABLES = [importlib.import_module(p.stem) for p in sorted(Path(__file__).parent.glob("answers_chapter*.py"))]
RIGHT, WRONG, MALFORMED = (
    {name: answers for table in TABLES for name, answers in getattr(table, kind).items()}
    for kind in ("RIGHT", "WRONG", "MALFORMED")
)


def said(capsys, name, answer=None):
    check(name, answer)
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize("name", CHECKS)
def test_right_wrong_and_malformed(name, capsys):
    for answer in RIGHT[name]:
        assert said(capsys, name, answer) == f"{name}: right."
    for answer, word in WRONG[name]:
        text = said(capsys, name, answer)
        assert text.startswith(f"{name}: not yet; ") and re.search(word, text), text
        assert not text.startswith(f"{name}: not yet; expected")
    assert "expected" in said(capsys, name, MALFORMED[name])
    assert "no answer yet" in said(capsys, name)


def test_unknown_exercise():
    with pytest.raises(ValueError, match="expected one of three-tokens"):
        check("four-tokens", 1)


def test_every_exercise_has_a_check_and_every_check_an_exercise():
    labels, calls = [], []
    for path in CHAPTERS:
        for cell in nbformat.read(path, 4).cells:
            if cell.cell_type == "markdown":
                labels += re.findall(r"<!-- ex-([\w-]+) -->", cell.source)
            else:
                calls += re.findall(r'^check\("([\w-]+)"', cell.source, re.M)
    assert labels == calls and sorted(labels) == sorted(CHECKS)


def test_what_the_solution_of_worst_mean_says():
    """The identity gives 1.9; the family needs about a thousand columns for 1.89; one column gives 1.34."""
    identity = torch.eye(20).double()
    assert math.isclose(mean_residual(identity) / residual_size_exact(identity).upper, 1.9, rel_tol=1e-9)
    one = identity[:, :1]
    assert math.isclose(mean_residual(one) / residual_size_exact(one).upper, 1.34, abs_tol=0.005)
    ratios = {k: mean_residual(family(20, k)) / composite(family(20, k)) for k in (800, 1100)}
    assert ratios[800] < 1.89 < ratios[1100]
