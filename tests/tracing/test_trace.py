"""The table of layers, samples and measures, against loops by hand; memory, padding, nothing left behind."""

import ast
import csv
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn

import ranklib
from hand_loops import LOOPS
from ranklib.measures.table import MEASURES
from ranklib.model.layers import Network
from ranklib.tracing.trace import Trace, trace
from small_models import (
    LAYERS,
    SAMPLES,
    TOKENS,
    build,
    generator,
    inputs_for,
    randomised,
    real_rows,
    small,
    state_of,
)

SEVERAL = ("mu", "composite_residual", "mean_cosine", "oscillation")


def expected_values(kind, inputs, measures, off=()):
    states = [real_rows(kind, inputs, x) for x in LOOPS[kind](small(kind), inputs, off)]
    return torch.stack(
        [torch.stack([torch.stack([MEASURES[m](x) for m in measures]) for x in rows]) for rows in states]
    )


def quiet(model, inputs, **options):
    return trace(model, inputs, progress=False, **options)


def close(a, b, tol=1e-10):
    return a.shape == b.shape and torch.allclose(a, b, rtol=tol, atol=tol)


def network(seed=0, depth=3, dim=5, **options):
    return randomised(Network.random(depth, dim, mlp_dim=7, norm="pre", generator=generator(seed), **options))


