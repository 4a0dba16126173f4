"""Six transformers written out by hand, every sub-layer behind a switch: the oracle of the trace.

Each loop takes a small Hugging Face model and its inputs, reads nothing but weights, and returns the streams
X^0 ... X^L, (batch, tokens, dim) each. ``off`` holds names of ``ranklib.tracing.switches.SWITCHES``, with "skip" spelt
out, and "maps", which is what the paper's code calls ALBERT without MLP.
"""

import torch
import torch.nn.functional as F


def attend(q, k, v, mask, extra=0.0):
    """(batch, tokens, heads, width) each; ``mask`` (batch, 1, tokens or 1, tokens) is True where seen."""
    scores = torch.einsum("bihw,bjhw->bhij", q, k) / q.shape[-1] ** 0.5 + extra
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.einsum("bhij,bjhw->bihw", scores.softmax(-1), v).flatten(2)


def split(x, heads):
    return x.unflatten(-1, (heads, -1))


def seen(inputs, causal=False):
    mask = inputs["attention_mask"].bool()[:, None, None, :]
    if causal:
        tokens = mask.shape[-1]
        mask = mask & torch.ones(tokens, tokens, dtype=torch.bool).tril()
    return mask


def norm(off, layer, x):
    return x if "norm" in off else F.layer_norm(x, x.shape[-1:], layer.weight, layer.bias, layer.eps)


def rms(off, layer, x):
    """Llama computes its norms in float32, whatever the dtype of the model."""
    if "norm" in off:
        return x
    y = x.float()
    y = y * (y.square().mean(-1, keepdim=True) + layer.variance_epsilon).rsqrt()
    return layer.weight * y.to(x.dtype)


def linear(layer, x):
    return x @ layer.weight.T + (0 if layer.bias is None else layer.bias)


def skipped(off, name, x, branch):
    return branch if f"{name}_skip" in off else x + branch


def bert(model, inputs, off):
    e, heads = model.embeddings, model.config.num_attention_heads
    ids, mask = inputs["input_ids"], seen(inputs)
    x = e.word_embeddings.weight[ids] + e.token_type_embeddings.weight[0]
    x = norm((), e.LayerNorm, x + e.position_embeddings.weight[: ids.shape[1]])
    states = [x]
    for layer in model.encoder.layer:
        s, o = layer.attention.self, layer.attention.output
        q, k, v = (split(linear(part, x), heads) for part in (s.query, s.key, s.value))
        x = norm(off, o.LayerNorm, skipped(off, "attention", x, linear(o.dense, attend(q, k, v, mask))))
        if "mlp" not in off:
            branch = linear(layer.output.dense, F.gelu(linear(layer.intermediate.dense, x)))
            x = norm(off, layer.output.LayerNorm, skipped(off, "mlp", x, branch))
        states.append(x)
    return states


def albert(model, inputs, off):
    e, heads = model.embeddings, model.config.num_attention_heads
    ids, mask = inputs["input_ids"], seen(inputs)
    x = e.word_embeddings.weight[ids] + e.token_type_embeddings.weight[0]
    x = norm((), e.LayerNorm, x + e.position_embeddings.weight[: ids.shape[1]])
    x = linear(model.encoder.embedding_hidden_mapping_in, x)
    states = [x]
    layer = model.encoder.albert_layer_groups[0].albert_layers[0]
    a = layer.attention
    for _ in range(model.config.num_hidden_layers):
        q, k, v = (split(linear(part, x), heads) for part in (a.query, a.key, a.value))
        x = norm(off, a.LayerNorm, skipped(off, "attention", x, linear(a.dense, attend(q, k, v, mask))))
        if "maps" in off:
            x = norm(off, layer.full_layer_layer_norm, x + F.gelu(x, approximate="tanh"))
        elif "mlp" not in off:
            branch = linear(layer.ffn_output, F.gelu(linear(layer.ffn, x), approximate="tanh"))
            x = norm(off, layer.full_layer_layer_norm, skipped(off, "mlp", x, branch))
        states.append(x)
    return states


def xlnet(model, inputs, off):
    ids = inputs["input_ids"]
    samples, tokens = ids.shape
    dim = model.config.d_model
    mask = seen(inputs) | torch.eye(tokens, dtype=torch.bool)  # a token always sees itself
    segments = inputs["token_type_ids"]
    other = segments[:, :, None] != segments[:, None, :]
    # Sinusoids of the distance i - j, the sines before the cosines.
    distance = torch.arange(tokens)[:, None] - torch.arange(tokens)
    frequency = 1 / 10000.0 ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)
    angle = distance.float()[..., None] * frequency
    sinusoids = torch.cat([angle.sin(), angle.cos()], -1).double()
    x = model.word_embedding.weight[ids]
    states = [x]
    for layer in model.layer:
        a, f = layer.rel_attn, layer.ff
        q, k, v = (torch.einsum("bid,dhw->bihw", x, w) for w in (a.q, a.k, a.v))
        scores = torch.einsum("bihw,bjhw->bhij", q + a.r_w_bias, k)
        if "positions" not in off:
            far = torch.einsum("ijd,dhw->ijhw", sinusoids, a.r)
            scores = scores + torch.einsum("bihw,ijhw->bhij", q + a.r_r_bias, far)
        segment = torch.einsum("bihw,shw->bhis", q + a.r_s_bias, a.seg_embed)
        scores = scores + torch.where(other[:, None], segment[..., 1:], segment[..., :1])
        scores = (scores / a.d_head**0.5).masked_fill(~mask, -torch.inf)
        branch = torch.einsum("bhij,bjhw,dhw->bid", scores.softmax(-1), v, a.o)
        x = norm(off, a.layer_norm, skipped(off, "attention", x, branch))
        if "mlp" not in off:
            branch = linear(f.layer_2, F.gelu(linear(f.layer_1, x)))
            x = norm(off, f.layer_norm, skipped(off, "mlp", x, branch))
        states.append(x)
    return states


