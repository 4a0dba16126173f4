"""Three normalisations against torch and mpmath; the theorems of their chapter as properties."""

import doctest
import math

import mpmath
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import ranklib.theory.layernorm as normalisation
from plain import import_plain, raises_its_own_message
from ranklib.measures.tokens import mu
from ranklib.model.attention import SelfAttention
from ranklib.model.softmax import causal_mask
from ranklib.paper.least import residual_size_exact
from ranklib.theory.layernorm import (
    affine_rank,
    circle_trace,
    column_norm,
    fold_factor,
    held_pair,
    layer_norm,
    peak,
    rank_two,
    rms_norm,
    row_std,
)

F64 = torch.float64
BATCH, TOKENS, DIM = 2, 7, 5
EPS = (0.0, 1e-5, 0.3)
NORMS = (layer_norm, rms_norm, column_norm)


def randn(*shape, seed):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def torch_norms(x, eps):
    dim = x.shape[-1:]
    columns = (x - x.mean(-2, keepdim=True)) / (x.var(-2, correction=0, keepdim=True) + eps).sqrt()
    return F.layer_norm(x, dim, eps=eps), F.rms_norm(x, dim, eps=eps), columns


@pytest.mark.parametrize("eps", EPS)
def test_agree_with_torch(eps):
    for seed in range(10):
        x = 10 ** (seed % 3 - 1.0) * randn(BATCH, TOKENS, DIM, seed=seed) + seed
        for norm, expected in zip(NORMS, torch_norms(x, eps), strict=True):
            assert torch.allclose(norm(x, eps), expected, rtol=1e-10, atol=1e-10), norm
        assert torch.allclose(row_std(x, eps) ** 2, x.var(-1, correction=0) + eps, rtol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_scale_free_without_epsilon_at_any_size(norm):
    x = randn(TOKENS, DIM, seed=3)
    for power in (-1000, -600, 600, 1000):
        assert torch.equal(norm(x * 2.0**power), norm(x))
    assert norm(x.bfloat16()).dtype == torch.float32 and norm(x.float()).dtype == torch.float32


def test_equal_rows_stay_equal_and_which_rows_merge():
    for seed in range(50):
        row, other = randn(2, DIM, seed=seed)
        scale, shift = 0.1 + abs(float(other[0])), float(other[1])
        x = torch.stack([row, row, scale * row + shift, scale * row, other])
        z, r = layer_norm(x), rms_norm(x)
        assert torch.equal(z[0], z[1]) and torch.allclose(z[0], z[2]) and torch.allclose(r[0], r[3])
        assert (z[0] - z[4]).abs().max() > 1e-3 and (r[0] - r[2]).abs().max() > 1e-6
        held = layer_norm(x, 1e-2)
        assert torch.equal(held[0], held[1]) and (scale == 1 or (held[0] - held[3]).abs().max() > 1e-6)


@pytest.mark.parametrize("n, d", [(2, 3), (3, 2), (5, 3)])
def test_columns_cannot_collapse(n, d):
    for seed in range(8):
        z = column_norm(randn(n, d, seed=seed) ** 3)
        assert residual_size_exact(z).lower >= d**0.5 * (1 - 1e-9)
    two = column_norm(torch.tensor([[3.0, 2.0], [1.0, 6.0]], dtype=F64))
    assert math.isclose(residual_size_exact(two).upper, 2.0)  # n = 2 attains sqrt(2 d)


def test_column_division_folds_into_the_weights_of_this_input():
    for seed in range(20):
        g = torch.Generator().manual_seed(seed)
        layer = SelfAttention.random(6, 2, generator=g, biases=True)
        x = torch.randn(TOKENS, 6, generator=g, dtype=F64)
        y = layer(x)
        s = y.std(0, correction=0)
        folded = SelfAttention(
            w_q=layer.w_q, w_k=layer.w_k, w_v=layer.w_v, w_o=layer.w_o / s, b_q=layer.b_q, b_k=layer.b_k
        )
        shift = (y / s - folded(x))[0] - y.mean(0) / s
        assert torch.allclose(folded(x) + shift, column_norm(y), atol=1e-12)


@pytest.mark.parametrize("eps", EPS)
def test_the_distance_grows_at_most_by_the_least_deviation(eps):
    best = 0.0
    for seed in range(90):
        shape = randn(TOKENS, DIM, seed=seed)
        x = randn(1, DIM, seed=seed + 1000) + 10.0 ** (-seed % 7) * shape if seed % 2 else shape
        ratio = mu(layer_norm(x, eps)) * row_std(x, eps).min() / mu(x)
        assert ratio <= 1 + 1e-9
        best = max(best, float(ratio))
    assert best > 0.8
    u, v = torch.tensor([1.0, -1.0, 0.0], dtype=F64), torch.tensor([1.0, 1.0, -2.0], dtype=F64)
    x = torch.stack([u + 1e-4 * v, u - 1e-4 * v])  # turned, not stretched: equality in the limit
    assert mu(layer_norm(x, eps)) * row_std(x, eps).min() / mu(x) > 1 - 1e-6


def test_the_residual_grows_at_most_by_the_fold_factor():
    for seed in range(15):
        eps = EPS[seed % 3]
        x = randn(4, 3, seed=seed) + (seed % 5) * randn(1, 3, seed=seed + 99)
        before, after = residual_size_exact(x), residual_size_exact(layer_norm(x, eps))
        assert after.lower <= fold_factor(x, eps) * before.upper
        assert torch.allclose(fold_factor(x, eps), 3**0.75 / row_std(x, eps).min())
    assert fold_factor(torch.ones(2, 3)) == math.inf


def test_pairs_stay_pairs_and_do_not_collapse():
    for seed in range(6):
        g = torch.Generator().manual_seed(seed)
        half = torch.randn(3, DIM, generator=g, dtype=F64)
        x = torch.cat([half, -half])
        for _ in range(4):
            x = layer_norm(1e-3 * SelfAttention.random(DIM, generator=g)(x))
            x = torch.cat([x[:3], -x[:3]]) if torch.allclose(x[:3], -x[3:], atol=1e-4) else None
            assert residual_size_exact(x[::3]).lower >= (2 * DIM**0.5) ** 0.5 * (1 - 1e-9)


def reference(offset, w, layers, normalise):
    """log tan of the half-angle from the two coordinates, with mpmath."""
    common, half, found = mpmath.sin(offset), mpmath.cos(offset), []
    for _step in range(layers + 1):
        found.append(mpmath.log(half / common))
        half *= mpmath.tanh(w * half**2)
        if normalise:
            length = mpmath.hypot(common, half)
            common, half = common / length, half / length
    return found


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("w", [0.5, 1.0, 2.0])
def test_circle_against_mpmath(w, normalise):
    with mpmath.workdps(60):
        for offset in (0.7, 1e-1, 1e-6, 1e-12, 1e-300):
            got = circle_trace(offset, w, 40, normalise).tolist()
            for value, truth in zip(got, reference(mpmath.mpf(offset), w, 40, normalise), strict=True):
                assert abs(value - truth) <= 1e-12 * max(1, abs(truth))
    assert circle_trace(0.0, w, 9, normalise).isinf().all()


@torch.no_grad()
def test_circle_is_attention_with_two_normalisations():
    eye = torch.eye(2, dtype=F64)[None]
    basis = torch.tensor([[1, -1, 0], [1, 1, -2]], dtype=F64)
    basis = basis / basis.norm(dim=-1, keepdim=True)
    for w in (0.5, 1.0, 2.0):
        flat = SelfAttention(w_q=2**0.5 * w * eye, w_k=eye, w_v=eye, w_o=eye)
        lifted = SelfAttention(
            w_q=2**0.5 * w * basis.T[None], w_k=basis.T[None], w_v=basis.T[None], w_o=basis[None]
        )
        norm = nn.LayerNorm(3, eps=0.0, dtype=F64)
        nn.init.constant_(norm.weight, 3**-0.5)
        for offset in (0.1, 0.9):
            sine, cosine = math.sin(offset), math.cos(offset)
            x = torch.tensor([[sine, cosine], [sine, -cosine]], dtype=F64)
            y = x @ basis
            for log_tan in circle_trace(offset, w, 8).tolist():
                assert math.isclose(x[0, 1] / x[0, 0], math.exp(log_tan), rel_tol=1e-9, abs_tol=1e-13)
                assert torch.allclose(x @ basis, y, atol=1e-12)
                x, y = rms_norm(flat(x)) / 2**0.5, norm(lifted(y))


@pytest.mark.parametrize("w", [0.3, 1.0, 2.5])
def test_knife_edge(w):
    """The cotangent grows at least by 1 / tanh w; the tangent is at most w times its cube."""
    for offset in (1e-9, 1e-3, 0.3, 1.2):
        t = circle_trace(offset, w, 60)
        steps = t.diff()
        assert (steps <= math.log(math.tanh(w)) + 1e-13).all()
        assert (t[1:] <= math.log(w) + 3 * t[:-1] + 1e-12 * (1 + t[1:].abs())).all()
        if offset < 1e-8:
            assert math.isclose(steps[0], math.log(math.tanh(w)), rel_tol=1e-12)
    assert circle_trace(1e-9, w, 60)[-1] < (-1e6 if w < 1 else 21)


def test_peak_and_nose():
    with mpmath.workdps(40):

        def slope(s):
            return 4 * (1 - s) - mpmath.sinh(2 * s)

        top = mpmath.sqrt(mpmath.findroot(slope, (0.1, 0.9), solver="anderson"))
        grid = mpmath.linspace(0, 1, 999)
        assert max(mpmath.tanh(s) * mpmath.sqrt(1 - s) for s in grid) < peak()[1] + 1e-15
        height = mpmath.tanh(top**2) * mpmath.sqrt(1 - top**2)
        assert abs(peak()[0] - top) < 1e-12 and abs(peak()[1] - height) < 1e-15
        for value, eps in [(1, 1e-5), (0.02, 1e-5), (3.0, 0.01), (1.0, 1e-30), (1.0, 1e-200)]:
            level = mpmath.sqrt(eps) / value
            lower, upper = held_pair(value, eps)
            for a in (lower, upper):
                if a < 1 - 1e-9:
                    f = mpmath.tanh(mpmath.mpf(a) ** 2) * mpmath.sqrt(1 - mpmath.mpf(a) ** 2)
                    assert abs(f / level - 1) < 1e-8
            assert 0 < lower <= top <= upper <= 1
    for eps in (1e-3, 1e-5, 1e-9):
        least = eps**0.5 / peak()[1]
        assert held_pair(least * (1 - 1e-9), eps) is None
        lower, upper = held_pair(least * (1 + 1e-9), eps)
        assert upper - lower < 1e-3


@pytest.mark.parametrize("value", [1.0, 0.02, 0.009])
def test_the_pair_goes_where_the_nose_says(value):
    eps, found = 1e-5, held_pair(value, 1e-5)

    def after(a, layers=400):
        for _ in range(layers):
            a = float(rms_norm(torch.tensor([[value * a * math.tanh(a * a)]], dtype=F64), eps))
        return a

    if found is None:
        assert after(1.0) < 1e-9
    else:
        assert math.isclose(after(1.0), found[1], rel_tol=1e-9)
        assert math.isclose(after(1.001 * found[0]), found[1], rel_tol=1e-9)
        assert after(0.999 * found[0]) < 1e-9


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize(
    "decay, angle", [(0.5, math.atan(0.5)), (0.3, 0.2), (0.3, 0.6), (0.7, 0.25), (0.1, 1.0)]
)
def test_rank_two_stays_and_attracts(decay, angle):
    x, attention = rank_two(decay, angle)
    w = attention.w[0]
    assert torch.allclose(torch.linalg.eigvals(w).real.sort().values, torch.tensor([decay, 1.0], dtype=F64))
    other = torch.tensor([math.cos(angle), math.sin(angle)], dtype=F64)
    assert torch.allclose(other @ w, decay * other) and torch.allclose(x.norm(dim=-1), torch.ones(2).double())
    area = torch.linalg.det(x).abs()
    assert area > 1e-3
    for seed in range(2):
        y = x + 1e-3 * area * randn(2, 2, seed=seed)
        for _ in range(150):
            y = rms_norm(attention(y, causal_mask(2))) / 2**0.5
        assert torch.allclose(y, x, atol=1e-9)


@pytest.mark.slow
@torch.no_grad()
def test_rank_two_needs_eigenvectors_that_are_close():
    plain = import_plain("ranklib.theory.layernorm")
    for decay, angle in (
        (0.5, 0.6),
        (0.5, math.asin(0.5) + 1e-6),
        (1.0, 0.1),
        (0.0, 0.1),
        (0.5, 0.0),
        (0.5, math.nan),
    ):
        assert "smaller angle or decay" in raises_its_own_message(ValueError, plain.rank_two, decay, angle)
    one = torch.tensor([[1.0, 2.0], [0.0, 1.0]], dtype=F64)  # the limit of equal eigenvalues: a knife edge
    zero = torch.zeros(1, 2, 1, dtype=F64)
    limit = SelfAttention(w_q=zero, w_k=zero, w_v=one[None], w_o=torch.eye(2, dtype=F64)[None])
    for p in (1e-2, -1e-2):
        y = torch.tensor([[p, 1.0], [-0.5, -(0.75**0.5)]], dtype=F64)
        for _ in range(600):
            y = rms_norm(limit(y, causal_mask(2))) / 2**0.5
        assert (torch.linalg.det(y).abs() > 0.49) == (p > 0)


@torch.no_grad()
def test_orthogonal_values_halve_the_angle():
    z = torch.tensor([[0.6, 0.8], [-0.8, 0.6]], dtype=F64)
    zero, eye = torch.zeros(1, 2, 1, dtype=F64), torch.eye(2, dtype=F64)[None]
    turned = SelfAttention(w_q=zero, w_k=zero, w_v=z[None], w_o=eye)
    for layer in range(1, 12):
        z = rms_norm(turned(z, causal_mask(2))) / 2**0.5
        angle = 2 * math.asin(float((z[0] - z[1]).norm()) / 2)
        assert math.isclose(angle, math.pi / 2 / 2**layer, rel_tol=1e-9)


def test_affine_rank_changes_by_minus_two_to_one():
    seen = set()
    for seed in range(120):
        g = torch.Generator().manual_seed(seed)
        rank = 1 + seed % 3
        x = torch.randint(-2, 3, (5, rank), generator=g) @ torch.randint(-2, 3, (rank, 4), generator=g)
        x = (x + (seed % 2) * torch.randint(-2, 3, (4,), generator=g)).to(F64)
        if (row_std(x) > 0).all():
            for eps in EPS:
                z = layer_norm(x, eps)
                change = int(affine_rank(z, 1e-9)) - int(affine_rank(x, 1e-9))
                assert -2 <= change <= 1
                seen.add(change)
            full = torch.linalg.matrix_rank
            centred = x - x.mean(-1, keepdim=True)
            assert full(z) == full(centred) and full(x) - 1 <= full(z) <= full(x)
    assert {-1, 0, 1} <= seen
    ray = torch.tensor([[1.0, -1, 0], [2, -2, 0], [2, 0, 1]], dtype=F64)
    assert affine_rank(ray, 1e-9) == 2 and affine_rank(layer_norm(ray), 1e-9) == 0


def test_bad_input_never_gives_a_number():
    plain = import_plain("ranklib.theory.layernorm")
    x = torch.eye(3)
    for name in ("layer_norm", "rms_norm", "column_norm", "row_std", "fold_factor"):
        function = getattr(plain, name)
        for bad in (x.long(), [[1.0]]):
            raises_its_own_message(TypeError, function, bad)
        for bad in (x * math.nan, x / 0, torch.ones(3), torch.ones(0, 3)):
            raises_its_own_message(ValueError, function, bad)
        for eps in (-1e-5, math.inf, math.nan):
            raises_its_own_message(ValueError, function, x, eps)
    flat = ((plain.layer_norm, 0 * x + 2), (plain.rms_norm, 0 * x), (plain.column_norm, 0 * x + 1))
    for function, bad in flat:
        assert "eps=1e-5" in raises_its_own_message(ValueError, function, bad)
        assert function(bad, 1e-5).isfinite().all()
    for bad in ((-0.1, 1.0, 3), (math.pi / 2, 1.0, 3), (math.nan, 1.0, 3), (0.1, 0.0, 3), (0.1, 1.0, -1)):
        raises_its_own_message(ValueError, plain.circle_trace, *bad)
    raises_its_own_message(TypeError, plain.circle_trace, 0.1, 1.0, 2.5)
    for bad in (-0.1, 1.0, math.nan):
        raises_its_own_message(ValueError, plain.affine_rank, x, bad)
    for bad in ((0.0, 1e-5), (1.0, 0.0), (math.inf, 1e-5), (1.0, math.nan)):
        raises_its_own_message(ValueError, plain.held_pair, *bad)


def test_docstring_examples():
    result = doctest.testmod(normalisation)
    assert result.failed == 0 and result.attempted > 10
