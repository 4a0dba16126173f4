"""Each measure of the tables a second time, from its definition and by another way, with what leaves it alone.

Whoever adds a measure to ``ranklib/measures/table.py`` adds its oracle here: a function of the same name that
takes one matrix. :func:`oracle` names the changes of X that leave the measure as it is; ``test_table.py``
checks the numbers, those changes, and that every other change is seen.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ranklib.measures.table import ATTENTION_MEASURES, MEASURES

CHANGES = ("scale", "rotation", "shift", "row scale", "order of the tokens")


@dataclass(frozen=True)
class Oracle:
    """An independent formula and the changes of X that leave its value as it is."""

    compute: Callable[[Tensor], Tensor]
    free: frozenset[str]


ORACLES: dict[str, Oracle] = {}


def oracle(*free: str) -> Callable:
    """Register the function below under its name; ``free`` are some of ``CHANGES``."""
    assert set(free) <= set(CHANGES), f"expected some of {CHANGES}, got {free}; correct a name"

    def register(compute):
        ORACLES[compute.__name__] = Oracle(compute, frozenset(free))
        return compute

    return register


def oracle_of(name: str) -> Oracle:
    """The oracle of a measure; without one the test of that measure fails, and says what to write."""
    assert name in ORACLES, (
        f"{name}: expected an independent formula for this measure, got none; add a function {name}(x) to "
        "tests/measures/oracles.py that computes it from its definition in another way"
    )
    return ORACLES[name]


def free_of(change: str) -> list[str]:
    """The measures of X that this change leaves alone."""
    return [name for name in MEASURES if name in ORACLES and change in ORACLES[name].free]


def strangers() -> set[str]:
    """Oracles of no measure: a measure was renamed or has gone."""
    return ORACLES.keys() - MEASURES.keys() - ATTENTION_MEASURES.keys()


# ---------------------------------------------------------------- measures of X


def residual(x):
    return torch.stack([row - sum(x) / len(x) for row in x])


def frobenius(x):
    return sum(entry * entry for row in x for entry in row).sqrt()


def composite(x):
    return (torch.linalg.matrix_norm(x, 1) * torch.linalg.matrix_norm(x, torch.inf)).sqrt()


def singular_values(x):
    """Largest first, as roots of the eigenvalues of the smaller Gram matrix."""
    gram = x @ x.mT if x.shape[0] <= x.shape[1] else x.mT @ x
    return torch.linalg.eigvalsh(gram).clamp(min=0).sqrt().flip(0)


def cosines(x):
    """Between every two different tokens, each pair twice."""
    pairs = [(a, b) for i, a in enumerate(x) for j, b in enumerate(x) if i != j]
    return torch.stack([(a * b).sum() / ((a * a).sum() * (b * b).sum()).sqrt() for a, b in pairs])


@oracle("scale", "order of the tokens")
def composite_residual(x):
    return composite(residual(x)) / composite(x)


@oracle("rotation", "shift", "order of the tokens")
def mu(x):
    return frobenius(residual(x))


@oracle("scale", "rotation", "order of the tokens")
def relative_residual(x):
    return frobenius(residual(x)) / frobenius(x)


@oracle("scale", "rotation", "order of the tokens")
def hc_dc(x):
    return frobenius(residual(x)) / frobenius(x - residual(x))


@oracle("shift", "order of the tokens")
def oscillation(x):
    return max((a - b).abs().max() for a in x for b in x)


@oracle("scale", "rotation", "order of the tokens")
def stable_rank(x):
    return (frobenius(x) / singular_values(x)[0]) ** 2


@oracle("scale", "rotation", "order of the tokens")
def gram_stable_rank(x):
    s = singular_values(x)
    return (s**4).sum() / s[0] ** 4


@oracle("scale", "rotation", "order of the tokens")
def effective_rank(x):
    shares = singular_values(x) / singular_values(x).sum()
    return torch.exp(-sum(share * share.log() for share in shares))


@oracle("scale", "rotation", "shift", "order of the tokens")
def participation_ratio(x):
    eigenvalues = torch.linalg.eigvalsh(residual(x).mT @ residual(x) / len(x))
    return eigenvalues.sum() ** 2 / (eigenvalues**2).sum()


@oracle("scale", "rotation", "row scale", "order of the tokens")
def mean_cosine(x):
    return cosines(x).mean()


@oracle("scale", "rotation", "row scale", "order of the tokens")
def mean_average_distance(x):
    return (1 - cosines(x)).mean()


@oracle("rotation", "shift", "order of the tokens")
def dirichlet_energy(x):
    """Of the complete graph with loops, whose degrees are the number of tokens."""
    return sum((a - b).square().sum() for a in x for b in x) / (2 * len(x))


@oracle("scale", "rotation", "order of the tokens")
def isometry_gap(x):
    gram = x @ x.mT
    return (gram.trace() / len(x)).log() - torch.logdet(gram) / len(x)


# ---------------------------------------------------------------- measures of an attention matrix


@oracle()
def attention_entropy(p):
    return torch.stack([-sum(share * share.log() for share in row) for row in p])


@oracle()
def spectral_gap(p):
    return 1 - torch.linalg.eigvals(p).abs().sort().values[-2]


@oracle()
def dobrushin(p):
    return max((a - b).abs().sum() / 2 for a in p for b in p)
