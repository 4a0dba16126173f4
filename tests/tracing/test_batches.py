"""Inputs as mappings, tensors or streams of them, in batches; where they may stand, and how many."""

import pytest
import torch

from ranklib.measures.table import MEASURES
from small_models import TOKENS, inputs_for, small
from tests.tracing.quiet_trace import SEVERAL, close, expected_values, network, quiet, random_tokens


@pytest.mark.parametrize("kind", ["xlnet", "bert"])
def test_as_many_samples_as_tokens_are_told_apart(kind):
    """XLNet's stream has the tokens first; in a square batch the shapes do not tell."""
    inputs = inputs_for(kind, samples=5, tokens=5)
    found = quiet(small(kind), inputs, measures=SEVERAL)
    assert close(found.values, expected_values(kind, inputs, SEVERAL))
    one = {name: value[:1, :1] for name, value in inputs.items()}
    assert quiet(small(kind), one, measures="mu").values.abs().max() == 0


def test_inputs_come_as_mappings_tensors_or_streams_of_them():
    model, x = network(), random_tokens(5, 7, 5)
    whole = quiet(model, x, measures=SEVERAL)
    states = model.trace(x)
    expected = [torch.stack([MEASURES[name](y) for name in SEVERAL], -1) for y in states]
    assert close(whole.values, torch.stack(expected))
    for inputs in ([x[:2], x[2:]], iter([x[:3], x[3:]]), {"x": x}, ({"x": y[None]} for y in x)):
        assert close(quiet(model, inputs, measures=SEVERAL).values, whole.values)
    taken = []

    def stream():
        for i in range(3):
            taken.append(i)
            yield x[i : i + 1]

    assert len(quiet(model, stream(), batch_size=1).tokens) == 3 and taken == [0, 1, 2]
    lengths = quiet(model, [x, x[:, :3]])
    assert lengths.tokens.tolist() == [7] * 5 + [3] * 5
    bert, inputs = small("bert"), inputs_for("bert")
    shared = inputs | {"position_ids": torch.arange(TOKENS)[None]}
    assert close(quiet(bert, shared, batch_size=2).values, quiet(bert, inputs).values)
