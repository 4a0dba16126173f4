"""The paper's Figure 2 and what lies below its floor: random BERT, ALBERT, XLNet; trained weights.

Text: the book's biographies, cut to one length. At random initialisation an id is only a label, so all three
architectures take the same WordPiece ids, modulo their vocabulary
(:func:`~ranklib.tracing.models.label_ids`). Every curve is the relative residual about the token
mean, one value a layer from the embeddings on. Source: chapter `real-transformers`; the paper's Figure 2.
"""

from importlib.metadata import version

import torch
from torch import Tensor, nn

from ranklib.book.texts import biographies
from ranklib.experiments import voice_albert
from ranklib.tracing import models as pretrained
from ranklib.tracing.deep import deep_trace
from ranklib.tracing.layerwise import trace

MEASURE = "composite_residual"
BARE = ("skip", "mlp")
"""What is switched off to leave attention alone."""
VARIANTS = {
    "full": {},
    "attention + skip": {"without": ("mlp",)},
    "attention + mlp": {"without": ("skip",)},
    "attention": {"without": BARE},
    "attention + skip, as released": {"without": ("mlp",), "as_released": True},
    "attention + mlp, as released": {"without": ("attention_skip",), "as_released": True},
    "attention, as released": {"without": ("attention_skip", "mlp"), "as_released": True},
}
"""Curve to arguments of ``trace``. LayerNorm stays on in all of them. The clean switches remove both skips,
and the MLP with its skip and norm; the released code's "no skip" keeps the MLP's own skip."""
_WITHOUT_POSITIONS = {"attention, no position terms": {"without": (*BARE, "positions")}}

BASE = {
    "bert": ("Bert", {}),
    "albert": ("Albert", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}),
    "xlnet": ("XLNet", {"d_model": 768, "n_head": 12, "n_layer": 12, "d_inner": 3072}),
}
"""The base sizes. ``AlbertConfig()`` and ``XLNetConfig()`` alone are the xxlarge and the large one."""

_NAMES = {"dim": "d_model", "heads": "n_head", "depth": "n_layer", "mlp": "d_inner"}  # of XLNet
_OTHER = {"dim": "hidden_size", "heads": "num_attention_heads"}
_OTHER |= {"depth": "num_hidden_layers", "mlp": "intermediate_size"}


def initialise(architecture: str, seed: int, **size: int) -> nn.Module:
    """A model at its library's own random initialisation, in float32 and eval mode; base size by default.

    ``size``: dim, heads, depth, mlp and vocabulary, where another one is wanted. The weights are drawn by
    ``transformers`` from torch's global generator, which is seeded for this and put back afterwards. Raises
    ``ValueError`` for an unknown architecture. Source: chapter `real-transformers`.

    >>> model = initialise("albert", 0, dim=12, heads=2, depth=3, mlp=8, vocabulary=50)
    >>> type(model).__name__, model.config.num_hidden_layers
    ('AlbertModel', 3)
    """
    if architecture not in BASE:
        raise ValueError(
            f"architecture: expected one of {tuple(BASE)}, got {architecture!r}; choose one of these"
        )
    family, options = BASE[architecture]
    names = (_NAMES if architecture == "xlnet" else _OTHER) | {"vocabulary": "vocab_size"}
    package = pretrained.transformers()
    config = getattr(package, family + "Config")(**(options | {names[k]: v for k, v in size.items()}))
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        return getattr(package, family + "Model")(config).eval()


