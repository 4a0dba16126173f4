"""Masks: the rate near a common row, and certificates for products."""

import doctest
import math
from dataclasses import replace
from itertools import pairwise

import mpmath
import pytest
import torch

import ranklib
from plain import import_plain, raises_its_own_message
from ranklib.model.positions import alibi_bias, relative_bias, rotary_scores
from ranklib.theory import masks
from ranklib.theory.masks import asymptotic_rate, check_product, difference_map

F64 = torch.float64
plain = import_plain("ranklib.theory.masks")


def generator(seed):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=generator(seed))


def attention(seed, n, mask=None, heads=()):
    return ranklib.attention_matrix(randn(*heads, n, n, seed=seed), mask)


def uniform(mask):
    return ranklib.attention_matrix(torch.zeros(mask.shape, dtype=F64), mask)


# ---------------------------------------------------------------- the map of differences and its rate


def test_leading_axes_are_batch():
    p = attention(0, 5, heads=(2, 3))
    assert torch.equal(difference_map(p)[1, 2], difference_map(p[1, 2]))


@pytest.mark.parametrize("seed", range(20))
def test_difference_map_is_the_layer_on_differences(seed):
    p, x = attention(seed, 7), randn(7, 3, seed=seed + 100)
    y, new = x[1:] - x[0], p @ x
    assert torch.allclose(new[1:] - new[0], difference_map(p) @ y, atol=1e-13)


