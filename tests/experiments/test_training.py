"""Training: one function for one model and for many, and a kill changes nothing."""

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.experiments import training
from ranklib.experiments.tasks import (
    memorisation_ceiling,
    random_labels,
    shuffled_symbols,
    sorting,
    sorting_baseline,
)
from ranklib.experiments.token_model import TokenModel
from ranklib.experiments.training import Recipe, score, train

plain = import_plain("ranklib.experiments.training")
plain_models = import_plain("ranklib.experiments.token_model")


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def letters(seeds, number=60):
    pairs = [sorting(number, seeded(100 + seed), **{"letters": 3, "tokens": 3}) for seed in seeds]
    return (torch.stack(part) for part in zip(*pairs))


SMALL = TokenModel(depth=2, dim=8, heads=2, inputs=3, outputs=3, positions=3)


@pytest.mark.slow
def test_many_at_once_follow_the_same_course_as_one_after_the_other():
    seeds = [3, 5, 11]
    x, y = letters(seeds)
    recipe = Recipe(1e-2, 12, 7, decay=1e-3, decoupled=True, linear=True)
    together = train(SMALL, x, y, recipe, seeds, test=(x, y), every=4, dtype=torch.float64)
    for i, seed in enumerate(seeds):
        one = slice(i, i + 1)
        test = (x[one], y[one])
        alone = train(SMALL, *test, recipe, [seed], test=test, every=4, dtype=torch.float64)
        assert torch.allclose(alone.vectors[0], together.vectors[i], atol=1e-9)
        for a, b in zip(alone.curve, together.curve):
            assert a["step"] == b["step"] and a["loss"][0] == pytest.approx(b["loss"][i], abs=1e-9)
            assert a["score"][0] == b["score"][i]


