"""Small Hugging Face models with every weight drawn away from its initial value, and inputs for them."""

from functools import cache

import torch
import torch.overrides

SAMPLES, TOKENS, DIM, MLP_DIM, LAYERS, WORDS = 5, 7, 24, 37, 3, 97
COMMON = {
    "vocab_size": WORDS,
    "hidden_size": DIM,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": MLP_DIM,
    "max_position_embeddings": 31,
}
GPT2 = {"vocab_size": WORDS, "n_embd": DIM, "n_layer": LAYERS, "n_head": 4, "n_inner": MLP_DIM}
XLNET = {"vocab_size": WORDS, "d_model": DIM, "n_layer": LAYERS, "n_head": 4, "d_inner": MLP_DIM}
T5 = {"vocab_size": WORDS, "d_model": DIM, "num_layers": LAYERS, "num_heads": 4, "d_kv": 6, "d_ff": MLP_DIM}
CONFIGS = {
    "bert": ("Bert", COMMON),
    "albert": ("Albert", COMMON | {"embedding_size": 11}),
    "xlnet": ("XLNet", XLNET),
    "gpt2": ("GPT2", GPT2 | {"n_positions": 31, "bos_token_id": 1, "eos_token_id": 2}),
    "llama": ("Llama", COMMON | {"num_key_value_heads": 2}),
    "vit": ("ViT", COMMON | {"image_size": 12, "patch_size": 4}),
    "mpnet": ("MPNet", COMMON),
    "cohere": ("Cohere", COMMON | {"bos_token_id": 1, "eos_token_id": 2}),
}


def generator(seed):
    return torch.Generator().manual_seed(seed)


def randomised(model, seed=0, spread=0.3):
    """In float64, every parameter independent; gains of norms about 1, all others about 0."""
    random, model = generator(seed), model.double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            gain = name.endswith("weight") and parameter.ndim == 1
            draw = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            parameter.copy_(gain + spread * draw)
    return model


def build(kind, **changes):
    import transformers

    name, options = CONFIGS[kind]
    config = getattr(transformers, f"{name}Config")(**options | changes)
    return randomised(getattr(transformers, f"{name}Model")(config))


@cache
def small(kind):
    """Shared by the tests, which leave it as it is: that they do is itself tested."""
    return build(kind)


def inputs_for(kind, samples=SAMPLES, tokens=TOKENS, seed=1):
    """Two samples are padded, at the right; XLNet's has two segments."""
    random = generator(seed)
    if kind == "vit":
        return {"pixel_values": torch.randn(samples, 3, 12, 12, generator=random, dtype=torch.float64)}
    mask = torch.ones(samples, tokens, dtype=torch.long)
    mask[1, tokens - 3 :], mask[-1, tokens - 1 :] = 0, 0
    words = torch.randint(3, WORDS, (samples, tokens), generator=random)
    batch = {"input_ids": words, "attention_mask": mask}
    if kind == "xlnet":
        batch["token_type_ids"] = (torch.arange(tokens) > 2).long().expand(samples, -1)
    return batch


def real_rows(kind, inputs, x):
    """The real tokens of each sample of a stream."""
    masks = inputs["attention_mask"].bool() if kind != "vit" else torch.ones(x.shape[:2], dtype=torch.bool)
    return [sample[mask] for sample, mask in zip(x, masks, strict=True)]


def state_of(model):
    """All that a trace could leave changed: attributes, hooks, mode, weights (by identity and version)."""
    modes = torch.overrides._get_current_function_mode_stack()
    kinds = ("_forward_hooks", "_forward_pre_hooks")
    hooks = [kind + suffix for kind in kinds for suffix in ("", "_with_kwargs")]
    modules = [
        (name, id(m), m.training, sorted(vars(m)), [list(getattr(m, hook)) for hook in hooks])
        for name, m in model.named_modules()
    ]
    weights = [(name, id(p), p._version) for name, p in model.named_parameters()]
    return modules, weights, len(modes), torch.is_grad_enabled(), torch.backends.mha.get_fastpath_enabled()
