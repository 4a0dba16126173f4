"""Watching blocks: memory is that of two streams, and nothing is left behind."""

import weakref

import pytest
import torch

from small_models import build, inputs_for, state_of
from tests.tracing.quiet_trace import SEVERAL, network, quiet, random_tokens


def test_no_stream_outlives_its_measure():
    """At the end of each block no output is alive but its own and the one before: memory is that of two."""
    streams, alive = [], []

    def count(_block, _args, output):
        streams.append(weakref.ref(output))
        alive.append(sum(stream() is not None for stream in streams))

    model = network(depth=11)
    handles = [layer.register_forward_hook(count) for layer in model.layers]
    for without in ((), "mlp"):
        quiet(model, random_tokens(2, 3, 5), measures=SEVERAL, without=without)
    for handle in handles:
        handle.remove()
    assert len(alive) == 22 and max(alive) == 2


def test_everything_is_as_before_after_any_exception():
    model = build("bert")
    model.train()
    before = state_of(model)
    inputs = inputs_for("bert")
    bad = inputs | {"input_ids": inputs["input_ids"] + 10**6}
    for wrong, options, error in (
        (bad, {}, IndexError),
        ([inputs, bad], {"without": ["skip", "mlp", "norm"]}, IndexError),
        (inputs, {"without": "positions"}, ValueError),
        (inputs, {"measures": "isometry"}, ValueError),
        (inputs, {"without": "skipp"}, ValueError),
        ([], {}, ValueError),
    ):
        with pytest.raises(error):
            quiet(model, wrong, **options)
        assert state_of(model) == before
    with torch.no_grad():
        model.encoder.layer[1].output.dense.bias[3] = torch.nan
    before = state_of(model)
    with pytest.raises(ValueError, match=r"layer 2: expected a finite stream, got \d+ of \d+ entries that"):
        quiet(model, inputs)
    assert state_of(model) == before
