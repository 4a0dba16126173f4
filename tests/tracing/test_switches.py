"""Sub-layers switched off, against transformers written by hand, and against ranklib's own networks."""

from itertools import chain, combinations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from hand_loops import LOOPS, WITHOUT, unwritten
from ranklib.model.layers import Layer, Network
from ranklib.tracing.switches import SWITCHES, switched_off, switches
from small_models import CONFIGS, LAYERS, build, generator, inputs_for, randomised, small, state_of
from tests.tracing.own_blocks import Block, RootMeanSquareNorm, in_place, plain, post, pre, streams

PARTS = ("attention_skip", "mlp_skip", "mlp", "norm")
HAVE_POSITIONS = ("xlnet", "llama")


def subsets(names):
    return list(chain.from_iterable(combinations(names, size) for size in range(len(names) + 1)))


def same(a, b, tol=1e-11):
    return a.shape == b.shape and torch.allclose(a, b, rtol=tol, atol=tol * b.abs().max().item())


def agree(kind, found, expected):
    found = [x.transpose(0, 1) if kind == "xlnet" else x for x in found]
    return len(found) == len(expected) == LAYERS + 1 and all(map(same, found, expected))


def test_every_small_model_has_its_loop():
    assert not [*unwritten(CONFIGS)]
    assert {*LOOPS, *WITHOUT} == {*CONFIGS}, (
        "take out of tests/hand_loops.py what tests/small_models.py no longer has"
    )


@pytest.mark.parametrize("kind", LOOPS)
def test_every_set_of_switches_gives_the_streams_of_the_hand_written_loop(kind):
    model, inputs, before = small(kind), inputs_for(kind), state_of(small(kind))
    last = {}
    for off in subsets(PARTS + ("positions",) * (kind in HAVE_POSITIONS)):
        expected = LOOPS[kind](model, inputs, off)
        assert agree(kind, streams(model, inputs, off), expected), off
        last[off] = expected[-1]
    for off, x in last.items():  # what differs by a switch differs in the streams: no switch is idle
        for name in set(PARTS) - set(off):
            if not (name == "mlp_skip" and "mlp" in off):  # the skip went with the MLP
                wider = tuple(n for n in (*PARTS, "positions") if n in {*off, name})
                assert not same(last[wider], x, 1e-6), (off, name)
    both = LOOPS[kind](model, inputs, ("attention_skip", "mlp_skip"))
    assert agree(kind, streams(model, inputs, "skip"), both)
    assert state_of(model) == before


@pytest.mark.parametrize("kind", ["bert", "albert", "xlnet"])
def test_as_released_gives_the_switches_of_the_papers_code(kind):
    model, inputs = small(kind), inputs_for(kind)
    without_mlp = "maps" if kind == "albert" else "mlp"
    for names, off in (
        ((), ()),
        (("skip",), ("attention_skip",)),
        (("attention_skip",), ("attention_skip",)),
        (("mlp",), (without_mlp,)),
        (("skip", "mlp"), ("attention_skip", without_mlp)),
    ):
        before = state_of(model)
        assert agree(kind, streams(model, inputs, names, as_released=True), LOOPS[kind](model, inputs, off))
        assert state_of(model) == before
    for name in ("norm", "mlp_skip", "positions"):
        with pytest.raises(ValueError, match="released code has no such switch"):
            streams(model, inputs, name, as_released=True)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "vit"])
def test_as_released_refuses_other_models(kind):
    with pytest.raises(ValueError, match="expected a BERT, ALBERT or XLNet, got"):
        streams(small(kind), inputs_for(kind), as_released=True)


def network(norm, seed):
    options = {"mlp_dim": 11, "biases": True, "norm": norm, "generator": generator(seed)}
    return randomised(Network.random(3, 6, 3, **options), seed)


@pytest.mark.parametrize("norm", ["none", "post", "pre"])
def test_networks_of_the_book_switched_off_are_those_built_without_the_part(norm):
    model, x = network(norm, 0), torch.randn(5, 7, 6, generator=generator(0), dtype=torch.float64)
    parts = [name for name in PARTS if name != "norm" or norm != "none"]
    for off in ((), *((name,) for name in parts), ("attention_skip", "mlp"), tuple(parts)):
        built = {"skip": "attention_skip" not in off, "norm": "none" if "norm" in off else None}
        built |= {"mlp": False if "mlp" in off else None, "mlp_skip": "mlp_skip" not in off}
        assert all(map(same, streams(model, x, off), model.switched(**built).trace(x))), off