def label_inputs(samples: int, tokens: int, vocabulary: int) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Ids of the first biographies for a model at initialisation, and what the record says about them."""
    texts = [person.text for person in biographies()[:samples]]
    ids, kind = pretrained.label_ids(texts, tokens, vocabulary)
    return {"input_ids": ids}, {"vocabulary": kind, "transformers": version("transformers")}


def curves(model: nn.Module, inputs: dict[str, Tensor], variants: dict[str, dict]) -> dict[str, dict]:
    """Mean and standard deviation over the samples, a layer, of the relative residual in each variant."""
    found = {}
    for name, options in variants.items():
        result = trace(model, inputs, measures=MEASURE, batch_size=8, progress=False, **options)
        found[name] = {"mean": result.mean(MEASURE).tolist(), "std": result.std(MEASURE).tolist()}
    return found


@torch.no_grad()
def at_initialisation(
    seed: int, device: torch.device, architecture: str, samples: int, tokens: int, **size: int
) -> dict:
    """The curves of ``VARIANTS`` at random initialisation in float64, and attention alone in float32.

    "attention, float32" shows where that format stops; "vocabulary" says whose ids the tokens are. Source:
    chapter `real-transformers`.
    """
    model = initialise(architecture, seed, **size).to(device)
    inputs, about = label_inputs(samples, tokens, model.config.vocab_size)
    inputs = _to(inputs, device)
    single = curves(model, inputs, {"attention, float32": VARIANTS["attention"]})
    return curves(model.double(), inputs, VARIANTS) | single | about


@torch.no_grad()
def with_trained_weights(seed: int, device: torch.device, model: str, samples: int, tokens: int) -> dict:
    """The same curves with trained weights and the model's own tokens: "minilm", "mpnet" or "albert-ipa".

    "mpnet" has position terms in its scores, hence a curve without: "attention, no position terms"; and
    none "as released", as that code knows no MPNet. "albert-ipa" reads phonetic symbols, as its record says
    under "text" (:func:`~ranklib.experiments.voice_albert.samples`). Nothing is random; the seed is not used.
    Raises :class:`~ranklib.tracing.models.Missing` without the weights. Source: chapter `real-transformers`.
    """
    network, inputs, about = _trained(model, samples, tokens)
    network, inputs = network.to(device), _to(inputs, device)
    single = curves(network, inputs, {"attention, float32": VARIANTS["attention"]})
    clean = {name: options for name, options in VARIANTS.items() if "as_released" not in options}
    variants = VARIANTS if model != "mpnet" else clean | _WITHOUT_POSITIONS
    return curves(network.double(), inputs, variants) | single | about


@torch.no_grad()
def position_terms(seed: int, device: torch.device, samples: int, tokens: int, **size: int) -> dict:
    """XLNet at initialisation, attention and LayerNorm only, with and without the scores' position terms."""
    model = initialise("xlnet", seed, **size).to(device)
    inputs, about = label_inputs(samples, tokens, model.config.vocab_size)
    variants = {"attention": VARIANTS["attention"]} | _WITHOUT_POSITIONS
    return curves(model.double(), _to(inputs, device), variants) | about


def deep(seed: int, device: torch.device, model: str, samples: int, tokens: int, **size: int) -> dict:
    """log10 of the relative residual below every floor, by layer and sample, attention and LayerNorm only.

    "bert" and "albert" at random initialisation, "minilm" trained (the seed is not used). "constants":
    log10 a' - 3 log10 a from each layer to the next. Always on the CPU. Source: Figure (Below the floor) in
    chapter `real-transformers`.
    """
    if model in pretrained.KNOWN:
        network, inputs, about = _trained(model, samples, tokens)
    else:
        network = initialise(model, seed, **size)
        inputs, about = label_inputs(samples, tokens, network.config.vocab_size)
    found = deep_trace(network, inputs, without=BARE)
    if not torch.isfinite(found.log10_relative).all():
        raise ArithmeticError("deep: expected tokens that differ, got equal ones; use longer texts")
    return {
        "log10_relative": found.log10_relative.tolist(),
        "constants": found.constants().tolist(),
    } | about


def _trained(model: str, samples: int, tokens: int) -> tuple[nn.Module, dict[str, Tensor], dict[str, str]]:
    if model == voice_albert.NAME:
        network, inputs = voice_albert.load(), {"input_ids": voice_albert.samples(samples, tokens)}
        about = {"weights": voice_albert.WEIGHTS, "text": voice_albert.TEXT}
        return network, inputs, about | {"transformers": version("transformers")}
    network, tokenizer, title = pretrained.load_model(model)
    inputs = pretrained.tokenise(tokenizer, [person.text for person in biographies()[:samples]], tokens)
    return network, inputs, {"weights": title, "transformers": version("transformers")}


def _to(inputs: dict[str, Tensor], device: torch.device) -> dict[str, Tensor]:
    return {name: value.to(device) for name, value in inputs.items()}
