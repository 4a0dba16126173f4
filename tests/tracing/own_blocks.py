"""Transformer blocks that belong to no library, and the streams of a run by hooks of the tests' own."""

import torch
import torch.nn.functional as F
from torch import nn

from ranklib.tracing.blocks import blocks
from ranklib.tracing.switches import switched_off
from small_models import randomised


def streams(model, inputs, without=(), **options):
    """The streams X^0 ... X^L of a run with parts switched off, taken by hooks of the test's own."""
    taken = []

    def before(block, args, kwargs):
        if not taken:
            taken.append(args[0] if args else kwargs["hidden_states"])

    def after(block, args, output):
        taken.append(output if isinstance(output, torch.Tensor) else output[0])

    with torch.no_grad(), switched_off(model, without, **options):
        handles = []
        for block in blocks(model):
            handles.append(block.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(block.register_forward_hook(after))
        try:
            model(**inputs) if isinstance(inputs, dict) else model(inputs)
        finally:
            for handle in handles:
                handle.remove()
    return taken


class RootMeanSquareNorm(nn.Module):
    """A normalisation of nobody's library."""

    def __init__(self, dim):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.gain * x / x.square().mean(-1, keepdim=True).sqrt()


class Block(nn.Module):
    """Attention without scores' positions and a two-layer MLP; ``call`` says how they are put together."""

    def __init__(self, call, dim=6, norm=nn.LayerNorm):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.up, self.down = nn.Linear(dim, 11), nn.Linear(11, dim)
        self.first, self.second, self.q_norm, self.call = norm(dim), norm(dim), norm(dim), call

    def attend(self, x, bias=0.0):
        scores = self.q_norm(self.q(x)) @ self.k(x).mT / 6**0.5 + bias
        return self.o(scores.softmax(-1) @ self.v(x))

    def mlp(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        return self.call(self, x)


def plain(call, **options):
    return randomised(nn.Sequential(*(Block(call, **options) for _ in range(2))))


def pre(block, x):
    x = x + block.attend(block.first(x))
    return x + block.mlp(block.second(x))


def in_place(block, x):
    branch = block.attend(block.first(x))
    branch += x
    x = branch
    x += block.mlp(block.second(x))
    return x


def post(block, x):
    x = block.first(block.attend(x).add(x))
    return block.second(torch.add(block.mlp(x), x))
