"""The trace of a transformer of base size against its plain forward pass, and against nnsight if it is there.

Usage: python benchmarks/bench_trace.py

Exits with 1 if the relative composite residual of every layer costs more than 5 % of the forward pass, or if
it is not that of the stored hidden states. Random weights, 12 layers of width 768, 128 tokens, float32. Both
sides alternate in one process, and processor time is compared, which other programs disturb least.
"""

import importlib.util
import sys
import time
from statistics import median

import torch
from tqdm import tqdm
from transformers import BertConfig, BertModel

from ranklib.measures.tokens import composite_residual
from ranklib.tracing.layerwise import trace

SAMPLES, TOKENS, REPEATS, MOST_OVERHEAD = 8, 128, 5, 0.05
MORE = ("composite_residual", "mu", "relative_residual", "mean_cosine", "oscillation")


def timed(function, *arguments, **options):
    start = time.process_time()
    result = function(*arguments, **options)
    return result, time.process_time() - start


def with_nnsight(model, inputs):
    """The same numbers as a user of nnsight would take them: each block's output saved as a measure."""
    from nnsight import NNsight

    wrapped, taken = NNsight(model), []
    with wrapped.trace(**inputs):
        for layer in wrapped.encoder.layer:
            taken.append(composite_residual(layer.output).save())
    return taken


@torch.no_grad()
def main() -> int:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = BertModel(BertConfig()).eval()
    inputs = {"input_ids": torch.randint(1000, (SAMPLES, TOKENS))}
    inputs["attention_mask"] = torch.ones(SAMPLES, TOKENS)
    stored = model(**inputs, output_hidden_states=True).hidden_states
    expected = torch.stack([composite_residual(x) for x in stored]).double()
    exact = torch.equal(trace(model, inputs, progress=False).of("composite_residual"), expected)

    sides = {"plain": lambda: model(**inputs), "residual": lambda: trace(model, inputs, progress=False)}
    sides["five measures"] = lambda: trace(model, inputs, measures=MORE, progress=False)
    peer = importlib.util.find_spec("nnsight") is not None
    if peer:
        sides["nnsight, residual"] = lambda: with_nnsight(model, inputs)
    seconds = {name: [] for name in sides}
    for _ in tqdm(range(REPEATS), desc="12 layers of width 768"):
        for name, side in sides.items():
            seconds[name].append(timed(side)[1])
    overheads = {
        name: median(a / b for a, b in zip(taken, seconds["plain"], strict=True)) - 1
        for name, taken in seconds.items()
    }
    plain = median(seconds["plain"])
    print(f"{SAMPLES} x {TOKENS} tokens, float32: plain pass {plain:.2f} s of processor time")
    for name, overhead in list(overheads.items())[1:]:
        print(f"{name}: {100 * overhead:+.1f} % of a plain pass (median of {REPEATS} pairs)")
    if not peer:
        print("nnsight: not installed, not compared")
    print(f"exactly the numbers of the stored hidden states: {'yes' if exact else 'NO'}")
    return 0 if exact and overheads["residual"] <= MOST_OVERHEAD else 1


if __name__ == "__main__":
    sys.exit(main())