@pytest.mark.parametrize("first", [True, False])
def test_torch_encoders_give_what_their_layers_give_in_the_book(first):
    options = {"dropout": 0.3, "batch_first": True, "norm_first": first, "dtype": torch.float64}
    layer = nn.TransformerEncoderLayer(6, 2, 11, **options)
    model = randomised(nn.TransformerEncoder(layer, 3, enable_nested_tensor=False))
    ours = Network(Layer.from_torch(block) for block in model.layers)
    x = torch.randn(5, 7, 6, generator=generator(3), dtype=torch.float64)
    for off, built in (
        ((), {}),
        (("skip",), {"skip": False, "mlp_skip": False}),
        (("mlp", "norm"), {"mlp": False, "norm": "none"}),
        (("skip", "mlp"), {"skip": False, "mlp": False}),
    ):
        assert all(map(same, streams(model, x, off), ours.switched(**built).trace(x))), off


def test_gradients_are_those_of_the_network_built_without_the_part():
    model, x = network("pre", 0), torch.randn(2, 5, 6, generator=generator(0), dtype=torch.float64)
    weights = [w for name, w in model.named_parameters() if "mlp" not in name and "norm_2" not in name]
    with switched_off(model, ["attention_skip", "mlp"]):
        found = torch.autograd.grad(model(x).square().sum(), weights)
    expected = torch.autograd.grad(model.switched(skip=False, mlp=False)(x).square().sum(), weights)
    assert all(map(same, found, expected)) and any(g.abs().max() > 0 for g in found)


def test_q_norms_stay_and_own_normalisations_are_found():
    x = torch.randn(5, 7, 6, generator=generator(0), dtype=torch.float64)
    for norm in (nn.LayerNorm, RootMeanSquareNorm):
        for call in (pre, post):
            model = plain(call, norm=norm)
            y = x
            for block in model:
                y = y + block.attend(y)
                y = y + block.mlp(y)
            assert same(streams(model, x, "norm")[-1], y)
            y = x
            for block in model:
                y = block.attend(block.first(y)) if call is pre else block.first(block.attend(y))
            assert same(streams(model, x, ["skip", "mlp"])[-1], y)


def test_additions_in_place_are_treated_as_additions():
    x = torch.randn(5, 7, 6, generator=generator(0), dtype=torch.float64)
    apart, together = plain(pre), plain(in_place)
    some = ((), ("attention_skip",), ("mlp_skip", "norm"), ("mlp",), ("attention_skip", "mlp"))
    for off in some:
        assert all(map(same, streams(together, x, off)[-1:], streams(apart, x, off)[-1:])), off

    def discarded(block, x):  # the result of the method is not used, only its effect
        y = x + block.attend(block.first(x))
        y.add_(block.mlp(block.second(y)))
        return y

    for off in some:
        assert same(streams(plain(discarded), x, off)[-1], streams(apart, x, off)[-1]), off


