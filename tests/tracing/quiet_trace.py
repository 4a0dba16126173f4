"""Traces without a progress bar, and the numbers that they should hold."""

import torch

from hand_loops import LOOPS
from ranklib.measures.table import MEASURES
from ranklib.model.layers import Network
from ranklib.tracing.layerwise import trace
from small_models import generator, randomised, real_rows, small

SEVERAL = ("mu", "composite_residual", "mean_cosine", "oscillation")


def expected_values(kind, inputs, measures, off=()):
    states = [real_rows(kind, inputs, x) for x in LOOPS[kind](small(kind), inputs, off)]
    return torch.stack(
        [torch.stack([torch.stack([MEASURES[m](x) for m in measures]) for x in rows]) for rows in states]
    )


def quiet(model, inputs, **options):
    return trace(model, inputs, progress=False, **options)


def close(a, b, tol=1e-10):
    return a.shape == b.shape and torch.allclose(a, b, rtol=tol, atol=tol)


def network(seed=0, depth=3, dim=5, **options):
    return randomised(Network.random(depth, dim, mlp_dim=7, norm="pre", generator=generator(seed), **options))


def random_tokens(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)
