"""A whole block: two branches beside their skips, from both sides, and a head that does nothing."""

import sympy as sp

from .engine import Derivation, RowNorm, Sigma, Softmax, identity, inequality, j, matrices, n, sequences


def whole_block() -> Derivation:
    """The diameter after a pre-norm block, from both sides."""
    x, z = matrices("x z", 1, 2)
    d, more, less, share, mlp = sp.symbols("d u v t l", nonnegative=True)
    keep, pass_on = sp.symbols("p q", nonnegative=True)
    a, e, lam, s = sp.symbols("a e lambda s", positive=True)
    w, y = sequences("w v", positive=True)
    two, line = matrices("S", 2, 2), matrices("X", 2, 1)
    middle = (1 + share) * d - less
    return Derivation(
        "whole_block",
        "Each branch beside its skip is a triangle inequality in both directions; a block is two of them.",
        (
            inequality(
                "no difference grows by more than the branch's",
                RowNorm(x + z),
                RowNorm(x) + RowNorm(z),
                "A difference x of two tokens and what the branch makes of it, z; shown in one norm.",
            ),
            inequality(
                "nor does it shrink by more",
                RowNorm(x),
                RowNorm(x + z) + RowNorm(z),
                "The same inequality with x + z for the new difference.",
            ),
            inequality(
                "two branches, upper side",
                (1 + mlp) * middle,
                (1 + mlp) * (1 + share) * d,
                "The diameter between the branches is at most its bound, by v; t and l are the shares.",
            ),
            inequality(
                "two branches, lower side",
                (1 - mlp) * (1 - share) * d,
                (1 - mlp) * ((1 - share) * d + more),
                "At least its bound, by u; the factors p = 1 - t and q = 1 - l are not negative.",
                given={share: 1 - keep, mlp: 1 - pass_on},
            ),
            identity(
                "a pair that attains the upper side without norms",
                (a + a * sp.tanh(a**2)) + lam * (a + a * sp.tanh(a**2)),
                (1 + lam) * (1 + sp.tanh(a**2)) * a,
                "Attention with w = v = 1 and an MLP that multiplies by lambda.",
            ),
            identity(
                "without attention's skip the cube is back",
                sp.Limit((1 + lam / s) * (a / s) * sp.tanh((a / s) ** 2) / a**3, a, 0, "+"),
                (1 + lam / s) / s**3,
                "With the norm's stretch 1/s three times: one for each difference of the cube.",
            ),
            identity(
                "the causal pair of the example",
                (Softmax(two) * line)[1, 0],
                e * (1 - 2 * Sigma(2 * e**2)),
                "Its first token stays at e, so the half-gap is e times the second one's own weight; scores up to "
                "a constant of the row.",
                given={two: sp.Matrix([[0, 0], [0, 2 * e**2]]), line: sp.Matrix([e, -e])},
            ),
            inequality(
                "two recipes that share a sink",
                (less + sp.Sum(abs(w[j] - y[j]), (j, 1, n))) / 2,
                (less + sp.Sum(w[j] + y[j], (j, 1, n))) / 2,
                "Their weights beside the sink sum to epsilon and to epsilon - v, so the right side is epsilon.",
                given={n: 3},
            ),
        ),
        "Theorem (Whole block), its pair and Proposition (Sink).",
        {},
        __name__,
    )


DERIVATIONS = (whole_block,)
