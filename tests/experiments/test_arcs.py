"""Arcs: a layer built by hand draws the circle exactly, and its errors grow as the theory says."""

import math

import pytest
import torch

from plain import import_plain, raises_its_own_message
from ranklib.experiments import arcs as module
from ranklib.experiments.arcs import (
    arc_model,
    carried_inputs,
    free_run,
    gap,
    growth,
    outcome,
    radial_theory,
    step_jacobians,
    trained_beta,
)
from ranklib.experiments.tasks import arc_steps
from ranklib.experiments.token_model import TokenModel
from ranklib.experiments.training import Recipe, train

plain = import_plain("ranklib.experiments.arcs")
POINTS, RADIUS = 101, 0.3
X, Y = arc_steps(POINTS, RADIUS)
TURN = 2 * math.pi / POINTS


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def vector_of(model: TokenModel, **parts) -> torch.Tensor:
    """All parameters 0 but the given ones."""
    shapes = model.shapes()
    return torch.cat([parts.get(name, torch.zeros(s)).double().flatten() for name, s in shapes.items()])


def exact(u: float, skip: bool = False) -> tuple[TokenModel, torch.Tensor]:
    """One head, two features: W_QK for logit u on the circle, W_V to turn the pair one step."""
    model = TokenModel(1, 2, 1, 2, 2, symbols=False, norm="none", skip=skip)
    eye = torch.eye(2, dtype=torch.float64)
    rows = [[math.cos(TURN), math.sin(TURN)], [-math.sin(TURN), math.cos(TURN)]]
    turn = torch.tensor(rows, dtype=torch.float64)
    value = (turn - eye if skip else turn) / math.tanh(u)
    qkv = torch.cat([eye * u * 2**0.5 / RADIUS**2, eye, value], 1)
    return model, vector_of(model, embed=eye, readout=eye, **{"0.qkv": qkv, "0.out": eye})


# ---------------------------------------------------------------- the layer built by hand


