"""The table of layers, samples and measures, against loops by hand; dtypes, padding, errors."""

import ast
import csv
from pathlib import Path

import pytest
import torch
from torch import nn

import ranklib
from hand_loops import LOOPS
from ranklib.measures.table import MEASURES
from ranklib.tracing.layerwise import Trace, trace
from small_models import LAYERS, SAMPLES, TOKENS, build, inputs_for, randomised, small, state_of
from tests.tracing.quiet_trace import SEVERAL, close, expected_values, network, quiet, random_tokens


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_any_dtype_is_measured_as_the_library_does(dtype):
    model, x = network().to(dtype), random_tokens(5, 7, 5)
    found = quiet(model, x, measures=SEVERAL)
    with torch.no_grad():
        for layer, y in enumerate(model.trace(x.to(dtype))):
            for name in SEVERAL:
                assert torch.equal(found.of(name)[layer], MEASURES[name](y).double()), name


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
    for module in ("batches", "blocks", "switches", "layerwise", "recorder"):
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
