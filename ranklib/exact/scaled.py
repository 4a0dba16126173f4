"""Matrices with their exponent apart: mantissa * 2^exponent, which neither underflows nor overflows."""

import math

import torch
from torch import Tensor

Scaled = tuple[Tensor, int]  # (mantissa, exponent), the matrix mantissa * 2^exponent


def sum_scaled(terms: list[Scaled]) -> Scaled:
    """The sum of scaled matrices, over the largest exponent."""
    if len(terms) == 1:
        return terms[0]
    terms = [normalise(term) for term in terms if term[0].any()] or terms[:1]
    top = max(exponent for _, exponent in terms)
    return sum(times_power(mantissa, exponent - top) for mantissa, exponent in terms), top


def normalise(scaled: Scaled) -> Scaled:
    """The same matrix with its largest entry in [1/2, 1); exponent 0 for zero."""
    mantissa, exponent = scaled
    largest = float(mantissa.abs().max())
    if not largest:
        return mantissa, 0
    shift = math.frexp(largest)[1]
    return times_power(mantissa, -shift), exponent + shift


def times_power(value: Tensor, exponent: int | Tensor) -> Tensor:
    """value * 2^exponent in two steps, as 2^exponent alone may leave the range."""
    if isinstance(exponent, int):
        if abs(exponent) <= 1000:
            return value * 2.0**exponent if exponent else value
        exponent = max(-2000, min(2000, exponent))
        return value * 2.0 ** (exponent // 2) * 2.0 ** (exponent - exponent // 2)
    exponent = exponent.clamp(-2000, 2000)
    half = (exponent / 2).floor()
    return value * torch.exp2(half) * torch.exp2(exponent - half)