def test_the_course_is_that_of_adam_on_the_layers_of_the_library():
    x, y = letters([0], 10)
    recipe = Recipe(1e-2, 5, 10)
    vector = SMALL.draw(seeded(0), torch.float64)
    p, network = SMALL.split(vector), SMALL.network(vector)
    outside = {n: p[n].clone().requires_grad_() for n in p if not n[0].isdigit()}
    optimizer = torch.optim.Adam([*network.parameters(), *outside.values()], lr=1e-2)
    for _ in range(5):
        guess = SMALL.readout(outside, network(SMALL.embed(outside, x[0])))
        loss = torch.nn.functional.cross_entropy(guess.flatten(0, 1), y[0].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    trained = train(SMALL, x, y, recipe, [0], dtype=torch.float64)
    mine = SMALL.split(trained.vectors[0])
    assert all(torch.allclose(mine[n], outside[n], atol=1e-9) for n in outside)
    z = torch.randn(3, 8, generator=seeded(1), dtype=torch.float64)
    assert torch.allclose(network(z), SMALL.network(trained.vectors[0])(z), atol=1e-8)


def test_batches_come_in_order_and_the_last_may_be_short():
    x, y = letters([0], 5)
    whole = train(SMALL, x, y, Recipe(1e-2, 3, 2), [0], every=1)
    for step, part in enumerate((slice(0, 2), slice(2, 4), slice(4, 5))):
        begun = SMALL.draw(seeded(0))[None]
        if step:
            begun = train(SMALL, x[:, :4], y[:, :4], Recipe(1e-2, step, 2), [0]).vectors
        loss = training._losses(SMALL, begun, x[:, part], y[:, part])
        assert loss.tolist() == pytest.approx(whole.curve[step]["loss"], abs=1e-6)


def test_the_rate_follows_its_schedule():
    recipe = Recipe(0.5, 10, 1, milestones=(3, 7), factor=0.5)
    rates = [recipe.rate_at(step) for step in (0, 2, 3, 6, 7, 9)]
    assert rates == pytest.approx([0.5, 0.5, 0.25, 0.25, 0.125, 0.125])
    assert Recipe(0.5, 10, 1, linear=True).rate_at(5) == pytest.approx(0.25)


@pytest.mark.slow
def test_short_training_learns_to_sort_with_every_seed():
    x, y = letters(range(5), 300)
    test = tuple(letters(range(50, 55), 200))
    done = train(SMALL, x, y, Recipe(1e-2, 160, 30, linear=True), range(5), test=test)
    assert sorting_baseline(3, 3) < 0.65 and min(done.curve[-1]["score"]) > 0.9


@pytest.mark.slow
def test_memorisation_reaches_its_ceiling_and_never_passes_it():
    seeds = range(3)
    repeats = [torch.randint(7, (4, 11), generator=seeded(seed)) for seed in seeds]
    x = torch.stack([shuffled_symbols(part, 19, seeded(seed)) for seed, part in enumerate(repeats)])
    y = torch.stack([random_labels(part, seeded(seed + 9)) for seed, part in enumerate(x)])
    model = TokenModel(depth=2, dim=24, heads=2, inputs=19, outputs=2)
    done = train(model, x, y, Recipe(5e-3, 150, 4, linear=True), seeds, test=(x, y), every=10)
    ceilings = [memorisation_ceiling(*pair) for pair in zip(x, y)]
    assert max(ceilings) < 1 and done.curve[-1]["score"] == pytest.approx(ceilings, abs=1e-12)
    assert all(s <= c + 1e-12 for point in done.curve for s, c in zip(point["score"], ceilings))


class Killed(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [[4], [4, 7]])
@pytest.mark.parametrize("saves", [1, 2, 3])
def test_a_killed_training_goes_on_and_ends_with_the_same_bits(tmp_path, monkeypatch, seeds, saves):
    x, y = letters(seeds)
    recipe = Recipe(1e-2, 23, 7, decay=1e-3, linear=True)
    options = {"test": (x, y), "every": 5}
    whole = train(SMALL, x, y, recipe, seeds, **options)
    real, done = training._save, []

    def save(*arguments):
        if len(done) == saves:
            raise Killed
        real(*arguments)
        done.append(1)

    monkeypatch.setattr(training, "_save", save)
    with pytest.raises(Killed):
        train(SMALL, x, y, recipe, seeds, **options, checkpoint=tmp_path / "deep" / "state.pt")
    monkeypatch.setattr(training, "_save", real)
    resumed = train(SMALL, x, y, recipe, seeds, **options, checkpoint=tmp_path / "deep" / "state.pt")
    assert torch.equal(resumed.vectors, whole.vectors) and resumed.curve == whole.curve
    again = train(SMALL, x, y, recipe, seeds, **options, checkpoint=tmp_path / "deep" / "state.pt")
    assert torch.equal(again.vectors, whole.vectors) and again.curve == whole.curve
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["state.pt"]


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    x, y = letters([0])
    kept = tmp_path / "state.pt"
    train(SMALL, x, y, Recipe(1e-2, 2, 7), [0], checkpoint=kept)
    other = Recipe(2e-2, 2, 7)
    text = raises_its_own_message(ValueError, plain.train, SMALL, x, y, other, [0], checkpoint=kept)
    assert "recipe" in text and "state.pt" in text


def test_a_diverging_training_stops_and_names_the_seed_and_the_step():
    x = torch.randn(2, 6, 2, 2, generator=seeded(0))
    x[1, 3:] = float("nan")
    model = TokenModel(1, 4, 1, 2, 2, symbols=False, norm="none")
    text = raises_its_own_message(FloatingPointError, plain.train, model, x, x, Recipe(1e-2, 4, 3), [5, 8])
    assert "step 1 " in text and "[8]" in text
    x = torch.randn(1, 6, 2, 2, generator=seeded(0))
    raises_its_own_message(FloatingPointError, plain.train, model, x, x, Recipe(1e30, 9, 3), [0])


def test_the_score_of_features_is_the_mean_squared_error():
    model = TokenModel(1, 4, 1, 2, 2, symbols=False, norm="none")
    vectors = torch.stack([model.draw(seeded(seed)) for seed in range(3)])
    x, y = torch.randn(2, 3, 5, 7, 2, generator=seeded(9))
    wanted = [float(((model(v, a) - b) ** 2).mean()) for v, a, b in zip(vectors, x, y)]
    assert score(model, vectors, x, y) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    "call,kind",
    [
        (lambda: plain.Recipe(0.0, 1, 1), ValueError),
        (lambda: plain.Recipe(1e-3, 0, 1), ValueError),
        (lambda: plain.Recipe(1e-3, 1, 2.0), TypeError),
        (lambda: plain_models.TokenModel(1, 6, 4, 2, 2), ValueError),
        (lambda: plain_models.TokenModel(0, 6, 2, 2, 2), ValueError),
        (lambda: plain_models.TokenModel(1, 6, 2, 2, 2, norm="both"), ValueError),
        (lambda: plain_models.TokenModel(1, 6, 2, 2, 2, activation="tanh"), ValueError),
        (lambda: SMALL.split(torch.zeros(3)), ValueError),
        (lambda: plain.train(SMALL, *letters([0]), plain.Recipe(1e-3, 1, 1), [0, 1]), ValueError),
    ],
)
def test_bad_input_raises_and_says_why(call, kind):
    raises_its_own_message(kind, call)


def test_it_trains_where_gradients_are_switched_off():
    x, y = letters([0])
    with torch.no_grad():
        curve = train(SMALL, x, y, Recipe(rate=1e-2, steps=2, batch=4), [0]).curve
    assert curve[-1]["step"] == 2
