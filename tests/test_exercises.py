"""The checks of the exercises: the printed solution is right, and each misconception is named."""

import math
import re
from pathlib import Path

import nbformat
import pytest
import torch

from ranklib.centres import mean_residual
from ranklib.exercises import CHECKS, check
from ranklib.norms import composite
from ranklib.residual import residual_size_exact

CHAPTERS = sorted((Path(__file__).parent.parent / "chapters").glob("*.ipynb"))


def family(n, k):
    """One column e_1 and k columns (1, -1, ..., -1)/n: Chapter 1, Theorem (Mean centre)."""
    x = torch.full((n, k + 1), -1 / n, dtype=torch.float64)
    x[0], x[1:, 0], x[0, 0] = 1 / n, 0, 1
    return x


RIGHT = {
    "three-tokens": [("midrange", 4.03), ("midrange", math.sqrt(16.25))],
    "midpoint": [6, 6.0, torch.tensor(6.0)],
    "rank-one": [[[1, 2, 3], [-1, -2, -3]], torch.tensor([[0.0, 0.0, 7.0], [0.0, 0.0, -7.0]])],
    "bias": [
        lambda b_o, w_o, b_v: b_o + (b_v[:, None] @ w_o).sum(0)[0],
        lambda b_o, w_o, b_v: b_o + torch.einsum("hv,hvd->d", b_v, w_o),
    ],
    "worst-mean": [torch.eye(20).double(), torch.eye(20).tolist()],
    "drop": [{"v1T", "11T"}, ["11T", "v1T"]],
    "between": [{3}, 3],
    "pair": [lambda m, a, w: (m + a * math.tanh(w * a * (m + a)), m + a * math.tanh(w * a * (m - a)))],
    "half": [(0.5, 0.5, 0.9526)],
    "axis": [("P1 = 1", 1.878)],
}
WRONG = {
    "three-tokens": [
        (("mean", math.sqrt(18)), "by reflex"),
        (("midrange", 16.25), "root"),
        (("median", 4.47), ""),
    ],
    "midpoint": [(math.sqrt(28), "Frobenius"), (3, "")],
    "rank-one": [
        ([[1, 2, 3], [1, 2, 3]], "equal rows"),
        ([[1, 2, 3], [2, 4, 6]], "ratio|residual is"),
        ([[1, 0, 0], [0, 1, 0]], "multiple"),
    ],
    "bias": [
        (lambda b_o, w_o, b_v: b_o, "value biases"),
        (lambda b_o, w_o, b_v: torch.cat([b_o, b_o]), "summed"),
        (lambda b_o, w_o, b_v: 2 * b_o, ""),
    ],
    "worst-mean": [
        (torch.eye(20)[:, :1], "one feature gives 1.34"),
        (torch.randn(20, 30, generator=torch.Generator().manual_seed(0)), "ratio"),
        (torch.ones(20, 2), "equal"),
    ],
    "drop": [({"1vT", "11T"}, "rows as columns"), ({"diag"}, "")],
    "between": [({-1, 3}, "negative weights"), ({0, 3, 5}, "limit"), ({5}, "")],
    "pair": [
        (lambda m, a, w: tuple(m + a * math.tanh(w * (m + a) * x) for x in (m + a, m - a)), "shares"),
        (lambda m, a, w: (m + a, m - a), ""),
    ],
    "half": [((0.5, 0.5, 0.4988), "linear"), ((1, 1, 0.9526), "")],
    "axis": [(("shape", 1.0), "sums"), (("P1 = 1", 1.0), "")],
}
MALFORMED = {
    "three-tokens": "mean",
    "midpoint": "six",
    "rank-one": "u",
    "bias": 3,
    "worst-mean": [[1, 2]],
    "drop": 3,
    "between": "3",
    "pair": 3,
    "half": 0.5,
    "axis": 1.878,
}


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
