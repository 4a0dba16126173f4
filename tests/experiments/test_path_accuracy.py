"""Path evaluation: all frozen paths are the network, and every way is computed a second time, naively."""

import itertools
import math

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib import Layer, Network, SelfAttention
from ranklib.experiments.path_accuracy import (
    WAYS,
    coverage,
    evaluate_exact,
    evaluate_paths,
    expected_distinct,
    frozen_step,
    recomputed_step,
    walk,
)
from ranklib.experiments.token_model import EPS, TokenModel
from ranklib.theory.path_sums import length_spectrum
from ranklib.theory.paths import count_paths, enumerate_paths, frozen_attention, path_output

plain = import_plain("ranklib.experiments.path_accuracy")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def randn(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=seeded(seed))


def a_model(seed=0, heads=2, depth=3, **options):
    """A small model whose biases and gains are not at their trivial start."""
    model = TokenModel(depth, 6, heads, 7, 3, **options)
    vector = model.draw(seeded(seed), torch.float64)
    return model, vector + 0.3 * randn(*vector.shape, seed=seed + 1)


SYMBOLS = torch.randint(7, (4, 5), generator=seeded(3))
LABELS = torch.randint(3, (4, 5), generator=seeded(4))


def normalised(z):
    z = z - z.mean(-1, keepdim=True)
    return z / (z.square().mean(-1, keepdim=True) + EPS).sqrt()


# ---------------------------------------------------------------- counting


@pytest.mark.parametrize("paths,draws", [(1, 0), (1, 3), (2, 5), (3, 4), (5, 3)])
def test_expected_number_of_different_paths_is_the_mean_over_all_draws(paths, draws):
    every = [len(set(draw)) for draw in itertools.product(range(paths), repeat=draws)]
    assert expected_distinct(paths, draws) == pytest.approx(sum(every) / len(every), abs=1e-12)


def test_coverage_of_twelve_paths_and_of_many():
    shares = coverage(2, 6)
    assert round(12 * shares["5"][1], 2) == 4.23 and round(12 * shares["20"][1], 2) == 9.89
    assert shares["20"][0] == 1 and shares["20"][4] == pytest.approx(1 - (1 - 1 / 240) ** 20)


# ---------------------------------------------------------------- walking paths


@pytest.mark.parametrize("seed", range(5))
def test_a_walk_visits_each_path_once_and_gives_the_output_of_that_path(seed):
    network = Network.random(3, 6, 2, generator=seeded(seed), biases=True)
    x = randn(4, 5, 6, seed=seed)
    frozen = frozen_attention(network, x)
    wanted = [(0, None, 1), (1, 1, 1), (1, 0, 1), (0, None, 1), (0, 1, None)]
    found = dict(walk(frozen_step(network, x), x, wanted))
    assert set(found) == set(wanted)
    for path, state in found.items():
        assert torch.allclose(state, path_output(network, x, frozen, path), atol=1e-12)


def test_paths_that_begin_alike_share_their_work():
    calls = []

    def step(layer, head, z):
        calls.append((layer, head))
        return z

    list(walk(step, torch.zeros(1), enumerate_paths(2, 4)))
    assert len(calls) == sum(2 * 3**layer for layer in range(4))


@pytest.mark.parametrize("heads,depth", [(1, 3), (2, 3), (3, 2)])
def test_all_frozen_paths_of_a_network_without_norms_are_its_forward_pass(heads, depth):
    network = Network.random(depth, 6, heads, generator=seeded(heads), skip=True)
    x = randn(2, 5, 6)
    states = [state for _, state in walk(frozen_step(network, x), x, enumerate_paths(heads, depth))]
    assert len(states) == (1 + heads) ** depth and torch.allclose(sum(states), network(x), atol=1e-10)


def test_frozen_and_recomputed_attention_differ_on_the_pair_by_the_known_numbers():
    """a = 1/2, w = v = 1: the second layer's strength is tanh of the squared half-gap it sees."""
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    network = Network([Layer(SelfAttention(w_q=one, w_k=one, w_v=one, w_o=one))] * 2)
    x = torch.tensor([[0.5], [-0.5]], dtype=torch.float64)
    first = math.tanh(0.25)
    for step, second in ((frozen_step(network, x), 0.3692), (recomputed_step(network), 0.0150)):
        (_, state), *_ = walk(step, x, [(0, 0)])
        assert round(state[0, 0].item() / (0.5 * first), 4) == second


# ---------------------------------------------------------------- evaluation


