"""What statements are written with: letters for matrices, operators that carry their notation, named functions.

A statement is a sympy expression that stands as it was written: operators are computed by ``unfold`` alone, so
that what is printed and what is checked are one object.
"""

from typing import Any

import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.printing.latex import LatexPrinter

from .matrices import centring, max_col_sum, max_row_sum, softmax_rows

n, d = (sp.Symbol(name, positive=True, integer=True) for name in "nd")
i, j, k, l, m = sp.symbols("i j k l m", positive=True, integer=True)
ONE = sp.OneMatrix(n, 1)


def matrices(names: str, rows: Any, columns: Any) -> Any:
    """Letters for matrices of one shape.

    >>> [x.shape for x in matrices("X Y", n, d)]
    [(n, d), (n, d)]
    """
    found = [sp.MatrixSymbol(name, rows, columns) for name in names.split()]
    return found if len(found) > 1 else found[0]


def sequences(names: str, **assumptions: bool) -> Any:
    """Letters that carry an index, such as ``p[j]``.

    >>> p = sequences("p", positive=True)
    >>> p[2].is_positive
    True
    """
    found = [sp.IndexedBase(name, **(assumptions or {"real": True})) for name in names.split()]
    return found if len(found) > 1 else found[0]


class Operator(sp.Expr):
    """A number that is computed from its arguments: ``notation`` shows it, ``compute`` finds it."""

    notation = "%s"
    is_commutative = True
    is_real = True

    def __new__(cls, *args: Any) -> "Operator":
        return super().__new__(cls, *map(sp.sympify, args))

    def _latex(self, printer: LatexPrinter, *_: Any) -> str:
        return self.notation % tuple(printer._print(arg) for arg in self.args)

    @staticmethod
    def compute(*args: Any) -> Any:
        """The value, from arguments that are filled in."""
        raise NotImplementedError


class ColNorm(Operator):
    r"""The largest absolute column sum, printed as :math:`\|X\|_1`."""

    notation = r"\|%s\|_1"
    compute = staticmethod(max_col_sum)


class RowNorm(Operator):
    r"""The largest absolute row sum, printed as :math:`\|X\|_\infty`."""

    notation = r"\|%s\|_\infty"
    compute = staticmethod(max_row_sum)


class Composite(Operator):
    r"""The root of the product of both, printed as :math:`\|X\|_{1,\infty}`."""

    notation = r"\|%s\|_{1,\infty}"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.Expr:
        return sp.sqrt(max_col_sum(x) * max_row_sum(x))


class Squares(Operator):
    r"""The sum of the squared entries, printed as :math:`\|X\|_F^2`."""

    notation = r"\|%s\|_F^2"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.Expr:
        return sum(entry**2 for entry in x)


class Inner(Operator):
    r"""The sum of the products of entries, printed as :math:`\langle X,Y\rangle`."""

    notation = r"\langle %s, %s \rangle"

    @staticmethod
    def compute(x: sp.MatrixBase, y: sp.MatrixBase) -> sp.Expr:
        return sum(a * b for a, b in zip(x, y, strict=True))


class Osc(Operator):
    r"""The largest range of a column, printed as :math:`\mathrm{osc}(X)`."""

    notation = r"\mathrm{osc}(%s)"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.Expr:
        return sp.Max(*(sp.Max(*x.col(c)) - sp.Min(*x.col(c)) for c in range(x.cols)))


class Det(Operator):
    """The determinant."""

    notation = r"\det %s"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.Expr:
        return x.det()


class Scalar(Operator):
    """A matrix of one entry, read as a number."""

    notation = r"\left(%s\right)"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.Expr:
        return x[0, 0]


class Largest(Operator):
    r"""The largest value over an index: ``Largest(term, (k, 1, d))``, printed as :math:`\max_k`."""

    notation = r"\max_{%s} %s"
    over = sp.Max

    def _latex(self, printer: LatexPrinter, *_: Any) -> str:
        term = printer.parenthesize(self.args[0], 45)
        return self.notation % (printer._print(self.args[1][0]), term)


class Least(Largest):
    r"""The least value over an index, printed as :math:`\min_k`."""

    notation = r"\min_{%s} %s"
    over = sp.Min


