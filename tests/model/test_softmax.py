"""Scores, their parts, masks and softmax, entry by entry."""

import itertools

import jaxtyping
import pytest
import torch

from ranklib.model.attention import SelfAttention
from ranklib.model.softmax import (
    attention_matrix,
    causal_mask,
    naive_softmax,
    pruned_scores,
    score_parts,
    scores,
    window_mask,
)

BATCH, TOKENS, DIM, HEADS, DIM_QK, DIM_V = 2, 5, 7, 3, 11, 13
SEEDS = range(8)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed, dtype=torch.float64):
    return torch.randn(*shape, generator=generator(seed), dtype=dtype)


def close(a, b, tol=1e-12):
    return torch.allclose(a, b, rtol=0, atol=tol)


def random_attention(seed, biases=True):
    sizes = DIM, HEADS, DIM_QK, DIM_V
    return SelfAttention.random(*sizes, generator=generator(seed), biases=biases)


def projections(seed):
    """x, w_q, w_k, b_q, b_k for a batch of heads."""
    shapes = (TOKENS, DIM), (DIM, DIM_QK), (DIM, DIM_QK), (DIM_QK,), (DIM_QK,)
    return [randn(BATCH, *shape, seed=100 * seed + i) for i, shape in enumerate(shapes)]


MASKS = {
    "none": None,
    "causal": causal_mask(TOKENS),
    "window": window_mask(TOKENS, 2),
    "causal window": window_mask(TOKENS, 1, causal=True),
}


def test_scores_entry_by_entry():
    for seed in SEEDS:
        x, w_q, w_k, b_q, b_k = projections(seed)
        s = scores(x, w_q, w_k, b_q, b_k)
        for b, i, j in itertools.product(range(BATCH), range(TOKENS), range(TOKENS)):
            query, key = x[b, i] @ w_q[b] + b_q[b], x[b, j] @ w_k[b] + b_k[b]
            assert abs(s[b, i, j] - query @ key / DIM_QK**0.5) < 1e-12


@pytest.mark.parametrize("with_q, with_k", [(False, False), (False, True), (True, False), (True, True)])
def test_pruned_scores_give_the_same_softmax(with_q, with_k):
    for seed in SEEDS:
        x, w_q, w_k, b_q, b_k = projections(seed)
        given = x, w_q, w_k, b_q if with_q else None, b_k if with_k else None
        difference = scores(*given) - pruned_scores(*given)
        assert close(difference, difference[..., :1].expand_as(difference))
        assert with_k == (difference.abs().max() > 1e-3)
        assert close(scores(*given).softmax(-1), pruned_scores(*given).softmax(-1))
        assert close(pruned_scores(*given), scores(x, w_q, w_k, given[3]))


def test_the_key_term_must_stay():
    x, w_q, w_k, b_q, _ = projections(0)
    with_key, without = pruned_scores(x, w_q, w_k, b_q), pruned_scores(x, w_q, w_k)
    assert not close(with_key.softmax(-1), without.softmax(-1), 1e-3)


@pytest.mark.parametrize("with_q", [False, True])
def test_score_parts_for_any_centre(with_q):
    for seed in SEEDS:
        x, w_q, w_k, b_q, b_k = projections(seed)
        b_q = b_q if with_q else None
        wanted = scores(x, w_q, w_k, b_q, b_k).softmax(-1)
        centres = x.mean(-2), x.median(-2).values, x[:, 3], torch.zeros(BATCH, DIM).double(), 3 * b_k[:, :DIM]
        for centre in centres:
            e, key_score = score_parts(x, centre, w_q, w_k, b_q)
            assert close((e + key_score[..., None, :]).softmax(-1), wanted)
            r = x - centre[..., None, :]
            assert close(e, r @ w_q @ w_k.mT @ r.mT / DIM_QK**0.5)
            assert key_score.shape == (BATCH, TOKENS)


def test_the_parts_are_quadratic_and_linear_in_the_residual():
    x, w_q, w_k, b_q, _ = projections(0)
    centre = x.mean(-2)
    e, r = score_parts(x, centre, w_q, w_k, b_q)
    shrunk = centre[..., None, :] + (x - centre[..., None, :]) / 8
    e_small, r_small = score_parts(shrunk, centre, w_q, w_k, b_q)
    assert close(e_small, e / 64) and close(r_small, r / 8)


def test_weights_without_batch_serve_a_batch_of_tokens():
    x, w_q, w_k, b_q, b_k = projections(0)
    got = scores(x, w_q[0], w_k[0], b_q[0], b_k[0])
    assert got.shape == (BATCH, TOKENS, TOKENS)
    assert close(got[1], scores(x[1], w_q[0], w_k[0], b_q[0], b_k[0]))
    e, key_score = score_parts(x, x[0, 0], w_q[0], w_k[0], b_q[0])
    assert close((e + key_score[..., None, :]).softmax(-1), got.softmax(-1))


@pytest.mark.parametrize("mask", MASKS)
def test_rows_are_probabilities_on_the_allowed_entries(mask):
    allowed = MASKS[mask]
    for seed in SEEDS:
        p = attention_matrix(3 * randn(BATCH, TOKENS, TOKENS, seed=seed), allowed)
        assert close(p.sum(-1), torch.ones(BATCH, TOKENS).double(), 1e-15)
        assert (p >= 0).all()
        if allowed is not None:
            assert (p[:, ~allowed] == 0).all() and (p[:, allowed] > 0).all()


