"""The trace of a transformer of base size against its plain forward pass.

Usage: python benchmarks/bench_trace.py

Exits with 1 if the relative composite residual of every layer costs more than 5 % of the forward pass, or if
it is not that of the stored hidden states. Random weights, 12 layers of width 768, 128 tokens, float32.
"""

import sys

import torch
from pairs import Row, alternate, row, show
from transformers import BertConfig, BertModel

from ranklib.measures.tokens import composite_residual
from ranklib.tracing.layerwise import trace

SAMPLES, TOKENS, PAIRS, MOST = 8, 128, 7, 1.05


@torch.no_grad()
def rows() -> list[Row]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = BertModel(BertConfig()).eval()
    inputs = {"input_ids": torch.randint(1000, (SAMPLES, TOKENS))}
    inputs["attention_mask"] = torch.ones(SAMPLES, TOKENS)
    stored = model(**inputs, output_hidden_states=True).hidden_states
    expected = torch.stack([composite_residual(x) for x in stored]).double()
    agree = torch.allclose(trace(model, inputs, progress=False).of("composite_residual"), expected, rtol=1e-6)
    taken = alternate(lambda: trace(model, inputs, progress=False), lambda: model(**inputs), PAIRS, "trace")
    claim = f"Trace with the residual of every layer, BERT of base size, {SAMPLES} texts of {TOKENS} tokens"
    return [row(claim, "its plain forward pass", taken, "at most", MOST, agree)]


if __name__ == "__main__":
    sys.exit(show(rows()))
