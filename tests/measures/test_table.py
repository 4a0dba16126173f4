"""The tables of measures: each against its oracle, where they disagree, what they ignore and refuse."""

import inspect

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib import measures as room
from ranklib.measures import attention as attention_measures
from ranklib.measures import spectrum, tokens
from ranklib.measures.attention import spectral_gap
from ranklib.measures.spectrum import (
    effective_rank,
    gram_stable_rank,
    isometry_gap,
    numerical_rank,
    participation_ratio,
    stable_rank,
)
from ranklib.measures.table import ATTENTION_MEASURES, MEASURES
from ranklib.measures.tokens import (
    composite_residual,
    dirichlet_energy,
    hc_dc,
    mean_cosine,
    mu,
    relative_residual,
)
from tests.measures.matrices import DIM, SEEDS, TOKENS, attention, close, draw, generator, six_matrices
from tests.measures.oracles import CHANGES, free_of, oracle_of, strangers

TABLE = MEASURES | ATTENTION_MEASURES

SCALE_FREE, ROW_SCALE_FREE = free_of("scale"), free_of("row scale")


@pytest.mark.parametrize("seed", SEEDS)
def test_the_measures_disagree_on_six_matrices(seed):
    def row(name):
        x = matrices[name]
        measures = (composite_residual, relative_residual, stable_rank, effective_rank, participation_ratio)
        return [measure(x).item() for measure in (*measures, mean_cosine)]

    matrices = six_matrices(seed)
    composite, rel, stable, effective, ratio, cosine = row("isotropic")
    assert composite > 0.9 and rel > 0.95 and 10 < stable < 18 and effective > 28 and abs(cosine) < 0.02
    isotropic_ratio = ratio
    composite, rel, stable, effective, ratio, cosine = row("equal rows + noise")
    assert max(composite, rel) < 3e-3 and stable < 1.001 and effective < 1.1 and cosine > 0.999
    assert ratio == pytest.approx(isotropic_ratio, rel=1e-3) and ratio > 15, "blind to collapse"
    composite, rel, stable, effective, ratio, cosine = row("rank 1, random lengths")
    assert min(composite, rel) > 0.25, "rank one is no collapse"
    assert [stable, effective, ratio, cosine] == pytest.approx([1, 1, 1, 1], abs=1e-6)
    composite, rel, stable, effective, ratio, cosine = row("rank 1, plus and minus")
    assert [composite, rel, stable, effective, ratio] == pytest.approx([1, 1, 1, 1, 1], abs=1e-6)
    assert cosine == pytest.approx(-1 / 31, rel=1e-9)
    composite, rel, stable, effective, ratio, cosine = row("two clusters")
    assert min(composite, rel) > 0.4 and 1.3 < stable <= 2 and 1.8 < effective <= 2 and 0.2 < cosine < 0.8
    assert ratio == pytest.approx(1, rel=1e-9)
    composite, rel, stable, effective, ratio, cosine = row("isotropic + one outlier dimension")
    assert max(composite, rel) < 0.35 and stable < 1.15 and cosine > 0.9, "looks collapsed"
    assert effective > 10 and ratio > 15, "all directions are alive"


def agree(name, measure, matrices):
    """The measure has an oracle, and gives its numbers on each matrix."""
    wanted = torch.stack([torch.as_tensor(oracle_of(name).compute(m)) for m in matrices])
    torch.testing.assert_close(measure(matrices), wanted, rtol=1e-9, atol=1e-12)


def matrices_for(name):
    if name in ATTENTION_MEASURES:
        return torch.stack([attention(seed, TOKENS, TOKENS) for seed in SEEDS])
    return torch.stack([draw(seed, TOKENS, DIM) + 0.3 for seed in SEEDS])


@pytest.mark.parametrize("name", TABLE)
def test_every_measure_of_the_tables_agrees_with_its_oracle(name):
    agree(name, TABLE[name], matrices_for(name))


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_factor_is_noticed(name):
    with pytest.raises(AssertionError, match="not close"):
        agree(name, lambda x: 1.001 * TABLE[name](x), matrices_for(name))


