"""How statements are printed: sympy's LaTeX with the field's names and an order that reads well."""

import re
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from .notation import Largest, Operator, Rows

RELATIONS = {"=": "=", "<=": r"\le", "<": "<", ">=": r"\ge", ">": ">", "!=": r"\neq", ":=": ":="}


class Printer(LatexPrinter):
    """sympy's LaTeX, with the field's names: ones, transposes, indices from 1, plain brackets."""

    def __init__(self) -> None:
        super().__init__({"fold_short_frac": False, "mul_symbol": None, "ln_notation": False})

    def _print_OneMatrix(self, expr: Any) -> str:
        column, row = r"\mathbf{1}", r"\mathbf{1}^{\top}"
        return column if expr.shape[1] == 1 else row if expr.shape[0] == 1 else f"{column} {row}"

    def _print_ZeroMatrix(self, expr: Any) -> str:
        return "0"

    def _print_Identity(self, expr: Any) -> str:
        return "I"

    def _print_Transpose(self, expr: Any) -> str:
        inner = self._print(expr.arg)
        simple = isinstance(expr.arg, sp.MatrixSymbol | sp.OneMatrix | Rows) and "^" not in inner
        if isinstance(expr.arg, sp.MatrixBase):
            simple = True
        return rf"{inner}^{{\top}}" if simple else rf"\left({inner}\right)^{{\top}}"

    def _print_MatrixElement(self, expr: Any) -> str:
        places = [self._print(place + 1) for place in expr.indices]
        comma = "" if all(len(place) == 1 for place in places) else ","
        name = self.parenthesize(expr.parent, 100, strict=True)
        if isinstance(expr.parent, sp.MatrixSymbol) and "_" in name:
            name = f"({name})"
        return f"{name}_{{{comma.join(places)}}}"

    def _print_Integer(self, expr: Any) -> str:
        digits = str(expr).rstrip("0")
        zeros = len(str(expr)) - len(digits)
        if zeros < 7:
            return str(expr)
        return f"10^{{{zeros}}}" if digits == "1" else rf"{digits} \cdot 10^{{{zeros}}}"

    def _print_Rational(self, expr: Any) -> str:
        if expr.q == 1:
            return self._print_Integer(expr)
        top, bottom = (self._print_Integer(sp.Integer(part)) for part in (abs(expr.p), expr.q))
        return rf"{'- ' if expr.p < 0 else ''}\frac{{{top}}}{{{bottom}}}"

    def _print_MatAdd(self, expr: Any) -> str:
        return " ".join(_signed([self._print(term) for term in summands(expr)]))

    def _print_Mul(self, expr: Any) -> str:
        numerator, denominator = _fraction(expr)
        share, body = expr.as_coeff_Mul()
        if (
            denominator.is_Integer
            and denominator != 1
            and not body.is_Atom
            and body.has(sp.Add, sp.Sum, Operator)
        ):
            sign = "- " if share < 0 else ""
            return rf"{sign}\tfrac{{{abs(share.p)}}}{{{share.q}}} {self._last(body)}"
        if denominator != 1:
            sign = "- " if numerator.could_extract_minus_sign() else ""
            top, bottom = (self._print(part) for part in (-numerator if sign else numerator, denominator))
            return rf"{sign}\frac{{{top}}}{{{bottom}}}"
        number, rest = expr.as_coeff_Mul()
        factors = [*([number] if abs(number) != 1 else []), *sorted(sp.Mul.make_args(rest), key=_factor_rank)]
        texts = [*map(self._factor, factors[:-1]), self._last(factors[-1])]
        joined = texts[0]
        for text in texts[1:]:
            joined += (r" \cdot " if text[0].isdigit() else " ") + text
        return f"- {joined}" if number == -1 else joined

    def _print_Add(self, expr: Any, order: Any = None) -> str:
        return " ".join(_signed([self._print(term) for term in ordered(expr)]))

    def _print_MatMul(self, expr: Any) -> str:
        number, factors = expr.as_coeff_matrices()
        body = " ".join(map(self._factor, factors))
        if number in (1, -1):
            return body if number == 1 else f"- {body}"
        if number.is_Rational and not number.is_Integer:
            sign = "- " if number < 0 else ""
            return rf"{sign}\tfrac{{{abs(number.p)}}}{{{number.q}}} {body}"
        return f"{self._factor(number)} {body}"

    def _last(self, expr: Any) -> str:
        return self._print(expr) if isinstance(expr, sp.Sum | Largest) else self._factor(expr)

    def _factor(self, expr: Any) -> str:
        text = self._print(expr)
        wrapped = expr.is_Add or isinstance(expr, sp.MatAdd | sp.Sum | sp.Limit | sp.Derivative | Largest)
        return rf"\left({text}\right)" if wrapped else text

    def _print_Indexed(self, expr: Any) -> str:
        return f"{self._print(expr.base)}_{{{' '.join(map(self._print, expr.indices))}}}"

    def _print_Function(self, expr: Any, exp: str | None = None) -> str:
        name = type(expr).__name__
        if name not in ELEMENTARY:
            return super()._print_Function(expr, exp)
        power = f"^{{{exp}}}" if exp else ""
        arg = self._print(expr.args[0])
        simple = expr.args[0].is_Symbol or expr.args[0].is_Integer
        return (
            rf"{ELEMENTARY[name]}{power} {arg}" if simple else rf"{ELEMENTARY[name]}{power}\left({arg}\right)"
        )

    def _print_log(self, expr: Any, exp: str | None = None) -> str:
        return self._print_Function(expr, exp)

    _print_tanh = _print_sinh = _print_cosh = _print_coth = _print_atanh = _print_log
    _print_sin = _print_cos = _print_tan = _print_log

    def _print_Sum(self, expr: Any) -> str:
        limits = "".join(
            rf"\sum_{{{self._print(v)}={self._print(a)}}}^{{{self._print(b)}}}" for v, a, b in expr.limits
        )
        body = self._print(expr.function)
        if isinstance(expr.function, sp.Add):
            body = rf"\left({body}\right)"
        return f"{limits} {body}"

    def _print_HadamardProduct(self, expr: Any) -> str:
        return r" \circ ".join(self.parenthesize(arg, 50, strict=False) for arg in expr.args)

    def _print_Abs(self, expr: Any, exp: str | None = None) -> str:
        body = rf"\left|{self._print(expr.args[0])}\right|"
        return body if exp is None else f"{body}^{{{exp}}}"

    def _hprint_variadic_function(self, expr: Any, exp: str | None = None) -> str:
        args = sorted(expr.args, key=sp.default_sort_key)
        texts = ", ".join(self._print(arg) for arg in args)
        body = rf"\{type(expr).__name__.lower()}\left({texts}\right)"
        return body if exp is None else f"{body}^{{{exp}}}"

    _print_Max = _print_Min = _hprint_variadic_function


