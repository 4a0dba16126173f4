"""How well the paths of one length predict, evaluated in several ways, on a trained model.

All ways share the last step: the states of the paths are added, normalised token by token (LayerNorm
without gain and bias) and read out with the model's own readout.

* ``frozen``: the paper's formula, P_path X W_path with the attention of the whole network; no norms,
  biases, or MLPs.
* ``recomputed``: what the released code does; each path finds its attention from its own state. A head that
  is taken gives LayerNorm, without gain and bias, of its output plus its biases, then the whole MLP block;
  a skip changes nothing.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from ranklib._checks import require_int
from ranklib.experiments.token_model import EPS, TokenModel
from ranklib.model.layers import Layer, Network
from ranklib.model.softmax import attention_matrix, raw_scores
from ranklib.theory.path_sums import bias_part, length_spectrum
from ranklib.theory.paths import Path, count_paths, enumerate_paths, frozen_attention, sample_paths

WAYS = ("frozen", "recomputed")
Step = Callable[[int, int, Tensor], Tensor]


def expected_distinct(paths: int, draws: int) -> float:
    """How many different paths ``draws`` independent uniform draws out of ``paths`` show on average.

    M (1 - (1 - 1/M)^n). Raises ``TypeError`` or ``ValueError`` unless ``paths`` >= 1 and ``draws`` >= 0 are
    integers. Source: chapter `which-paths`.

    >>> [round(expected_distinct(12, draws), 2) for draws in (5, 20)]
    [4.23, 9.89]
    """
    require_int("paths", paths, 1)
    require_int("draws", draws, 0)
    return paths * -math.expm1(draws * math.log1p(-1 / paths)) if paths > 1 else float(draws > 0)


def head_output(
    layer: Layer, head: int, p: Float[Tensor, "*batch tokens tokens"], z: Float[Tensor, "*batch tokens dim"]
) -> Float[Tensor, "*batch tokens dim"]:
    """P_h Z W_{V,h} W_{O,h}, without biases."""
    return p @ (z @ layer.attention.w_v[head]) @ layer.attention.w_o[head]


def frozen_step(network: Network, x: Float[Tensor, "*batch tokens dim"]) -> Step:
    """The step of the paper's formula: head h of layer l, with the attention of the whole network.

    The network may have norms and MLPs; they shape the attention and are left out of the paths. Source:
    chapter `which-paths`; the paper's section 4.2.

    >>> network = Network.random(3, 6, 2, generator=torch.Generator().manual_seed(0))
    >>> x = torch.randn(5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    >>> states = walk(frozen_step(network, x), x, enumerate_paths(2, 3))
    >>> torch.allclose(sum(state for _, state in states), network(x))
    True
    """
    attentions = frozen_attention(network, x)
    return lambda layer, head, z: head_output(
        network.layers[layer], head, attentions[layer][..., head, :, :], z
    )


def recomputed_step(network: Network) -> Step:
    """The step of the released code: head h of layer l attends to the path's own state; then norm and MLP.

    LayerNorm(P_h Z W_h + its biases) without gain, bias and skip, and, if there is an MLP, its whole block
    with skip and LayerNorm. Where the network has no norm, none is applied. Source: chapter `which-paths`;
    not the paper's formula.
    """

    def step(index: int, head: int, z: Tensor) -> Tensor:
        layer = network.layers[index]
        (attention, _, before, after), *mlp = layer.sublayers()
        pre = z if before is None else before(z)
        biases = (None if b is None else b[head] for b in (attention.b_q, attention.b_k))
        p = attention_matrix(raw_scores(pre, attention.w_q[head], attention.w_k[head], *biases))
        z = head_output(layer, head, p, pre)
        z = z if attention.b_v is None else z + attention.b_v[head] @ attention.w_o[head]
        z = z if attention.b_o is None else z + attention.b_o
        z = z if after is None else _normalise(z)
        for branch, skip, before, after in mlp:
            given = branch(z if before is None else before(z))
            z = z + given if skip else given
            z = z if after is None else after(z)
        return z

    return step


def walk(step: Step, x: Float[Tensor, "..."], paths: Iterable[Path]) -> Iterator[tuple[Path, Tensor]]:
    """Each different path once, with its last state; paths that begin alike share that work.

    ``step(layer, head, state)`` gives the next state; None in a path leaves it as it is.

    >>> add = lambda layer, head, z: z + 10.0 ** layer * (head + 1)
    >>> [(path, int(z)) for path, z in walk(add, torch.zeros(1), [(0, 1), (None, 0), (0, 1)])]
    [((None, 0), 10), ((0, 1), 21)]
    """
    states, last = [x], ()
    for path in sorted(set(paths), key=lambda path: [-1 if choice is None else choice for choice in path]):
        shared = next((i for i, (now, before) in enumerate(zip(path, last)) if now != before), len(last))
        del states[shared + 1 :]
        for layer, head in enumerate(path[shared:], shared):
            states.append(states[-1] if head is None else step(layer, head, states[-1]))
        last = path
        yield path, states[-1]


@torch.no_grad()
def evaluate_paths(
    model: TokenModel,
    vector: Float[Tensor, " parameters"],
    x: Shaped[Tensor, "batch tokens *features"],
    y: Int[Tensor, "batch tokens"],
    way: str,
    generator: torch.Generator,
    numbers: tuple[int, ...] = (5, 20),
    repeats: int = 5,
) -> dict:
    """Accuracy of sums of paths of each length 0..L: of sampled ones, drawn with replacement, and of all.

    Returns ``sampled``: for each of ``numbers`` a list over lengths of a list over ``repeats`` draws;
    ``all``: over lengths, of all (C(L, k) H^k) paths; ``distinct``: as ``sampled``, the number of different
    paths in a draw. The vector's dtype is that of the computation. Raises ``ValueError`` for an unknown
    way. Source: chapter `which-paths`.

    >>> model = TokenModel(depth=2, dim=4, heads=2, inputs=3, outputs=3)
    >>> vector = model.draw(torch.Generator().manual_seed(0), torch.float64)
    >>> x = torch.tensor([[0, 1, 2, 2]])
    >>> result = evaluate_paths(model, vector, x, x, "frozen", torch.Generator().manual_seed(0), (5,), 3)
    >>> len(result["all"]), len(result["sampled"]["5"][1])
    (3, 3)
    """
    if way not in WAYS:
        raise ValueError(f"way: expected one of {WAYS}, got {way!r}; choose one")
    p, network, heads, depth = model.split(vector), model.network(vector), model.heads, model.depth
    start = model.embed(p, x)
    step = frozen_step(network, start) if way == "frozen" else recomputed_step(network)
    draws = {
        (number, length, repeat): sample_paths(heads, depth, number, generator, length)
        for number in numbers
        for length in range(depth + 1)
        for repeat in range(repeats)
    }
    wanted: dict[Path, list] = {}
    for key, paths in draws.items():
        for path in paths:
            wanted.setdefault(path, []).append(key)
    sums = {key: torch.zeros_like(start) for key in [*draws, *range(depth + 1)]}
    for path, state in walk(step, start, enumerate_paths(heads, depth)):
        for key in [sum(choice is not None for choice in path), *wanted.get(path, ())]:
            sums[key] += state
    accuracy = {key: _accuracy(model, p, _normalise(total), y) for key, total in sums.items()}

    def table(values: dict) -> dict:
        lengths = range(depth + 1)
        return {str(n): [[values[n, k, r] for r in range(repeats)] for k in lengths] for n in numbers}

    return {
        "sampled": table(accuracy),
        "all": [accuracy[length] for length in range(depth + 1)],
        "distinct": table({key: len(set(paths)) for key, paths in draws.items()}),
    }


@torch.no_grad()
def evaluate_exact(
    model: TokenModel,
    vector: Float[Tensor, " parameters"],
    x: Shaped[Tensor, "batch tokens *features"],
    y: Int[Tensor, "batch tokens"],
) -> dict:
    """The sums that add up to the network, one for each length: attention, norms and ReLU are frozen.

    ``alone``: accuracy of each sum, normalised as in :func:`evaluate_paths`; ``up_to``: of the sums of all
    lengths up to k and the biases' part, read out as the network is, so that the last is the network's;
    ``share``: the sums' Frobenius norms over their total; ``error``: relative distance of all sums and the
    biases' part from the forward pass; ``model``: accuracy of the forward pass. Source: chapter
    `which-paths`; not in the paper.

    >>> model = TokenModel(depth=2, dim=4, heads=2, inputs=3, outputs=3)
    >>> vector = model.draw(torch.Generator().manual_seed(0), torch.float64)
    >>> x = torch.tensor([[0, 1, 2, 2]])
    >>> result = evaluate_exact(model, vector, x, x)
    >>> result["error"] < 1e-12, result["up_to"][-1] == result["model"]
    (True, True)
    """
    p, network = model.split(vector), model.network(vector)
    start = model.embed(p, x)
    sums, rest, output = length_spectrum(network, start), bias_part(network, start), network(start)
    sizes = sums.flatten(1).norm(dim=-1)
    return {
        "alone": [_accuracy(model, p, _normalise(total), y) for total in sums],
        "up_to": [_accuracy(model, p, total + rest, y) for total in sums.cumsum(0)],
        "share": (sizes / sizes.sum()).tolist(),
        "error": float((sums.sum(0) + rest - output).norm() / output.norm()),
        "model": _accuracy(model, p, output, y),
    }


def coverage(heads: int, depth: int, draws: tuple[int, ...] = (5, 20)) -> dict[str, list[float]]:
    """For each number of draws and each length, the expected share of all paths that is drawn.

    >>> [round(share, 3) for share in coverage(2, 6)["5"]]
    [1.0, 0.353, 0.081, 0.031, 0.021, 0.026, 0.076]
    """
    counts = [count_paths(heads, depth, length) for length in range(depth + 1)]
    return {str(n): [expected_distinct(count, n) / count for count in counts] for n in draws}


def _normalise(z: Tensor) -> Tensor:
    return F.layer_norm(z, z.shape[-1:], eps=EPS)


def _accuracy(model: TokenModel, p: dict, z: Tensor, y: Tensor) -> float:
    return float((model.readout(p, z).argmax(-1) == y).double().mean())
