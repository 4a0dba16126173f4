"""One layer that draws two arcs: what it is trained on, what it draws on its own, and how its errors grow.

The pair of points is the input and the output of the model; a free run feeds the output back. Models are
:class:`~ranklib.experiments.token_model.TokenModel` with two features in and out and one layer.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ranklib._checks import require_int, require_shape
from ranklib.experiments.token_model import TokenModel
from ranklib.paper.norms import composite, max_col_sum

# As the paper describes the rows of its figure: the bare layer has neither skip nor norm nor MLP.
DESCRIBED = {
    "bare": {"skip": False, "norm": "none"},
    "skip": {"skip": True, "norm": "none"},
    "mlp": {"skip": False, "mlp_skip": False, "norm": "none"},
}
# As its code builds them: all have skip and LayerNorm inside; "skip" adds a term outside, see carried_inputs.
RELEASED = {"bare": {}, "skip": {}, "mlp": {}}
MEETS, APART, STAYS = 0.1, 1.5, 0.1


def arc_model(name: str, dim: int, heads: int = 2, released: bool = False) -> TokenModel:
    """The model of one panel: "bare", "skip" or "mlp" (of width ``dim``), as described or as released.

    Raises ``ValueError`` for another name. Source: chapter `drawing-arcs`; the paper's section 4.1.

    >>> arc_model("bare", 32).skip, arc_model("bare", 32, released=True).skip
    (False, True)
    """
    variants = RELEASED if released else DESCRIBED
    if name not in variants:
        raise ValueError(f"name: expected one of {tuple(variants)}, got {name!r}; choose one")
    width = dim if name == "mlp" else 0
    options = {"symbols": False, "mlp_dim": width, "activation": "gelu"} | variants[name]
    return TokenModel(1, dim, heads, 2, 2, **options)


def carried_inputs(x: Float[Tensor, "steps 2 2"], batch: int) -> Float[Tensor, "steps 2 2"]:
    """What the released "skip" variant trains on: each batch plus the one before it in the epoch.

    A step's input is x_t + x_{t - batch}, and x_t in the first batch. Source: chapter `drawing-arcs`; not in
    the paper.

    >>> x = torch.arange(3.0).reshape(3, 1, 1).expand(3, 2, 2)
    >>> carried_inputs(x, 2)[:, 0, 0].tolist()
    [0.0, 1.0, 2.0]
    """
    require_int("batch", batch, 1)
    earlier = torch.zeros_like(x)
    earlier[batch:] = x[:-batch] if batch < len(x) else x[:0]
    return x + earlier


@torch.no_grad()
def free_run(
    model: TokenModel,
    vector: Float[Tensor, " parameters"],
    start: Float[Tensor, "2 2"],
    steps: int,
    carried: bool = False,
) -> Float[Tensor, "steps_and_one 2 2"]:
    """The points that the model draws by itself from ``start``, the first of the ``steps`` + 1.

    ``carried``: as the released "skip" variant, whose state is the running sum of its outputs and whose
    drawn point is the last output. The run ends early, and repeats its last pair, where a coordinate leaves
    10^6.

    >>> model = arc_model("bare", 4)
    >>> vector = model.draw(torch.Generator().manual_seed(0), torch.float64)
    >>> free_run(model, vector, torch.tensor([[-0.3, 0.0], [0.3, 0.0]], dtype=torch.float64), 5).shape
    torch.Size([6, 2, 2])
    """
    require_int("steps", steps, 0)
    p, state, drawn = model.split(vector), start.to(vector.dtype), [start.to(vector.dtype)]
    for _ in range(steps):
        if not drawn[-1].abs().max() < 1e6:
            drawn.append(drawn[-1])
            continue
        output = model.apply(p, state[None])[0]
        state = state + output if carried else output
        drawn.append(output)
    return torch.stack(drawn)


def gap(run: Float[Tensor, "*batch 2 2"]) -> Float[Tensor, "*batch"]:
    """The distance between the two points."""
    return (run[..., 0, :] - run[..., 1, :]).norm(dim=-1)


def outcome(run: Float[Tensor, "steps 2 2"], target: Float[Tensor, "steps 2 2"]) -> str:
    """What became of a free run: "stays", "meets", "apart" or "elsewhere".

    "stays": both points within a tenth of the radius of the circle about the origin all the time, and at
    the end within a tenth of the walked arc's length of where they belong; otherwise what happens first:
    "meets", a distance below a tenth of the diameter, or "apart", one above three halves of it.

    >>> from ranklib.experiments.tasks import arc_steps
    >>> x, _ = arc_steps(100)
    >>> outcome(x, x), outcome(x * torch.linspace(1, 0, len(x))[:, None, None], x)
    ('stays', 'meets')
    """
    require_shape("run", run, f"the target's shape {tuple(target.shape)}", run.shape == target.shape)
    diameter = gap(target[0])
    radius, arc = diameter / 2, (target[1:] - target[:-1]).norm(dim=-1).sum(0)[0]
    near = ((run.norm(dim=-1) - radius).abs() < STAYS * radius).all()
    there = ((run[-1] - target[-1]).norm(dim=-1) < STAYS * arc).all()
    if near and there:
        return "stays"
    distance = gap(run)
    events = {"meets": distance < MEETS * diameter, "apart": ~(distance < APART * diameter)}
    first = {name: int(hit.int().argmax()) for name, hit in events.items() if hit.any()}
    return min(first, key=first.get) if first else "elsewhere"


@torch.no_grad()
def step_jacobians(
    model: TokenModel, vector: Float[Tensor, " parameters"], x: Float[Tensor, "steps 2 2"]
) -> Float[Tensor, "steps 4 4"]:
    """The derivative of one step at each pair: output coordinates in rows, input coordinates in columns.

    >>> model = arc_model("bare", 4)
    >>> vector = model.draw(torch.Generator().manual_seed(0), torch.float64)
    >>> step_jacobians(model, vector, torch.zeros(3, 2, 2, dtype=torch.float64)).shape
    torch.Size([3, 4, 4])
    """
    p = model.split(vector)
    jacobian = torch.func.jacrev(lambda pair: model.apply(p, pair[None])[0])
    return torch.func.vmap(jacobian)(x).reshape(len(x), 4, 4)


def growth(jacobians: Float[Tensor, "steps 4 4"], x: Float[Tensor, "steps 2 2"]) -> dict[str, float]:
    """How errors grow along the circle, a step: ``radial``, ``middle`` and ``largest``, geometric means.

    ``radial``: of an error that moves both points outwards or inwards alike, projected on itself again;
    ``middle``: of one that moves the midpoint, the largest growth in the product of all steps; ``largest``:
    the same of any error. Source: chapter `drawing-arcs`.

    >>> x = torch.tensor([[[-0.3, 0.0], [0.3, 0.0]]], dtype=torch.float64).expand(9, 2, 2)
    >>> grown = growth(2 * torch.eye(4, dtype=torch.float64).expand(9, 4, 4), x)
    >>> {name: round(value, 6) for name, value in grown.items()}
    {'radial': 2.0, 'middle': 2.0, 'largest': 2.0}
    """
    directions = x.flatten(1) / x.flatten(1).norm(dim=-1, keepdim=True)
    radial = torch.einsum("ti,tij,tj->t", directions[1:], jacobians[:-1], directions[:-1])
    eye = torch.eye(2, dtype=x.dtype)
    spread = torch.cat([eye, eye]) / 2**0.5
    middle = spread.T @ jacobians @ spread
    return {
        "radial": float(radial.abs().log().mean().exp()),
        "middle": _largest(middle),
        "largest": _largest(jacobians),
    }


def _largest(matrices: Tensor) -> float:
    """The largest singular value of the product, to the power 1 / steps, without overflow."""
    q, logs = torch.eye(matrices.shape[-1], dtype=matrices.dtype), 0.0
    for matrix in matrices:
        q = matrix @ q
        size = q.norm()
        q, logs = q / size, logs + size.log()
    return float(((logs + torch.linalg.matrix_norm(q, 2).log()) / len(matrices)).exp())


@torch.no_grad()
def radial_theory(
    model: TokenModel, vector: Float[Tensor, " parameters"], x: Float[Tensor, "steps 2 2"]
) -> dict[str, list | float]:
    r"""The radial growth that the theory of two tokens predicts for a trained layer without norm and MLP.

    With half-gap a, e_h = a^T E W_{QK,h} E^T a / \sqrt{d_qk} and the half-gaps that skip and heads
    contribute,

    .. math:: \text{factor} = c_0 + \sum_h c_h \Big(1 + \frac{4 e_h}{\sinh 2 e_h}\Big),

    where c are the shares of the contributions in the next half-gap, c_0 that of the skip; they add to 1.
    ``u``: mean over the circle of e_h, for each head; ``share``: of c_0 and c_h; ``factor``: geometric
    mean. Exact where the key-only score is the same at both points. Raises ``ValueError`` for a model with
    norm or MLP. Source: chapter `drawing-arcs`.
    """
    if model.mlp_dim or model.norm != "none" or model.depth > 1:
        raise ValueError(
            f"model: expected one layer of attention, with or without skip, got {model}; "
            "use arc_model('bare', dim)"
        )
    p, layer = model.split(vector), model.network(vector).layers[0]
    e, out, half = p["embed"], p["readout"], (x[:, 0] - x[:, 1]) / 2
    attention = layer.attention.attention(model.embed(p, x))
    difference = attention[..., 0, 0] - attention[..., 1, 0]
    maps = e @ layer.attention.w @ out
    parts = difference[..., None] * torch.einsum("ti,hij->thj", half, maps)
    parts = torch.cat([float(model.skip) * (half @ e @ out)[:, None], parts], 1)
    whole = parts.sum(1, keepdim=True)
    share = (parts * whole).sum(-1) / (whole * whole).sum(-1)
    kernel = e @ layer.attention.w_qk @ e.T / layer.attention.dims.dim_qk**0.5
    u = torch.einsum("ti,hij,tj->th", half, kernel, half)
    factors = torch.cat([torch.ones_like(u[:, :1]), 1 + 2 / torch.sinc(2j * u / torch.pi).real], 1)
    factor = (share * factors).sum(1)
    return {
        "u": u.mean(0).tolist(),
        "share": share.mean(0).tolist(),
        "factor": float(factor.abs().log().mean().exp()),
    }


@torch.no_grad()
def trained_beta(model: TokenModel, vector: Float[Tensor, " parameters"]) -> float:
    """The beta of the bounds: max over heads of ||W_QK,h||_1 ||W_h||_{1,inf}.

    Source: chapter `drawing-arcs`.
    """
    layers = model.network(vector).layers
    return max(
        float((max_col_sum(layer.attention.w_qk) * composite(layer.attention.w)).max()) for layer in layers
    )
