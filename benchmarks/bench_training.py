"""Several models trained in one batch, against one after the other: same function, same steps.

Usage: python benchmarks/bench_training.py

On a CPU a batch saves the time between operations, not the operations: much for small models, little for
large ones. Exits with 1 if eight models of the quick size take less than 3 times as long one after the other as
at once, or if both sides, in float64, end with different parameters. The times are float32's.
"""

import sys

import torch
from pairs import Row, alternate, row, show

from ranklib.experiments.tasks import sorting
from ranklib.experiments.token_model import TokenModel
from ranklib.experiments.training import Recipe, train

MODELS, PAIRS, LEAST = 8, 5, 3.0
DEPTH, DIM, HEADS, TOKENS, BATCH, STEPS = 2, 16, 2, 4, 8, 40


def rows() -> list[Row]:
    torch.set_num_threads(1)
    model = TokenModel(DEPTH, DIM, HEADS, 10, 10, positions=TOKENS)
    pairs = [sorting(4 * BATCH, torch.Generator().manual_seed(seed), tokens=TOKENS) for seed in range(MODELS)]
    x, y = (torch.stack(part) for part in zip(*pairs))
    recipe = Recipe(1e-3, STEPS, BATCH)

    def once(**options) -> torch.Tensor:
        return train(model, x, y, recipe, range(MODELS), **options).vectors

    def one_by_one(**options) -> torch.Tensor:
        parts = [(x[i : i + 1], y[i : i + 1], recipe, [i]) for i in range(MODELS)]
        return torch.cat([train(model, *part, **options).vectors for part in parts])

    wide = {"dtype": torch.float64}
    agree = bool((once(**wide) - one_by_one(**wide)).abs().max() < 1e-6)  # also warms up
    taken = alternate(once, one_by_one, PAIRS, "training")
    claim = f"{MODELS} models of {DEPTH} layers and {DIM} features trained in one batch, {STEPS} steps"
    return [row(claim, "one after the other", taken, "at least", LEAST, agree)]


if __name__ == "__main__":
    sys.exit(show(rows()))
