"""Small text models with random weights, and their inputs."""

import pytest
import torch

transformers = pytest.importorskip("transformers", reason="the optional package transformers is absent")
VOCABULARY, DIM, HEADS, WIDTH, TOKENS = 31, 14, 2, 11, 5
SIZES = dict(
    vocab_size=VOCABULARY,
    hidden_size=DIM,
    num_attention_heads=HEADS,
    intermediate_size=WIDTH,
    num_hidden_layers=4,
    max_position_embeddings=19,
    initializer_range=0.3,
)
KINDS = {
    "bert": ("Bert", {}),
    "bert relu": ("Bert", {"hidden_act": "relu", "layer_norm_eps": 0.3}),
    "roberta": ("Roberta", {"pad_token_id": 1}),
    "electra": ("Electra", {"embedding_size": 6}),
    "albert": ("Albert", {"embedding_size": 6, "num_hidden_groups": 2, "inner_group_num": 1}),
    "albert inner": ("Albert", {"embedding_size": 6, "inner_group_num": 2, "num_hidden_layers": 2}),
}


def build(kind, seed=0, **more):
    """A small model in float64, in which no bias is 0 and no gain is 1."""
    family, options = KINDS[kind]
    config = getattr(transformers, family + "Config")(**(SIZES | options | more))
    model = getattr(transformers, family + "Model")(config).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            scale = 1.0 if "embeddings" in name else 0.2
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
            if "LayerNorm" in name or "layer_norm" in name:
                parameter.add_(float(name.endswith("weight")))
    return model


def sample(seed=0, samples=3, tokens=TOKENS):
    generator = torch.Generator().manual_seed(seed)
    return {"input_ids": torch.randint(2, VOCABULARY, (samples, tokens), generator=generator)}
