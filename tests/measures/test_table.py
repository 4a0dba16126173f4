"""The tables of measures: where measures disagree, what they are invariant under, what they refuse."""

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.measures.attention import (
    singular_gap,
    spectral_gap,
)
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
    mean_average_distance,
    mean_cosine,
    mu,
    oscillation,
    relative_residual,
)

SEEDS = range(7)
TOKENS, DIM = 7, 11
SCALE_FREE = [name for name in MEASURES if name not in ("mu", "oscillation", "dirichlet_energy")]
ROTATION_FREE = [name for name in MEASURES if name not in ("composite_residual", "oscillation")]
SHIFT_FREE = {"mu", "oscillation", "participation_ratio", "dirichlet_energy"}
ROW_SCALE_FREE = {"mean_cosine", "mean_average_distance"}


def generator(seed):
    return torch.Generator().manual_seed(seed)


def draw(seed, *shape):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def close(a, b, rtol=1e-9, atol=1e-12):
    torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


def six_matrices(seed, n=32, d=64):
    """The matrices on which the measures disagree: name -> tokens."""
    noise, direction = draw(seed, n, d), draw(seed + 50, 1, d)
    signs = torch.ones(n, 1, dtype=torch.float64)
    signs[::2] = -1
    outlier = noise.clone()
    outlier[:, 0] += 30
    centres = draw(seed + 60, 2, d)
    return {
        "isotropic": noise,
        "equal rows + noise": direction + 1e-3 * noise,
        "rank 1, random lengths": draw(seed + 70, n, 1).abs() @ direction,
        "rank 1, plus and minus": signs @ direction,
        "two clusters": centres[(signs[:, 0] > 0).long()],
        "isotropic + one outlier dimension": outlier,
    }


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


@pytest.mark.parametrize("seed", SEEDS)
def test_formulas_against_plain_loops(seed):
    x = draw(seed, TOKENS, DIM) + 0.3
    rows = range(TOKENS)
    singular = torch.linalg.svd(x, full_matrices=False).S
    residual = x - x.mean(0)
    frobenius = torch.linalg.matrix_norm
    close(mu(x), frobenius(residual))
    close(relative_residual(x), frobenius(residual) / frobenius(x))
    close(hc_dc(x), frobenius(residual) / frobenius(x.mean(0).expand_as(x)))
    close(hc_dc(x), relative_residual(x) / (1 - relative_residual(x) ** 2).sqrt())
    norm = torch.linalg.matrix_norm
    composites = [(norm(m, 1) * norm(m, torch.inf)).sqrt() for m in (residual, x)]
    close(composite_residual(x), composites[0] / composites[1])
    close(oscillation(x), max(c.max() - c.min() for c in x.mT))
    close(stable_rank(x), (singular**2).sum() / singular[0] ** 2)
    close(gram_stable_rank(x), stable_rank(x @ x.mT))
    share = singular / singular.sum()
    close(effective_rank(x), torch.exp(-(share * share.log()).sum()))
    for centred, y in ((True, residual), (False, x)):
        eigenvalues = torch.linalg.eigvalsh(y.mT @ y / TOKENS)
        close(participation_ratio(x, centred), eigenvalues.sum() ** 2 / (eigenvalues**2).sum())
    cosines = [torch.cosine_similarity(x[i], x[j], dim=0) for i in rows for j in rows if i != j]
    close(mean_cosine(x), torch.stack(cosines).mean())
    close(mean_average_distance(x), 1 - torch.stack(cosines).mean())
    gram = x @ x.mT
    close(isometry_gap(x), (gram.trace() / TOKENS).log() - torch.logdet(gram) / TOKENS)
    graph = torch.rand(TOKENS, TOKENS, generator=generator(seed), dtype=torch.float64)
    graph = graph + graph.mT
    scaled = x / graph.sum(-1, keepdim=True).sqrt()
    energy = sum(graph[i, j] * (scaled[i] - scaled[j]).square().sum() for i in rows for j in rows) / 2
    close(dirichlet_energy(x, graph), energy)
    close(dirichlet_energy(x), mu(x) ** 2)
    loopless = torch.ones_like(graph) - torch.eye(TOKENS, dtype=torch.float64)
    close(dirichlet_energy(x, loopless), mu(x) ** 2 * TOKENS / (TOKENS - 1))


@pytest.mark.parametrize("name", MEASURES)
def test_invariances(name):
    """Exactly the stated invariances: each holds, and each that is not stated fails."""
    measure, x = MEASURES[name], draw(3, TOKENS, DIM) + 0.3
    rotation = torch.linalg.qr(draw(4, DIM, DIM)).Q
    lengths = 0.5 + torch.rand(TOKENS, 1, generator=generator(5), dtype=torch.float64)
    changes = {
        "scale": (-2.5 * x, SCALE_FREE),
        "rotation": (x @ rotation, ROTATION_FREE),
        "shift": (x + draw(6, 1, DIM), SHIFT_FREE),
        "row scale": (lengths * x, ROW_SCALE_FREE),
        "order of the tokens": (x.flip(0), set(MEASURES)),
    }
    for change, (changed, free) in changes.items():
        same = torch.isclose(measure(changed), measure(x), rtol=1e-10, atol=0)
        assert bool(same) == (name in free), change


@pytest.mark.parametrize("name", SCALE_FREE)
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_scale_free_measures_neither_underflow_nor_overflow(name, scale):
    x = draw(3, TOKENS, DIM) + 0.3
    close(MEASURES[name](x * scale), MEASURES[name](x), rtol=1e-10)


@pytest.mark.parametrize("name", MEASURES)
def test_batches_and_other_dtypes(name):
    measure, x = MEASURES[name], draw(7, 2, 3, TOKENS, DIM) + 0.3
    one_by_one = torch.stack([measure(m) for m in x.reshape(6, TOKENS, DIM)]).reshape(2, 3)
    close(measure(x), one_by_one, rtol=1e-12)
    for dtype, result in ((torch.float32, torch.float32), (torch.bfloat16, torch.float32)):
        assert measure(x.to(dtype)).dtype == result
        close(measure(x.to(dtype)).double(), measure(x.to(dtype).double()), rtol=1e-4)


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
    for measure in (spectral_gap, singular_gap):
        for bad in NOT_SQUARE:
            with pytest.raises((TypeError, ValueError)):
                measure(bad)


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
    for name in ("spectral_gap", "singular_gap"):
        for bad in NOT_SQUARE:
            raises_its_own_message(kinds, plain[name], bad)
    raises_its_own_message(kinds, plain["dirichlet_energy"], ONES, torch.ones(5, 5))
