"""Models of other libraries as networks of the book, and what has no such form is refused."""

import copy

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.tracing.conversion import as_network
from ranklib.tracing.deep import deep_trace
from tests.tracing.text_models import SIZES, VOCABULARY, build, sample

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")


def test_shared_blocks_are_one_layer_and_the_model_is_left_alone():
    model = build("albert").float().train()
    before = copy.deepcopy(model.state_dict())
    layers = as_network(model).layers
    assert layers[0] is layers[1] and layers[2] is layers[3] and layers[0] is not layers[2]
    deep_trace(model, sample())
    assert model.training and all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert {p.dtype for p in as_network(model).parameters()} == {torch.float64}


def test_a_model_with_a_head_is_its_base():
    model = transformers.BertForMaskedLM(transformers.BertConfig(**SIZES))
    with_head, base = deep_trace(model, sample()), deep_trace(model.bert, sample())
    assert torch.equal(with_head.log10_relative, base.log10_relative)


def altered():
    """A block that has all parts and uses them otherwise."""
    model = build("bert")
    block = model.encoder.layer[2]
    forward = block.forward
    block.forward = lambda x, *rest, **more: forward(x, *rest, **more) + x / 1000
    return model


def causal():
    return transformers.BertModel(transformers.BertConfig(is_decoder=True, **SIZES))


def other(family):
    config = getattr(transformers, family + "Config")
    sizes = {k: v for k, v in SIZES.items() if k in ("vocab_size", "hidden_size", "num_attention_heads")}
    sizes |= {"XLNet": dict(vocab_size=31, d_model=14, n_head=2, n_layer=2, d_inner=11)}.get(family, {})
    return getattr(transformers, family + "Model")(config(num_hidden_layers=2, intermediate_size=11, **sizes))


def with_ids(ids, **more):
    return lambda: (build("bert"), {"input_ids": torch.as_tensor(ids)} | more)


BAD = {
    "causal": (lambda: (causal(), sample()), "a causal mask"),
    "another block": (lambda: (altered(), sample()), "layer 2, BertLayer, that does something else"),
    "MPNet": (lambda: (other("MPNet"), sample()), "relative positions"),
    "XLNet": (lambda: (other("XLNet"), sample()), "got XLNetModel"),
    "GPT2": (lambda: (other("GPT2"), sample()), "got GPT2Model"),
    "ViT": (lambda: (other("ViT"), sample()), "model: expected"),
    "no model": (lambda: (torch.nn.Linear(2, 2), sample()), "got Linear"),
    "activation": (lambda: (build("bert", hidden_act="silu"), sample()), "the activation 'silu'"),
    "no ids": (lambda: (build("bert"), {}), "integers of shape"),
    "floats": (with_ids([[0.5, 1.0]]), "integers of shape"),
    "one axis": (with_ids([1, 2]), "integers of shape"),
    "unknown id": (with_ids([[1, VOCABULARY]]), "the model's own tokenizer"),
    "mask": (with_ids([[1, 2]], attention_mask=torch.ones(1, 3)), "attention_mask of shape"),
    "padding alone": (with_ids([[1, 2]], attention_mask=torch.zeros(1, 2)), "padding alone"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_apply_is_refused_with_a_remedy(name):
    plain = import_plain("ranklib.tracing.deep")
    make, words = BAD[name]
    assert words in raises_its_own_message(ValueError, plain.deep_trace, *make())