def slow_recomputed(network, z, path):
    """The released code's path, from the public parts of the layers."""
    for layer, head in zip(network.layers, path):
        if head is None:
            continue
        attention = layer.attention
        names = ("w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v")
        one = {name: getattr(attention, name)[head : head + 1] for name in names}
        z = normalised(SelfAttention(**one, b_o=attention.b_o)(z))
        if layer.mlp is not None:
            z = layer.norm_2(z + layer.mlp(z))
    return z


def slow_frozen(network, z, path):
    states = network.trace(z)
    for layer, state, head in zip(network.layers, states, path):
        if head is not None:
            z = layer.attention.attention(state)[..., head, :, :] @ z @ layer.attention.w[head]
    return z


@pytest.mark.parametrize("way,slow", list(zip(WAYS, (slow_frozen, slow_recomputed))))
@pytest.mark.parametrize("mlp_dim", [0, 5])
def test_accuracies_of_all_paths_are_those_of_the_naive_sums(way, slow, mlp_dim):
    model, vector = a_model(mlp_dim=mlp_dim)
    p, network = model.split(vector), model.network(vector)
    start = model.embed(p, SYMBOLS)
    result = evaluate_paths(model, vector, SYMBOLS, LABELS, way, seeded(0), (2, 500), 3)
    for length in range(4):
        paths = [q for q in enumerate_paths(2, 3) if sum(c is not None for c in q) == length]
        total = sum(slow(network, start, path) for path in paths)
        right = model.readout(p, normalised(total)).argmax(-1) == LABELS
        assert result["all"][length] == float(right.double().mean())
        assert all(1 <= d <= min(2, len(paths)) for d in result["distinct"]["2"][length])
        assert all(d == len(paths) for d in result["distinct"]["500"][length])
        assert len(result["sampled"]["2"][length]) == 3


def test_a_sampled_sum_counts_each_path_as_often_as_it_was_drawn():
    model, vector = a_model(heads=1, depth=1)
    p, network = model.split(vector), model.network(vector)
    result = evaluate_paths(model, vector, SYMBOLS, LABELS, "frozen", seeded(0), (7,), 2)
    for length, path in enumerate([(None,), (0,)]):  # one path only, seven times: the norm forgets the seven
        state = slow_frozen(network, model.embed(p, SYMBOLS), path)
        right = float((model.readout(p, normalised(7 * state)).argmax(-1) == LABELS).double().mean())
        assert result["sampled"]["7"][length] == [right, right]


def test_the_limit_of_the_papers_formula_is_the_spectrum_without_norms():
    model, vector = a_model()
    p, network = model.split(vector), model.network(vector)
    start = model.embed(p, SYMBOLS)
    sums = length_spectrum(network.switched(norm="none"), start, attentions=frozen_attention(network, start))
    wanted = [float((model.readout(p, normalised(t)).argmax(-1) == LABELS).double().mean()) for t in sums]
    assert evaluate_paths(model, vector, SYMBOLS, LABELS, "frozen", seeded(0))["all"] == wanted


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("mlp_dim", [0, 5])
def test_exact_sums_add_up_to_the_network(norm, mlp_dim):
    model, vector = a_model(seed=7, norm=norm, mlp_dim=mlp_dim)
    result = evaluate_exact(model, vector, SYMBOLS, LABELS)
    whole = float((model(vector, SYMBOLS).argmax(-1) == LABELS).double().mean())
    assert result["error"] < 1e-12 and result["up_to"][-1] == result["model"] == whole
    assert len(result["alone"]) == 4 and sum(result["share"]) == pytest.approx(1)


def test_a_longer_path_counts_its_heads():
    assert [count_paths(2, 3, k) for k in range(4)] == [1, 6, 12, 8]


@pytest.mark.parametrize("way", WAYS)
def test_draws_depend_on_the_generator_alone(way):
    model, vector = a_model()
    results = [evaluate_paths(model, vector, SYMBOLS, LABELS, way, seeded(s), (3,), 4) for s in (0, 0, 1)]
    assert results[0] == results[1] and results[0]["distinct"] != results[2]["distinct"]


@pytest.mark.parametrize(
    "call,kind",
    [
        (lambda: plain.expected_distinct(0, 3), ValueError),
        (lambda: plain.expected_distinct(3, 1.5), TypeError),
        (lambda: plain.evaluate_paths(*a_model(), SYMBOLS, LABELS, "thawed", seeded(0)), ValueError),
        (lambda: evaluate_exact(*a_model(mlp_dim=5, activation="gelu"), SYMBOLS, LABELS), ValueError),
    ],
)
def test_bad_input_raises_and_says_why(call, kind):
    raises_its_own_message(kind, call)
