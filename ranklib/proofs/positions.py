"""Two tokens with a bias in the scores, or rotated."""

import sympy as sp

from .engine import Derivation, Rows, Scalar, Softmax, identity, inequality, matrices


def position_pairs() -> Derivation:
    """Two tokens with a diagonal bias, or rotated."""
    a, b, w, m, phi = sp.symbols("a b w m phi", real=True)
    n, u = sp.symbols("n u", positive=True)
    x, s, turn, eye = matrices("X", 2, 1), matrices("S", 2, 2), matrices("T", 2, 2), sp.Identity(2)
    row = matrices("x", 1, 2)
    pair = {x: sp.Matrix([a, -a])}
    rotation = {turn: sp.Matrix([[sp.cos(phi), -sp.sin(phi)], [sp.sin(phi), sp.cos(phi)]])}
    score = sp.Matrix([[1, sp.cos(phi)], [sp.cos(phi), 1]])
    signs = sp.Matrix([[1, -sp.cos(phi)], [-sp.cos(phi), 1]])
    second = (sp.exp(b) - 1) / (sp.exp(b) + n - 1)
    return Derivation(
        "position_pairs",
        "A bias b on the diagonal multiplies a small pair by tanh(b/2); a rotation does so if there is a "
        "common row, and leaves the cube if there is none.",
        (
            identity(
                "a bias on the diagonal",
                Softmax(w * x * x.T + b * eye) * x,
                sp.tanh(w * a**2 + b / 2) * x,
                "Own score minus the other one is 2 w a^2 + b in both rows; for small pairs only b is left.",
                given=pair,
            ),
            identity(
                "any number of tokens",
                Scalar(Rows(Softmax(b * sp.Identity(3)), 1) * sp.Matrix([1, -1, 0])),
                second,
                "At a common row P is a multiple of the identity plus equal rows.",
                given={n: 3},
            ),
            identity("two of them", second, sp.tanh(b / 2), "The factor of the pair again.", given={n: 2}),
            identity(
                "a rotated product",
                Scalar(row * turn.T * row.T),
                sp.cos(phi) * Scalar(row * row.T),
                "Between a row and the same row turned by phi: the scores hold the cosine.",
                given=rotation,
            ),
            identity(
                "at a common row, its second eigenvalue",
                Scalar(Rows(Softmax(s), 1) * sp.Matrix([1, -1])),
                sp.tanh(m**2 * (1 - sp.cos(phi)) / 2),
                "The difference of the two weights.",
                given={s: m**2 * score},
            ),
            identity(
                "an opposite pair",
                Softmax(s) * x,
                sp.tanh(a**2 * (1 + sp.cos(phi)) / 2) * x,
                "Without a common row the score is quadratic in the differences.",
                given={**pair, s: a**2 * signs},
            ),
            inequality("so it is cubic", sp.tanh(u), u, "The tangent is at most its argument.", grows_in=u),
        ),
        "Proposition (Position terms), pairs with a bonus or a rotation.",
        {},
        __name__,
    )


DERIVATIONS = (position_pairs,)