def test_a_new_measure_without_an_oracle_is_refused_with_a_remedy():
    with pytest.raises(AssertionError, match="doubled_mu: expected an independent formula.*add a function"):
        agree("doubled_mu", lambda x: 2 * mu(x), matrices_for("mu"))


def untabled(module, table, offered):
    """A sentence, with the remedy, for each measure of a module that a table or the room lacks."""
    for name, function in inspect.getmembers(module, inspect.isfunction):
        needed = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
        own = function.__module__ == module.__name__ and not name.startswith(("_", "raw_"))
        if own and len(needed) == 1 and name not in table:
            yield f"{name} is in no table; add it to ranklib/measures/table.py"
        if own and name not in offered:
            yield f"{name} is not offered; add it to its line in ranklib/measures/__init__.py, or begin it with _"


def test_every_oracle_has_its_measure_and_every_measure_is_in_a_table():
    assert strangers() == set(), "these oracles belong to no measure; rename or delete them"
    for module, table in ((tokens, MEASURES), (spectrum, MEASURES), (attention_measures, ATTENTION_MEASURES)):
        assert not [*untabled(module, table, room.__all__)]


@pytest.mark.parametrize("name", MEASURES)
def test_invariances(name):
    """Exactly the invariances that its oracle states: each holds, and each that is not stated fails."""
    measure, x = MEASURES[name], draw(3, TOKENS, DIM) + 0.3
    rotation = torch.linalg.qr(draw(4, DIM, DIM)).Q
    lengths = 0.5 + torch.rand(TOKENS, 1, generator=generator(5), dtype=torch.float64)
    changed = {
        "scale": -2.5 * x,
        "rotation": x @ rotation,
        "shift": x + draw(6, 1, DIM),
        "row scale": lengths * x,
        "order of the tokens": x.flip(0),
    }
    assert tuple(changed) == CHANGES
    for change, y in changed.items():
        same = torch.isclose(measure(y), measure(x), rtol=1e-10, atol=0)
        stated = change in oracle_of(name).free
        assert bool(same) == stated, f"{name}, {change}: stated {stated}, seen {bool(same)}"


@pytest.mark.parametrize("seed", SEEDS)
def test_further_arguments_and_relations(seed):
    """What the tables do not call: without centring, on a graph; and one measure by another."""
    x = draw(seed, TOKENS, DIM) + 0.3
    eigenvalues = torch.linalg.eigvalsh(x.mT @ x / TOKENS)
    close(participation_ratio(x, False), eigenvalues.sum() ** 2 / (eigenvalues**2).sum())
    close(hc_dc(x), relative_residual(x) / (1 - relative_residual(x) ** 2).sqrt())
    close(gram_stable_rank(x), stable_rank(x @ x.mT))
    graph = torch.rand(TOKENS, TOKENS, generator=generator(seed), dtype=torch.float64)
    graph = graph + graph.mT
    scaled, rows = x / graph.sum(-1, keepdim=True).sqrt(), range(TOKENS)
    energy = sum(graph[i, j] * (scaled[i] - scaled[j]).square().sum() for i in rows for j in rows) / 2
    close(dirichlet_energy(x, graph), energy)
    loopless = torch.ones_like(graph) - torch.eye(TOKENS, dtype=torch.float64)
    close(dirichlet_energy(x, loopless), mu(x) ** 2 * TOKENS / (TOKENS - 1))


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_free_measures_neither_underflow_nor_overflow(name, scale):
    x = draw(3, TOKENS, DIM) + 0.3
    close(MEASURES[name](x * scale), MEASURES[name](x), rtol=1e-10)


