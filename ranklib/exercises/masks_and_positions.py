"""The exercises of ``masks-and-positions``: their checks, and answers that the tests give."""

import math

import torch

from ranklib.exercises.answers import F64, UNKNOWN, Form, call, close, exercise, number
from ranklib.model.softmax import attention_matrix, causal_mask, window_mask
from ranklib.theory.masks import asymptotic_rate


def uniform(mask):
    return attention_matrix(torch.zeros(mask.shape, dtype=F64), mask)


@exercise(
    right=[(1, 1 / 2, 1 / 3), [0.3333, 1, 0.5]],
    wrong=[((1, 1, 1), "row sums"), ((1.2215, 0.5226, 0.2611), "singular"), ((1, 0, 0), "")],
    malformed=1,
)
def mask_eigenvalues(answer):
    if not isinstance(answer, tuple | list) or len(answer) != 3:
        raise Form("three numbers")
    found = sorted(number(value) for value in answer)
    truth = sorted(torch.linalg.eigvals(uniform(causal_mask(3))).real.tolist())
    if all(map(close, found, truth)):
        return None
    if all(close(value, 1) for value in found):
        return "these are the row sums; a row sum 1 gives one eigenvalue 1, the others stand on the diagonal."
    if all(map(close, found, torch.linalg.svdvals(uniform(causal_mask(3))).sort().values.tolist())):
        return "these are the singular values; they are not the eigenvalues of a matrix that is not normal."
    return UNKNOWN


@exercise(
    right=[3, 3.0],
    wrong=[(2, "mean"), (6, "largest"), (-2, "")],
    malformed="the first",
)
def causal_limit(answer):
    tokens = torch.tensor([[3.0], [1.0], [-2.0], [6.0]], dtype=F64)
    x = tokens
    for _ in range(100):
        x = attention_matrix(x @ x.mT / 10, causal_mask(4)) @ x
    value = number(answer)
    if close(value, float(x[-1])):
        return None
    if close(value, float(tokens.mean())):
        return "this is the mean, as without a mask; who can move the first token?"
    if close(value, float(tokens.max())):
        return "took the largest: attention is an average, and only the first token is never averaged."
    return UNKNOWN


@exercise(
    right=[-0.462, math.tanh(-0.5)],
    wrong=[(0.462, "side"), (0, "stop"), (math.tanh(-1), "sigma"), (1, "")],
    malformed="swaps",
)
def negative_bias(answer):
    truth = math.tanh(-0.5)
    value = number(answer)
    if close(value, truth):
        return None
    if close(value, -truth):
        return "the size is right; which side is each token on after the layer?"
    if close(value, 0):
        return "a negative bias does not stop the pair: each token takes more of the other than of itself."
    if close(value, math.tanh(-1)):
        return "two weights s and 1 - s with s = sigma(b) differ by tanh(b/2), not by tanh b."
    return UNKNOWN


@exercise(
    right=[lambda phi: (1 + math.cos(phi)) / 2, lambda phi: math.cos(phi / 2) ** 2],
    wrong=[
        (lambda phi: (1 - math.cos(phi)) / 2, "equal rows"),
        (lambda phi: 1.0, "without rotation"),
        (lambda phi: 0.0, ""),
    ],
    malformed=0.9,
)
def rotary_opposite(answer):
    for phi in (0.3, 0.7, 2.0):
        got, a = number(call(answer, phi)), 1e-3
        c = math.cos(phi)
        s = torch.tensor([[1, -c], [-c, 1]], dtype=F64) * a * a
        p = attention_matrix(s)
        if close(got, float(p[0, 0] - p[0, 1]) / a**2):
            continue
        if close(got, (1 - c) / 2):
            return "this belongs to two equal rows; the second token has the opposite sign."
        if close(got, 1):
            return "this is the pair without rotation; the score of the pair is now -a² cos phi."
        return UNKNOWN
    return None


@exercise(
    right=[lambda n, b: math.ceil((n - 1) / b), lambda n, b: -(-(n - 1) // b)],
    wrong=[
        (lambda n, b: (n - 1) // b, "whole"),
        (lambda n, b: (n - 1) / b, "whole"),
        (lambda n, b: 0.5, "spectrum"),
        (lambda n, b: n - 1, "width 1"),
        (lambda n, b: n, ""),
    ],
    malformed=15,
)
def first_arrival(answer):
    for n, b in ((16, 1), (16, 3), (17, 4), (11, 4), (7, 6), (7, 9)):
        got = number(call(answer, n, b))
        p, layers = uniform(window_mask(n, b, causal=True)), 1
        while torch.linalg.matrix_power(p, layers)[-1, 0] == 0:
            layers += 1
        if got == layers:
            continue
        if got == (n - 1) // b or close(got, (n - 1) / b):
            return "layers are whole: what if b does not divide n - 1?"
        if close(got, 1) or close(got, 0.5):
            return "the spectrum says one half a layer, but it speaks of the end only; follow the last token."
        if close(got, n - 1):
            return "this is for width 1; a wider window takes larger steps."
        return UNKNOWN
    return None


@exercise(
    right=[1 / 3, 0.333],
    wrong=[(0.5, "one half"), (0.25, "")],
    malformed="1/3",
)
def equal_first(answer):
    causal = uniform(causal_mask(5))
    value = number(answer)
    if close(value, float(causal[2, 2])):
        return None
    if close(value, asymptotic_rate(causal)):
        return "one half belongs to the difference of tokens 1 and 2, which is zero here and stays zero."
    return UNKNOWN
