"""The two induced norms and their composite, which is not a norm."""

import doctest

import pytest
import torch

import ranklib.paper.norms
from plain import import_plain, raises_its_own_message
from ranklib.paper.norms import composite, max_col_sum, max_row_sum

SHAPES = [(2, 3), (5, 7), (11, 1), (1, 13), (7, 5)]


def draw(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_a_matrix_by_hand():
    a = torch.tensor([[1.0, -2.0, 0.0], [3.0, 1.0, -1.0]], dtype=torch.float64)
    assert max_col_sum(a) == 4 and max_row_sum(a) == 5
    assert composite(a).item() == pytest.approx(20**0.5, rel=1e-15)


@pytest.mark.parametrize("shape", SHAPES)
def test_they_are_the_induced_norms(shape):
    """torch's own induced norms are the oracle, and a batch is the loop over its members."""
    a = draw(1, 3, 2, *shape)
    torch.testing.assert_close(max_col_sum(a), torch.linalg.matrix_norm(a, 1), rtol=1e-14, atol=0)
    torch.testing.assert_close(max_row_sum(a), torch.linalg.matrix_norm(a, torch.inf), rtol=1e-14, atol=0)
    torch.testing.assert_close(max_col_sum(a), max_row_sum(a.mT), rtol=1e-14, atol=0)
    one_by_one = torch.stack([composite(m) for m in a.reshape(-1, *shape)]).reshape(3, 2)
    torch.testing.assert_close(composite(a), one_by_one, rtol=1e-14, atol=0)


def test_the_composite_is_not_a_norm():
    """(2, 1) = (1, 1) + (1, 0) violates the triangle inequality: sqrt 6 > sqrt 2 + 1."""
    left, right = torch.tensor([[[1.0, 1.0]], [[1.0, 0.0]]], dtype=torch.float64)
    assert composite(left + right).item() == pytest.approx(6**0.5, rel=1e-15)
    assert composite(left + right) > composite(left) + composite(right) + 0.03
    for norm in (max_col_sum, max_row_sum):
        assert norm(left + right) <= norm(left) + norm(right)


@pytest.mark.parametrize("seed", range(20))
def test_homogeneous_definite_monotone_submultiplicative(seed):
    a, b = draw(seed, 5, 7), draw(seed + 100, 7, 3)
    torch.testing.assert_close(composite(-3.7 * a), 3.7 * composite(a), rtol=1e-14, atol=0)
    assert composite(torch.zeros_like(a)) == 0
    single = torch.zeros_like(a)
    single[seed % 5, seed % 7] = 1e-300
    assert composite(single).item() == pytest.approx(1e-300, rel=1e-12)
    shrink = torch.rand(5, 7, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    assert composite(a * shrink) <= composite(a)
    torch.testing.assert_close(composite(a.abs()), composite(a), rtol=0, atol=0)
    torch.testing.assert_close(composite(a.mT), composite(a), rtol=1e-14, atol=0)
    assert composite(a @ b) <= composite(a) * composite(b) * (1 + 1e-14)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_no_underflow_or_overflow_in_the_product(scale):
    a = draw(3, 5, 7)
    torch.testing.assert_close(composite(a * scale) / scale, composite(a), rtol=1e-13, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_float_dtypes(dtype):
    a = draw(4, 5, 7).to(dtype)
    assert composite(a).dtype == torch.float32
    torch.testing.assert_close(composite(a).double(), composite(a.double()), rtol=1e-6, atol=0)


BAD = {
    "nan": (torch.tensor([[1.0, float("nan")]]), ValueError, "finite"),
    "infinity": (torch.tensor([[1.0, float("inf")]]), ValueError, "finite"),
    "integers": (torch.ones(2, 3, dtype=torch.int64), TypeError, "floating-point"),
    "a vector": (torch.ones(3), ValueError, "at least one row"),
    "no rows": (torch.ones(0, 3), ValueError, "at least one row"),
    "a list": ([[1.0]], TypeError, "torch tensor"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("function", [max_col_sum, max_row_sum, composite])
def test_bad_input_never_gives_a_number(function, case):
    with pytest.raises((TypeError, ValueError)):
        function(BAD[case][0])


def test_messages_without_the_shape_checker():
    """What a user sees: the shape checker runs only under pytest."""
    for bad, kind, word in BAD.values():
        assert word in raises_its_own_message(kind, import_plain("ranklib.paper.norms").composite, bad)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.paper.norms)
    assert found.attempted >= 6 and found.failed == 0
