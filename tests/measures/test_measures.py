"""Measures of collapse: where they disagree, what they are invariant under, and known confusions."""

import doctest
import math

import pytest
import torch

import ranklib.measures.attention
import ranklib.measures.spectrum
import ranklib.measures.tokens
from plain import import_plain, raises_its_own_message
from ranklib.measures.attention import (
    attention_entropy,
    dobrushin,
    inverse_participation,
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


def attention(seed, *shape, sharpness=2.0):
    return (sharpness * draw(seed, *shape)).softmax(-1)


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


@pytest.mark.parametrize("seed", SEEDS)
def test_ranges(seed):
    x, up = torch.stack(list(six_matrices(seed, 7, 11).values())), 1 + 1e-9
    rank, n = numerical_rank(x, 1e-9).double(), 7
    assert rank.tolist() == [7, 7, 1, 1, 2, 7]
    for measure in (stable_rank, gram_stable_rank, effective_rank, participation_ratio):
        assert (measure(x) >= 1 / up).all() and (measure(x) <= rank * up).all()
    assert (gram_stable_rank(x) <= stable_rank(x) * up).all()
    assert (stable_rank(x) <= effective_rank(x) * up).all()
    assert (composite_residual(x) <= 2 * (1 - 1 / n) * up).all() and (relative_residual(x) <= up).all()
    assert (mean_cosine(x) >= -1 / (n - 1) * up).all() and (mean_cosine(x) <= up).all()
    close(mean_average_distance(x), 1 - mean_cosine(x))
    gap = isometry_gap(x)
    assert (gap >= 0).all() and gap.isinf().tolist() == [False, False, True, True, True, False]


def test_extremes():
    equal = (draw(1, 1, DIM) / 3).expand(TOKENS, DIM)
    for name in ("composite_residual", "mu", "relative_residual", "hc_dc", "oscillation", "dirichlet_energy"):
        assert MEASURES[name](equal) == 0, name
    assert mean_average_distance(equal) == 0
    eye = torch.eye(TOKENS, DIM, dtype=torch.float64)
    assert composite_residual(eye).item() == pytest.approx(2 * (1 - 1 / TOKENS), rel=1e-14)
    for rank in (stable_rank, gram_stable_rank, effective_rank):
        assert rank(eye).item() == pytest.approx(TOKENS, rel=1e-12)
    assert isometry_gap(3 * eye).item() == pytest.approx(0, abs=1e-14)
    simplex = torch.eye(TOKENS, dtype=torch.float64) - 1 / TOKENS
    assert mean_cosine(simplex).item() == pytest.approx(-1 / (TOKENS - 1), rel=1e-12)
    assert participation_ratio(eye).item() == pytest.approx(TOKENS - 1, rel=1e-12), "centring costs one"
    assert numerical_rank(torch.zeros(TOKENS, DIM), 1e-3) == 0
    steps = torch.randint(-4, 5, (TOKENS, DIM), generator=generator(3)).double()
    close(mu(1 + 2.0**-50 * steps), 2.0**-50 * mu(steps), atol=0)
    nearly = equal + 1e-10 * draw(2, TOKENS, DIM)
    assert 1e-22 < mean_average_distance(nearly) < 1e-18, "1 - cosine would have cancelled"


@pytest.mark.parametrize("seed", SEEDS)
def test_confusions_seen_in_public_code(seed):
    """Softmax of s, s^2 for s, and sum(s) / max(s) are other numbers; exact rank deficiency gives no NaN."""
    x = draw(seed, TOKENS, DIM)
    s = torch.linalg.svdvals(x)

    def exp_entropy(share):
        return torch.special.entr(share).sum().exp()

    right = effective_rank(x)
    assert abs(exp_entropy(s.softmax(0)) - right) > 0.2
    assert exp_entropy(s**2 / (s**2).sum()) < right - 0.2
    assert abs(s.sum() / s.max() - right) > 0.2
    deficient = torch.zeros(TOKENS, DIM, dtype=torch.float64)
    deficient[0, 0], deficient[1, 1] = 2, 2
    assert effective_rank(deficient).item() == pytest.approx(2, rel=1e-12)
    close(mean_cosine(x - x.mean(0)), torch.tensor(-1 / (TOKENS - 1)).double(), atol=0.08)
    assert participation_ratio(x) <= TOKENS - 1 and effective_rank(x - x.mean(0)) <= TOKENS - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_attention_measures_against_loops_and_ranges(seed):
    p = attention(seed, 2, TOKENS, TOKENS)
    for index in range(2):
        rows = p[index]
        close(attention_entropy(rows), torch.stack([-(r * r.log()).sum() for r in rows]))
        close(inverse_participation(rows), torch.stack([(r * r).sum() for r in rows]))
        distances = [(a - b).abs().sum() / 2 for a in rows for b in rows]
        close(dobrushin(rows), torch.stack(distances).max())
        close(spectral_gap(rows), 1 - sorted(torch.linalg.eigvals(rows).abs())[-2])
        singular = torch.linalg.svdvals(rows)
        close(singular_gap(rows), singular[0] - singular[1])
    for name, measure in ATTENTION_MEASURES.items():
        close(measure(p), torch.stack([measure(p[0]), measure(p[1])]))
        assert measure(p.float()).dtype == measure(p.bfloat16()).dtype == torch.float32, name
    assert (attention_entropy(p) <= math.log(TOKENS)).all() and (attention_entropy(p) >= 0).all()
    assert (inverse_participation(p) >= 1 / TOKENS).all() and (inverse_participation(p) <= 1).all()
    assert (1 - spectral_gap(p) <= dobrushin(p) + 1e-12).all(), "the second eigenvalue is below tau"


@pytest.mark.parametrize("seed", SEEDS)
def test_dobrushin_certifies_a_stack(seed):
    p, q, x = attention(seed, TOKENS, 5), attention(seed + 20, 5, 3), draw(seed, 3, 2)
    assert dobrushin(p @ q) <= dobrushin(p) * dobrushin(q) * (1 + 1e-12)
    assert oscillation(q @ x) <= dobrushin(q) * oscillation(x) * (1 + 1e-12)


def test_attention_extremes():
    """Uniform rows, one key for each query, and a matrix whose eigenvalues mislead."""
    n = TOKENS
    uniform, single = torch.full((n, n), 1 / n, dtype=torch.float64), torch.eye(n, dtype=torch.float64)
    close(attention_entropy(uniform), torch.full((n,), math.log(n), dtype=torch.float64))
    assert attention_entropy(single).tolist() == [0.0] * n, "0 log 0 is 0"
    close(inverse_participation(uniform), torch.full((n,), 1 / n, dtype=torch.float64))
    assert inverse_participation(single).tolist() == [1.0] * n
    assert dobrushin(uniform) == 0 and dobrushin(single) == 1
    assert spectral_gap(uniform).item() == pytest.approx(1) and spectral_gap(single) == 0
    assert singular_gap(uniform).item() == pytest.approx(1) and singular_gap(single) == 0
    first_key = torch.eye(n, dtype=torch.float64)[:1].expand(n, n)
    assert singular_gap(first_key).item() == pytest.approx(n**0.5) and dobrushin(first_key) == 0
    follow = torch.eye(n, dtype=torch.float64).roll(1, 0)
    follow[0] = torch.eye(n, dtype=torch.float64)[0]
    assert spectral_gap(follow) > 0.99 and dobrushin(follow) == 1, "non-normal: nothing mixes in one layer"
    pair = torch.tensor([[0.75, 0.25], [0.25, 0.75]], dtype=torch.float64)
    for measure in (spectral_gap, singular_gap, dobrushin):
        assert measure(pair).item() == pytest.approx(0.5, rel=1e-14)


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


@pytest.mark.parametrize(
    "module", [ranklib.measures.tokens, ranklib.measures.spectrum, ranklib.measures.attention]
)
def test_examples_in_the_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted >= 8 and found.failed == 0
