"""Paths against the forward pass and full enumeration; their number, their lengths, their draws."""

import doctest
import itertools

import jaxtyping
import pytest
import torch
from scipy.stats import chi2

import ranklib.theory.path_sums
import ranklib.theory.paths
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Network
from ranklib.model.softmax import causal_mask
from ranklib.theory.paths import (
    bias_row,
    count_paths,
    enumerate_paths,
    frozen_attention,
    length_distribution,
    path_matrices,
    path_output,
    sample_paths,
)
from tests.theory.path_networks import (
    BATCH,
    DIM,
    SKIPS,
    TOKENS,
    close,
    generator,
    length_of,
    normed_network,
    plain_network,
    tokens,
)


@pytest.mark.parametrize("skip", SKIPS)
def test_path_functions_are_the_parts_of_the_forward_pass(skip):
    for seed, mask in ((0, None), (1, causal_mask(TOKENS))):
        network, x = plain_network(seed, 2, 3, skip), tokens(seed)
        p = frozen_attention(network, x, mask)
        total = torch.zeros_like(x)
        for path in enumerate_paths(2, 3):
            p_path, w_path = path_matrices(network, p, path)
            assert p_path.shape == (BATCH, TOKENS, TOKENS) and w_path.shape == (DIM, DIM)
            assert (p_path >= 0).all() and close(p_path.sum(-1), torch.ones(BATCH, TOKENS).double())
            assert mask is None or not p_path[:, ~mask].any()
            assert close(path_output(network, x, p, path), p_path @ x @ w_path)
            total += p_path @ x @ w_path
        assert close(total + bias_row(network), network(x, mask))
        assert bias_row(network).abs().max() > 0.1


def test_path_matrices_multiply_in_their_order():
    network, x = plain_network(0), tokens(0)
    (p, q, r), (a, b, c) = frozen_attention(network, x), [layer.attention.w for layer in network.layers]
    p_path, w_path = path_matrices(network, [p, q, r], (0, 1, 1))
    assert close(p_path, r[:, 1] @ q[:, 1] @ p[:, 0]) and close(w_path, a[0] @ b[1] @ c[1])


def test_w_path_knows_no_input_and_p_path_depends_on_the_whole_layer_below():
    network, path = plain_network(0), (None, None, 1)
    x, y = tokens(0), tokens(1)
    cut = Network([network.layers[0].switched(skip=False), *network.layers[1:]])
    p, w = path_matrices(network, frozen_attention(network, x), path)
    other_p, other_w = path_matrices(network, frozen_attention(network, y), path)
    assert torch.equal(w, other_w) and not close(p, other_p, 1e-3)
    cut_p, _ = path_matrices(cut, frozen_attention(cut, x), (0, None, 1))
    whole_p, _ = path_matrices(network, frozen_attention(network, x), (0, None, 1))
    assert not close(cut_p, whole_p, 1e-3)


def test_frozen_attention_is_what_the_forward_pass_uses():
    for norm in ("none", "pre", "post"):
        network, x, mask = normed_network(0, norm), tokens(0, dim=6), causal_mask(TOKENS)
        seen, original = [], SelfAttention.attention
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SelfAttention, "attention", lambda *a: seen.append(original(*a)) or seen[-1])
            network(x, mask)
        assert len(seen) == 3
        assert all(torch.equal(a, b) for a, b in zip(frozen_attention(network, x, mask), seen, strict=True))


@pytest.mark.parametrize("heads, depth", [(1, 1), (1, 7), (2, 5), (3, 4), (7, 3)])
def test_counts(heads, depth):
    paths = list(enumerate_paths(heads, depth))
    assert len(set(paths)) == len(paths) == (1 + heads) ** depth
    counts = [count_paths(heads, depth, k) for k in range(depth + 1)]
    assert counts == [sum(length_of(path) == k for path in paths) for k in range(depth + 1)]
    shares = length_distribution(heads, depth)
    assert shares.dtype == torch.float64
    assert close(shares, torch.tensor(counts).double() / len(paths), 1e-15)
    bare = list(enumerate_paths(heads, depth, skip=False))
    assert bare == [path for path in paths if length_of(path) == depth] and len(bare) == heads**depth


@pytest.mark.parametrize("heads, depth", [(12, 12), (4, 24), (16, 96), (1, 500)])
def test_large_counts_are_exact_and_the_shares_are_binomial(heads, depth):
    counts = [count_paths(heads, depth, k) for k in range(depth + 1)]
    assert all(type(count) is int for count in counts) and sum(counts) == (1 + heads) ** depth
    shares, k = length_distribution(heads, depth), torch.arange(depth + 1).double()
    assert abs(shares.sum() - 1) < 1e-12
    mean, share = (shares * k).sum(), heads / (heads + 1)
    assert abs(mean - depth * share) < 1e-9 * depth
    assert abs((shares * (k - mean) ** 2).sum() - depth * share / (heads + 1)) < 1e-9 * depth


def test_most_paths_are_long():
    """12 heads, 12 layers: lengths 11 and 12 are equally frequent; with more layers the tie is resolved."""
    assert count_paths(12, 12, 11) == count_paths(12, 12, 12) == 12**12
    assert f"{length_distribution(12, 12)[:7].sum():.1e}" == "1.3e-04"
    assert count_paths(2, 6, 0) + count_paths(2, 6, 1) == 13
    for heads, depth in itertools.product((1, 2, 4, 12), (4, 8, 12, 24)):
        shares = length_distribution(heads, depth)
        assert (shares * torch.arange(depth + 1)).sum() >= depth / 2 - 1e-12