class MatrixOperator(sp.MatrixExpr):
    """A matrix that is computed from another one, of the same shape."""

    notation = "%s"

    def __new__(cls, x: Any) -> "MatrixOperator":
        return super().__new__(cls, sp.sympify(x))

    @property
    def shape(self) -> tuple[Any, Any]:
        return self.args[0].shape

    def _entry(self, row: Any, column: Any, **_: Any) -> sp.Expr:
        return MatrixElement(self, row, column)

    def _latex(self, printer: LatexPrinter, *_: Any) -> str:
        return self.notation % printer._print(self.args[0])

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.MatrixBase:
        raise NotImplementedError


class Softmax(MatrixOperator):
    """Row-wise softmax."""

    notation = r"\operatorname{softmax}\left(%s\right)"
    compute = staticmethod(softmax_rows)


class Sizes(MatrixOperator):
    """The matrix of absolute values."""

    notation = r"\left|%s\right|"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.MatrixBase:
        return x.applyfunc(abs)


class Centred(MatrixOperator):
    """A matrix minus its mean row."""

    notation = r"\left(I - \tfrac{1}{n} \mathbf{1} \mathbf{1}^{\top}\right) %s"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.MatrixBase:
        return centring(x.rows) * x


class Normed(MatrixOperator):
    """LayerNorm without gain, offset and epsilon: every row centred and divided by its deviation."""

    notation = r"\operatorname{LN}\left(%s\right)"

    @staticmethod
    def compute(x: sp.MatrixBase) -> sp.MatrixBase:
        centred = x * centring(x.cols)
        rows = [centred.row(r) / sp.sqrt(centred.row(r).dot(centred.row(r)) / x.cols) for r in range(x.rows)]
        return sp.Matrix.vstack(*rows)


class Rows(sp.MatrixExpr):
    """Row ``first`` of a matrix (counted from 1), or the rows from it to ``last``."""

    def __new__(cls, x: Any, first: Any, last: Any = None) -> "Rows":
        return super().__new__(cls, sp.sympify(x), *map(sp.sympify, (first, last or first)))

    @property
    def shape(self) -> tuple[Any, Any]:
        return self.args[2] - self.args[1] + 1, self.args[0].shape[1]

    def _latex(self, printer: LatexPrinter, *_: Any) -> str:
        x, first, last = self.args
        name = printer._print(x) if isinstance(x, sp.MatrixSymbol) else rf"\left({printer._print(x)}\right)"
        place = str(first) if first == last else rf"{first}\ldots {last}"
        return f"{name}_{{{place}}}"

    @staticmethod
    def compute(x: sp.MatrixBase, first: Any, last: Any) -> sp.MatrixBase:
        return x[int(first) - 1 : int(last), :]


class Named(sp.Function):
    """A function of one number with a letter; ``definition`` is what the letter stands for."""

    letter = ""

    def _latex(self, printer: LatexPrinter, exp: str | None = None) -> str:
        power = f"^{{{exp}}}" if exp else ""
        return f"{self.letter}{power}({', '.join(printer._print(arg) for arg in self.args)})"

    @staticmethod
    def definition(*args: Any) -> Any:
        """What the letter stands for, as an expression."""
        raise NotImplementedError


def named(name: str, letter: str, definition: Any, about: str) -> Any:
    """A function with a letter, from its definition (a lambda of expressions)."""
    members = {"letter": letter, "definition": staticmethod(definition), "__doc__": about, "is_real": True}
    return type(name, (Named,), members)


Kappa = named("Kappa", r"\kappa", lambda t: (sp.exp(t) - 1) / t, "The secant slope of the exponential.")
Vartheta = named("Vartheta", r"\vartheta", lambda t: sp.tanh(t / 4) / (t / 4), "tanh(D/4) over D/4.")
Sigma = named("Sigma", r"\sigma", lambda t: 1 / (1 + sp.exp(-t)), "The logistic function.")
BigF = named("BigF", "F", lambda t: (sp.exp(t) - 1 + t) / 4, "The factor of the column sums.")
SquareG = named(
    "SquareG", "G^2", lambda t: 2 * BigF.definition(t) * sp.tanh(t / 2), "The squared factor of one layer."
)
SquareC = named(
    "SquareC",
    "C^2",
    lambda t: sp.Max(Kappa.definition(t / 2) + 1, (Kappa.definition(t) + 1) / 2) * Vartheta.definition(t) / 4,
    "The squared constant of one head at oscillation D.",
)
Relu = named("Relu", r"\mathrm{relu}", lambda t: sp.Max(t, 0), "The larger of t and 0.")
