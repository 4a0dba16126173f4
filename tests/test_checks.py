"""What the checks of arguments say, and that they let good arguments pass."""

import re

import pytest
import torch

from plain import import_plain

_checks = import_plain("ranklib._checks")

GOOD = torch.ones(2, 3)
PASS = [
    (_checks.require_float, ("x", GOOD)),
    (_checks.require_matrix, ("x", GOOD)),
    (_checks.require_shape, ("x", GOOD, "two axes", True)),
    (_checks.require_positive, ("tol", 1e-3)),
    (_checks.require_int, ("depth", 3, 1)),
    (_checks.require_dtype, ("w", GOOD, torch.float32, "x")),
    (_checks.require_instance, ("generator", torch.Generator(), torch.Generator)),
    (_checks.require_all, ("p", GOOD > 0, "positive entries", "entries that are not", "take exp")),
    (_checks.require_nonzero, (GOOD, "a rank", "add noise")),
]
REFUSE = [
    (_checks.require_float, ("x", [1.0]), TypeError, "x: expected a torch tensor"),
    (_checks.require_float, ("x", GOOD.long()), TypeError, "x: expected a floating-point dtype"),
    (_checks.require_float, ("x", torch.tensor([0.0, torch.nan, torch.inf])), ValueError, "x: .*finite.*got 2"),
    (_checks.require_matrix, ("x", GOOD[0]), ValueError, "x: expected .*at least one row"),
    (_checks.require_matrix, ("x", GOOD[:0]), ValueError, "x: expected .*at least one row"),
    (_checks.require_shape, ("x", GOOD, "three axes", False), ValueError, "x: expected .*three axes.*2, 3"),
    (_checks.require_positive, ("tol", 0.0), ValueError, "tol: expected .*positive.*got 0.0"),
    (_checks.require_positive, ("tol", float("nan")), ValueError, "tol: expected .*positive"),
    (_checks.require_int, ("depth", 0, 1), ValueError, "depth: expected at least 1, got 0"),
    (_checks.require_int, ("depth", True, 1), TypeError, "depth: expected an integer, got True"),
    (_checks.require_int, ("depth", 2.0, 1), TypeError, "depth: expected an integer, got 2.0"),
    (_checks.require_dtype, ("w", GOOD, torch.float64, "x"), TypeError, "w: expected torch.float64 as x has"),
    (_checks.require_instance, ("generator", 0, torch.Generator), TypeError, "expected Generator, got int"),
    (_checks.require_all, ("p", GOOD > 1, "large", "small", "scale"), ValueError, "expected large, got 6 of 6 small"),
    (_checks.require_nonzero, (0 * GOOD, "a rank", "add noise"), ValueError, "a rank"),
]  # fmt: skip


@pytest.mark.parametrize("check, arguments", PASS)
def test_good_arguments_pass(check, arguments):
    assert check(*arguments) is None


@pytest.mark.parametrize("check, arguments, kind, message", REFUSE)
def test_bad_arguments_are_refused_with_a_remedy(check, arguments, kind, message):
    with pytest.raises(kind) as caught:
        check(*arguments)
    assert re.search(message, str(caught.value)) and ";" in str(caught.value)


def test_half_precision_is_measured_in_float32():
    for dtype in (torch.float16, torch.bfloat16):
        assert _checks.measurable("x", GOOD.to(dtype)).dtype == torch.float32
    assert _checks.measurable("x", GOOD.double()).dtype == torch.float64


def test_finiteness_is_seen_inside_transforms():
    bad = torch.tensor([[1.0, 2.0], [torch.nan, 3.0]])

    def double(x):
        _checks.require_float_traced("x", x)
        return 2 * x

    assert torch.equal(torch.func.vmap(double)(GOOD), 2 * GOOD)
    with pytest.raises(ValueError, match="x: expected finite"):
        torch.func.vmap(double)(bad)
