"""When the printed constant 4 is true."""

import sympy as sp

from .engine import Derivation, Kappa, SquareC, SquareG, by_intervals, definition, inequality

Q = sp.Rational


def constant_four() -> Derivation:
    """Where the factor of one layer is at most four."""
    lam, big_d = sp.symbols("Lambda D", positive=True)
    phi, q = sp.symbols("phi q", real=True)
    tokens = sp.Symbol("n", positive=True)
    r, u, v = sp.symbols("r u v", positive=True)
    narrow = (Kappa(big_d / 2) + 1) * sp.tanh(big_d / 4) / big_d
    wide = (Kappa(big_d) + 1) * sp.tanh(big_d / 4) / (2 * big_d)
    small = lam / 4 + (1 - q) * lam
    need = 8 * lam**2 / sp.tanh(lam / 2)
    most = tokens * q * (1 - 1 / (1 + (1 - q) * (sp.exp(lam) - 1) / tokens))
    rows = sp.Min(
        16 * lam**2 - (tokens * q - need + 2 * small), 16 * lam**2 - (tokens * (1 - q) + Q(5, 4) * lam)
    )
    average = q * (1 - q) * u / (1 + (1 - q) * u)

    def at_most(name: str, side: sp.Expr, bound: sp.Rational | int, why: str, to: sp.Rational):
        return by_intervals(name, side, bound, why, over={big_d: (0, to)}, zeros={0: 2}, times=big_d**2)

    return Derivation(
        "constant_four",
        "The printed constant 4 is true up to Lambda = 7.49, up to oscillation 7.55, and up to n = 2200.",
        (
            by_intervals(
                "up to Lambda = 7.49",
                SquareG(lam),
                16 * lam**2,
                "The factor of one layer is at most 4 Lambda on the whole range.",
                over={lam: (0, Q(749, 100))},
                zeros={0: 2},
            ),
            by_intervals(
                "at 7.5 it is not",
                16 * lam**2,
                SquareG(lam),
                "The root is 7.4905.",
                given={lam: Q(75, 10)},
            ),
            definition(
                "small oscillation",
                SquareC(big_d),
                sp.Max(narrow, wide),
                "Columns (kappa(mu) + 1)/4, rows 2 tanh(D/4), with Lambda at its ends D/2 and D.",
            ),
            at_most("oscillation 7.55", narrow, 16, "The end Lambda = D/2.", Q(755, 100)),
            at_most("oscillation 7.55 at the other end", wide, 16, "The end Lambda = D.", Q(755, 100)),
            by_intervals("7.56 is too much", 16, wide, "For this argument.", given={big_d: Q(756, 100)}),
            at_most("oscillation 1.256", narrow, Q(761, 1000) ** 2, "The constant is 0.761.", Q(1256, 1000)),
            at_most("and at the other end", wide, Q(761, 1000) ** 2, "Below it too.", Q(1256, 1000)),
            inequality(
                "a column of averages",
                phi * (1 + Q(1, 2) * (1 - 2 * phi)),
                Q(9, 16),
                "A share phi of the tokens at one end, the centre at half the mean; rows cost 3/2 from there.",
                form=(phi - Q(3, 4)) ** 2,
            ),
            inequality(
                "all rows pull alike at worst",
                (average + average.subs(u, v)) / 2,
                average.subs(u, (u + v) / 2),
                "What a row takes from a key is concave in what its other scores add, u.",
                given={q: 1 / (1 + r)},
            ),
            by_intervals(
                "2200 tokens",
                0,
                sp.Max(16 * lam**2 - Q(27, 32) * tokens, need - small - most, rows),
                "One of three centres suffices: half the mean, p^T R (if all rows together pull too little), "
                "or 0 (if they pull more).",
                over={lam: (Q(749, 100), 11), q: (0, 1)},
                given={tokens: 2200},
            ),
            by_intervals(
                "beyond Lambda = 11",
                Q(27, 32) * tokens,
                16 * lam**2,
                "Half the mean is enough, from 10.78 on.",
                given={tokens: 2200, lam: 11},
            ),
        ),
        "Theorem (When four is true).",
        {},
        __name__,
    )


DERIVATIONS = (constant_four,)