def random_tokens(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


@pytest.mark.parametrize("kind", LOOPS)
def test_the_table_is_the_measures_of_the_hand_written_streams(kind):
    inputs, before = inputs_for(kind), state_of(small(kind))
    real = inputs["attention_mask"].sum(1).tolist() if kind != "vit" else [10] * SAMPLES
    for off, without, size in (((), (), None), (("attention_skip", "mlp_skip", "mlp"), ["skip", "mlp"], 2)):
        found = quiet(small(kind), inputs, measures=SEVERAL, without=without, batch_size=size)
        assert close(found.values, expected_values(kind, inputs, SEVERAL, off))
        assert found.tokens.tolist() == real and found.measures == SEVERAL
        assert found.values.dtype == torch.float64
    assert state_of(small(kind)) == before


def test_padding_changes_nothing():
    """Samples of their own lengths, one by one, against the padded batch."""
    for kind in ("bert", "gpt2", "xlnet"):
        inputs = inputs_for(kind)
        padded = quiet(small(kind), inputs, measures=SEVERAL)
        for i, tokens in enumerate(inputs["attention_mask"].sum(1).tolist()):
            sample = {name: value[i : i + 1, :tokens] for name, value in inputs.items()}
            alone = quiet(small(kind), sample, measures=SEVERAL)
            assert close(padded.values[:, i : i + 1], alone.values)
    unmasked = quiet(small("xlnet"), inputs | {"attention_mask": None}, measures=SEVERAL)
    assert unmasked.tokens.tolist() == [TOKENS] * SAMPLES and not close(padded.values, unmasked.values)


def test_as_released_is_passed_on():
    inputs = inputs_for("albert")
    found = quiet(small("albert"), inputs, without=["skip", "mlp"], as_released=True, measures="mu")
    assert close(found.values, expected_values("albert", inputs, ("mu",), ("attention_skip", "maps")))
    assert (found.without, found.as_released, found.model) == (("skip", "mlp"), True, "AlbertModel")
    with pytest.raises(ValueError, match="as_released: expected a BERT, ALBERT or XLNet, got llama;"):
        quiet(small("llama"), inputs_for("llama"), as_released=True)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_any_dtype_is_measured_as_the_library_does(dtype):
    model, x = network().to(dtype), random_tokens(5, 7, 5)
    found = quiet(model, x, measures=SEVERAL)
    with torch.no_grad():
        for layer, y in enumerate(model.trace(x.to(dtype))):
            for name in SEVERAL:
                assert torch.equal(found.of(name)[layer], MEASURES[name](y).double()), name


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


def test_models_run_without_their_caches():
    for kind in ("gpt2", "llama", "xlnet"):
        model, seen = build(kind), []
        handle = model.register_forward_hook(lambda *call, seen=seen: seen.append(call[-1]))
        quiet(model, inputs_for(kind))
        handle.remove()
        held = [seen[0].get(name) for name in ("past_key_values", "cache", "mems")]
        assert len(seen) == 1 and held == [None] * 3


def test_dropout_is_off_and_modes_come_back():
    model = build("bert")
    model.train()
    model.encoder.layer[1].eval()
    before = state_of(model)
    assert close(quiet(model, inputs_for("bert")).values, quiet(small("bert"), inputs_for("bert")).values)
    assert state_of(model) == before and model.training and not model.encoder.layer[1].training


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


class ValidRows(nn.Module):
    """A block that computes the first four tokens only and leaves NaN in the others."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return torch.cat([self.layer(x[:, :4]), torch.full_like(x[:, 4:], torch.nan)], 1)


class MaskedStack(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(map(ValidRows, layers))

    def forward(self, x, attention_mask):
        for layer in self.layers:
            x = layer(x)
        return x


def test_padding_may_hold_anything():
    model, x = network(), random_tokens(3, 7, 5)
    mask = (torch.arange(7) < 4).long().expand(3, -1)
    stack = MaskedStack(model.layers)
    found = quiet(stack, {"x": x, "attention_mask": mask}, measures=SEVERAL)
    assert close(found.values, quiet(model, x[:, :4], measures=SEVERAL).values)
    message = "layer 1: expected a finite stream, got 45 of 105 entries that are NaN or infinite;"
    with pytest.raises(ValueError, match=message):
        quiet(stack, {"x": x, "attention_mask": torch.ones(3, 7)})


def test_a_measure_that_is_not_defined_is_nan_and_said_so():
    inputs = inputs_for("bert")
    inputs["attention_mask"] = inputs["attention_mask"].clone()
    inputs["attention_mask"][2, 1:] = 0
    found = quiet(small("bert"), inputs, measures=["mean_cosine", "mu"])
    undefined = found.values.isnan()
    assert undefined[:, 2, 0].all() and int(undefined.sum()) == LAYERS + 1
    assert found.tokens[2] == 1 and (found.of("mu")[:, 2] == 0).all()
    assert f"{LAYERS + 1} values are NaN: the measure is not defined there" in str(found)
    assert "NaN" not in str(quiet(small("bert"), inputs, measures="mu"))
    apart = quiet(small("bert"), inputs, measures=["mean_cosine", "mu"], batch_size=1).values
    assert torch.allclose(apart, found.values, rtol=1e-10, atol=1e-10, equal_nan=True)
    alone = {name: value[2:3, :1] for name, value in inputs.items()}
    with pytest.raises(ValueError, match="mean_cosine: not defined for any sample at layer 0: .*two tokens"):
        quiet(small("bert"), alone, measures="mean_cosine")


def test_streams_that_vanish_are_nan_from_there_on():
    model = network()
    with torch.no_grad():
        for parameter in model.layers[1].attention.parameters():
            parameter.zero_()
        model.layers[1].mlp[2].weight.zero_(), model.layers[1].mlp[2].bias.zero_()
    found = quiet(model, random_tokens(2, 7, 5), without="skip").of("composite_residual")
    assert found.isnan().any(1).tolist() == [False, False, True, False]


def test_blocks_that_are_not_in_a_row_are_refused():
    class Forked(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = network().layers

        def forward(self, x):
            return sum(layer(x) for layer in self.layers)

    class Moved(Forked):
        def forward(self, x):
            for layer in self.layers:
                x = layer(x).clone()  # the same numbers, as after a move to another device
            return x

    class Idle(Forked):
        def forward(self, x):
            return x

    with pytest.raises(ValueError, match="output of the one before it, got another tensor after layer 1;"):
        quiet(Forked(), random_tokens(5, 7, 5))
    x = random_tokens(5, 7, 5)
    assert close(quiet(Moved(), x).values, quiet(network(), x).values)
    with pytest.raises(ValueError, match="expected its blocks to run, got no call"):
        quiet(Idle(), random_tokens(5, 7, 5))


def test_torch_encoders_with_padding_and_without_their_fused_path():
    layer = nn.TransformerEncoderLayer(6, 2, 11, batch_first=True, dtype=torch.float64)
    model, x = randomised(nn.TransformerEncoder(layer, 3)), random_tokens(3, 7, 6)
    padding = torch.zeros(3, 7, dtype=torch.bool)
    padding[1, 4:] = True
    before = state_of(model)
    found = quiet(model, {"src": x, "src_key_padding_mask": padding}, measures=SEVERAL)
    assert found.tokens.tolist() == [7, 4, 7] and state_of(model) == before
    alone = quiet(model, x[1:2, :4], measures=SEVERAL)
    assert close(found.values[:, 1:2], alone.values)
    tokens_first = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 11), 3, enable_nested_tensor=False)
    with pytest.raises(ValueError, match="expected batch_first=True, got False;"):
        quiet(tokens_first, x.float())


@pytest.mark.parametrize(
    "change, error, message",
    [
        ({"measures": ()}, ValueError, "measures: expected at least one name, got none;"),
        ({"measures": "dobrushin"}, ValueError, "measures: expected names among .* got 'dobrushin';"),
        ({"without": "mpl"}, ValueError, "without: expected names among .* got 'mpl';"),
        ({"batch_size": 0}, ValueError, "batch_size: expected at least 1, got 0;"),
        ({"inputs": []}, ValueError, "inputs: expected at least one sample, got none;"),
        ({"inputs": ["text"]}, TypeError, "inputs: expected mappings of tensors or tensors, got str;"),
        ({"inputs": {"x": torch.ones(2, 7, 5), "y": torch.ones(3, 7)}}, ValueError, "one leading batch size"),
        ({"inputs": {"x": torch.ones(0, 7, 5)}}, ValueError, "one leading batch size"),
        ({"inputs": torch.ones(7, 5)}, ValueError, "expected a stream .* got shape"),
        ({"inputs": torch.ones(2, 7, 3, 5)}, ValueError, "expected a stream .* got shape"),
        ({"model": nn.Linear(5, 5)}, ValueError, "model: expected one stack of blocks"),
    ],
)
def test_errors_say_what_was_expected(change, error, message):
    options = {"model": network(), "inputs": random_tokens(2, 7, 5)} | change
    with pytest.raises(error, match=message):
        quiet(options.pop("model"), options.pop("inputs"), **options)


def test_masks_are_checked():
    model, inputs = small("bert"), inputs_for("bert")
    ones = inputs["attention_mask"]
    for mask, message in (
        (torch.ones(SAMPLES, 1, TOKENS, TOKENS), r"zeros and ones of shape \(batch, tokens\)"),
        (ones * -10000.0, "from -1e.04 to"),
        (ones * (torch.arange(SAMPLES) != 1)[:, None], "a real token in every sample"),
    ):
        with pytest.raises(ValueError, match="attention_mask: expected .*" + message):
            quiet(model, inputs | {"attention_mask": mask})

    class Prefixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = network()

        def forward(self, x, attention_mask):
            return self.body(torch.cat([x[:, :1], x], 1))

    with pytest.raises(ValueError, match="an entry for each of 8 tokens of the stream, got 7;"):
        quiet(Prefixed(), {"x": random_tokens(2, 7, 5), "attention_mask": torch.ones(2, 7)})


def test_the_table_and_its_summaries(tmp_path):
    model, x = network(), random_tokens(2, 7, 5)
    found = quiet(model, x, measures=("mu", "mean_cosine"), without="mlp")
    assert isinstance(found, Trace) and (found.model, found.without) == ("Network", ("mlp",))
    rows = found.rows()
    assert len(rows) == 4 * 2 * 2 and len({(r["layer"], r["sample"], r["measure"]) for r in rows}) == 16
    for row in rows:
        assert row["value"] == found.of(row["measure"])[row["layer"], row["sample"]].item()
    found.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="") as file:
        kinds = {"layer": int, "sample": int, "measure": str, "value": float}
        read = [{name: kinds[name](value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert read == rows
    one, other = found.of("mu").T
    assert close(found.mean("mu"), (one + other) / 2) and close(found.std("mu"), (one - other).abs() / 2)
    assert quiet(model, x[:1]).std("composite_residual").tolist() == [0.0] * 4
    lines = str(found).splitlines()
    assert lines[0] == "Network, 2 samples, without mlp"
    assert lines[1].split() == ["layer", "mu", "mean_cosine"]
    assert len(lines) == 6 and lines[2].split()[:3] == ["0", f"{found.mean('mu')[0]:.3g}", "±"]
    with pytest.raises(ValueError, match="measure: expected one of .* got 'mean'; trace with"):
        found.of("mean")


def test_progress_is_shown_unless_unwanted(capsys):
    model, x = network(), random_tokens(5, 7, 5)
    trace(model, x, batch_size=2)
    assert "5/5" in capsys.readouterr().err
    quiet(model, x)
    assert capsys.readouterr().err == ""


def test_transformers_is_not_needed():
    for module in ("batches", "blocks", "switches", "trace", "recorder"):
        path = Path(ranklib.__file__).parent / "tracing" / f"{module}.py"
        names = {
            name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (
                [node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            )
        }
        assert names and not any(name.startswith("transformers") for name in names)
