"""What row-wise constants miss, and MLPs in depth."""

import sympy as sp

from .engine import Derivation, Softmax, by_intervals, identity, inequality, matrices

PAPER = "Dong, Cordonnier and Loukas 2021"
HALF = sp.Rational(1, 2)
ROOT = sp.sqrt


def row_wise_readings() -> Derivation:
    """A constant for rows is not enough."""
    copies, w, c, y = sp.symbols("k w c y", positive=True)
    z, s, u = sp.symbols("z s u", nonnegative=True)
    u1, u2 = sp.symbols("u_1 u_2", real=True)
    f, total, n, count, top, rest = sp.symbols("F T n N t q", positive=True)
    row, x = matrices("S", 1, 2), matrices("R", 4, 4)
    w_qk = matrices("W", 4, 4)
    blocks = sp.Matrix([[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]])
    first = sp.Matrix(4, 4, lambda a, b: (w / 2 if b < 2 else -w / 2) if a < 2 else 0)
    quotient = ROOT(copies) / 4 * sp.tanh(w * copies) / (w * copies)
    four = sp.Rational(1, 4) + ROOT(c / 2) / 2
    at = (HALF + 64 * ROOT(HALF) - count * (HALF - ROOT(HALF) / 128) / (n - 2)) / 32
    return Derivation(
        "row_wise_readings",
        "Read row by row, in the 1-norm or the 2-norm, the constant of an MLP does not bound what the "
        "matrix norms see.",
        (
            identity(
                "the scores",
                x * w_qk * x.T,
                sp.Matrix(4, 4, lambda a, b: ((2 * w, -2 * w)[b] if b < 2 else 0) if a == 0 else 0),
                "Two blocks of k = 2 ones, weights w/k: token 1 has the scores wk and -wk.",
                given={x: blocks, w_qk: first},
            ),
            identity(
                "its weights",
                Softmax(row),
                sp.Matrix([[1 + sp.tanh(y), 1 - sp.tanh(y)]]) / 2,
                "The other rows keep one half each: phi, the sum of block 1 minus that of block 2, gives k tanh y.",
                given={row: sp.Matrix([[y, -y]])},
            ),
            inequality(
                "one number among four",
                y**2,
                (y + 2 * z) * (y - z),
                "So its residual is itself: no centre z up to half of it helps.",
                form=z * s,
                given={y: 2 * z + s},
            ),
            inequality(
                "sixteen copies are not enough",
                sp.tanh(u),
                u,
                "Over the printed bound, 4 wk root k, k tanh wk is root k/4 tanh(wk)/(wk): below 1, with u = 16w.",
                grows_in=u,
            ),
            by_intervals(
                "seventeen are", 1, quotient, "At w = 1/1000.", given={copies: 17, w: sp.Rational(1, 1000)}
            ),
            inequality(
                "spectral norm one",
                (u1 - u2) ** 2 / 4 + (u1**2 + u2**2) / 2,
                u1**2 + u2**2,
                "With equality for opposite coordinates.",
                form=(u1 + u2) ** 2 / 4,
            ),
            by_intervals(
                "1984 copies are not enough",
                four,
                16,
                "Largest entry times row sum, in units of tanh w squared: for any number of tokens.",
                given={c: 1984},
            ),
            by_intervals("1985 are, with many tokens", 16, four, "So 3971 outputs.", given={c: 1985}),
            identity(
                "what a centre can gain",
                sp.Derivative(f * (total - (f - top + count * (f - rest)) / (n - 2)), (f, 2)),
                -2 * (count + 1) / (n - 2),
                "The product is concave in F: its ends decide.",
            ),
            by_intervals(
                "with 1502 tokens",
                sp.Rational(115, 100) ** 2,
                at,
                "With 8193 outputs the quotient is 1.16.",
                given={n: 1502, count: 8192},
            ),
        ),
        f"Example (34 features) and Example (Spectral norm one), on readings of {PAPER}.",
        {},
        __name__,
    )


def mlps_in_depth() -> Derivation:
    """The corollary with MLPs: lambda joins the constant of every layer."""
    depth = sp.Symbol("L", positive=True, integer=True)
    lam, c, rho = sp.symbols("lambda c rho", positive=True)
    constant = (3**depth - 1) / 2
    return Derivation(
        "mlps_in_depth",
        "An MLP multiplies the constant of every layer by lambda and keeps the exponent.",
        (
            identity(
                "one layer more, for any depth",
                sp.log(lam * c) + 3 * (constant * sp.log(lam * c) + 3**depth * sp.log(rho)),
                (3 ** (depth + 1) - 1) / 2 * sp.log(lam * c) + 3 ** (depth + 1) * sp.log(rho),
                "The heads cube and multiply by c, the MLP multiplies by lambda; in logarithms.",
            ),
            identity(
                "what lambda adds",
                constant * sp.log(lam * c) - constant * sp.log(c),
                constant * sp.log(lam),
                "A delay of the bound, in logarithms.",
            ),
        ),
        f"Corollary (L layers with MLPs); {PAPER}, Corollary 3.2.",
        {},
        __name__,
    )


DERIVATIONS = (row_wise_readings, mlps_in_depth)
