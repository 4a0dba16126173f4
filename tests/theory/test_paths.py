"""Paths and length sums against enumeration, a generating polynomial, and the forward pass."""

import cmath
import doctest
import itertools
import math

import jaxtyping
import pytest
import torch
from scipy.stats import chi2
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import ranklib.theory.path_sums
import ranklib.theory.paths
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import causal_mask
from ranklib.theory.path_sums import bias_part, length_spectrum
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

BATCH, TOKENS, DIM = 2, 5, 7
SEEDS = range(3)
SKIPS = (True, False, 0.5)


def generator(seed):
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def close(a, b, tol=1e-12):
    return a.shape == b.shape and (a - b).abs().max() <= tol * max(1.0, b.abs().max())


def plain_network(seed, heads=2, depth=3, skip=True, biases=True, widths=(3, 4), dim=DIM):
    """Attention and skip only; d_qk and d_v differ from each other and from dim / heads."""
    g = generator(seed)
    return Network(
        Layer(SelfAttention.random(dim, heads, *widths, generator=g, biases=biases), skip=skip)
        for _ in range(depth)
    )


def normed_network(seed, norm, mlp_dim=11, depth=3, activation="relu", skip=True, mlp_skip=True):
    """Gains, biases and all other parameters away from their initial values."""
    options = {"mlp_dim": mlp_dim, "norm": norm, "activation": activation, "biases": True}
    network = Network.random(depth, 6, 2, generator=generator(seed), skip=skip, mlp_skip=mlp_skip, **options)
    with torch.no_grad():
        for i, parameter in enumerate(network.parameters()):
            parameter.add_(0.3 * randn(*parameter.shape, seed=100 * seed + i))
    return network


def tokens(seed, batch=(BATCH,), count=TOKENS, dim=DIM):
    return randn(*batch, count, dim, seed=1000 + seed)


def length_of(path):
    return sum(choice is not None for choice in path)


def by_enumeration(network, x, attentions):
    """Every path multiplied out with full matrices: (P^L ... P^1) X (W^1 ... W^L)."""
    heads, depth = network.layers[0].attention.dims.heads, len(network.layers)
    sums = torch.zeros(depth + 1, *x.shape, dtype=x.dtype)
    pairs = zip(network.layers, attentions, strict=True)
    layers = [(float(layer.skip), layer.attention.w, p) for layer, p in pairs]
    for path in itertools.product([None, *range(heads)], repeat=depth):
        p_path, w_path = torch.eye(x.shape[-2]).double(), torch.eye(x.shape[-1]).double()
        for (skip, w, p), head in zip(layers, path, strict=True):
            p_path = p_path if head is None else p[..., head, :, :] @ p_path
            w_path = skip * w_path if head is None else w_path @ w[head]
        sums[length_of(path)] += p_path @ x @ w_path
    return sums


@pytest.mark.parametrize("heads", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_spectrum_is_the_sum_over_all_paths_of_each_length(heads, depth):
    for seed in SEEDS:
        skip = SKIPS[(seed + heads + depth) % 3]
        network = plain_network(seed, heads, depth, skip)
        x = tokens(seed, [(), (BATCH,), (3, BATCH)][seed])
        mask = causal_mask(TOKENS) if seed % 2 else None
        p = frozen_attention(network, x, mask)
        wanted = by_enumeration(network, x, p)
        for got in (length_spectrum(network, x, mask), length_spectrum(network, x, attentions=p)):
            for k in range(depth + 1):
                assert close(got[k], wanted[k]), (seed, k)
        assert skip or not wanted[:depth].any() and not got[:depth].any()


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


@pytest.mark.parametrize("skip", SKIPS)
def test_spectrum_and_biases_give_the_forward_pass(skip):
    for seed in SEEDS:
        network, x, mask = plain_network(seed, 3, 6, skip), tokens(seed), causal_mask(TOKENS)
        total = length_spectrum(network, x, mask).sum(0)
        assert close(total + bias_row(network), network(x, mask))
        assert close(bias_part(network, x, mask), bias_row(network).expand_as(x))
        unbiased = plain_network(seed, 3, 6, skip, biases=False)
        assert not bias_row(unbiased).any() and not bias_part(unbiased, x).any()
        assert close(length_spectrum(unbiased, x).sum(0), unbiased(x))


def test_layers_may_differ_in_heads_widths_and_skip():
    g, x = generator(0), tokens(0)
    sizes = (1, 3, 4, True), (3, 2, 13, False), (2, 5, 1, 0.7)
    network = Network(
        Layer(SelfAttention.random(DIM, h, qk, v, generator=g, biases=True), skip=s) for h, qk, v, s in sizes
    )
    p, sums = frozen_attention(network, x), torch.zeros(4, *x.shape).double()
    for path in itertools.product(*[(None, *range(h)) for h, *_ in sizes]):
        sums[length_of(path)] += path_output(network, x, p, path)
    assert close(length_spectrum(network, x), sums)
    assert close(sums.sum(0) + bias_row(network), network(x))


def test_frozen_attention_is_what_the_forward_pass_uses():
    for norm in ("none", "pre", "post"):
        network, x, mask = normed_network(0, norm), tokens(0, dim=6), causal_mask(TOKENS)
        seen, original = [], SelfAttention.attention
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SelfAttention, "attention", lambda *a: seen.append(original(*a)) or seen[-1])
            network(x, mask)
        assert len(seen) == 3
        assert all(torch.equal(a, b) for a, b in zip(frozen_attention(network, x, mask), seen, strict=True))


