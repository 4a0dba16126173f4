"""The tokens as a common row and a residual apart from it, with an exponent of its own."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_float, require_shape
from ranklib.exact.scaled import Scaled, normalise, times_power


@dataclass(frozen=True, eq=False)
class ResidualState:
    """The tokens as X = 1 common^T + 2^exponent mantissa, in float64.

    common: (dim); mantissa: (tokens, dim); exponent: a Python integer. ``of`` and ``propagate`` give a
    mantissa whose columns have mean 0 and whose largest entry is in [1/2, 1), or 0 when all rows are equal.
    Raises ``TypeError`` for a dtype other than float64 or an exponent that is no integer, ``ValueError`` for
    a wrong shape, NaN or infinity. Source: chapter `one-head`.

    >>> x = torch.tensor([[3.0], [1.0]])
    >>> state = ResidualState.of(x)
    >>> state.common.tolist(), state.mantissa[:, 0].tolist(), state.exponent
    ([2.0], [0.5, -0.5], 1)
    """

    common: Float[Tensor, " dim"]
    mantissa: Float[Tensor, "tokens dim"]
    exponent: int

    def __post_init__(self) -> None:
        for name in ("common", "mantissa"):
            value = getattr(self, name)
            require_float(name, value)
            if value.dtype != torch.float64:
                raise TypeError(f"{name}: expected torch.float64, got {value.dtype}; use {name}.double()")
        ok = self.mantissa.ndim == 2 and 0 not in self.mantissa.shape
        require_shape("mantissa", self.mantissa, "(tokens, dim), one sample, neither axis empty", ok)
        expected = self.mantissa.shape[1:]
        require_shape("common", self.common, f"(dim) = {tuple(expected)}", self.common.shape == expected)
        if isinstance(self.exponent, bool) or not isinstance(self.exponent, int):
            raise TypeError(f"exponent: expected an integer, got {self.exponent!r}; use int(...)")

    @classmethod
    def of(cls, x: "Float[Tensor, 'tokens dim'] | ResidualState") -> "ResidualState":
        """The state of tokens ``x`` (tokens, dim), any float dtype, or ``x`` if it is one; raises as the class."""
        if isinstance(x, ResidualState):
            return x
        require_float("x", x)
        ok = x.ndim == 2 and 0 not in x.shape
        require_shape("x", x, "(tokens, dim), one sample, neither axis empty", ok)
        return raw_state(x)

    def log10_size(self) -> float:
        """log10 of sqrt(||.||_1 ||.||_inf) of the residual about the mean; -inf when all rows are equal.

        >>> round(ResidualState.of(torch.tensor([[3.0], [1.0]])).log10_size(), 4)
        0.1505
        """
        entries = (self.mantissa - self.mantissa.mean(0)).abs()
        square = float(entries.sum(0).max() * entries.sum(1).max())
        return math.log10(square) / 2 + self.exponent * math.log10(2) if square else -math.inf

    def dense(self) -> Float[Tensor, "tokens dim"]:
        """X itself, rounded to float64: a residual below 1e-16 of the common row is lost in that rounding.

        Raises ``ValueError`` if 2^exponent R underflows or overflows.
        """
        largest = float(self.mantissa.abs().max())
        exponent = math.frexp(largest)[1] + self.exponent
        if largest and not -1021 <= exponent <= 1024:
            raise ValueError(
                f"state: expected a residual within the range of float64, got about 2^{exponent}; "
                "use mantissa and exponent, or log10_size()"
            )
        return self.common + times_power(self.mantissa, self.exponent)


def raw_state(x: Tensor) -> ResidualState:
    """``ResidualState.of`` for callers that have checked."""
    x = x.detach().double()
    return about_mean(x[0], (x - x[0], 0))


def about_mean(common: Tensor, residual: Scaled) -> ResidualState:
    """The state with the mean of the residual moved into the common row."""
    mantissa, exponent = normalise(residual)
    mean = mantissa.mean(0)
    common = common + times_power(mean, exponent)
    return ResidualState(common, *normalise((mantissa - mean, exponent)))