@pytest.mark.parametrize("name", TABLE)
def test_batches_and_other_dtypes(name):
    measure, x = TABLE[name], matrices_for(name)[:6]
    one_by_one = torch.stack([measure(m) for m in x])
    close(measure(x.reshape(2, 3, *x.shape[1:])), one_by_one.reshape(2, 3, *one_by_one.shape[1:]), rtol=1e-12)
    for dtype in (torch.float32, torch.bfloat16):
        low = x.to(dtype)
        assert measure(low).dtype == torch.float32
        if name in MEASURES:
            close(measure(low).double(), measure(low.double()), rtol=1e-4)
        else:  # rows rounded to bfloat16 do not sum to 1 in float64
            close(measure(low).double(), measure(x), rtol=0, atol=8 * torch.finfo(dtype).eps)


ZERO, PADDED = torch.zeros(3, 5), torch.tensor([[0.0, 0.0], [1.0, 2.0]])
EDGELESS = torch.diag(torch.tensor([1.0, 1.0, 0.0]))
ONES = torch.ones(3, 5)
UNDEFINED = [
    *((MEASURES[name], (ZERO,)) for name in SCALE_FREE),
    *((MEASURES[name], (PADDED,)) for name in sorted(ROW_SCALE_FREE)),
    *((MEASURES[name], (ONES[:1],)) for name in sorted(ROW_SCALE_FREE)),
    (hc_dc, (torch.tensor([[1.0], [-1.0]]),)),
    (hc_dc, (torch.tensor([[0.1], [0.2], [-0.3]]),)),
    (participation_ratio, (ONES / 3,)),
    (isometry_gap, (ONES.mT,)),
    *((numerical_rank, (ONES, tol)) for tol in (-1e-3, 1.0, float("nan"))),
    *((dirichlet_energy, (ONES, graph)) for graph in (EDGELESS, -torch.ones(3, 3), ONES[:, :3].triu())),
]
BAD_TENSORS = [torch.ones(3, 5).long(), ONES / 0, ONES * float("nan"), torch.ones(0, 5), torch.ones(5)]
BAD_ATTENTION = [
    *BAD_TENSORS,
    ONES,
    torch.tensor([[1.5, -0.5], [0.0, 1.0]]),
    torch.tensor([[0.5, 0.5], [0.0, 0.0]]),
    torch.eye(2) * 1.01,
    torch.eye(2).softmax(-1).double().cumsum(-1),
]
NOT_SQUARE = [torch.full((3, 2), 0.5), torch.ones(1, 1)]


@pytest.mark.parametrize("measure, arguments", UNDEFINED)
def test_undefined_raises(measure, arguments):
    with pytest.raises((TypeError, ValueError)):
        measure(*arguments)


def test_bad_tensors_never_give_a_number():
    for measure in MEASURES.values():
        for bad in BAD_TENSORS:
            with pytest.raises((TypeError, ValueError)):
                measure(bad)
    with pytest.raises((TypeError, ValueError)):
        dirichlet_energy(ONES, torch.ones(5, 5))
    for measure in ATTENTION_MEASURES.values():
        for bad in BAD_ATTENTION:
            with pytest.raises((TypeError, ValueError)):
                measure(bad)
    for bad in NOT_SQUARE:
        with pytest.raises((TypeError, ValueError)):
            spectral_gap(bad)


def test_messages_without_the_shape_checker():
    """What a user sees: the shape checker runs only under pytest."""
    kinds = (TypeError, ValueError)
    table = import_plain("ranklib.measures.table")
    plain = table.MEASURES | table.ATTENTION_MEASURES
    plain["numerical_rank"] = import_plain("ranklib.measures.spectrum").numerical_rank
    for measure, arguments in UNDEFINED:
        raises_its_own_message(kinds, plain[measure.__name__], *arguments)
    for measures, cases in ((table.MEASURES, BAD_TENSORS), (table.ATTENTION_MEASURES, BAD_ATTENTION)):
        for measure in measures.values():
            for bad in cases:
                raises_its_own_message(kinds, measure, bad)
    for bad in NOT_SQUARE:
        raises_its_own_message(kinds, plain["spectral_gap"], bad)
    raises_its_own_message(kinds, plain["dirichlet_energy"], ONES, torch.ones(5, 5))