@pytest.mark.parametrize("seed", range(20))
def test_rate_is_the_second_eigenvalue(seed):
    p = attention(seed, 7)
    assert math.isclose(asymptotic_rate(p), 1 - float(ranklib.spectral_gap(p)), rel_tol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_causal_rate_is_the_largest_later_diagonal_entry(seed):
    p = attention(seed, 11, ranklib.causal_mask(11))
    assert math.isclose(asymptotic_rate(p), float(p.diagonal()[1:].max()), rel_tol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_relative_scores_under_a_causal_mask(seed):
    """sigma(s_0 - s_1), for a bias, for ALiBi, for rotary scores at a common row, and for windows."""
    n = 11
    x = randn(1, 4, seed=seed).expand(n, 4)
    cases = [
        relative_bias(randn(2 * n - 1, seed=seed)),
        alibi_bias(n, 0.1 + seed / 3),
        rotary_scores(x, randn(4, 4, seed=seed), randn(4, 4, seed=seed + 1), randn(2, seed=seed + 2)),
        torch.zeros(n, n, dtype=F64),
    ]
    for s in cases:
        for width in (1, 3, n):
            p = ranklib.attention_matrix(s, ranklib.window_mask(n, width, causal=True))
            expected = 1 / (1 + math.exp(s[1, 0] - s[1, 1]))
            assert math.isclose(asymptotic_rate(p), expected, rel_tol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_rate_with_values_and_heads(seed):
    """Against the matrix of the whole map, found column by column; one head multiplies two radii."""
    n, d, heads = 5, 3, 2
    p, w = attention(seed, n, heads=(heads,)), randn(heads, d, d, seed=seed + 9)
    basis = torch.eye((n - 1) * d, dtype=F64).reshape(-1, n - 1, d)
    full = torch.cat([torch.zeros(len(basis), 1, d, dtype=F64), basis], 1)
    new = (p @ (full[:, None] @ w)).sum(1)
    columns = (new[:, 1:] - new[:, :1]).flatten(1).T
    expected = float(torch.linalg.eigvals(columns).abs().max())
    assert math.isclose(asymptotic_rate(p, w), expected, rel_tol=1e-9)
    alone = asymptotic_rate(p[0]) * float(torch.linalg.eigvals(w[0]).abs().max())
    assert math.isclose(asymptotic_rate(p[:1], w[:1]), alone, rel_tol=1e-9)


def test_equal_rows_have_rate_zero_exactly():
    row = attention(3, 7)[:1]
    assert asymptotic_rate(row.expand(7, 7)) == 0


@pytest.mark.parametrize("width, causal", [(2, False), (4, False), (10, True)])
def test_spread_falls_at_the_rate(width, causal):
    """The exact propagation of a whole layer, far below what a plain pass resolves: 160 layers."""
    n, d = 11, 3
    one = torch.eye(d, dtype=F64)[None]
    layer = ranklib.SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    mask = ranklib.window_mask(n, width, causal)
    state, logs = ranklib.ResidualState.of(0.3 * randn(n, d)), []
    for _ in range(160):
        state = ranklib.propagate(state, layer, mask=mask)
        logs.append(state.log10_size())
    slope = (logs[-1] - logs[119]) / 40
    assert math.isclose(10**slope, asymptotic_rate(uniform(mask)), rel_tol=0.01)


# ---------------------------------------------------------------- in 120 and 400 digits


def test_causal_pair_against_mpmath():
    """The gap of the pair is multiplied by sigma(-x_2 gap); after 200 layers it is below 1e-59."""
    with mpmath.workdps(120):
        first, second, factors = mpmath.mpf(1), mpmath.mpf(-1), []
        for _ in range(200):
            own, other = mpmath.exp(second * second), mpmath.exp(second * first)
            new = (own * second + other * first) / (own + other)
            factors.append((first - new) / (first - second))
            assert abs(factors[-1] - 1 / (1 + mpmath.exp(second * (first - second)))) < mpmath.mpf(10) ** -50
            second = new
        assert abs(factors[-1] - mpmath.mpf(1) / 2) < mpmath.mpf(10) ** -50
        exact = mpmath.log10(first - second)
    one = torch.ones(1, 1, 1, dtype=F64)
    layer = ranklib.SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one)
    start = ranklib.ResidualState.of(torch.tensor([[1.0], [-1.0]], dtype=F64))
    end = ranklib.trajectory(start, [layer] * 200, mask=ranklib.causal_mask(2))[-1]
    gap = math.log10(2 * float(end.mantissa.abs().max())) + end.exponent * math.log10(2)
    assert math.isclose(gap, exact, rel_tol=1e-10) and exact < -59


def test_rotary_opposite_pair_is_cubic_in_mpmath():
    with mpmath.workdps(400):
        c, a = mpmath.cos(mpmath.mpf(7) / 10), mpmath.mpf(1) / 2
        logs = [mpmath.log(a)]
        for _ in range(5):
            own, other = mpmath.exp(a * a), mpmath.exp(-a * a * c)
            a *= (own - other) / (own + other)
            logs.append(mpmath.log(a))
        for before, after in pairwise(logs[2:]):
            assert abs(after - 3 * before - mpmath.log((1 + c) / 2)) < mpmath.mpf(10) ** -4
        assert logs[-1] < -150


# ---------------------------------------------------------------- certificates


@pytest.mark.parametrize("seed", range(40))
def test_certificate_holds_and_is_never_above_the_layerwise_one(seed):
    n, depth = 5 + seed % 7, 1 + seed % 4
    mask = ranklib.window_mask(n, 1 + seed % 3, causal=seed % 2 == 0)
    ps = [attention(seed + 97 * k, n, mask) for k in range(depth)]
    x = randn(n, 3, seed=seed + 7)
    found = check_product(ps, x)
    assert found.holds and found.slack >= 1 - 1e-12
    assert found.upper <= found.layerwise * (1 + 1e-12) and found.layerwise <= found.spread
    factors = math.prod(float(ranklib.dobrushin(p)) for p in ps)
    assert math.isclose(found.layerwise, factors * found.spread, rel_tol=1e-12)
    direct = x
    for p in ps:
        direct = p @ direct
    assert math.isclose(found.measured[1], float(ranklib.oscillation(direct)), rel_tol=1e-9)
    assert found.measured[0] <= float(ranklib.oscillation(direct)) <= found.measured[1]


@pytest.mark.parametrize("seed", range(20))
def test_certificate_is_attained(seed):
    """By tokens that are 1 where the first of two rows has the larger weight: Dobrushin's worst case."""
    n = 7
    ps = [attention(seed + k, n) for k in (0, 40)]
    product = ps[1] @ ps[0]
    distance = torch.cdist(product, product, p=1)
    i, k = divmod(int(distance.argmax()), n)
    found = check_product(ps, (product[i] > product[k]).to(F64)[:, None])
    assert math.isclose(found.measured[0], found.upper, rel_tol=1e-9)


def test_a_spread_above_the_bound_is_reported():
    half = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=F64)
    found = check_product([half], torch.tensor([[1.0], [0.0]], dtype=F64))
    assert found.holds and not replace(found, log10_bounds=(-math.inf, math.log10(0.49))).holds


@pytest.mark.parametrize("n, width", [(16, 1), (17, 4), (11, 3)])
def test_no_layer_before_the_wait_contracts(n, width):
    """Whatever the scores: the last token has not heard of the first one."""
    mask = ranklib.window_mask(n, width, causal=True)
    wait = math.ceil((n - 1) / width)
    x = torch.zeros(n, 1, dtype=F64)
    x[0] = 1
    ps = [attention(5 * k, n, mask) for k in range(wait)]
    before, after = check_product(ps[:-1], x), check_product(ps, x)
    assert math.isclose(before.measured[0], 1, rel_tol=1e-12) and math.isclose(before.upper, 1, rel_tol=1e-12)
    assert after.measured[1] < 1 and after.upper < 1 and after.layerwise == 1


@pytest.mark.parametrize("n", [2, 5, 17])
def test_uniform_causal_mask_halves(n):
    p = uniform(ranklib.causal_mask(n))
    for k in range(1, 25):
        power = torch.linalg.matrix_power(p, k)
        tau = float(ranklib.dobrushin(power))
        assert tau <= min(1, (n - 1) / 2**k) * (1 + 1e-12)
        assert math.isclose(tau, 1 - float(power[-1, 0]), abs_tol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_first_two_tokens(seed):
    """Theorem (First two tokens): the product of P_22, whatever other tokens, weights and position terms are."""
    n, d = 3 + seed % 5, 2
    start = x = randn(n, d, seed=seed)
    w, bias = randn(d, d, seed=seed + 1), relative_bias(randn(2 * n - 1, seed=seed + 2))
    factor, worst = 1.0, -math.inf
    for _ in range(5):
        s = x @ w @ x.mT + bias
        p = ranklib.attention_matrix(s, ranklib.causal_mask(n))
        factor, worst = factor * float(p[1, 1]), max(worst, float(s[1, 0] - s[1, 1]))
        x = p @ x
    assert torch.allclose(x[0], start[0], rtol=1e-13, atol=0)
    assert torch.allclose(x[1] - x[0], factor * (start[1] - start[0]), rtol=1e-7, atol=1e-13)
    assert factor >= (1 + math.exp(worst)) ** -5 * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("causal", [False, True])
def test_collapse_from_everywhere(seed, causal):
    """Theorem (From everywhere): osc(X_L) <= (1 - e^r)^floor(L / r) osc(X_0), with r steps to the first token."""
    n, width = 4 + seed % 4, 1 + seed % 3
    mask, radius = ranklib.window_mask(n, width, causal), math.ceil((n - 1) / width)
    x = randn(n, 3, seed=seed)
    w, spread = randn(3, 3, seed=seed + 1) / 3, float(ranklib.oscillation(x))
    s = x @ w @ x.mT
    least = 1 / (1 + (n - 1) * math.exp((s.amax(-1) - s.amin(-1)).max()))
    for depth in range(1, 20):
        p = ranklib.attention_matrix(x @ w @ x.mT, mask)
        assert p[mask].min() >= least * (1 - 1e-12)
        x = p @ x
        assert ranklib.oscillation(x) <= (1 - least**radius) ** (depth // radius) * spread * (1 + 1e-12)


# ---------------------------------------------------------------- bad input

X, P = randn(5, 3), attention(0, 5)
BAD = [
    ("difference_map", (P[:, :4] / P[:, :4].sum(-1, keepdim=True),), ValueError),
    ("difference_map", (2 * P,), ValueError),
    ("difference_map", (P[:1, :1] / P[0, 0],), ValueError),
    ("difference_map", (torch.ones(2, 2, dtype=torch.long),), TypeError),
    ("asymptotic_rate", (P[None],), ValueError),
    ("asymptotic_rate", (P, randn(1, 3, 3)), ValueError),
    ("asymptotic_rate", (P[None], randn(2, 3, 3)), ValueError),
    ("asymptotic_rate", (P[None], randn(1, 3, 2)), ValueError),
    ("asymptotic_rate", (P[None], randn(1, 3, 3).float()), TypeError),
    ("asymptotic_rate", (P[None], randn(1, 3, 3) * torch.nan), ValueError),
    ("check_product", ([], X), ValueError),
    ("check_product", ([P.float()], X), TypeError),
    ("check_product", ([attention(0, 7)], X), ValueError),
    ("check_product", ([[[1.0]]], X), TypeError),
    ("check_product", ([P], X[0]), ValueError),
    ("check_product", ([P - 1], X), ValueError),
    ("check_product", ([P], X * torch.inf), ValueError),
]


@pytest.mark.parametrize("name, arguments, kind", BAD, ids=[f"{i}-{b[0]}" for i, b in enumerate(BAD)])
def test_bad_input_never_gives_a_number(name, arguments, kind):
    raises_its_own_message(kind, getattr(plain, name), *arguments)


def test_docstring_examples():
    result = doctest.testmod(masks)
    assert result.failed == 0 and result.attempted >= 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_float_dtype(dtype):
    assert difference_map(P.to(dtype)).dtype == dtype
    assert check_product([P.to(dtype)], X.to(dtype)).slack >= 1 - 1e-6
