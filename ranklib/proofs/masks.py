"""Attention with a mask: what it does to differences, and the first two tokens."""

import sympy as sp

from .engine import (
    ONE,
    Derivation,
    Det,
    Rows,
    Scalar,
    Sigma,
    Softmax,
    d,
    identity,
    inequality,
    j,
    matrices,
    n,
    sequences,
    stochastic,
)

D1 = sp.Matrix([[-1, 1, 0], [-1, 0, 1]])
LATER = sp.Matrix([[0, 0], [1, 0], [0, 1]])


def difference_map() -> Derivation:
    """What attention does to differences."""
    p, x = matrices("P", 3, 3), matrices("X", 3, 2)
    z = sp.Symbol("z", real=True)
    a, b, c, e = sp.symbols("a b c e", real=True)
    equal = {p: sp.ones(3, 1) * sp.Matrix([[a, b, 1 - a - b]])}
    causal = {p: sp.Matrix([[1, 0, 0], [1 - c, c, 0], [1 - b - e, b, e]])}
    q = D1 * p * LATER
    return Derivation(
        "difference_map",
        "Attention acts on the differences from the first token by a matrix with the other eigenvalues of P.",
        (
            identity(
                "differences after the layer",
                D1 * p * x,
                q * D1 * x,
                "The weights of two rows differ by numbers with sum zero, so the first token drops out: "
                "Q is what stands before the differences.",
            ),
            identity(
                "its eigenvalues",
                Det(z * sp.Identity(3) - p),
                (z - 1) * Det(z * sp.Identity(2) - q),
                "The characteristic polynomials differ by the factor of the eigenvalue 1.",
            ),
            identity(
                "equal rows",
                q,
                sp.ZeroMatrix(2, 2),
                "Where all rows weigh alike, nothing of first order is left.",
                given=equal,
            ),
            identity(
                "causal: a triangle",
                q,
                sp.Matrix([[c, 0], [b, e]]),
                "The first row of P is (1, 0, 0), so Q is a block of P: the diagonal holds its eigenvalues.",
                given=causal,
            ),
        ),
        "Theorem (Second eigenvalue), what attention does to differences.",
        {p: stochastic("p", 3)},
        __name__,
    )


def second_eigenvalue() -> Derivation:
    """Near a common row the differences shrink by the second eigenvalue in the end."""
    p, x, a, b = matrices("P", 3, 3), matrices("x", d, 1), matrices("A", d, d), matrices("B", n, n)
    r, q = matrices("R", 3, 2), matrices("Q", 2, 2)
    root, other, x21, w = sp.symbols("lambda_2 lambda_3 c z", real=True)
    mu, nu, c, y, z, theta, s, t = sp.symbols("mu nu c y z theta s t", nonnegative=True)
    eps, size, depth = sp.symbols("epsilon q", positive=True) + (sp.Symbol("l", positive=True, integer=True),)
    tri = {q: sp.Matrix([[root, 0], [x21, other]])}
    return Derivation(
        "second_eigenvalue",
        "Near a common row the differences shrink at least like any theta above |lambda_2|, and for no theta "
        "below it: a fixed matrix Q in a suitable norm, and powers of Q.",
        (
            identity(
                "at a common row",
                Softmax(ONE * x.T * a * x * ONE.T + b),
                Softmax(b),
                "Without mask and position terms all scores are equal there; with them P is that of B alone.",
                given={n: 3, d: 2},
            ),
            identity(
                "the layer on differences",
                D1 * p * r,
                (D1 * p * LATER) * D1 * r,
                "With Q in brackets: its eigenvalues are those of P besides 1, by the lemma on differences.",
            ),
            inequality(
                "a norm in which Q is nearly its spectral radius",
                mu * y + eps * (c * y + nu * z),
                (theta + eps * c) * (y + eps * z),
                "Q triangular with sizes mu, nu on the diagonal, at most theta, and c below it; y, z are the "
                "sizes of the differences, and the norm is y + epsilon z with epsilon as small as one likes.",
                given={mu: theta - s, nu: theta - t},
            ),
            identity(
                "all steps of token 1 together",
                (1 - size) * sp.Sum(size ** (j - 1), (j, 1, depth)),
                1 - size**depth,
                "A geometric sum in q below 1: token 1 moves by a bounded multiple of the first differences, so "
                "a close start stays close.",
                given={depth: 6},
            ),
            identity(
                "powers keep the eigenvalue",
                Det(w * sp.Identity(2) - q * q * q),
                (w - root**3) * (w - other**3),
                "The size of Q^l is at least |lambda_2|^l, so no smaller theta will do; here l = 3.",
                given=tri,
            ),
        ),
        "Theorem (Second eigenvalue).",
        {p: stochastic("p", 3)},
        __name__,
    )


