"""The diameter theorem beside real architectures, small: every number against a run of the model itself."""

import doctest
import math

import pytest
import torch

import ranklib.experiments.worst_case
from ranklib.experiments.architectures import BARE, initialise, label_inputs
from ranklib.experiments.worst_case import (
    block_ratios,
    random_losses,
    slacks_at_initialisation,
    whole_blocks,
    worst_over_typical,
)
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Network
from ranklib.theory.block import bound_block
from ranklib.theory.sizes import diameter
from ranklib.theory.slack import PROOF_STEPS
from ranklib.tracing.switches import switched_off

pytest.importorskip("transformers", reason="the optional package transformers is absent")
SMALL = {"dim": 24, "heads": 4, "depth": 3, "mlp": 10, "vocabulary": 200}


@pytest.mark.parametrize("name", ["bert", "albert", "xlnet"])
def test_what_is_measured_is_what_the_model_does(name):
    model = initialise(name, 1, **SMALL).double()
    inputs, _ = label_inputs(1, 10, 200)
    with torch.no_grad(), switched_off(model, BARE):
        states = model(**inputs, output_hidden_states=True).hidden_states
    found = slacks_at_initialisation(name, 1, tokens=10, **SMALL)
    assert len(found) == 3
    for slack, x, y in zip(found, states[:-1], states[1:], strict=True):
        for size, tokens in ((slack.before, x), (slack.after, y)):
            near = 10**size > 1e-8  # floats show nothing below
            assert not near or math.isclose(size, float(diameter(tokens[0]).log10()), abs_tol=1e-4)
        assert slack.lost.min() > -1e-6 and slack.bound > slack.after
    assert found[0].after > -8


def test_position_terms_alone_bound_a_layer_whose_tokens_have_met():
    last = slacks_at_initialisation("xlnet", 0, tokens=10, **(SMALL | {"depth": 6}))[-1]
    assert 10 ** last.scores.max() < 1e-3  # nothing comes from the tokens
    assert last.bound - last.before > math.log10(float(last.values.sum()) * last.stretch * 1e-4)
    assert abs(last.lost[PROOF_STEPS.index("scores")]) < 1e-2


def test_heads_with_random_signs_lose_their_square_root_and_one_head_nothing():
    heads = PROOF_STEPS.index("heads")
    assert random_losses(range(3), width=32, dim_head=8)[:, heads].abs().max() < 1e-9
    few, many = (random_losses(range(4), width=32, heads=h, dim_head=8)[:, heads].mean() for h in (4, 64))
    assert 0.35 < (many - few) / math.log10(16) < 0.65


def test_sizes_over_typical_sizes_stay_in_their_ranges():
    attention = SelfAttention.random(12, 3, generator=torch.Generator().manual_seed(0))
    scores, values = worst_over_typical(attention)
    assert (scores > 12**0.5).all() and (scores < 12).all()
    assert (values > 1).all() and (values < 12**0.5).all()


def test_blocks_are_below_their_bounds():
    variants = {"full": {}, "skip": {"mlp": False}, "mlp": {"skip": False, "mlp_skip": False}}
    found = whole_blocks("bert", variants, depth=2, tokens=8, dim=24, heads=4, mlp=48)
    assert all(len(ratios) == 2 and (ratios >= 1).all() for ratios in found.values())
    network = Network.random(2, 4, generator=torch.Generator().manual_seed(0), scale=0.3)
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    first = bound_block(network.layers[0], x).upper / diameter(network.layers[0](x))
    assert torch.isclose(block_ratios(network, x)[0], first)


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        slacks_at_initialisation("gpt", 0)


def test_examples_in_the_docstrings():
    found = doctest.testmod(ranklib.experiments.worst_case)
    assert found.failed == 0 and found.attempted >= 6
