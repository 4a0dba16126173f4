"""How the library is sure of a residual: valid lines, the polygon they cut out, and a sandwich.

For a centre x let f be the largest column sum and g the largest row sum of |X - 1x^T|. The pairs (f, g)
fill a convex region K, and the product f g is least at a vertex of K (Lemma (Vertex) in chapter
`how-the-paper-measures`). Non-negative weights u on the columns and v on the rows give the valid line
``sum(u) f + sum(v) g >= phi(u, v)`` (Lemma (Certificate) in chapter `how-the-paper-measures`), where phi is a
sum of weighted medians and needs no optimiser. Lines cut out a polygon that contains K, so the least product
over its vertices is a lower bound; any centre gives an upper bound. The sandwich adds a line at the worst
vertex.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.optimize import linprog, minimize

EPS = float(np.finfo(np.float64).eps)

Centre = Float[np.ndarray, " dim"]
Step = tuple[Centre, Float[np.ndarray, " dim"], Float[np.ndarray, " tokens"]]
Line = tuple[float, float]


class Columns(NamedTuple):
    """Each column in ascending order, the permutation that does it, and each column's range."""

    values: Float[np.ndarray, "tokens dim"]
    order: Int[np.ndarray, "tokens dim"]
    span: Float[np.ndarray, " dim"]


def sort_columns(y: Float[np.ndarray, "tokens dim"]) -> Columns:
    """Each column sorted, with the order and the range."""
    order = np.argsort(y, axis=0, kind="stable")
    values = np.take_along_axis(y, order, axis=0)
    return Columns(values, order, values[-1] - values[0])


def upper_sums(y: Float[np.ndarray, "tokens dim"], centre: Centre) -> tuple[float, float]:
    """f and g about ``centre``, rounded up: no fewer than the exact sums.

    A sum of m terms of one sign is off by at most m EPS / 2 relatively, a difference by EPS / 2.
    """
    size = np.abs(y - centre)
    up = 1 + (sum(y.shape) + 4) * EPS
    return float(size.sum(0).max()) * up, float(size.sum(1).max()) * up


def median_line(
    columns: Columns, u: Float[np.ndarray, " dim"], v: Float[np.ndarray, " tokens"]
) -> tuple[Line, Centre]:
    """A line ``slope f + g >= height`` that holds for every centre, and the medians that give it.

    ``phi(u, v) = sum_k min_z sum_i (u_k + v_i) |X_ik - z|`` and a weighted median attains each minimum.
    Rounding is paid for: a cumulative weight may be off by n EPS times the column's weight, so the chosen
    entry may miss the median where the slope is at most 2 (n + 2) EPS times that weight, over at most the
    column's range; phi is at most half of weight times range, and its sums are off by (n + d) EPS.
    Everything together is below 4 (n + d + 4) EPS sum(weight range), which is taken off.
    """
    tokens, dim = columns.values.shape
    weights = v[columns.order]
    weights += u
    mass = np.cumsum(weights, axis=0)
    at = np.minimum((mass < 0.5 * mass[-1]).sum(0), tokens - 1)
    medians = columns.values[at, np.arange(dim)]
    phi = float((weights * np.abs(columns.values - medians)).sum(0).sum())
    slack = 4 * (tokens + dim + 4) * EPS * float(mass[-1] @ columns.span)
    total = float(v.sum())
    return (float(u.sum()) / total, (phi - slack) / total), medians


def polygon_bound(lines: list[Line], f_min: float, g_min: float) -> tuple[float, float, list[Line]]:
    """The least ``f g`` over ``f >= f_min``, ``g >= g_min`` and the lines; the worst slope; the active lines.

    The vertices are found in rational arithmetic, so the polygon itself adds no rounding. The slope is
    g / f at the worst vertex, where the next line cuts best.
    """
    steepest_first = sorted({*lines, (0.0, g_min)}, reverse=True)
    hull: list[tuple[Fraction, Fraction]] = []
    corners: list[Fraction] = []
    for slope, height in ((Fraction(s), Fraction(h)) for s, h in steepest_first):
        if hull and hull[-1][0] == slope:
            continue
        while hull:
            meet = (hull[-1][1] - height) / (hull[-1][0] - slope)
            if not corners or meet > corners[-1]:
                corners.append(meet)
                break
            hull.pop()
            corners.pop()
        hull.append((slope, height))
    start = Fraction(f_min)
    candidates = [start, *(f for f in corners if f > start)]
    points = [(f, max(h - s * f for s, h in hull)) for f in candidates]
    f, g = min(points, key=lambda point: point[0] * point[1])
    active = [(float(s), float(h)) for s, h in hull if s > 0]
    return float(f * g), float(g / f), active