SAMPLED = [(2, 3, None), (1, 4, None), (3, 3, 2), (2, 4, 1), (2, 3, 0)]


@pytest.mark.parametrize("heads, depth, length", SAMPLED)
def test_sampling_is_uniform(heads, depth, length):
    draws = 30_000
    paths = sample_paths(heads, depth, draws, generator(5), length)
    cells = [p for p in enumerate_paths(heads, depth) if length is None or length_of(p) == length]
    seen = dict.fromkeys(cells, 0)
    for path in paths:
        seen[path] += 1
    expected = draws / len(cells)
    statistic = sum((count - expected) ** 2 / expected for count in seen.values())
    assert len(cells) == 1 or chi2.sf(statistic, len(cells) - 1) > 1e-6


def test_sampling_follows_its_generator_and_no_other():
    state = torch.random.get_rng_state()
    for length in (None, 3):
        a, b, c = (sample_paths(5, 7, 50, generator(seed), length) for seed in (0, 0, 1))
        assert a == b != c
        assert all(type(choice) in (int, type(None)) for path in a for choice in path)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert sample_paths(2, 3, 0, generator(0)) == []
    assert {length_of(path) for path in sample_paths(3, 5, 99, generator(0), 5)} == {5}


def test_doctests():
    found = doctest.testmod(ranklib.theory.paths)
    assert found.attempted > 0 and found.failed == 0


NETWORK, X = plain_network(0), tokens(0)
P = [p.detach() for p in frozen_attention(NETWORK, X)]
NAN = X.clone()
NAN[1, 2, 3] = torch.nan
GELU = normed_network(0, "none", activation="gelu")
NORMED, X6 = normed_network(0, "pre", None), tokens(0, dim=6)
PATH = (0, None, 1)
BAD = [
    (lambda: count_paths(0, 3, 1), ValueError, "heads: expected at least 1, got 0"),
    (lambda: count_paths(2, 0, 0), ValueError, "depth: expected at least 1, got 0"),
    (lambda: count_paths(2, 3, 4), ValueError, "length: expected at most depth=3, got 4"),
    (lambda: count_paths(2, 3, -1), ValueError, "length: expected at least 0, got -1"),
    (lambda: count_paths(2.0, 3, 1), TypeError, "heads: expected an integer, got 2.0"),
    (lambda: length_distribution(2, -3), ValueError, "depth: expected at least 1"),
    (lambda: length_distribution(True, 3), TypeError, "heads: expected an integer"),
    (lambda: enumerate_paths(12, 12), ValueError, r"got 13\^12; use length_spectrum"),
    (lambda: enumerate_paths(0, 2), ValueError, "heads: expected at least 1"),
    (lambda: sample_paths(2, 3, -1, generator(0)), ValueError, "number: expected at least 0"),
    (lambda: sample_paths(2, 3, 1, 0), TypeError, "generator: expected Generator, got int"),
    (lambda: sample_paths(2, 3, 1, generator(0), 4), ValueError, "length: expected at most depth=3"),
    (lambda: frozen_attention(NETWORK.layers[0], X), TypeError, "network: expected Network, got Layer"),
    (lambda: frozen_attention(NETWORK, NAN), ValueError, "x: expected finite entries, got 1"),
    (lambda: bias_row(NORMED), ValueError, "no MLP and norm='pre'; use network.switched"),
    (lambda: bias_row(GELU), ValueError, "an MLP and norm='none'; use network.switched"),
    (lambda: path_matrices(NORMED, P, PATH), ValueError, "network: expected layers of attention and skip"),
    (lambda: path_matrices(NETWORK, P, (0, None, 2)), ValueError, r"path: .*below \[2, 2, 2\], got .*2\)"),
    (lambda: path_matrices(NETWORK, P, (0, None)), ValueError, "path: expected a tuple of 3 entries"),
    (lambda: path_matrices(NETWORK, P, (0, -1, 1)), ValueError, "path: expected a tuple of 3 entries"),
    (lambda: path_matrices(NETWORK, P, (0, True, 1)), ValueError, "path: expected a tuple of 3 entries"),
    (lambda: path_matrices(NETWORK, P, [0, None, 1]), ValueError, "path: expected a tuple of 3 entries"),
    (lambda: path_matrices(NETWORK, [p[:, :1] for p in P], PATH), ValueError, r"= \(2, 2, 5, 5\), got sh"),
    (lambda: path_matrices(NETWORK, [*P[:2], P[2][0]], PATH), ValueError, r"expected .*\(2, 2, 5, 5\), got"),
    (lambda: path_matrices(NETWORK, [p.float() for p in P], PATH), TypeError, "attentions: expected torch.f"),
    (lambda: path_matrices(NETWORK, [*P[:2], P[2] / 0], PATH), ValueError, "attentions: expected finite"),
    (lambda: path_matrices(NETWORK, [*P[:2], None], PATH), TypeError, "attentions: expected a torch tensor"),
    (lambda: path_output(NETWORK, X[:1], P, PATH), ValueError, r"attentions: expected .*\(1, 2, 5, 5\)"),
    (lambda: path_output(NETWORK, NAN, P, PATH), ValueError, "x: expected finite entries"),
    (lambda: path_output(GELU, X6, P, PATH), ValueError, "network: expected layers of attention and skip"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    """Without the shape checks of the tests, as a user has it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
