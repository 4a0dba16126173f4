"""Position terms of the scores against their definitions."""

import doctest
import math

import pytest
import torch

import ranklib
from plain import import_plain, raises_its_own_message
from ranklib.model import positions
from ranklib.model.positions import alibi_bias, relative_bias, rotary_scores

F64 = torch.float64
plain = import_plain("ranklib.model.positions")


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def test_relative_bias_reads_the_offset():
    table = randn(3, 13)
    b = relative_bias(table)
    assert b.shape == (3, 7, 7)
    for i in range(7):
        for j in range(7):
            assert torch.equal(b[:, i, j], table[:, j - i + 6])


@pytest.mark.parametrize("slope", [0.5, 1.0, 2**-8])
def test_alibi_is_linear_in_the_distance(slope):
    b = alibi_bias(5, slope)
    assert all(b[i, j] == -slope * abs(i - j) for i in range(5) for j in range(5))


@pytest.mark.parametrize("seed", range(7))
def test_rotary_scores_against_rotation_matrices(seed):
    """The definition, with every rotation written out as a matrix."""
    n, d, planes = 5, 3, 2
    x, w_q, w_k = randn(n, d, seed=seed), randn(d, 4, seed=seed + 50), randn(d, 4, seed=seed + 90)
    angles = randn(planes, seed=seed + 130)

    def turn(i):
        blocks = [
            torch.tensor([[math.cos(i * t), -math.sin(i * t)], [math.sin(i * t), math.cos(i * t)]], dtype=F64)
            for t in angles.tolist()
        ]
        return torch.block_diag(*blocks)

    got = rotary_scores(x, w_q, w_k, angles)
    for i in range(n):
        for j in range(n):
            expected = (turn(i) @ (w_q.T @ x[i])) @ (turn(j) @ (w_k.T @ x[j])) / 2
            assert math.isclose(got[i, j], expected, abs_tol=1e-12)
    still = rotary_scores(x, w_q, w_k, torch.zeros(planes, dtype=F64))
    assert torch.allclose(still, ranklib.scores(x, w_q, w_k), atol=1e-13)


@pytest.mark.parametrize("seed", range(7))
def test_rotary_scores_of_equal_tokens_depend_on_the_offset_only(seed):
    x = randn(1, 3, seed=seed).expand(7, 3)
    s = rotary_scores(x, randn(3, 6, seed=seed), randn(3, 6, seed=seed + 1), randn(3, seed=seed + 2))
    for offset in range(-6, 7):
        line = s.diagonal(offset)
        assert (line - line[0]).abs().max() < 1e-12
    assert s.std() > 1e-3


def test_leading_axes_are_batch():
    x, w_q, w_k, angles = randn(2, 5, 3), randn(2, 3, 4, seed=1), randn(2, 3, 4, seed=2), randn(2, seed=3)
    together = rotary_scores(x, w_q, w_k, angles)
    for k in range(2):
        assert torch.allclose(together[k], rotary_scores(x[k], w_q[k], w_k[k], angles), atol=1e-13)


X, W = randn(5, 3), randn(3, 4)
BAD = [
    ("relative_bias", (torch.zeros(4),), ValueError),
    ("relative_bias", (torch.zeros(5, dtype=torch.long),), TypeError),
    ("relative_bias", (torch.tensor([0.0, torch.nan, 1.0]),), ValueError),
    ("alibi_bias", (0, 0.5), ValueError),
    ("alibi_bias", (3.0, 0.5), TypeError),
    ("alibi_bias", (3, -1.0), ValueError),
    ("rotary_scores", (X, W, W, torch.zeros(3, dtype=F64)), ValueError),
    ("rotary_scores", (X, W[:2], W, torch.zeros(2, dtype=F64)), ValueError),
    ("rotary_scores", (X, W.float(), W, torch.zeros(2, dtype=F64)), TypeError),
    ("rotary_scores", (X, W, W, torch.tensor([0.0, torch.inf], dtype=F64)), ValueError),
    ("rotary_scores", (X[0], W, W, torch.zeros(2, dtype=F64)), ValueError),
    ("rotary_scores", (X, W, W, torch.zeros((), dtype=F64)), ValueError),
]


@pytest.mark.parametrize("name, arguments, kind", BAD, ids=[f"{i}-{b[0]}" for i, b in enumerate(BAD)])
def test_bad_input_never_gives_a_number(name, arguments, kind):
    raises_its_own_message(kind, getattr(plain, name), *arguments)


def test_docstring_examples():
    result = doctest.testmod(positions)
    assert result.failed == 0 and result.attempted >= 4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_float_dtype(dtype):
    assert alibi_bias(3, 0.5, dtype).dtype == dtype
    assert rotary_scores(X.to(dtype), W.to(dtype), W.to(dtype), torch.ones(2, dtype=dtype)).dtype == dtype