ELEMENTARY = {name: rf"\{name}" for name in ("tanh", "sinh", "cosh", "coth", "log", "sin", "cos", "tan")}
ELEMENTARY |= {"atanh": r"\operatorname{artanh}"}
PRINTER = Printer()


def _factor_rank(expr: Any) -> tuple:
    base = expr.base if expr.is_Pow else expr
    ranks = (
        base.is_number,
        base.is_Symbol,
        isinstance(base, sp.Indexed | Operator),
        base.is_Add,
        isinstance(expr, sp.Sum | Largest | sp.Limit | sp.Derivative) is False,
    )
    return next((place for place, yes in enumerate(ranks) if yes), len(ranks)), sp.default_sort_key(expr)


def _fraction(expr: Any) -> tuple[Any, Any]:
    """Numerator and denominator; powers of e stay where they are."""
    top, bottom = [], []
    for factor in sp.Mul.make_args(expr):
        if factor.is_Rational:
            top, bottom = [*top, sp.Integer(factor.p)], [*bottom, sp.Integer(factor.q)]
        elif factor.is_Pow and factor.base is not sp.E and factor.exp.could_extract_minus_sign():
            bottom.append(factor.base**-factor.exp)
        else:
            top.append(factor)
    return sp.Mul(*top), sp.Mul(*bottom)


def ordered(expr: sp.Add) -> list[Any]:
    """Terms of a sum, one that is added before those that are subtracted."""
    found = PRINTER._as_ordered_terms(expr)
    first = next((term for term in found if not term.could_extract_minus_sign()), found[0])
    return [first, *(term for term in found if term is not first)]


def _signed(texts: list[str]) -> list[str]:
    rest = [f"- {text[1:].strip()}" if text.startswith("-") else f"+ {text}" for text in texts[1:]]
    return [texts[0], *rest]


def summands(expr: sp.MatAdd) -> list[Any]:
    """Terms of a sum of matrices: constant rows and subtracted ones last."""

    def rank(term: Any) -> tuple:
        return term.as_coeff_mmul()[0].could_extract_minus_sign(), term.has(sp.OneMatrix)

    return sorted(expr.args, key=rank)


def typeset(expr: Any) -> str:
    r"""The LaTeX of an expression, in the book's notation.

    >>> from .notation import ONE, ColNorm, Kappa, d, n
    >>> x = sp.MatrixSymbol("X", n, d)
    >>> typeset(ColNorm(ONE * ONE.T * x) + Kappa(n) ** 2)
    '\\kappa^{2}(n) + \\|\\mathbf{1} \\mathbf{1}^{\\top} X\\|_1'
    """
    return PRINTER.doprint(sp.sympify(expr))


def terms(expr: Any) -> list[str]:
    """The summands of an expression, printed one by one, each but the first with its sign."""
    if isinstance(expr, sp.Add):
        return _signed([typeset(term) for term in ordered(expr)])
    if isinstance(expr, sp.MatAdd):
        return _signed([typeset(term) for term in summands(expr)])
    return [typeset(expr)]


def formula_width(latex: str) -> int:
    r"""About how many characters wide a line of LaTeX is when typeset; a fraction as wide as its longer part.

    >>> formula_width(r"\sqrt{\alpha_1} \le \tanh 2")
    9
    """
    text = latex
    while match := re.search(
        r"\\[td]?frac\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", text
    ):
        longer = max(match[1], match[2], key=formula_width)
        text = text[: match.start()] + "{" + longer + "}" + text[match.end() :]
    silent = (
        r"\\(begin|end)\{\w+\}|\\(left|right|mathbf|mathrm|text|operatorname|frac|tfrac|[bB]ig)(?![A-Za-z])"
    )
    text = re.sub(silent, "", text)
    text = re.sub(r"\\(?=(tanh|sinh|cosh|log|max|min|lim|det)(?![A-Za-z]))", "", text)
    return len(re.sub(r"[{}_^&\s$]|\\\\|\\[,;!]", "", re.sub(r"\\[A-Za-z]+", "c", text)))
