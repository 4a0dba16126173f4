"""Deep traces: against the models' own hidden states above the floor, and mpmath far below it."""

import math

import mpmath as mp
import pytest
import torch

from plain import raises_its_own_message
from ranklib.measures.tokens import composite_residual
from ranklib.tracing.conversion import as_network
from ranklib.tracing.deep import LAYER_SWITCHES, deep_trace, embeddings, layer_switches
from tests.tracing.text_models import DIM, HEADS, KINDS, build, sample


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_with_every_part_it_is_what_the_model_computes(kind, seed):
    model, inputs = build(kind, seed), sample(seed)
    states = model(**inputs, output_hidden_states=True).hidden_states
    first = torch.stack(embeddings(model, inputs))
    assert torch.allclose(first, states[-len(as_network(model).layers) - 1], rtol=0, atol=1e-13)
    found = deep_trace(model, inputs)
    wanted = torch.stack([composite_residual(x) for x in (first, *states[1:])])
    assert len(wanted) in (len(found.log10_relative), 3)  # two inner layers are one to output_hidden_states
    got = 10**found.log10_relative
    if len(got) == len(wanted):
        assert torch.allclose(got, wanted, rtol=1e-10, atol=0)
    assert torch.allclose(got[-1], wanted[-1], rtol=1e-10, atol=0)


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_padding_takes_no_part(kind):
    model, inputs = build(kind), sample()
    padding = model.config.pad_token_id
    inputs["input_ids"][1, 3:] = padding
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    inputs["attention_mask"][1, 3:] = 0
    padded = deep_trace(model, inputs)
    alone = deep_trace(model, {"input_ids": inputs["input_ids"][1:2, :3]})
    assert torch.allclose(padded.log10_relative[:, 1:2], alone.log10_relative, rtol=0, atol=1e-11)
    last = model(**inputs).last_hidden_state[1, :3].detach()
    assert math.isclose(10 ** padded.log10_relative[-1, 1], float(composite_residual(last)), rel_tol=1e-10)


def test_token_types_are_read():
    model, inputs = build("bert"), sample()
    inputs["token_type_ids"] = torch.tensor([[0, 0, 1, 1, 1]] * 3)
    wanted = composite_residual(model(**inputs).last_hidden_state)
    assert torch.allclose(10 ** deep_trace(model, inputs).log10_relative[-1], wanted, rtol=1e-10)


def exact(tensor):
    return mp.matrix(tensor.detach().tolist())


def linear(module, x):
    return x * exact(module.weight).T + mp.ones(x.rows, 1) * exact(module.bias).T


def layer_norm(module, x):
    out = mp.zeros(x.rows, x.cols)
    for i in range(x.rows):
        mean = mp.fsum(x[i, :]) / x.cols
        root = mp.sqrt(mp.fsum((z - mean) ** 2 for z in x[i, :]) / x.cols + mp.mpf(module.eps))
        for j in range(x.cols):
            gain, bias = module.weight[j].item(), module.bias[j].item()
            out[i, j] = gain * (x[i, j] - mean) / root + bias
    return out


def gelu(z):
    return z * mp.erfc(-z / mp.sqrt(2)) / 2


def gelu_new(z):
    return z * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (z + mp.mpf(0.044715) * z**3))) / 2


def softmax_rows(s):
    p = s.apply(mp.exp)
    return mp.matrix([[p[i, j] / mp.fsum(p[i, :]) for j in range(p.cols)] for i in range(p.rows)])