REFUSED = {
    "parallel": (lambda b, x: x + b.attend(b.first(x)) + b.mlp(b.second(x)), "one after the other"),
    "parallel, branches first": (lambda b, x: b.attend(x) + b.mlp(x) + x, "got 1 in block 1"),
    "three": (lambda b, x: pre(b, pre(b, x)), "got 4 in block 1"),
    "one": (lambda b, x: x + b.attend(b.first(x)), "got 1 in block 1"),
    "scaled": (lambda b, x: pre(b, 0.5 * x), "got 0 in block 1"),
    "weighted": (lambda b, x: torch.add(x, b.attend(x), alpha=2), "an addition with"),
    "doubled": (lambda b, x: pre(b, x + x), "added to itself"),
    "in chunks": (
        lambda b, x: torch.cat([y + b.mlp(y) for y in (x + b.attend(x)).split(1)]),
        "got 1 in block 1",
    ),
    "moved": (lambda b, x: pre(b, x)[:, 1:], "keep the shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_block_that_is_not_two_skip_connections_in_a_row_is_refused(name):
    call, message = REFUSED[name]
    model, x = plain(call), torch.randn(5, 7, 6, generator=generator(0), dtype=torch.float64)
    for off in ("attention_skip", "mlp_skip", "mlp"):
        before = state_of(model)
        with pytest.raises(ValueError, match="model: expected .*" + message + ".*;"):
            streams(model, x, off)
        assert state_of(model) == before


def test_norms_are_switched_off_in_parallel_blocks_too():
    model = plain(REFUSED["parallel"][0])
    x = torch.randn(5, 7, 6, generator=generator(0), dtype=torch.float64)
    found = streams(model, x, "norm")[-1]
    for block in model:
        x = x + block.attend(x) + block.mlp(x)
    assert same(found, x)


def test_released_architectures_in_parallel_or_in_chunks_are_refused():
    in_chunks = build("bert", chunk_size_feed_forward=2)
    for model, message in ((build("cohere"), "one after the other"), (in_chunks, "got 1 in block 1")):
        with pytest.raises(ValueError, match=message):
            streams(model, inputs_for("bert", tokens=8), "skip")


def test_a_switch_that_finds_nothing_is_refused():
    bare = network("none", 0)
    x = torch.randn(5, 7, 6, generator=generator(0), dtype=torch.float64)
    with pytest.raises(ValueError, match="expected a normalisation in every block.*got none in block 1;"):
        streams(bare, x, "norm")
    for kind in ("bert", "gpt2", "vit"):
        with pytest.raises(ValueError, match="expected position terms in the scores.*got none.*;"):
            streams(small(kind), inputs_for(kind), "positions")

    def functional(block, x):
        x = x + block.attend(F.layer_norm(x, x.shape[-1:]))
        return x + block.mlp(block.second(x))

    with pytest.raises(ValueError, match="normalisations that are modules"):
        streams(plain(functional), x, "norm")


def test_relative_biases_are_switched_off_with_the_mask_kept():
    model, inputs = build("mpnet"), inputs_for("mpnet")
    off = streams(model, inputs, "positions")
    with torch.no_grad():
        model.encoder.relative_attention_bias.weight.zero_()
    zeroed = streams(model, inputs)
    assert all(map(same, off, zeroed)) and not same(off[-1], streams(small("mpnet"), inputs)[-1], 1e-6)


def test_t5_encoders_are_blocks_with_biases_that_the_first_one_makes():
    import transformers

    from small_models import T5

    model = randomised(transformers.T5EncoderModel(transformers.T5Config(**T5)))
    inputs = inputs_for("bert")
    full, off = streams(model, inputs), streams(model, inputs, "positions")
    x = full[0]
    for block in model.encoder.block:
        attention, mlp = block.layer
        bias = inputs["attention_mask"].double().log()[:, None, None]
        y = attention.layer_norm(x)
        inner = attention.SelfAttention
        q, k, v = (part(y).unflatten(-1, (4, -1)) for part in (inner.q, inner.k, inner.v))
        p = (torch.einsum("bihw,bjhw->bhij", q, k) + bias).softmax(-1)
        x = x + inner.o(torch.einsum("bhij,bjhw->bihw", p, v).flatten(2))
        x = x + mlp.DenseReluDense(mlp.layer_norm(x))
    assert same(off[-1], x) and not same(full[-1], x, 1e-6)


def test_alibi_is_switched_off():
    class Biased(Block):
        def forward(self, x, alibi):
            x = x + self.attend(self.first(x), alibi)
            return x + self.mlp(self.second(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Biased(None) for _ in range(2))

        def forward(self, x, slope=1.0):
            for layer in self.layers:
                x = layer(x, alibi=-slope * torch.arange(7.0, dtype=torch.float64))
            return x

    model, x = randomised(Model()), torch.randn(5, 7, 6, generator=generator(0), dtype=torch.float64)
    assert same(streams(model, x, "positions")[-1], model(x, slope=0.0))


def test_everything_is_as_before_after_an_exception_in_the_model():
    model = small("bert")
    before = state_of(model)
    with pytest.raises(IndexError), switched_off(model, ["skip", "mlp", "norm"]):
        model(input_ids=torch.full((1, 3), 10**6))

    def boom(*_):
        raise KeyError("in the middle")

    handle = model.encoder.layer[1].output.register_forward_hook(boom)
    with pytest.raises(KeyError), switched_off(model, ["mlp", "norm"]):
        model(**inputs_for("bert"))
    handle.remove()
    assert state_of(model) == before
    albert = small("albert")
    before = state_of(albert)
    with pytest.raises(ZeroDivisionError), switched_off(albert, "mlp", as_released=True):
        raise ZeroDivisionError
    assert state_of(albert) == before


def test_names_are_checked():
    assert switches("mlp") == ("mlp",) and switches(["mlp", "skip", "mlp"]) == ("mlp", "skip")
    with pytest.raises(ValueError, match="without: expected names among .* got 'mpl'; choose"):
        switches(["mpl"])
    with pytest.raises(ValueError, match="got 'attn'"), switched_off(small("bert"), "attn"):
        pass
    assert set(PARTS) < set(SWITCHES)