def slope_program(
    y: Float[np.ndarray, "tokens dim"], slope: float, method: str = "highs"
) -> tuple[float, Step]:
    """The linear programme ``V(slope) = min_x slope f + g`` by HiGHS: its value, a centre, dual weights."""
    tokens, dim = y.shape
    entries = tokens * dim
    column = sparse.kron(np.ones((1, tokens)), sparse.identity(dim))
    row = sparse.kron(sparse.identity(tokens), np.ones((1, dim)))
    one = sparse.identity(entries)
    equal = sparse.hstack([column.T, one, -one, sparse.csr_matrix((entries, 2))], format="csr")
    below = sparse.bmat(
        [
            [sparse.csr_matrix((dim, dim)), column, column, -np.ones((dim, 1)), None],
            [None, row, row, None, -np.ones((tokens, 1))],
        ],
        format="csr",
    )
    root = slope**0.5
    cost = np.concatenate([np.zeros(dim + 2 * entries), [root, 1 / root]])
    bounds = [(None, None)] * dim + [(0, None)] * (2 * entries + 2)
    found = linprog(cost, below, np.zeros(dim + tokens), equal, y.ravel(), bounds, method)
    if found.status != 0:
        raise ArithmeticError(
            f"slope_program: expected an optimal programme, got {found.message!r}; "
            "try the other HiGHS method ('highs-ds' or 'highs-ipm')"
        )
    weights = np.maximum(-found.ineqlin.marginals, 0)
    return found.fun * root, (found.x[:dim], weights[:dim], weights[dim:])


def exact_steps(
    y: Float[np.ndarray, "tokens dim"], slope: float, start: Centre, method: str = "highs"
) -> Iterator[Step]:
    """One step: the linear programme of that slope."""
    yield slope_program(y, slope, method)[1]


def smooth_steps(
    y: Float[np.ndarray, "tokens dim"], slope: float, start: Centre, narrowest: float
) -> Iterator[Step]:
    """Minimise ``slope f + g`` with rounded corners, sharper at every step.

    A maximum becomes a soft maximum, |z| becomes sqrt(z^2 + corner^2), and L-BFGS does the rest. The
    gradient of a soft maximum is a softmax: non-negative weights on columns and rows, so each step
    yields a valid line whether or not the minimisation succeeded.
    """
    tokens, dim = y.shape
    centre, width = start, 0.1
    z, size = np.empty_like(y), np.empty_like(y)  # fresh arrays of this size would cost most of the time
    while True:
        f, g = upper_sums(y, centre)
        unit = 1 / (slope * f + g)
        soft_f, soft_g = width * f / np.log(dim + 1), width * g / np.log(tokens + 1)
        corner = width * float(np.abs(y - centre).mean())

        def smoothed(x):
            np.subtract(y, x, out=z)
            np.multiply(z, z, out=size)
            np.add(size, corner * corner, out=size)
            np.sqrt(size, out=size)
            f_all, g_all = size.sum(0), size.sum(1)
            u = np.exp((f_all - f_all.max()) / soft_f)
            v = np.exp((g_all - g_all.max()) / soft_g)
            value = slope * (f_all.max() + soft_f * np.log(u.sum())) + g_all.max() + soft_g * np.log(v.sum())
            u *= slope / u.sum()
            v /= v.sum()
            np.divide(z, size, out=z)
            return value, -(u * z.sum(0) + v @ z), u, v

        def objective(x):
            value, gradient, _, _ = smoothed(x)
            return unit * value, unit * gradient

        rounds = round(60 * max(1.0, 1e-3 / width) ** 0.5)
        options = {"maxiter": rounds, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-12}
        centre = minimize(objective, centre, jac=True, method="L-BFGS-B", options=options).x
        yield centre, *smoothed(centre)[2:]
        if width < narrowest:
            return
        width *= 0.4


def sandwich(
    y: Float[np.ndarray, "tokens dim"],
    steps: Callable[..., Iterator[Step]],
    tol: float,
    factors: tuple[float, ...] = (1.0,),
    max_slopes: int = 60,
) -> tuple[float, float, Centre]:
    """Lower bound, upper bound and centre of ``min sqrt(f g)``; stops at gap ``tol`` or without progress.

    ``y`` has columnwise median 0 and is not zero. Each round solves one slope, adds its line (and those
    at ``factors`` times the slope), and goes on at the worst vertex of the polygon.
    """
    tokens, dim = y.shape
    down = 1 - 4 * (tokens + dim + 4) * EPS
    columns = sort_columns(y)
    tried: list[tuple[float, float, Centre]] = []

    def upper_bound(centre):
        f, g = upper_sums(y, centre)
        tried.append((f, g, centre))
        return f, g

    f, g = upper_bound(np.zeros(dim))
    upper_bound(y.mean(0))
    far = int(np.abs(y).sum(1).argmax())
    g_min = max(0.5 * float(np.abs(y - y[far]).sum(1).max()), float(np.abs(y).sum()) / tokens) * down
    f_min, slope, lines = f * down * down, g / f, []
    lower, upper = 0.0, np.inf
    for _ in range(max_slopes):
        before, target = (lower, upper), slope
        start = min(tried, key=lambda t: target * t[0] + t[1])[2]
        for centre, u, v in steps(y, target, start):
            upper_bound(centre)
            for factor in factors:
                line, medians = median_line(columns, factor * u, v)
                lines.append(line)
                upper_bound(medians)
            product, slope, lines = polygon_bound(lines, f_min, g_min)
            lower = max(lower, product**0.5 * (1 - 8 * EPS))
            f, g, best = min(tried, key=lambda t: t[0] * t[1])
            upper = (f * g) ** 0.5 * (1 + 8 * EPS)
            if upper <= lower * (1 + tol):
                return min(lower, upper), upper, best
            value = min(target * f + g for f, g, _ in tried)
            proved = max((h for s, h in lines if abs(s - target) <= 1e-9 * target), default=0.0)
            if proved >= value * (1 - tol / 4):
                break
        if (lower, upper) == before:
            break
    return lower, upper, best