def causal_pair() -> Derivation:
    """The first two tokens under a causal mask."""
    x, p = matrices("X", 3, 2), matrices("P", 3, 3)
    own, b, e = sp.symbols("q b e", real=True)
    w, s, t, x1, x2 = sp.symbols("w s t x_1 x_2", real=True)
    u, more = sp.symbols("u d", nonnegative=True)
    score = sequences("s")
    causal = {p: sp.Matrix([[1, 0, 0], [1 - own, own, 0], [1 - b - e, b, e]])}
    gap = Rows(x, 2) - Rows(x, 1)
    return Derivation(
        "causal_pair",
        "Under a causal mask the difference of the first two tokens is multiplied by the second one's weight "
        "on itself, whatever follows them.",
        (
            identity(
                "the first token stays", Rows(p * x, 1), Rows(x, 1), "It sees itself only.", given=causal
            ),
            identity(
                "the difference",
                Rows(p * x, 2) - Rows(p * x, 1),
                own * gap,
                "The weight on the first token drops out.",
                given=causal,
            ),
            identity(
                "that weight",
                sp.exp(t) / (sp.exp(s) + sp.exp(t)),
                Sigma(t - s),
                "Divide by its own exponential; scores s on token 1, t on itself.",
            ),
            identity(
                "on a line",
                sp.exp(w * x2 * x2) / (sp.exp(w * x2 * x1) + sp.exp(w * x2 * x2)),
                Sigma(-w * x2 * (x1 - x2)),
                "One feature; when the gap closes the weight is one half.",
            ),
            inequality(
                "it cannot be small",
                1 / (1 + sp.exp(u + more)),
                1 / (1 + sp.exp(u)),
                "If the scores of row 2 differ by u, at most D = u + d.",
                grows_in=more,
            ),
            inequality(
                "later tokens look at more",
                sp.exp(score[1]) / sp.Sum(sp.exp(score[j]), (j, 1, n)),
                sp.exp(score[1]) / sp.Sum(sp.exp(score[j]), (j, 1, n - 1)),
                "If scores depend on the offset only, the next row has the same terms and one more.",
                given={n: 3},
            ),
            identity(
                "two layers",
                Rows(p * p * x, 2) - Rows(p * p * x, 1),
                own**2 * gap,
                "Factors multiply over layers: a geometric law, not a doubly exponential one.",
                given=causal,
            ),
        ),
        "Theorem (First two tokens).",
        {},
        __name__,
    )


def nilpotent() -> Derivation:
    """Where a power of Q vanishes the collapse is cubic again."""
    p, q = matrices("p q", 1, 2)
    y, t = matrices("y t", 2, 1)
    big_q, scores, after, twice = (matrices(name, 2, 2) for name in ("Q", "T", "S", "Z"))
    full = matrices("P", 3, 3)
    u, v, t2, t3 = sp.symbols("u v t_2 t_3", real=True)
    own, more, barred = sp.symbols("a b c", positive=True)
    shape, small = sp.Matrix([[u * v, -(u**2)], [v**2, -u * v]]), sp.Matrix([t2, t3])
    given = {big_q: shape, t: small, scores: sp.diag(t2, t3), after: sp.diag(*(shape * small))}
    given[twice] = sp.diag(*(shape * shape * small))
    rest = D1 * full * LATER

    def second(square: sp.Expr, first: sp.Expr, of_t: sp.Expr, of_y: sp.Expr) -> sp.Expr:
        """The terms of second order of a layer with Q, for t o y, (Qt) o (Qy), t and y."""
        return big_q * square - first - Scalar(p * of_t) * big_q * of_y - Scalar(p * of_y) * big_q * of_t

    return Derivation(
        "nilpotent",
        "If Q^2 = 0, all terms of second order cancel over two layers: what is left is cubic.",
        (
            identity(
                "a row of second order, minus row 1",
                Scalar((p + q) * scores * y)
                - Scalar((p + q) * t) * Scalar((p + q) * y)
                - Scalar(p * scores * y)
                + Scalar(p * t) * Scalar(p * y),
                Scalar(q * scores * y)
                - Scalar(q * t) * Scalar(q * y)
                - Scalar(p * t) * Scalar(q * y)
                - Scalar(p * y) * Scalar(q * t),
                "Small scores t weigh y by a covariance; T holds t on its diagonal, p is row 1 of P and q a row "
                "of Q.",
                given={t: small, scores: sp.diag(t2, t3)},
            ),
            identity(
                "a nilpotent Q",
                big_q * big_q,
                sp.ZeroMatrix(2, 2),
                "Two layers pass no difference on to first order.",
                given=given,
            ),
            identity(
                "two layers cancel",
                big_q * second(scores * y, after * big_q * y, t, y)
                + second(after * big_q * y, twice * big_q * big_q * y, big_q * t, big_q * y),
                sp.ZeroMatrix(2, 1),
                "The second order of the first layer, passed on by Q, and that of the second layer; S and Z hold "
                "Qt and QQt on their diagonals.",
                given=given,
            ),
            identity(
                "the trace",
                full[0, 0] + full[1, 1] + full[2, 2],
                1 + rest[0, 0] + rest[1, 1],
                "The eigenvalues of Q sum to the trace of P minus 1.",
                given={full: stochastic("p", 3)},
            ),
            inequality(
                "a mask raises the own weight",
                own / (own + more + barred),
                own / (own + more),
                "Forbid keys of weight c. Over all keys the own weights sum to 1, so under a mask the trace is "
                "larger, and not all eigenvalues of Q vanish.",
                strict=True,
            ),
        ),
        "Proposition (Nilpotent).",
        {},
        __name__,
    )


DERIVATIONS = (difference_map, second_eigenvalue, causal_pair, nilpotent)
