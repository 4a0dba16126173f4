"""Length sums against enumeration, a generating polynomial, and the forward pass."""

import cmath
import doctest
import itertools
import math

import jaxtyping
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import ranklib.theory.path_sums
import ranklib.theory.paths
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import causal_mask
from ranklib.theory.path_sums import bias_part, length_spectrum
from ranklib.theory.paths import bias_row, enumerate_paths, frozen_attention, path_output
from tests.theory.path_networks import (
    BATCH,
    DIM,
    SEEDS,
    SKIPS,
    TOKENS,
    close,
    generator,
    length_of,
    normed_network,
    plain_network,
    randn,
    tokens,
)


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
    assert length_spectrum(network, x)[1:].abs().max() < 1e-15


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


def test_doctests():
    found = doctest.testmod(ranklib.theory.path_sums)
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
BAD = [
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
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_bad_input_raises_with_a_remedy(call, error, message, monkeypatch):
    """Without the shape checks of the tests, as a user has it."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=message):
        call()
