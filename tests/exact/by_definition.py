"""Layers and parts of layers by their definitions in mpmath, and random states and layers to hold them against."""

import math

import mpmath as mp
import torch
from torch import nn

from ranklib.exact.state import ResidualState
from ranklib.model.attention import SelfAttention
from ranklib.model.layers import Layer

TOKENS, DIM, HEADS, DIM_QK, DIM_V = 5, 7, 3, 2, 11


def generator(seed):
    return torch.Generator().manual_seed(seed)


def random_attention(seed, heads=HEADS, biases=True, scale=1.0, dim=DIM):
    sizes = {"dim_qk": DIM_QK, "dim_v": DIM_V}
    return SelfAttention.random(dim, heads, **sizes, generator=generator(seed), biases=biases, scale=scale)


def random_state(seed, exponent, offset=1.0, tokens=TOKENS, dim=DIM):
    g = generator(seed + 1000)
    x = torch.randn(tokens, dim, generator=g, dtype=torch.float64)
    shape = ResidualState.of(x)
    common = offset * torch.randn(dim, generator=g, dtype=torch.float64)
    return ResidualState(common, shape.mantissa, exponent)


def exact(tensor):
    return mp.matrix(tensor.detach().tolist())


def exact_tokens(state):
    residual = exact(state.mantissa) * mp.mpf(2) ** state.exponent
    return residual + mp.ones(residual.rows, 1) * exact(state.common).T


def layer_by_definition(x, attention, skip=0, mask=None):
    """skip X + sum_h softmax((XW_Q + 1b_Q^T)(XW_K + 1b_K^T)^T / sqrt(d_qk)) (XW_V + 1b_V^T) W_O + 1b_O^T."""
    ones = mp.ones(x.rows, 1)
    biases = {name: getattr(attention, name) for name in ("b_q", "b_k", "b_v")}

    def project(name, head):
        bias = biases["b_" + name]
        product = x * exact(getattr(attention, "w_" + name)[head])
        return product if bias is None else product + ones * exact(bias[head]).T

    out = skip * x
    if attention.b_o is not None:
        out = out + ones * exact(attention.b_o).T
    for head in range(attention.dims.heads):
        s = project("q", head) * project("k", head).T / mp.sqrt(attention.dims.dim_qk)
        p = s.apply(mp.exp)
        if mask is not None:
            allowed = mask.expand(attention.dims.heads, x.rows, x.rows)[head].tolist()
            p = mp.matrix([[p[i, j] * allowed[i][j] for j in range(x.rows)] for i in range(x.rows)])
        for i in range(p.rows):
            total = mp.fsum(p[i, :])
            for j in range(p.cols):
                p[i, j] /= total
        out = out + p * project("v", head) * exact(attention.w_o[head])
    return out


def centred(x):
    return x - mp.ones(x.rows, x.rows) * x / x.rows


def residual_error(state, x):
    """Frobenius error of the state's residual against that of ``x``, relative to the latter."""
    wanted = centred(x)
    got = centred(exact(state.mantissa)) * mp.mpf(2) ** state.exponent
    return float(mp.norm(got - wanted, 2) / mp.norm(wanted, 2)) if mp.norm(wanted) else math.inf


def common_error(state, x):
    mean = x.T * mp.ones(x.rows, 1) / x.rows
    got = exact(state.common) + exact(state.mantissa.mean(0)) * mp.mpf(2) ** state.exponent
    return float(mp.norm(got - mean, 2) / mp.norm(mean, 2))


def pair_attention(w=1.0, v=1.0):
    one = torch.ones(1, 1, 1, dtype=torch.float64)
    return SelfAttention(w_q=w * one, w_k=one, w_v=v * one, w_o=one)


WIDTH = 11


def map_entries(x, function):
    return mp.matrix([[function(x[i, j]) for j in range(x.cols)] for i in range(x.rows)])


def module_by_definition(module, x):
    if isinstance(module, nn.Sequential):
        for part in module:
            x = module_by_definition(part, x)
        return x
    if isinstance(module, nn.Linear):
        return x * exact(module.weight).T + mp.ones(x.rows, 1) * exact(module.bias).T
    if isinstance(module, nn.ReLU):
        return map_entries(x, lambda z: max(z, mp.mpf(0)))
    if isinstance(module, nn.GELU):
        return map_entries(x, exact_gelu if module.approximate == "none" else tanh_gelu)
    out = mp.zeros(x.rows, x.cols)
    for i in range(x.rows):
        mean = mp.fsum(x[i, :]) / x.cols
        root = mp.sqrt(mp.fsum((z - mean) ** 2 for z in x[i, :]) / x.cols + mp.mpf(module.eps))
        for j in range(x.cols):
            gain, bias = mp.mpf(module.weight[j].item()), mp.mpf(module.bias[j].item())
            out[i, j] = gain * (x[i, j] - mean) / root + bias
    return out


def exact_gelu(z):
    return z * mp.erfc(-z / mp.sqrt(2)) / 2


def tanh_gelu(z):
    return z * (1 + mp.tanh(mp.sqrt(2 / mp.pi) * (z + mp.mpf(0.044715) * z**3))) / 2


def whole_layer_by_definition(layer, x, mask=None):
    norm = layer.norm
    inner = module_by_definition(layer.norm_1, x) if norm == "pre" else x
    x = mp.mpf(layer.skip) * x + layer_by_definition(inner, layer.attention, mask=mask)
    x = module_by_definition(layer.norm_1, x) if norm == "post" else x
    if layer.mlp is None:
        return x
    inner = module_by_definition(layer.norm_2, x) if norm == "pre" else x
    x = mp.mpf(layer.mlp_skip) * x + module_by_definition(layer.mlp, inner)
    return module_by_definition(layer.norm_2, x) if norm == "post" else x


def random_layer(seed, **options):
    options = {"mlp_dim": WIDTH, "biases": True} | options
    approximate = options.pop("approximate", "none")
    layer = Layer.random(DIM, generator=generator(seed), **options)
    with torch.no_grad():
        for norm in (layer.norm_1, layer.norm_2):
            for parameter in () if norm is None else norm.parameters():
                parameter.add_(torch.randn(DIM, generator=generator(seed + 50), dtype=torch.float64) / 3)
    if layer.mlp is not None and isinstance(layer.mlp[1], nn.GELU):
        layer.mlp[1].approximate = approximate
    return layer
