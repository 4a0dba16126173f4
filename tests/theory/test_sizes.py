"""Diameters and sizes of weights: what is refused, and the examples. Their theorems: test_diameters."""

import doctest
import math

import pytest
import torch

import ranklib.theory.sizes
from plain import import_plain, raises_its_own_message


@pytest.mark.parametrize(
    "kind,call",
    [
        (ValueError, lambda m: m.diameter(torch.ones(2, 2), "l3")),
        (TypeError, lambda m: m.diameter(torch.ones(2, 2, dtype=torch.int64))),
        (ValueError, lambda m: m.diameter(torch.tensor([[1.0], [math.nan]]))),
        (ValueError, lambda m: m.diameter(torch.ones(0, 2))),
        (ValueError, lambda m: m.diameter(torch.ones(3))),
        (TypeError, lambda m: m.log10_diameter(torch.ones(2, 2))),
        (TypeError, lambda m: m.score_size(torch.ones(2, 2))),
        (ValueError, lambda m: m.operator_size(torch.ones(2))),
        (ValueError, lambda m: m.operator_size(torch.tensor([[math.inf]]))),
    ],
)
def test_bad_input_is_refused(kind, call):
    raises_its_own_message(kind, call, import_plain("ranklib.theory.sizes"))


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.theory.sizes)
    assert found.failed == 0 and found.attempted >= 5