def polynomial(factors):
    """The coefficients of prod (1 + t z)."""
    coefficients = [1.0]
    for t in factors:
        shifted = [0.0, *(t * c for c in coefficients)]
        coefficients = [a + b for a, b in zip([*coefficients, 0.0], shifted, strict=True)]
    return coefficients


def two_token_network(pairs, skip=True):
    """Heads (w, v) on tokens a and -a: the half-gap a goes to skip a + sum_h v_h tanh(w_h a^2) a."""

    def column(values):
        return torch.tensor(values, dtype=torch.float64)[:, None, None]

    ones = [1.0] * len(pairs[0])
    return Network(
        Layer(
            SelfAttention(
                w_q=column([w for w, _ in layer]),
                w_k=column(ones),
                w_v=column([v for _, v in layer]),
                w_o=column(ones),
            ),
            skip=skip,
        )
        for layer in pairs
    )


def test_two_tokens_by_the_generating_polynomial():
    for seed in range(8):
        g = generator(seed)
        pairs = [[tuple(torch.randn(2, generator=g).tolist()) for _ in range(3)] for _ in range(5)]
        a, strengths = 0.5, []
        for layer in pairs:
            strengths.append(sum(v * math.tanh(w * a * a) for w, v in layer))
            a += strengths[-1] * a
        x = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
        got = length_spectrum(two_token_network(pairs), x)
        wanted = 0.5 * torch.tensor(polynomial(strengths), dtype=torch.float64)
        assert close(got[:, 0, 0], wanted) and close(got[:, 1, 0], -wanted)


def test_the_two_tokens_of_the_chapter():
    x = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    for depth, printed, total in (
        (2, [0.5, 0.307, 0.0452], 0.8522),
        (4, [0.5, 1.096, 0.827, 0.254, 0.027], 2.703),
    ):
        spectrum = length_spectrum(two_token_network([[(1.0, 1.0)]] * depth), x)[:, 0, 0]
        assert close(spectrum, torch.tensor(printed).double(), 5e-4)
        assert abs(spectrum.sum().item() - total) < 5e-4


def test_a_length_may_cancel_though_no_path_does():
    network = two_token_network([[(1.0, 1.0), (1.0, -1.0)]] * 2)
    x = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    p = frozen_attention(network, x)
    assert all(path_output(network, x, p, path).abs().min() > 0.01 for path in enumerate_paths(2, 2))
    assert not length_spectrum(network, x)[1:].any()


def test_spectrum_from_evaluations_at_roots_of_unity():
    """Weigh each head with z, evaluate the frozen network at L + 1 roots, and invert the Fourier matrix."""
    for seed in SEEDS:
        network, x, depth = plain_network(seed, 3, 4, 0.8), tokens(seed), 4
        p, values = frozen_attention(network, x), []
        roots = [cmath.exp(2j * math.pi * m / (depth + 1)) for m in range(depth + 1)]
        for z in roots:
            y = x.to(torch.complex128)
            for layer, q in zip(network.layers, p, strict=True):
                w = layer.attention.w.to(y.dtype)
                y = 0.8 * y + z * sum(q[:, h].to(y.dtype) @ y @ w[h] for h in range(3))
            values.append(y)
        for k, got in enumerate(length_spectrum(network, x)):
            wanted = sum(z ** (-k) * y for z, y in zip(roots, values, strict=True)) / (depth + 1)
            assert close(got, wanted.real) and wanted.imag.abs().max() < 1e-11


