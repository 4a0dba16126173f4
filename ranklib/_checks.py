"""Checks of what the caller passes: each says what was expected, what came, and the remedy."""

from numbers import Real

import torch
from torch import Tensor


def require_float(name: str, value: Tensor) -> None:
    """Raise unless ``value`` is a floating-point tensor without NaN or infinity.

    Raises
    ------
    TypeError
        ``value`` is no tensor, or its dtype is not a floating-point one.
    ValueError
        ``value`` contains NaN or infinity.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}: expected a torch tensor, got {type(value).__name__}; "
            f"convert it with torch.as_tensor({name}, dtype=torch.float64)"
        )
    if not value.is_floating_point():
        raise TypeError(
            f"{name}: expected a floating-point dtype, got {value.dtype}; "
            f"convert it with {name}.to(torch.float64)"
        )
    # One number tells: the largest absolute value is NaN or infinite if any is. Counting comes after.
    if value.numel() and not torch.isfinite(value.abs().amax()):
        bad = int((~torch.isfinite(value)).sum())
        raise ValueError(
            f"{name}: expected finite entries, got {bad} that are NaN or infinite; "
            "remove or repair them before measuring"
        )


def require_shape(name: str, value: Tensor, expected: str, ok: bool) -> None:
    """Raise ``ValueError`` unless ``ok``; ``expected`` says in words which shape was wanted."""
    if not ok:
        raise ValueError(
            f"{name}: expected {expected}, got shape {tuple(value.shape)}; "
            "rows are tokens, columns are features, leading axes are batch"
        )


def require_matrix(name: str, value: Tensor) -> None:
    """``require_float`` and at least one row and one column (leading axes are batch)."""
    require_float(name, value)
    ok = value.ndim >= 2 and value.shape[-1] > 0 and value.shape[-2] > 0
    require_shape(name, value, "a matrix with at least one row and one column", ok)


def require_positive(name: str, value: float) -> None:
    """Raise ``ValueError`` unless ``value`` is a positive, finite number."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and 0 < value < float("inf")):
        raise ValueError(f"{name}: expected a positive number, got {value}; use for example {name}=1e-3")


class _Finite(torch.autograd.Function):
    """The test for NaN and infinity as an operation, so that it also runs inside ``torch.func`` transforms.

    Under ``vmap`` a plain ``if`` on a tensor's values raises; the ``vmap`` rule sees all samples at once.
    """

    @staticmethod
    def forward(name: str, value: Tensor) -> Tensor:
        require_float(name, value)
        return value.new_zeros(())

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        """Nothing to keep: the output is a constant."""

    @staticmethod
    def jvp(ctx, _, tangent):
        return tangent.new_zeros(())

    @staticmethod
    def vmap(info, in_dims, name, value):
        return _Finite.apply(name, value), None


def require_float_traced(name: str, value: Tensor) -> None:
    """``require_float`` that also works, and still checks, under ``vmap``, ``grad`` and ``jvp``."""
    if isinstance(value, Tensor) and value.is_floating_point():
        _Finite.apply(name, value.detach())
    else:
        require_float(name, value)


def require_int(name: str, value: int, least: int) -> None:
    """Raise unless ``value`` is a Python integer (no bool) and at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected an integer, got {value!r}; use for example {name}={max(least, 1)}")
    if value < least:
        raise ValueError(
            f"{name}: expected at least {least}, got {value}; use for example {name}={max(least, 1)}"
        )


def require_dtype(name: str, value: Tensor, dtype: torch.dtype, owner: str) -> None:
    """Raise ``TypeError`` unless ``value`` has the dtype of ``owner``."""
    if value.dtype != dtype:
        raise TypeError(f"{name}: expected {dtype} as {owner} has, got {value.dtype}; convert one of them")


def require_instance(name: str, value: object, kind: type) -> None:
    """Raise ``TypeError`` unless ``value`` is a ``kind``."""
    if not isinstance(value, kind):
        raise TypeError(
            f"{name}: expected {kind.__name__}, got {type(value).__name__}; pass a {kind.__name__}"
        )


def measurable(name: str, value: Tensor) -> Tensor:
    """``require_matrix``; the value itself, or in float32 where its dtype is a half-precision one."""
    require_matrix(name, value)
    return widen(value)


def widen(value: Tensor) -> Tensor:
    """The value itself, or in float32 where its dtype is a half-precision one."""
    return value.float() if value.dtype in (torch.float16, torch.bfloat16) else value


def require_all(name: str, good: Tensor, expected: str, got: str, remedy: str) -> None:
    """Raise ``ValueError`` unless all of ``good``; the message counts the entries that are not."""
    if not good.all():
        bad = int((~good).sum())
        raise ValueError(f"{name}: expected {expected}, got {bad} of {good.numel()} {got}; {remedy}")


def require_nonzero(x: Tensor, what: str, remedy: str) -> None:
    """Raise ``ValueError`` unless every matrix of the batch has an entry that is not zero."""
    nonzero = x.abs().amax((-2, -1)) > 0
    require_all("x", nonzero, f"{what} that is not zero", "that are zero", remedy)
