"""Token models: the lean model is the network of its layers, and a draw depends on its generator alone."""

import itertools

import pytest
import torch

from ranklib.experiments.token_model import TokenModel


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


SMALL = TokenModel(depth=2, dim=8, heads=2, inputs=3, outputs=3, positions=3)
SWITCHES = list(itertools.product(("none", "pre", "post"), (0, 1), (0, 1)))


@pytest.mark.parametrize("norm,skip,mlp_skip", SWITCHES)
@pytest.mark.parametrize("mlp_dim,activation", [(0, "relu"), (5, "relu"), (5, "gelu")])
def test_the_lean_model_is_the_network_of_its_layers(norm, skip, mlp_skip, mlp_dim, activation):
    switches = {"skip": bool(skip), "mlp_skip": bool(mlp_skip), "norm": norm}
    model = TokenModel(
        2, 6, 3, 5, 4, positions=7, embed_dim=3 * skip, mlp_dim=mlp_dim, activation=activation, **switches
    )
    vector = model.draw(seeded(0), torch.float64)
    vector = vector + 0.3 * torch.randn(vector.shape, generator=seeded(1), dtype=torch.float64)
    x = torch.randint(5, (3, 7), generator=seeded(2))
    p, network = model.split(vector), model.network(vector)
    assert torch.allclose(model.readout(p, network(model.embed(p, x))), model(vector, x), atol=1e-12)
    count = sum(part.numel() for part in network.parameters())
    outside = [n for n in p if not n[0].isdigit()]
    assert count + sum(p[n].numel() for n in outside) == vector.numel()


def test_features_enter_through_a_linear_map_and_positions_break_the_symmetry():
    model = TokenModel(1, 6, 2, 2, 3, symbols=False, norm="none")
    vector = model.draw(seeded(0), torch.float64)
    x = torch.randn(3, 5, 2, generator=seeded(1), dtype=torch.float64)
    p = model.split(vector)
    assert torch.allclose(model.embed(p, x), x @ p["embed"] + p["embed.bias"])
    order = torch.tensor([4, 2, 0, 1, 3])
    assert torch.allclose(model(vector, x)[:, order], model(vector, x[:, order]))
    placed = TokenModel(1, 6, 2, 2, 3, symbols=False, norm="none", positions=5)
    vector = placed.draw(seeded(0), torch.float64)
    assert not torch.allclose(placed(vector, x)[:, order], placed(vector, x[:, order]))


def test_a_draw_depends_on_its_generator_alone():
    torch.manual_seed(0)
    state = torch.get_rng_state()
    assert torch.equal(SMALL.draw(seeded(3)), SMALL.draw(seeded(3)))
    assert not torch.equal(SMALL.draw(seeded(3)), SMALL.draw(seeded(4)))
    assert torch.equal(torch.get_rng_state(), state)