def frozen_maps(network, x, mask):
    """For each layer the linear maps before and behind its heads, frozen at ``x``, by the formulas."""
    centre, maps = torch.eye(6).double() - 1 / 6, []

    def frozen_norm(norm, y):
        scale = 1 / (y.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()
        return norm(y), lambda z: scale * (z @ centre @ torch.diag(norm.weight))

    def same(y):
        return y, lambda z: z

    for layer in network.layers:
        pre = frozen_norm if layer.norm == "pre" else lambda _, y: same(y)
        post = frozen_norm if layer.norm == "post" else lambda _, y: same(y)
        y, before = pre(layer.norm_1, x)
        p = layer.attention.attention(y, mask)
        x, between = post(layer.norm_1, layer.skip * x + layer.attention(y, mask))
        steps = [between]
        if layer.mlp is not None:
            y, before_mlp = pre(layer.norm_2, x)
            first, _, last = layer.mlp
            active = (first(y) > 0).double()
            x, behind = post(layer.norm_2, layer.mlp_skip * x + layer.mlp(y))

            def mlp_step(z, b=before_mlp, a=active, w=(first.weight.T, last.weight.T), s=layer.mlp_skip):
                return s * z + ((b(z) @ w[0]) * a) @ w[1]

            steps += [mlp_step, behind]
        maps.append((p, layer.attention.w, before, steps))
    return maps, x


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("mlp_dim", [None, 11])
def test_norms_and_relu_by_enumeration_of_the_frozen_network(norm, mlp_dim):
    for seed, (skip, mlp_skip) in enumerate([(True, 0.7), (False, True), (-1.3, False)]):
        network = normed_network(seed, norm, mlp_dim, skip=skip, mlp_skip=mlp_skip)
        x, mask = tokens(seed, dim=6), causal_mask(TOKENS) if seed % 2 else None
        maps, output = frozen_maps(network, x, mask)
        sums = torch.zeros(4, *x.shape).double()
        for path in itertools.product([None, 0, 1], repeat=3):
            y = x
            for (p, w, before, steps), head in zip(maps, path, strict=True):
                y = skip * y if head is None else p[:, head] @ before(y) @ w[head]
                for step in steps:
                    y = step(y)
            sums[length_of(path)] += y
        assert close(output, network(x, mask)) and close(length_spectrum(network, x, mask), sums)
        assert close(sums.sum(0) + bias_part(network, x, mask), output)


def test_the_bias_part_of_norms_and_relu_depends_on_the_token():
    for norm, mlp_dim in (("pre", None), ("post", None), ("none", 11)):
        part = bias_part(normed_network(0, norm, mlp_dim), tokens(0, dim=6))
        assert (part - part[:, :1]).abs().max() > 1e-2


def test_a_norm_without_gain_or_bias():
    attention = SelfAttention.random(DIM, generator=generator(0), biases=True)
    for options in ({"elementwise_affine": False}, {"bias": False}, {"eps": 0.3}):
        norm = nn.LayerNorm(DIM, dtype=torch.float64, **options)
        network, x = Network([Layer(attention, norm="post", norm_1=norm)] * 2), tokens(0)
        assert close(length_spectrum(network, x).sum(0) + bias_part(network, x), network(x))


def test_gradients():
    network, x = plain_network(0, depth=2, dim=3), tokens(0, (), 3, 3).requires_grad_()
    p = [q.detach() for q in frozen_attention(network, x)]
    assert torch.autograd.gradcheck(lambda y: length_spectrum(network, y), x)
    assert torch.autograd.gradcheck(lambda y: length_spectrum(network, y, attentions=p), x)
    normed = normed_network(0, "pre", depth=2)
    y = tokens(1, (), 3, 6).requires_grad_()
    assert torch.autograd.gradcheck(lambda y: length_spectrum(normed, y), y)
    assert torch.autograd.gradcheck(lambda y: bias_part(normed, y), y)


def test_the_sum_has_the_gradient_of_the_forward_pass_unless_the_attention_is_detached():
    network, x = plain_network(0), tokens(0).requires_grad_()
    weight, inputs = randn(BATCH, TOKENS, DIM, seed=3), [x, *network.parameters()]

    def gradients(output):
        return torch.autograd.grad((output * weight).sum(), inputs, allow_unused=True)

    wanted = gradients(network(x))
    through = gradients(length_spectrum(network, x).sum(0) + bias_row(network))
    detached = [p.detach() for p in frozen_attention(network, x)]
    along = gradients(length_spectrum(network, x, attentions=detached).sum(0))
    assert all(close(a, b, 1e-10) for a, b in zip(through, wanted, strict=True))
    attached = length_spectrum(network, x, attentions=frozen_attention(network, x)).sum(0) + bias_row(network)
    assert all(close(a, b, 1e-10) for a, b in zip(gradients(attached), wanted, strict=True))
    assert not close(along[0], wanted[0], 1e-3)
    assert along[1 + [name for name, _ in network.named_parameters()].index("layers.1.attention.w_q")] is None


def test_float32_and_vmap():
    network, x = plain_network(0), tokens(0, (3,))
    low = length_spectrum(plain_network(0).float(), x.float())
    assert low.dtype == torch.float32 and close(low.double(), length_spectrum(network, x), 1e-5)
    batched = torch.func.vmap(lambda y: length_spectrum(network, y), out_dims=1)(x)
    assert close(batched, length_spectrum(network, x))


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that any operation makes."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for value in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(value, torch.Tensor):
                self.elements = max(self.elements, value.untyped_storage().nbytes() // value.element_size())
        return result


@torch.no_grad()
def test_the_sweep_needs_memory_for_one_token_matrix_a_length():
    heads, depth, count, dim = 4, 7, 11, 52
    network = plain_network(0, heads, depth, True, True, (13, 13), dim)
    x = tokens(0, (), count, dim)
    p = frozen_attention(network, x)
    with Largest() as mode:
        length_spectrum(network, x, attentions=p)
    assert mode.elements <= (depth + 1) * count * dim
    with Largest() as mode:
        length_spectrum(network, x)
    assert mode.elements <= (depth + 2) * count * dim


def test_a_network_too_large_to_enumerate():
    network = plain_network(0, 12, 12, True, True, (5, 5), 13)
    x = tokens(0, dim=13)
    assert close(length_spectrum(network, x).sum(0) + bias_row(network), network(x), 1e-11)


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


@pytest.mark.parametrize("module", [ranklib.theory.paths, ranklib.theory.path_sums])
def test_doctests(module):
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0


NETWORK, X = plain_network(0), tokens(0)
P = [p.detach() for p in frozen_attention(NETWORK, X)]
NAN = X.clone()
NAN[1, 2, 3] = torch.nan
GELU = normed_network(0, "none", activation="gelu")
NORMED, X6 = normed_network(0, "pre", None), tokens(0, dim=6)
RMS = nn.RMSNorm(DIM, dtype=torch.float64)
RMS_NORMED = Network([Layer(NETWORK.layers[0].attention, norm="pre", norm_1=RMS)])
BARE_MLP = Network([Layer(NETWORK.layers[0].attention, nn.Linear(DIM, DIM, dtype=torch.float64))])
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
    (lambda: length_spectrum(NETWORK, NAN), ValueError, "x: expected finite entries, got 1"),
    (lambda: length_spectrum(NETWORK, NAN, attentions=P), ValueError, "x: expected finite entries, got 1"),
    (lambda: length_spectrum(NETWORK, X.long()), TypeError, "x: expected a floating-point dtype"),
    (lambda: length_spectrum(NETWORK, X.float()), TypeError, "x: expected torch.float64"),
    (lambda: length_spectrum(NETWORK, X.mT), ValueError, "x: expected .*tokens, 7"),
    (lambda: length_spectrum(NETWORK, X[0, 0]), ValueError, "x: expected .*tokens, 7"),
    (lambda: length_spectrum(NETWORK, X, ~causal_mask(TOKENS)), ValueError, "mask: expected at least one"),
    (lambda: length_spectrum(NETWORK, X, causal_mask(TOKENS), P), ValueError, "mask: expected None with att"),
    (lambda: length_spectrum(NORMED, X6, attentions=P), ValueError, "network: expected layers of attention"),
    (lambda: length_spectrum(NETWORK, X, attentions=P[:2]), ValueError, "expected a list of 3 ten.*got 2"),
    (lambda: length_spectrum(NETWORK, X, attentions=P[0]), ValueError, "attentions: expected a list of 3"),
    (lambda: length_spectrum(NETWORK, X[0], attentions=P), ValueError, r"attentions: expected .*\(2, 5, 5\)"),
    (lambda: length_spectrum(NETWORK, X[:, :3], attentions=P), ValueError, r"expected .*\(2, 2, 3, 3\)"),
    (lambda: length_spectrum(GELU, X6), ValueError, "Linear and ReLU, got GELU.*curved function"),
    (lambda: length_spectrum(BARE_MLP, X), ValueError, "expected MLPs as a Sequential"),
    (lambda: length_spectrum(RMS_NORMED, X), ValueError, "expected LayerNorm over the features.*RMSNorm"),
    (lambda: bias_part(GELU, X6), ValueError, "Linear and ReLU, got GELU"),
    (lambda: bias_part(NETWORK, NAN), ValueError, "x: expected finite entries"),
    (lambda: bias_part(NETWORK.layers[0], X), TypeError, "network: expected Network"),
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