@pytest.mark.parametrize("u", [0.1, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("skip", [False, True])
def test_the_layer_built_by_hand_makes_every_step_right(u, skip):
    model, vector = exact(u, skip)
    assert torch.allclose(model(vector, X), Y, atol=1e-14)


@pytest.mark.parametrize("u,known", [(0.1, 2.99), (1.0, 2.10), (2.0, 1.293), (4.0, 1.011)])
def test_bare_its_radial_errors_grow_as_the_theory_says(u, known):
    model, vector = exact(u)
    theory = radial_theory(model, vector, X)
    factor = 1 + 4 * u / math.sinh(2 * u)
    assert factor == pytest.approx(known, abs=6e-3)
    assert theory["factor"] == pytest.approx(factor, rel=1e-9)
    assert theory["u"] == pytest.approx([u], rel=1e-9) and theory["share"] == pytest.approx([0, 1], abs=1e-9)
    assert growth(step_jacobians(model, vector, X), X)["radial"] == pytest.approx(factor, rel=1e-9)


@pytest.mark.parametrize("u", [0.1, 1.0, 2.0, 4.0])
def test_with_a_skip_they_hardly_grow(u):
    model, vector = exact(u, skip=True)
    q = 4 * u / math.sinh(2 * u)
    factor = 1 + q * (1 - math.cos(TURN))
    assert radial_theory(model, vector, X)["factor"] == pytest.approx(factor, rel=1e-9)
    assert growth(step_jacobians(model, vector, X), X)["radial"] == pytest.approx(factor, rel=1e-9)


@pytest.mark.parametrize("u,error,steps", [(0.1, 1e-3, 6), (1.0, 1e-3, 9), (2.0, 1e-3, 22), (3.0, 1e-3, 85)])
def test_an_inward_error_of_a_thousandth_reaches_a_half_after_the_known_number_of_steps(u, error, steps):
    model, vector = exact(u)
    run = free_run(model, vector, X[0] * (1 - error), 100)
    reached = (gap(run) < RADIUS).int().argmax().item()
    assert reached == steps


def test_the_free_run_of_the_exact_layer_leaves_the_circle_and_with_a_skip_it_does_not():
    target = torch.cat([X, Y[-1:]])
    for sign, what in ((-1, "meets"), (1, "apart")):
        model, vector = exact(1.0)
        assert outcome(free_run(model, vector, X[0] * (1 + sign * 1e-9), len(X)), target) == what
    model, vector = exact(1.0, skip=True)
    assert outcome(free_run(model, vector, X[0] * (1 + 1e-9), len(X)), target) == "stays"


# ---------------------------------------------------------------- derivatives of any model


@pytest.mark.parametrize("name", module.DESCRIBED)
@pytest.mark.parametrize("released", [False, True])
def test_jacobians_are_finite_differences(name, released):
    model = arc_model(name, 6, released=released)
    vector = model.draw(seeded(0), torch.float64)
    jacobians, h = step_jacobians(model, vector, X[:7]), 1e-6
    for column in range(4):
        shift = torch.zeros(4, dtype=torch.float64).index_fill(0, torch.tensor(column), h).reshape(2, 2)
        slope = (model(vector, X[:7] + shift) - model(vector, X[:7] - shift)) / (2 * h)
        assert torch.allclose(slope.flatten(1), jacobians[..., column], atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["bare", "skip"])
def test_the_theory_is_the_radial_derivative_of_any_layer_without_query_bias(seed, name):
    """The key-only score comes from b_Q and the embedding's bias; a draw has neither."""
    model = arc_model(name, 6)
    vector = model.draw(seeded(seed), torch.float64)
    scale, h = 8.0, 1e-6  # far enough from uniform attention
    x = scale * X[:5]
    theory, half = radial_theory(model, vector, x), (x[:, 0] - x[:, 1]) / 2
    pairs = [model(vector, x * (1 + s * h)) for s in (1, 0, -1)]
    up, now, down = ((pair[:, 0] - pair[:, 1]) / 2 for pair in pairs)
    slope = ((up - down) / (2 * h) * now).sum(-1) / now.square().sum(-1)
    assert theory["factor"] == pytest.approx(float(slope.abs().log().mean().exp()), rel=1e-5)
    assert half.shape == (5, 2) and sum(theory["share"]) == pytest.approx(1)


def test_growth_separates_radial_middle_and_the_rest():
    inner, outer = 0.5, 3.0
    middle = torch.full((4, 4), 0.0, dtype=torch.float64)
    middle[:2, :2] = middle[2:, 2:] = middle[:2, 2:] = middle[2:, :2] = torch.eye(2).double() / 2
    opposite = torch.eye(4).double() - middle
    grown = growth((inner * middle + outer * opposite).expand(7, 4, 4), X[:1].expand(7, 2, 2))
    assert grown["radial"] == pytest.approx(outer) and grown["middle"] == pytest.approx(inner)
    assert grown["largest"] == pytest.approx(outer, rel=0.01)


# ---------------------------------------------------------------- runs and their outcomes


@pytest.mark.parametrize("carried", [False, True])
def test_a_free_run_feeds_the_output_back(carried):
    model = arc_model("bare", 6, released=True)
    vector = model.draw(seeded(1), torch.float64)
    run = free_run(model, vector, X[0], 4, carried)
    state = X[0]
    for drawn in run[1:]:
        output = model(vector, state[None])[0]
        assert torch.allclose(drawn, output, atol=1e-12)
        state = state + output if carried else output


def test_a_run_that_explodes_stays_finite():
    model, vector = exact(1.0)
    run = free_run(model, vector, 2 * X[0], 60)
    assert torch.isfinite(run).all() and torch.equal(run[-1], run[-2]) and run[-1].abs().max() >= 1e6


def test_outcomes():
    target = torch.cat([X, Y[-1:]])
    ramp = torch.linspace(1, 0, len(target)).double()[:, None, None]
    assert outcome(target, target) == "stays"
    assert outcome(target * ramp, target) == "meets"
    assert outcome(target * (2 - ramp), target) == "apart"
    assert outcome(target[:1].expand_as(target), target) == "elsewhere"  # on the circle, but never left
    assert outcome(target + 0.2, target) == "elsewhere"
    both = torch.cat([target[:9] * 2, target[9:] * 0])
    assert outcome(both, target) == "apart"


def test_the_carried_inputs_are_those_of_a_loop_over_batches():
    before, rows = torch.zeros(30, 2, 2).double(), []
    for at in range(0, len(X), 30):
        now = X[at : at + 30]
        rows.append(now + before[: len(now)])
        before = now
    assert torch.allclose(carried_inputs(X, 30), torch.cat(rows)) and torch.equal(carried_inputs(X, 10**6), X)


def test_beta_is_that_of_the_definition():
    model, vector = exact(1.0)
    layer = model.network(vector).layers[0].attention
    w_qk, w = layer.w_qk[0], layer.w[0]
    wanted = w_qk.abs().sum(0).max() * (w.abs().sum(0).max() * w.abs().sum(1).max()).sqrt()
    assert trained_beta(model, vector) == pytest.approx(wanted.item())


def test_models_are_those_of_the_paper_and_of_the_release():
    bare, skip, mlp = (arc_model(name, 32) for name in ("bare", "skip", "mlp"))
    assert (bare.skip, skip.skip, mlp.skip, mlp.mlp_skip) == (False, True, False, False)
    assert {m.norm for m in (bare, skip, mlp)} == {"none"} and (bare.mlp_dim, mlp.mlp_dim) == (0, 32)
    released = [arc_model(name, 32, released=True) for name in module.RELEASED]
    assert all(m.skip and m.norm == "post" for m in released)


@pytest.mark.slow
def test_a_bare_layer_learns_one_step_and_its_errors_grow_as_predicted():
    seeds = range(3)
    model = arc_model("bare", 8)
    order = [step for first in range(5) for step in range(first, len(X), 5)]
    data = [part[order].float().expand(len(seeds), -1, -1, -1) for part in (X, Y)]
    done = train(model, *data, Recipe(1e-2, 400, 10, linear=True), seeds)
    still = float((Y - X).square().mean())
    assert max(done.curve[-1]["loss"]) < 0.1 * still
    for vector in done.vectors.double():
        measured = growth(step_jacobians(model, vector, X), X)["radial"]
        predicted = radial_theory(model, vector, X)["factor"]
        assert measured == pytest.approx(predicted, rel=0.01) and measured > 1.5


@pytest.mark.parametrize(
    "call,kind",
    [
        (lambda: plain.arc_model("norm", 8), ValueError),
        (lambda: plain.carried_inputs(X, 0), ValueError),
        (lambda: plain.outcome(X, X[:-1]), ValueError),
        (lambda: plain.free_run(*exact(1.0), X[0], -1), ValueError),
        (lambda: plain.radial_theory(arc_model("mlp", 4), torch.zeros(3), X), ValueError),
    ],
)
def test_bad_input_raises_and_says_why(call, kind):
    raises_its_own_message(kind, call)
