"""Train one model or several at once, with checkpoints: after a kill the same result as without.

The models of several seeds are a matrix of parameters, one row a model; ``torch.func.vmap`` runs them
together, and since Adam works entry by entry, each row follows the same course as alone, up to rounding.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR
from tqdm.auto import tqdm

from ranklib._checks import require_int, require_positive
from ranklib.experiments.token_model import TokenModel


@dataclass(frozen=True)
class Recipe:
    """How to train: Adam at ``rate`` for ``steps`` batches of ``batch`` examples, in order, again and again.

    ``decay``: weight decay, added to the gradient as in Adam, or to the step as in AdamW if ``decoupled``.
    The rate falls to 0 linearly if ``linear``, and is multiplied by ``factor`` at each of ``milestones``
    (numbers of steps). Raises ``TypeError`` or ``ValueError`` for sizes or rates that are not positive.

    >>> [round(Recipe(rate=0.1, steps=4, batch=1, linear=True).rate_at(step), 3) for step in range(4)]
    [0.1, 0.075, 0.05, 0.025]
    """

    rate: float
    steps: int
    batch: int
    decay: float = 0.0
    decoupled: bool = False
    linear: bool = False
    milestones: tuple[int, ...] = ()
    factor: float = 1.0

    def __post_init__(self) -> None:
        require_positive("rate", self.rate)
        require_positive("factor", self.factor)
        require_int("steps", self.steps, 1)
        require_int("batch", self.batch, 1)

    def optimizer(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """Adam, or AdamW if ``decoupled``, of these parameters."""
        kind = torch.optim.AdamW if self.decoupled else torch.optim.Adam
        return kind(parameters, lr=self.rate, weight_decay=self.decay)

    def rate_at(self, step: int) -> float:
        """The learning rate of a step, the first one being 0."""
        return self.rate * self.factor_at(step)

    def factor_at(self, step: int) -> float:
        """The learning rate of a step over that of the first one."""
        linear = 1 - step / self.steps if self.linear else 1.0
        return linear * self.factor ** sum(step >= milestone for milestone in self.milestones)


@torch.enable_grad()
def descend(
    losses_at: Callable[[int], Float[Tensor, " models"]],
    optimizer: torch.optim.Optimizer,
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    begin: int = 0,
    progress: bool = False,
) -> Iterator[tuple[int, Float[Tensor, " models"]]]:
    """The loop of every training: a step down the sum of the losses, then (step, losses), from ``begin`` on.

    ``losses_at(step)`` gives the loss of the model of each seed; the rate is the recipe's. Raises
    ``FloatingPointError`` as soon as a loss is NaN or infinite.

    >>> recipe, x = Recipe(rate=0.1, steps=100, batch=1), torch.ones(1, requires_grad=True)
    >>> [*_, (step, loss)] = descend(lambda step: x.square(), recipe.optimizer([x]), recipe, [0])
    >>> step, loss.item() < 1e-2
    (99, True)
    """
    schedule = LambdaLR(optimizer, lambda step: recipe.factor_at(begin + step))
    steps = range(begin, recipe.steps)
    for step in tqdm(steps, initial=begin, total=recipe.steps, disable=not progress, desc="training"):
        losses = losses_at(step)
        if not torch.isfinite(losses).all():
            bad = [seed for seed, loss in zip(seeds, losses.tolist()) if not abs(loss) < float("inf")]
            raise FloatingPointError(
                f"training: expected a finite loss, got NaN or infinity at step {step} for seeds {bad}; "
                f"lower the rate {recipe.rate_at(step):g}, or look at the data"
            )
        optimizer.zero_grad()
        losses.sum().backward()
        optimizer.step()
        schedule.step()
        yield step, losses


class Trained(NamedTuple):
    """What training leaves: ``vectors``, a row of parameters for each model, and ``curve``.

    The curve has for some steps ``step``, ``loss`` of the batch and, where there is a test set, ``score`` on
    it, the last two with one value a model.
    """

    vectors: Float[Tensor, "models parameters"]
    curve: list[dict]


@torch.enable_grad()
def train(
    model: TokenModel,
    x: Shaped[Tensor, "models examples tokens *features"],
    y: Shaped[Tensor, "models examples tokens *outputs"],
    recipe: Recipe,
    seeds: list[int] | range,
    *,
    test: tuple[Shaped[Tensor, "..."], Shaped[Tensor, "..."]] | None = None,
    device: torch.device | str = "cpu",
    checkpoint: Path | str | None = None,
    every: int = 100,
    progress: bool = False,
    dtype: torch.dtype = torch.float32,
) -> Trained:
    """Train one model for each seed, all in one batch; row i of ``x``, ``y`` and ``test`` belongs to seed i.

    The loss is the cross-entropy for integers ``y``, the mean squared error for floating-point ones; the
    score is :func:`score`. A seed draws the weights of its model and nothing else, so the result depends on
    seed and data only. Every ``every`` steps the curve gets a point and ``checkpoint``, if given, the whole
    state; a later call with the same arguments goes on there and ends with the same bits as one call
    without a stop.

    Raises ``FloatingPointError`` as soon as a loss is NaN or infinite, ``ValueError`` where sizes do not
    fit or the checkpoint is of another training. Source: chapter `drawing-arcs` and chapter `which-paths`.

    >>> model = TokenModel(depth=1, dim=4, heads=1, inputs=2, outputs=2, norm="none")
    >>> x = torch.tensor([[[0, 1], [1, 1]]])
    >>> trained = train(model, x, x, Recipe(rate=0.02, steps=200, batch=2), [0])
    >>> score(model, trained.vectors, x, x)
    [1.0]
    """
    seeds = list(seeds)
    for name, value in (("x", x), ("y", y)):
        if value.shape[:2] != x.shape[:2] or len(value) != len(seeds):
            raise ValueError(
                f"{name}: expected ({len(seeds)} seeds, examples, tokens, ...), as many in x as in y, "
                f"got shape {tuple(value.shape)}; stack one data set for each seed"
            )
    require_int("every", every, 1)
    draws = [model.draw(torch.Generator().manual_seed(seed), dtype) for seed in seeds]
    vectors = torch.stack(draws).to(device).requires_grad_()
    optimizer = recipe.optimizer([vectors])
    x, y = x.to(device), y.to(device)
    test = test and tuple(part.to(device) for part in test)
    identity = {"model": asdict(model), "recipe": asdict(recipe), "seeds": seeds, "every": every}
    begin, curve = 0, []
    if checkpoint is not None and Path(checkpoint).exists():
        begin, curve = _resume(Path(checkpoint), identity, vectors, optimizer)
    batches = -(-x.shape[1] // recipe.batch)

    def losses_at(step: int) -> Tensor:
        at = step % batches * recipe.batch
        return _losses(model, vectors, x[:, at : at + recipe.batch], y[:, at : at + recipe.batch])

    for step, losses in descend(losses_at, optimizer, recipe, seeds, begin=begin, progress=progress):
        if (step + 1) % every == 0 or step + 1 == recipe.steps:
            point = {"step": step + 1, "loss": losses.tolist()}
            curve.append(point | ({"score": score(model, vectors.detach(), *test)} if test else {}))
            if checkpoint is not None:
                _save(Path(checkpoint), identity, step + 1, curve, vectors, optimizer)
    return Trained(vectors.detach().clone(), curve)


@torch.no_grad()
def score(
    model: TokenModel,
    vectors: Float[Tensor, "models parameters"],
    x: Shaped[Tensor, "models examples tokens *features"],
    y: Shaped[Tensor, "models examples tokens *outputs"],
) -> list[float]:
    """For each model the share of tokens with the right class, or the mean squared error of features."""
    guesses = _predict(model, vectors, x)
    if y.is_floating_point():
        return (guesses - y).square().flatten(1).mean(1).tolist()
    return (guesses.argmax(-1) == y).double().flatten(1).mean(1).tolist()


def round_floats(value, digits: int = 5):
    """The nested record with its floats to so many digits: what is drawn needs no more.

    >>> round_floats({"loss": [0.1234567, 12], "steps": 3})
    {'loss': [0.12346, 12], 'steps': 3}
    """
    if isinstance(value, dict):
        return {key: round_floats(part, digits) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [round_floats(part, digits) for part in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _predict(model: TokenModel, vectors: Tensor, x: Tensor) -> Tensor:
    if len(vectors) == 1:  # the transform costs time and changes nothing
        return model(vectors[0], x[0])[None]
    return torch.func.vmap(model.apply)(model.split(vectors), x)


def _losses(model: TokenModel, vectors: Tensor, x: Tensor, y: Tensor) -> Tensor:
    guesses = _predict(model, vectors, x)
    if y.is_floating_point():
        return (guesses - y).square().flatten(1).mean(1)
    loss = F.cross_entropy(guesses.flatten(0, -2), y.flatten(), reduction="none")
    return loss.unflatten(0, (len(vectors), -1)).mean(1)


def _save(path: Path, identity: dict, step: int, curve: list, vectors: Tensor, optimizer) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".new")
    state = {"step": step, "curve": curve, "vectors": vectors.detach(), "optimizer": optimizer.state_dict()}
    torch.save(identity | state, scratch)
    os.replace(scratch, path)  # a kill leaves the old file or the new one, never half of one


def _resume(path: Path, identity: dict, vectors: Tensor, optimizer) -> tuple[int, list]:
    state = torch.load(path, map_location=vectors.device, weights_only=True)
    different = [name for name in identity if state.get(name) != identity[name]]
    if different:
        raise ValueError(
            f"checkpoint: expected one of this training, got another {' and '.join(different)}; "
            f"delete {path.name} or choose another file"
        )
    with torch.no_grad():
        vectors.copy_(state["vectors"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"], state["curve"]
