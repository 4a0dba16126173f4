"""The tasks and their baselines, each baseline derived a second way."""

import cmath
import itertools
import math
from fractions import Fraction

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.experiments.tasks import (
    HULLS,
    arc_steps,
    convex_hull,
    expected_ceiling,
    hull_share,
    memorisation_ceiling,
    number_texts,
    random_labels,
    shuffled_symbols,
    sorting,
    sorting_baseline,
)

plain = import_plain("ranklib.experiments.tasks")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


# ---------------------------------------------------------------- arcs


@pytest.mark.parametrize("points,radius", [(7, 0.3), (20, 1.7), (1000, 0.3)])
def test_the_pair_is_opposite_on_its_circle_and_turns_by_one_step_counter_clockwise(points, radius):
    x, y = arc_steps(points, radius)
    assert x.shape == y.shape == (points // 2 - 1, 2, 2)
    assert torch.equal(x[:, 0], -x[:, 1]) and torch.allclose(x.norm(dim=-1), torch.tensor(radius).double())
    assert x[0].tolist() == [[-radius, -0.0], [radius, 0.0]]
    turned = torch.view_as_complex(x) * cmath.exp(2j * math.pi / points)
    assert torch.allclose(torch.view_as_real(turned), y, atol=1e-14)
    cross = x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    assert (cross > 0).all()


def test_the_first_point_walks_below_the_second_above():
    x, _ = arc_steps(1000)
    assert (x[1:, 0, 1] < 0).all() and (x[1:, 1, 1] > 0).all() and len(x) == 499


# ---------------------------------------------------------------- sorting


@pytest.mark.parametrize("seed", range(5))
def test_the_label_of_a_place_is_the_letter_that_belongs_there(seed):
    x, y = sorting(13, seeded(seed), letters=5, tokens=7)
    assert [sorted(row) for row in x.tolist()] == y.tolist()
    again, _ = sorting(13, seeded(seed), letters=5, tokens=7)
    assert torch.equal(x, again) and 0 <= x.min() and x.max() < 5


@pytest.mark.parametrize("letters,tokens", [(1, 3), (2, 5), (3, 4), (5, 3), (7, 2), (4, 1)])
def test_the_baseline_is_the_best_fixed_answer_over_all_sequences(letters, tokens):
    every = [sorted(row) for row in itertools.product(range(letters), repeat=tokens)]
    right = [max(column.count(letter) for letter in range(letters)) for column in map(list, zip(*every))]
    assert sorting_baseline(letters, tokens) == pytest.approx(sum(right) / tokens / len(every), abs=1e-15)


def test_the_baseline_at_the_papers_size_agrees_with_a_large_sample():
    _, y = sorting(40_000, seeded(0))
    counts = torch.stack([torch.bincount(column, minlength=10) for column in y.T])
    assert counts.max(1).values.double().mean() / len(y) == pytest.approx(sorting_baseline(), abs=4 * 0.001)
    assert round(sorting_baseline(), 3) == 0.339


# ---------------------------------------------------------------- convex hull


def inside_a_triangle(point, triangle) -> bool:
    a, b, c = triangle
    edges = ((a, b), (b, c), (c, a))
    sides = [(q[0] - p[0]) * (point[1] - p[1]) - (q[1] - p[1]) * (point[0] - p[0]) for p, q in edges]
    return all(s > 0 for s in sides) or all(s < 0 for s in sides)


@pytest.mark.parametrize("kind", HULLS)
@pytest.mark.parametrize("seed", range(3))
def test_a_point_is_on_the_hull_if_no_triangle_of_others_contains_it(kind, seed):
    x, y = convex_hull(11, seeded(seed), tokens=7, kind=kind)
    for points, labels in zip(x.double().tolist(), y.tolist()):
        for i, label in enumerate(labels):
            others = points[:i] + points[i + 1 :]
            inside = any(inside_a_triangle(points[i], t) for t in itertools.combinations(others, 3))
            assert label == (not inside)


def test_the_share_is_exact_where_it_is_known():
    assert hull_share(3) == 1
    assert hull_share(4) == pytest.approx(float(Fraction(133, 144)), abs=1e-15)  # Sylvester: 11/36 not convex
    assert all(hull_share(n) > hull_share(n + 1) for n in range(3, 40))


@pytest.mark.parametrize("tokens", [5, 7, 10])
def test_the_share_agrees_with_a_sample(tokens):
    _, y = convex_hull(1500, seeded(tokens), tokens=tokens)
    shares = y.double().mean(1)
    assert shares.mean() == pytest.approx(hull_share(tokens), abs=4 * float(shares.std()) / 1500**0.5)


def test_the_share_at_the_papers_size():
    assert round(hull_share(10), 3) == 0.596


@pytest.mark.parametrize("kind", HULLS)
def test_both_published_normalisations(kind):
    side, shift = HULLS[kind]
    x, _ = convex_hull(2000, seeded(1), kind=kind)
    extent = x.amax(1) - x.amin(1)
    assert extent.max() <= side and extent.mean() == pytest.approx(side * 9 / 11, rel=0.02)
    variance = x.mean(1).var(0)
    assert variance.mean() == pytest.approx(shift**2 + side**2 / 120, rel=0.1)


# ---------------------------------------------------------------- memorisation


def test_words_and_punctuation_get_numbers_in_order_of_use():
    x, words = number_texts(["It is, it is!", "Is it so? No, no.", "a-b c d e f"], 4)
    assert [[words[i] for i in row] for row in x.tolist()] == [
        ["it", "is", ",", "it"],
        ["is", "it", "so", "?"],
        ["a", "-", "b", "c"],
    ]
    assert len(set(words)) == len(words) == x.max() + 1


def brute_ceiling(row, labels):
    kinds = sorted(set(row))
    best = 0
    for guess in itertools.product((0, 1), repeat=len(kinds)):
        table = dict(zip(kinds, guess))
        best = max(best, sum(table[symbol] == label for symbol, label in zip(row, labels)))
    return best


@pytest.mark.parametrize("seed", range(5))
def test_the_ceiling_is_the_best_table_from_symbols_to_labels(seed):
    x = torch.randint(4, (3, 7), generator=seeded(seed))
    y = random_labels(x, seeded(seed + 100))
    best = sum(brute_ceiling(row, labels) for row, labels in zip(x.tolist(), y.tolist()))
    assert memorisation_ceiling(x, y) == best / 21


@pytest.mark.parametrize("row", [[0], [5, 5], [1, 2, 1, 1, 3], [0, 0, 0, 0, 0, 1, 1]])
def test_the_expected_ceiling_is_the_mean_over_all_labels(row):
    x = torch.tensor([row])
    every = [memorisation_ceiling(x, torch.tensor([y])) for y in itertools.product((0, 1), repeat=len(row))]
    assert expected_ceiling(x) == pytest.approx(sum(every) / len(every), abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_synthetic_tokens_keep_the_repeats_of_each_text_and_nothing_else(seed):
    x = torch.randint(11, (5, 23), generator=seeded(seed))
    y = shuffled_symbols(x, 101, seeded(seed))
    for before, after in zip(x, y):
        counts = [sorted(row.unique(return_counts=True)[1].tolist()) for row in (before, after)]
        assert counts[0] == counts[1]
    assert expected_ceiling(x) == expected_ceiling(y) and not torch.equal(x, y)
    shared = set(y[0].tolist()) & set(y[1].tolist())
    assert len(shared) < len(set(x[0].tolist()) & set(x[1].tolist()))


def test_labels_are_fair_coins():
    y = random_labels(torch.zeros(100, 101, dtype=torch.int64), seeded(2))
    assert set(y.unique().tolist()) == {0, 1} and abs(float(y.double().mean()) - 0.5) < 4 * 0.005


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "call,kind",
    [
        (lambda: plain.arc_steps(3), ValueError),
        (lambda: plain.arc_steps(8.0), TypeError),
        (lambda: plain.arc_steps(8, float("nan")), ValueError),
        (lambda: plain.sorting(0, seeded(0)), ValueError),
        (lambda: plain.sorting_baseline(3, 0), ValueError),
        (lambda: plain.convex_hull(3, seeded(0), tokens=2), ValueError),
        (lambda: plain.convex_hull(3, seeded(0), kind="unit"), ValueError),
        (lambda: plain.hull_share(2), ValueError),
        (lambda: plain.number_texts([]), ValueError),
        (lambda: plain.number_texts(["one two"], 3), ValueError),
        (lambda: plain.random_labels(torch.zeros(2, 2), None), TypeError),
        (lambda: plain.shuffled_symbols(torch.arange(5)[None], 4, seeded(0)), ValueError),
    ],
)
def test_bad_input_raises_and_says_why(call, kind):
    raises_its_own_message(kind, call)
