"""The blocks of a model are found without names; what has none or several stacks is refused."""

import pytest
from torch import nn

from ranklib.tracing.blocks import blocks
from small_models import build, inputs_for, small
from tests.tracing.own_blocks import plain, pre, streams


def test_blocks_are_found_without_names():
    assert blocks(small("bert")) == list(small("bert").encoder.layer)
    assert blocks(small("xlnet")) == list(small("xlnet").layer)
    assert blocks(small("gpt2")) == list(small("gpt2").h)
    assert blocks(small("llama")) == list(small("llama").layers)
    assert blocks(small("vit")) == list(small("vit").layers)
    groups = small("albert").encoder.albert_layer_groups
    assert blocks(small("albert")) == list(groups[0].albert_layers)
    two = build("albert", num_hidden_groups=3, inner_group_num=2)
    assert len(blocks(two)) == 6 and len(streams(two, inputs_for("albert"), "skip")) == 7


def test_lists_inside_blocks_are_not_blocks():
    def with_experts(block, x):
        return pre(block, x) + sum(head(x) for head in block.experts)

    model = plain(with_experts)
    for block in model:
        block.experts = nn.ModuleList(nn.Linear(6, 6) for _ in range(3))
        block.heads = nn.ModuleList(nn.MultiheadAttention(6, 2) for _ in range(3))
    assert blocks(model) == list(model) and blocks(nn.ModuleDict({"body": model})) == list(model)


def test_no_stack_or_several_are_refused():
    two = nn.ModuleDict({"encoder": plain(pre), "decoder": plain(pre)})
    with pytest.raises(ValueError, match="expected one stack .* got encoder, decoder; pass the part"):
        blocks(two)
    for model in (nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)), nn.Sequential()):
        with pytest.raises(ValueError, match="got none;"):
            blocks(model)
