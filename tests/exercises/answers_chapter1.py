"""Right, wrong and malformed answers to the exercises of Chapter 1; a wrong one with a word of its message."""

import math

import torch

RIGHT = {
    "three-tokens": [("midrange", 4.03), ("midrange", math.sqrt(16.25))],
    "midpoint": [6, 6.0, torch.tensor(6.0)],
    "rank-one": [[[1, 2, 3], [-1, -2, -3]], torch.tensor([[0.0, 0.0, 7.0], [0.0, 0.0, -7.0]])],
    "bias": [
        lambda b_o, w_o, b_v: b_o + (b_v[:, None] @ w_o).sum(0)[0],
        lambda b_o, w_o, b_v: b_o + torch.einsum("hv,hvd->d", b_v, w_o),
    ],
    "worst-mean": [torch.eye(20).double(), torch.eye(20).tolist()],
}
WRONG = {
    "three-tokens": [
        (("mean", math.sqrt(18)), "by reflex"),
        (("midrange", 16.25), "root"),
        (("median", 4.47), ""),
    ],
    "midpoint": [(math.sqrt(28), "Frobenius"), (3, "")],
    "rank-one": [
        ([[1, 2, 3], [1, 2, 3]], "equal rows"),
        ([[1, 2, 3], [2, 4, 6]], "ratio|residual is"),
        ([[1, 0, 0], [0, 1, 0]], "multiple"),
    ],
    "bias": [
        (lambda b_o, w_o, b_v: b_o, "value biases"),
        (lambda b_o, w_o, b_v: torch.cat([b_o, b_o]), "summed"),
        (lambda b_o, w_o, b_v: 2 * b_o, ""),
    ],
    "worst-mean": [
        (torch.eye(20)[:, :1], "one feature gives 1.34"),
        (torch.randn(20, 30, generator=torch.Generator().manual_seed(0)), "ratio"),
        (torch.ones(20, 2), "equal"),
    ],
}
MALFORMED = {
    "three-tokens": "mean",
    "midpoint": "six",
    "rank-one": "u",
    "bias": 3,
    "worst-mean": [[1, 2]],
}
