"""When the printed constant 4 is true."""

import sympy as sp

from .engine import (
    Derivation,
    Kappa,
    SquareC,
    SquareG,
    Vartheta,
    by_intervals,
    definition,
    identity,
    inequality,
)

Q = sp.Rational


def constant_four() -> Derivation:
    """Where the factor of one layer is at most four."""
    lam, big_d = sp.symbols("Lambda D", positive=True)
    phi = sp.Symbol("phi", real=True)
    tokens = sp.Symbol("n", positive=True)
    return Derivation(
        "constant_four",
        "The printed constant 4 is true up to Lambda = 6.5, up to oscillation 5.62, and up to n = 801.",
        (
            by_intervals(
                "up to Lambda = 6.5",
                SquareG(lam),
                16 * lam**2,
                "The factor of one layer is at most 4 Lambda on the whole range.",
                over={lam: (0, Q(13, 2))},
                zeros={0: 2},
            ),
            by_intervals(
                "at 6.51 it is not",
                16 * lam**2,
                SquareG(lam),
                "The root is 6.502.",
                given={lam: Q(651, 100)},
            ),
            inequality(
                "a column of averages",
                phi * (1 + Q(1, 2) * (1 - 2 * phi)),
                Q(9, 16),
                "A share phi of the tokens at one end, the centre at half the mean; rows cost 3/2 from there.",
                form=(phi - Q(3, 4)) ** 2,
            ),
            inequality(
                "801 tokens",
                Q(9, 16) * Q(3, 2) * tokens,
                (4 * Q(13, 2)) ** 2,
                "For larger Lambda the printed bound is above 26, and columns times rows are below its square.",
                strict=True,
                given={tokens: 801},
            ),
            definition(
                "small oscillation",
                SquareC(big_d),
                (Kappa(big_d) / 2 + sp.tanh(big_d / 4)) * Vartheta(big_d),
                "The master lemma with mu at most D, and the total variation.",
            ),
            identity(
                "in another form",
                SquareC(big_d),
                Kappa(big_d / 2) ** 2 / 2 + Vartheta(big_d) * sp.tanh(big_d / 4),
                "Kappa times vartheta is a square.",
            ),
            by_intervals(
                "oscillation 5.62",
                SquareC(big_d),
                16,
                "On the whole range, after multiplying by D^2.",
                over={big_d: (0, Q(562, 100))},
                zeros={0: 2},
                times=big_d**2,
            ),
            by_intervals(
                "5.63 is too much", 16, SquareC(big_d), "For this argument.", given={big_d: Q(563, 100)}
            ),
            by_intervals(
                "oscillation 1.256",
                SquareC(big_d),
                Q(1124, 1000) ** 2,
                "At the printed hypothesis the constant is 1.124, and below it too.",
                over={big_d: (0, Q(1256, 1000))},
                zeros={0: 2},
                times=big_d**2,
            ),
        ),
        "Theorem (When four is true) and Theorem (Constant four).",
        {},
        __name__,
    )


DERIVATIONS = (constant_four,)