def block_by_definition(names, block, x, activation, without):
    query, key, value, dense, norm_1, up, down, norm_2 = (block.get_submodule(name) for name in names)
    q, k, v = linear(query, x), linear(key, x), linear(value, x)
    size, heads = DIM // HEADS, mp.zeros(x.rows, DIM)
    for h in range(HEADS):
        part = slice(h * size, (h + 1) * size)
        mixed = softmax_rows(q[:, part] * k[:, part].T / mp.sqrt(size)) * v[:, part]
        for i in range(x.rows):
            for j in range(size):
                heads[i, h * size + j] = mixed[i, j]
    y = linear(dense, heads) + (mp.zeros(x.rows, DIM) if "skip" in without else x)
    y = y if "norm" in without else layer_norm(norm_1, y)
    if "mlp" in without:
        return y
    z = linear(down, linear(up, y).apply(activation)) + (mp.zeros(x.rows, DIM) if "skip" in without else y)
    return z if "norm" in without else layer_norm(norm_2, z)


BERT_NAMES = ["attention.self." + name for name in ("query", "key", "value")]
BERT_NAMES += ["attention.output.dense", "attention.output.LayerNorm", "intermediate.dense"]
BERT_NAMES += ["output.dense", "output.LayerNorm"]
ALBERT_NAMES = ["attention." + name for name in ("query", "key", "value", "dense", "LayerNorm")]
ALBERT_NAMES += ["ffn", "ffn_output", "full_layer_layer_norm"]


def log10_relative(x):
    def size(a):
        rows = max(mp.fsum(abs(a[i, j]) for j in range(a.cols)) for i in range(a.rows))
        return mp.sqrt(rows * max(mp.fsum(abs(a[i, j]) for i in range(a.rows)) for j in range(a.cols)))

    mean = mp.ones(x.rows, x.rows) * x / x.rows
    return mp.log10(size(x - mean)), mp.log10(size(x - mean) / size(x))


@pytest.mark.parametrize("without", [("skip", "mlp"), ("skip",), ("skip", "norm", "mlp"), ("mlp",), ()])
@pytest.mark.parametrize("kind", ["bert", "albert"])
def test_far_below_the_floor_it_is_the_definition(kind, without):
    model, inputs = build(kind), sample(samples=1, tokens=3)
    found = deep_trace(model, inputs, without=without)
    if kind == "bert":
        names, blocks, activation = BERT_NAMES, list(model.encoder.layer), gelu
    else:
        groups = model.encoder.albert_layer_groups
        names, activation = ALBERT_NAMES, gelu_new
        blocks = [groups[i].albert_layers[0] for i in (0, 0, 1, 1)]
    (start,) = embeddings(model, inputs)
    with mp.workdps(400):
        x = exact(start)
        for layer, block in enumerate([None, *blocks]):
            x = x if block is None else block_by_definition(names, block, x, activation, without)
            curves = (found.log10_residual, found.log10_relative)
            for got, wanted in zip(curves, log10_relative(x), strict=True):
                assert abs(float(got[layer, 0] - float(wanted))) < 1e-11, layer
    deep = bool(found.log10_relative[-1, 0] < -17)
    assert deep or without not in (("skip", "mlp"), ("skip", "norm", "mlp"))


def test_the_law_is_cubic_at_every_depth():
    """log a' = 3 log a + constant: the constants of a shared layer agree once the state has settled."""
    found = deep_trace(
        build("albert", num_hidden_layers=9, num_hidden_groups=1), sample(), without=("skip", "mlp")
    )
    constants = found.constants()
    assert found.log10_relative[-1].max() < -500
    assert constants.shape == (9, 3) and (constants[-3:].abs() < 3).all()
    assert len(found.rows()) == 30 and found.rows()[4]["layer"] == 1


def test_names_of_parts_are_switches():
    assert (
        layer_switches(["attention_skip", "mlp_skip"]) == layer_switches(["skip"]) == LAYER_SWITCHES["skip"]
    )
    assert layer_switches("norm") == {"norm": "none"} and layer_switches([]) == {}


def test_an_unknown_part_is_refused():
    message = raises_its_own_message(
        ValueError, lambda: deep_trace(build("bert"), sample(), without=["skips"])
    )
    assert "attention_skip" in message and "'skips'" in message
