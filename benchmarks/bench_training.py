"""Several models trained in one batch, against one after the other: same function, same steps.

Usage: python benchmarks/bench_training.py

On a CPU a batch saves the time between operations, not the operations: much for small models, little for
large ones. Exits with 1 if eight models of the quick size take less than 3 times as long one after the other
as at once, or if both sides, in float64, end with different parameters. The times are float32's. The larger
sizes are measured and printed only.
"""

import sys
import time
from statistics import median

import torch
from tqdm import tqdm

from ranklib.experiments.tasks import sorting
from ranklib.experiments.token_model import TokenModel
from ranklib.experiments.training import Recipe, train

MODELS, REPEATS, LEAST = 8, 3, 3.0
# name: layers, features, heads, tokens, batch, steps
SIZES = {
    "quick": (2, 16, 2, 4, 8, 40),
    "medium": (3, 24, 2, 8, 16, 20),
    "sorting at paper size": (6, 48, 2, 8, 30, 6),
}


def measure(depth: int, dim: int, heads: int, tokens: int, batch: int, steps: int) -> tuple[float, float]:
    """How many times longer one after the other takes, and the largest difference in parameters."""
    model = TokenModel(depth, dim, heads, 10, 10, positions=tokens)
    pairs = [sorting(4 * batch, torch.Generator().manual_seed(seed), tokens=tokens) for seed in range(MODELS)]
    x, y = (torch.stack(part) for part in zip(*pairs))
    recipe, ratios = Recipe(1e-3, steps, batch), []

    def once(**options) -> torch.Tensor:
        return train(model, x, y, recipe, range(MODELS), **options).vectors

    def one_by_one(**options) -> torch.Tensor:
        parts = [(x[i : i + 1], y[i : i + 1], recipe, [i]) for i in range(MODELS)]
        return torch.cat([train(model, *part, **options).vectors for part in parts])

    wide = {"dtype": torch.float64}
    difference = float((once(**wide) - one_by_one(**wide)).abs().max())  # also warms up
    for _ in range(REPEATS):
        seconds = []
        for side in (one_by_one, once):
            start = time.process_time()  # one thread: what other programs take does not count
            side()
            seconds.append(time.process_time() - start)
        ratios.append(seconds[0] / seconds[1])
    return median(ratios), difference


def main() -> int:
    torch.set_num_threads(1)
    fine = True
    for name, size in tqdm(SIZES.items(), desc="sizes"):
        ratio, difference = measure(*size)
        fine = fine and difference < 1e-6 and (name != "quick" or ratio >= LEAST)
        tqdm.write(
            f"{name}: {size[0]} layers of {size[1]} features, {size[4]} x {size[3]} tokens a step: "
            f"{MODELS} models one after the other take {ratio:.1f} times as long as at once; "
            f"largest difference {difference:.0e}"
        )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