def gpt2(model, inputs, off):
    ids, mask = inputs["input_ids"], seen(inputs, causal=True)
    x = model.wte.weight[ids] + model.wpe.weight[: ids.shape[1]]
    states = [x]
    for layer in model.h:
        y = norm(off, layer.ln_1, x) @ layer.attn.c_attn.weight + layer.attn.c_attn.bias
        q, k, v = (split(part, model.config.n_head) for part in y.chunk(3, -1))
        branch = attend(q, k, v, mask) @ layer.attn.c_proj.weight + layer.attn.c_proj.bias
        x = skipped(off, "attention", x, branch)
        if "mlp" not in off:
            y = norm(off, layer.ln_2, x) @ layer.mlp.c_fc.weight + layer.mlp.c_fc.bias
            y = F.gelu(y, approximate="tanh") @ layer.mlp.c_proj.weight + layer.mlp.c_proj.bias
            x = skipped(off, "mlp", x, y)
        states.append(x)
    return states


def turned(x, base=10000.0):
    """Rotary positions: the two halves of each head's features, turned by the position times a frequency."""
    half = x.shape[-1] // 2
    frequency = 1.0 / base ** (torch.arange(half, dtype=torch.float32) / half)
    angle = (torch.arange(x.shape[1]).float()[:, None] * frequency)[:, None]
    cosine, sine = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


def llama(model, inputs, off):
    ids, mask, config = inputs["input_ids"], seen(inputs, causal=True), model.config
    x = model.embed_tokens.weight[ids]
    states = [x]
    for layer in model.layers:
        a, m, y = layer.self_attn, layer.mlp, rms(off, layer.input_layernorm, x)
        q = split(linear(a.q_proj, y), config.num_attention_heads)
        k, v = (split(linear(part, y), config.num_key_value_heads) for part in (a.k_proj, a.v_proj))
        if "positions" not in off:
            q, k = turned(q), turned(k)
        shared = q.shape[2] // k.shape[2]
        k, v = k.repeat_interleave(shared, 2), v.repeat_interleave(shared, 2)
        x = skipped(off, "attention", x, linear(a.o_proj, attend(q, k, v, mask)))
        if "mlp" not in off:
            y = rms(off, layer.post_attention_layernorm, x)
            y = linear(m.down_proj, F.silu(linear(m.gate_proj, y)) * linear(m.up_proj, y))
            x = skipped(off, "mlp", x, y)
        states.append(x)
    return states


def vit_parts(model):
    """Blocks with their W_Q, W_K, W_V, W_O and the two maps of the MLP, as transformers names them, and as 5.0 did."""
    if hasattr(model, "layers"):
        for layer in model.layers:
            a, m = layer.attention, layer.mlp
            yield layer, (a.q_proj, a.k_proj, a.v_proj), a.o_proj, m.fc1, m.fc2
    else:
        for layer in model.encoder.layer:
            a, out = layer.attention.attention, layer.attention.output.dense
            yield layer, (a.query, a.key, a.value), out, layer.intermediate.dense, layer.output.dense


def vit(model, inputs, off):
    pixels, size = inputs["pixel_values"], model.config.patch_size
    e, heads = model.embeddings, model.config.num_attention_heads
    kernel = e.patch_embeddings.projection
    patches = pixels.unfold(2, size, size).unfold(3, size, size)
    x = torch.einsum("bcijpq,dcpq->bijd", patches, kernel.weight).flatten(1, 2) + kernel.bias
    x = torch.cat([e.cls_token.expand(len(x), 1, -1), x], 1) + e.position_embeddings
    states = [x]
    for layer, projections, out, widen, narrow in vit_parts(model):
        y = norm(off, layer.layernorm_before, x)
        q, k, v = (split(linear(part, y), heads) for part in projections)
        x = skipped(off, "attention", x, linear(out, attend(q, k, v, None)))
        if "mlp" not in off:
            y = norm(off, layer.layernorm_after, x)
            x = skipped(off, "mlp", x, linear(narrow, F.gelu(linear(widen, y))))
        states.append(x)
    return states


# Small models that need no loop, and why.
WITHOUT = {
    "mpnet": "only its shared position bias is tested",
    "cohere": "refused, its parts stand in parallel",
}


def unwritten(kinds):
    """A sentence, with the remedy, for each small model without its loop."""
    for kind in kinds:
        if kind not in {**LOOPS, **WITHOUT}:
            yield (
                f"tests/small_models.py: {kind} has no hand-written loop to compare its trace with; write one "
                "into LOOPS of tests/hand_loops.py, or say in WITHOUT why it needs none"
            )


LOOPS = {"bert": bert, "albert": albert, "xlnet": xlnet, "gpt2": gpt2, "llama": llama, "vit": vit}