def test_softmax_ignores_row_shifts_and_not_column_shifts():
    for seed in SEEDS:
        s, shift = randn(TOKENS, TOKENS, seed=seed), randn(TOKENS, seed=seed + 100)
        p = attention_matrix(s)
        assert close(attention_matrix(s + 100 * shift[:, None]), p)
        assert (attention_matrix(s + shift) - p).abs().max() > 1e-2
        assert close(p, naive_softmax(s))
        wanted = (s + shift).exp() / (s + shift).exp().sum(-1, keepdim=True)
        assert close(attention_matrix(s + shift), wanted)


@pytest.mark.parametrize("dtype, edge", [(torch.float64, 709.0), (torch.float32, 88.0)])
def test_naive_softmax_overflows_and_the_safe_one_does_not(dtype, edge):
    s = torch.tensor([[0.0, edge]], dtype=dtype)
    assert torch.isfinite(naive_softmax(s)).all()
    assert naive_softmax(s + 2).isnan().any()
    assert naive_softmax(-2 * s - 2000).isnan().any()
    assert torch.equal(attention_matrix(s + 2), attention_matrix(s))
    assert attention_matrix(s).dtype == dtype


def test_masks_by_their_definition():
    for n in (1, 2, 5, 7):
        for i, j in itertools.product(range(n), range(n)):
            assert causal_mask(n)[i, j] == (j <= i)
            for width in (0, 1, 3):
                assert window_mask(n, width)[i, j] == (abs(i - j) <= width)
                assert window_mask(n, width, causal=True)[i, j] == (0 <= i - j <= width)


def test_the_integer_example():
    x = torch.tensor([[3.0], [1.0]], dtype=torch.float64)
    one, two = torch.ones(1, 1).double(), torch.full((1,), 2.0).double()
    assert scores(x, one, one).tolist() == [[9, 3], [3, 1]]
    e, r = score_parts(x, two, one, one)
    assert e.tolist() == [[1, -1], [-1, 1]] and r.tolist() == [2, -2]
    biased = x, 2 * one, one / 2, two / 2, two  # (2 x_i + 1)(x_j / 2 + 2)
    assert scores(*biased).tolist() == [[24.5, 17.5], [10.5, 7.5]]
    assert pruned_scores(*biased).tolist() == [[10.5, 3.5], [4.5, 1.5]]
    p = attention_matrix(scores(x, one, one))
    assert close(p[:, 0], torch.sigmoid(torch.tensor([6.0, 2.0]).double()))
    biased_p = attention_matrix(scores(*biased))
    assert [round(v, 4) for v in biased_p[:, 0].tolist()] == [0.9991, 0.9526]


X, W = randn(TOKENS, DIM, seed=0), randn(DIM, DIM_QK, seed=1)
S, LAYER = randn(TOKENS, TOKENS, seed=2), random_attention(0)
HOLE = window_mask(TOKENS, 1) & (torch.arange(TOKENS)[:, None] != 2)
NAN = X.clone()
NAN[1, 2] = torch.nan
BAD = [
    (lambda: causal_mask(0), ValueError, "tokens: expected at least 1"),
    (lambda: causal_mask(2.0), TypeError, "tokens: expected an integer"),
    (lambda: window_mask(3, -1), ValueError, "width: expected at least 0"),
    (lambda: window_mask(3, True), TypeError, "width: expected an integer"),
    (lambda: scores(X.long(), W, W), TypeError, "x: expected a floating-point dtype"),
    (lambda: scores(NAN, W, W), ValueError, "x: expected finite entries, got 1"),
    (lambda: scores(X, W * torch.inf, W), ValueError, "w_q: expected finite"),
    (lambda: scores(X, W.T, W), ValueError, "w_q: expected .*7, dim_qk"),
    (lambda: scores(X, W, W[:, :5]), ValueError, "w_k: expected .*same dim_qk"),
    (lambda: scores(X, W, W, W[:, 0]), ValueError, "b_q: expected .*11"),
    (lambda: scores(X, W, W, None, W[:, 0]), ValueError, "b_k: expected .*11"),
    (lambda: scores(X, W.float(), W), TypeError, "w_q: expected torch.float64 as x has"),
    (lambda: scores(X[0], W, W), ValueError, "x: expected .*tokens, dim"),
    (lambda: pruned_scores(X, W, W, W[0] * torch.nan), ValueError, "b_q: expected finite"),
    (lambda: pruned_scores(X, W, W, None, W[:, 0]), ValueError, "b_k: expected .*11"),
    (lambda: score_parts(X, X[0, :5], W, W), ValueError, "centre: expected .*7"),
    (lambda: score_parts(X, X[0] * torch.nan, W, W), ValueError, "centre: expected finite"),
    (lambda: attention_matrix(S.long()), TypeError, "scores: expected a floating-point dtype"),
    (lambda: attention_matrix(S / 0), ValueError, "scores: expected finite"),
    (lambda: attention_matrix(S[:, :0]), ValueError, "scores: expected .*at least one key"),
    (lambda: attention_matrix(S, HOLE), ValueError, "mask: .*at least one allowed key per row, got 1 row"),
    (lambda: attention_matrix(S, HOLE.double()), TypeError, "mask: expected dtype bool"),
    (lambda: attention_matrix(S, [[True]]), TypeError, "mask: expected Tensor"),
    (lambda: attention_matrix(S, causal_mask(4)), ValueError, "mask: expected a shape that broadcasts"),
    (lambda: attention_matrix(S, causal_mask(5)[None]), ValueError, "mask: expected a shape that broad"),
    (lambda: naive_softmax(S.long()), TypeError, "scores: expected a floating-point dtype"),
    (lambda: naive_softmax(S / 0), ValueError, "scores: expected finite"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    """Without the shape checks of the tests, as a user has it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
