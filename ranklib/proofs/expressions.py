"""The named expressions of the proofs, under the names that the code gives to them in ``paper.constants``.

>>> round(float(EXPRESSIONS["kappa"].subs(T, 1)), 4)
1.7183
"""

import sympy as sp

from .engine import BigF, Kappa, SquareC, SquareG, Vartheta

T = sp.Symbol("t", positive=True)
EXP = sp.exp(T) - 1
EXPRESSIONS = {
    "kappa": Kappa.definition(T),
    "vartheta": Vartheta.definition(T),
    "const_osc": sp.sqrt(SquareC.definition(T)),
    "const_osc_heads": sp.sqrt((Kappa.definition(T) + 1) / 4),
    "f_slope": BigF.definition(T) / T,
    "f_lambda": BigF.definition(T),
    "g_slope": sp.sqrt(SquareG.definition(T)) / T,
    "g_lambda": sp.sqrt(SquareG.definition(T)),
    "middle": EXP / sp.sqrt(sp.exp(T) + 1),
    "memorable": EXP,
}
