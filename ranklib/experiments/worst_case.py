"""The diameter theorem beside the layers of real architectures: random at initialisation, and trained.

Layer by layer :class:`~ranklib.theory.slack.Slack` says what is promised, what happens, and what each step of the
proof gives away. Source: Figure (What the proof gives away) in chapter `real-transformers`.
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ranklib._checks import require_instance
from ranklib.book.texts import biographies
from ranklib.experiments.architectures import BARE, initialise, label_inputs
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer, Network
from ranklib.theory.block import bound_block
from ranklib.theory.sizes import diameter, score_size, value_size
from ranklib.theory.slack import Slack, measure_slack, measure_slacks, typical_sizes
from ranklib.tracing.conversion import as_network
from ranklib.tracing.deep import embeddings
from ranklib.tracing.models import load_model, tokenise
from ranklib.tracing.switches import switched_off

_SMALL = {"vocabulary": 4000, "depth": 4}


@torch.no_grad()
def slacks_at_initialisation(architecture: str, seed: int, tokens: int = 64, **size: int) -> list[Slack]:
    """Attention and LayerNorm only, at random initialisation, first text: one ``Slack`` a layer.

    "bert" and "albert" are carried exactly, far below floats. "xlnet" has position terms in its scores; it is run
    in float64, and the terms are read off its attention. ``size`` as in ``initialise``: base width, four layers and
    a small vocabulary unless it says otherwise; the MLP, which takes no part, is small. Raises as ``initialise``.

    >>> found = slacks_at_initialisation("bert", 0, tokens=8, dim=24, heads=4, depth=3)
    >>> len(found), all(s.bound > s.after for s in found)
    (3, True)
    """
    model = initialise(architecture, seed, **({"mlp": 8} | _SMALL | size)).double()
    inputs, _ = label_inputs(1, tokens, model.config.vocab_size)
    if architecture != "xlnet":
        network = as_network(model).switched(skip=False, mlp=False)
        return measure_slacks(network, embeddings(model, inputs)[0])
    with switched_off(model, BARE):
        out = model(**inputs, output_hidden_states=True, output_attentions=True)
    found = []
    for x, p, block in zip(out.hidden_states[:-1], out.attentions, model.layer, strict=True):
        layer = _without_positions(block.rel_attn)
        terms = p[0].log() - layer.attention.scores(x[0])  # up to a constant of the row
        found.append(measure_slack(layer, x[0], terms))
    return found


@torch.no_grad()
def slacks_with_trained_weights(name: str, samples: int = 2, tokens: int = 64) -> list[list[Slack]]:
    """The same with trained weights ("minilm"), for each of the first texts.

    Raises :class:`~ranklib.tracing.models.Missing` without the weights, and as ``as_network`` does.
    """
    model, texts = _trained(name, samples, tokens)
    bare = as_network(model).switched(skip=False, mlp=False)
    return [measure_slacks(bare, x) for x in texts]


@torch.no_grad()
def random_losses(
    seeds: Iterable[int], width: int = 64, heads: int = 1, tokens: int = 16, dim_head: int | None = None
) -> Float[Tensor, "seeds steps"]:
    """What each step of the proof loses in random layers at near random tokens, in decades.

    Weights N(0, 1/width), tokens N(0, 10^-4); dim_head: d_qk and d_v, the width unless given.

    >>> random_losses(range(3), width=8, tokens=4).shape
    torch.Size([3, 6])
    """
    rows = []
    for seed in seeds:
        g = torch.Generator().manual_seed(seed)
        options = {"dim_qk": dim_head or width, "dim_v": dim_head or width, "generator": g}
        attention = SelfAttention.random(width, heads, **options)
        x = torch.randn(tokens, width, generator=g, dtype=torch.float64) / 100
        rows.append(measure_slack(attention, x).lost)
    return torch.stack(rows)


def worst_over_typical(attention: SelfAttention) -> tuple[Float[Tensor, " heads"], Float[Tensor, " heads"]]:
    """omega and nu of every head, each over its root mean square for random directions.

    From sqrt(d) to d the first, from 1 to sqrt(d) the second. Raises ``TypeError`` for anything but a
    ``SelfAttention``. Source: Proposition (Random directions) in chapter `real-transformers`.

    >>> eye = torch.eye(4)[None]
    >>> [x.item() for x in worst_over_typical(SelfAttention(w_q=eye, w_k=eye, w_v=eye, w_o=eye))]
    [2.0, 1.0]
    """
    require_instance("attention", attention, SelfAttention)
    scores, values = typical_sizes(attention)
    return score_size(attention) / scores, value_size(attention) / values


@torch.no_grad()
def block_ratios(network: Network, x: Float[Tensor, "tokens dim"]) -> Float[Tensor, " layers"]:
    """Bound from above over measured diameter after every block, in float64.

    Raises as ``bound_block``. Source: Theorem (Skip) in
    chapter `skip-connections` and Theorem (MLP) in chapter `mlps`.
    """
    require_instance("network", network, Network)
    ratios = []
    for layer in network.layers:
        found, x = bound_block(layer, x), layer(x)
        ratios.append(found.upper / float(diameter(x)))
    return torch.tensor(ratios, dtype=torch.float64)


@torch.no_grad()
def whole_blocks(
    name: str, variants: dict[str, dict], depth: int = 1, tokens: int = 64, **size: int
) -> dict[str, Float[Tensor, " layers"]]:
    """``block_ratios`` of the first blocks with their skips and MLPs, as each variant switches them.

    name: "bert" or "albert" (seed 0, base size unless ``size`` says otherwise) or "minilm"; variants: names to
    arguments of ``Network.switched``; the first text. Raises as ``initialise`` and ``load_model``.

    >>> small = {"dim": 24, "heads": 4, "mlp": 48, "tokens": 8}
    >>> whole_blocks("bert", {"full": {}}, depth=2, **small)["full"].shape
    torch.Size([2])
    """
    if name == "minilm":
        model, texts = _trained(name, 1, tokens)
    else:
        model = initialise(name, 0, **(_SMALL | size | {"depth": depth}))
        texts = embeddings(model, label_inputs(1, tokens, model.config.vocab_size)[0])
    network = Network(list(as_network(model).layers)[:depth])
    return {kind: block_ratios(network.switched(**switches), texts[0]) for kind, switches in variants.items()}


def _trained(name: str, samples: int, tokens: int) -> tuple[nn.Module, list[Tensor]]:
    model, tokenizer, _ = load_model(name)
    inputs = tokenise(tokenizer, [person.text for person in biographies()[:samples]], tokens)
    return model, embeddings(model, inputs)


def _without_positions(attention: nn.Module) -> Layer:
    """XLNet's attention without its position terms, and the LayerNorm after it."""
    weights = {f"w_{name}": getattr(attention, name).permute(1, 0, 2) for name in "qkv"}
    weights |= {"w_o": attention.o.permute(1, 2, 0), "b_q": attention.r_w_bias}
    return Layer(SelfAttention(**weights), skip=False, norm="post", norm_1=attention.layer_norm)
