"""From a statement to what is checked: sizes are chosen, matrices get entries, operators are computed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement

from .matrices import real_matrix, stochastic_matrix
from .notation import Largest, MatrixOperator, Named, Operator, Rows
from .printer import typeset


@dataclass(frozen=True)
class Model:
    """Entries that stand for a letter, and in words what they are."""

    value: Any
    words: str


def stochastic(name: str, size: int) -> Model:
    """A square matrix whose rows sum to 1."""
    return Model(stochastic_matrix(name, size), "rows with sum 1")


def weights(name: str, size: int) -> Model:
    """Positive weights with sum 1, as quotients of positive numbers by their sum."""
    parts = sp.symbols(f"{name}1:{size + 1}", positive=True)
    return Model(tuple(part / sum(parts) for part in parts), "positive weights with sum 1")


def signed_weights(name: str, size: int) -> Model:
    """Numbers with sum 1, the last one by difference."""
    parts = sp.symbols(f"{name}1:{size}", real=True)
    return Model((*parts, 1 - sum(parts)), "numbers with sum 1")


Given = Mapping[Any, Any]


def value_of(entry: Any) -> Any:
    """What stands for a letter: the value of a model, or the entry itself."""
    return entry.value if isinstance(entry, Model) else entry


def unfold(expr: Any, given: Given) -> Any:
    r"""The statement with its sizes and letters filled in and every operator computed.

    >>> from .notation import ColNorm, n, d, ONE
    >>> x = sp.MatrixSymbol("X", n, d)
    >>> unfold(ONE.T * x, {n: 2, d: 1})
    Matrix([[x_11 + x_21]])
    >>> unfold(ColNorm(x), {n: 2, d: 1, x: sp.Matrix([3, -4])})
    7
    """
    expr = sp.sympify(expr)
    if isinstance(expr, sp.MatrixBase):
        return expr.applyfunc(lambda entry: unfold(entry, given))
    if expr in given:
        value = sp.sympify(value_of(given[expr]))
        rest = {key: entry for key, entry in given.items() if key != expr}
        return value.as_immutable() if isinstance(value, sp.MatrixBase) else unfold(value, rest)
    if isinstance(expr, sp.MatrixExpr):
        return _matrix(expr, given)
    if isinstance(expr, sp.Indexed):
        return _entry(expr, given)
    if isinstance(expr, sp.Sum):
        return _over(expr.function, expr.limits, given, lambda terms: sp.Add(*terms))
    if isinstance(expr, Largest):
        return _over(expr.args[0], [expr.args[1]], given, lambda terms: expr.over(*terms))
    if isinstance(expr, Operator):
        return sp.sympify(expr.compute(*(unfold(arg, given) for arg in expr.args)))
    if isinstance(expr, Named):
        return expr.definition(*(unfold(arg, given) for arg in expr.args))
    if isinstance(expr, MatrixElement):
        row, column = (int(unfold(place, given)) for place in expr.indices)
        return unfold(expr.parent, given)[row, column]
    if isinstance(expr, sp.Derivative | sp.Integral):
        return expr.func(
            unfold(expr.expr if isinstance(expr, sp.Derivative) else expr.function, given), *expr.args[1:]
        ).doit()
    if isinstance(expr, sp.Limit):
        return sp.Limit(unfold(expr.args[0], given), *expr.args[1:]).doit()
    if isinstance(expr, sp.Subs):
        return unfold(expr.expr, given).subs(
            list(zip(expr.variables, (unfold(p, given) for p in expr.point)))
        )
    if not expr.args:
        return expr
    return expr.func(*(unfold(arg, given) for arg in expr.args))


def _matrix(expr: sp.MatrixExpr, given: Given) -> sp.MatrixBase:
    rows, columns = (int(unfold(size, given)) for size in expr.shape)
    if isinstance(expr, sp.MatrixSymbol):
        return real_matrix(expr.name, rows, columns).as_immutable()
    if isinstance(expr, sp.Identity):
        return sp.eye(rows).as_immutable()
    if isinstance(expr, sp.OneMatrix):
        return sp.ones(rows, columns).as_immutable()
    if isinstance(expr, sp.ZeroMatrix):
        return sp.zeros(rows, columns).as_immutable()
    if isinstance(expr, sp.BlockMatrix):
        blocks = [
            sp.Matrix.hstack(*(unfold(b, given) for b in expr.blocks.row(r))) for r in range(expr.blocks.rows)
        ]
        return sp.Matrix.vstack(*blocks).as_immutable()
    args = [unfold(arg, given) for arg in expr.args]
    if isinstance(expr, MatrixOperator | Rows):
        return expr.compute(*args).as_immutable()
    if isinstance(expr, sp.Transpose):
        return args[0].T
    if isinstance(expr, sp.HadamardProduct):
        value = args[0]
        for arg in args[1:]:
            value = value.multiply_elementwise(arg)
        return value
    value = args[0]
    for arg in args[1:]:
        if isinstance(expr, sp.MatAdd):
            value = value + arg
        elif isinstance(expr, sp.MatMul):
            value = value * arg
        elif isinstance(expr, sp.MatPow):
            value = value**arg
        else:
            raise TypeError(
                f"unfold: expected a sum, product, power or operator of matrices, got {type(expr).__name__}"
            )
    return value


def _entry(expr: sp.Indexed, given: Given) -> sp.Expr:
    places = [int(unfold(place, given)) for place in expr.indices]
    if expr.base in given:
        value = value_of(given[expr.base])
        for place in places[:-1]:
            value = value[place - 1]
        return sp.sympify(value[places[-1] - 1])
    known = expr.base.assumptions0 if hasattr(expr.base, "assumptions0") else {}
    kept = {key: known[key] for key in ("positive", "nonnegative", "real") if known.get(key)}
    return sp.Symbol(f"{expr.base.label}_{''.join(map(str, places))}", **(kept or {"real": True}))


def _over(term: Any, limits: Any, given: Given, collect: Any) -> Any:
    (symbol, low, high), *rest = limits
    low, high = int(unfold(low, given)), int(unfold(high, given))
    inner = sp.Sum(term, *rest) if rest else term
    return collect([unfold(inner.subs(symbol, sp.Integer(place)), given) for place in range(low, high + 1)])


def letters(expr: Any, given: Given) -> set[Any]:
    """The letters of a statement that ``given`` fills in, those inside of the values included."""
    found, todo = set(), [sp.sympify(expr)]
    while todo:
        part = todo.pop()
        atoms = part.atoms(sp.Symbol, sp.MatrixSymbol, sp.IndexedBase)
        for symbol in part.atoms(sp.MatrixSymbol):
            atoms |= {a for size in symbol.shape for a in size.free_symbols}
        for atom in atoms - found:
            if atom in given:
                found.add(atom)
                value = value_of(given[atom])
                if isinstance(value, sp.Expr) and not isinstance(given[atom], Model):
                    todo.append(value)
    return found


def scope(sides: tuple[Any, ...], given: Given, skip: Any = ()) -> str:
    """In words and formulas: what was filled in, and what the remaining letters are taken to be."""
    used = set().union(*(letters(side, given) for side in sides))
    parts, sizes = [], []
    for letter, entry in given.items():
        if letter not in used:
            continue
        name = typeset(letter.label if isinstance(letter, sp.IndexedBase) else letter)
        if isinstance(entry, Model):
            parts.append(f"${name}$: {entry.words}")
        elif isinstance(entry, int | sp.Integer):
            chosen = letter.is_integer and name not in "ijkl"
            (sizes if chosen else parts).append(f"${name} = {entry}$")
        elif isinstance(entry, sp.MatrixBase | sp.Expr):
            parts.append(f"${name} = {typeset(entry)}$")
        else:
            parts.append(f"${name} = ({', '.join(map(typeset, entry))})$")
    values = [value_of(given[letter]) for letter in used if not isinstance(given[letter], Model)]
    shown = [part for part in (*sides, *values) if isinstance(part, sp.Basic)]
    free = set().union(*(part.free_symbols for part in shown)) if shown else set()
    bound = {limit[0] for part in shown for s in part.atoms(sp.Sum) for limit in s.limits}
    bound |= {limit.args[1][0] for part in shown for limit in part.atoms(Largest)}
    bases = set().union(*(part.atoms(sp.IndexedBase) for part in shown)) if shown else set()
    bound |= {base.label for base in bases} | {sp.Symbol(str(base.label)) for base in bases}
    plain = sorted((s for s in free - used - bound - set(skip) if isinstance(s, sp.Symbol)), key=str)
    parts += [f"${typeset(b.label)}_j > 0$" for b in sorted(bases - used, key=str) if b.is_positive]
    for words, test in (
        (r"\ge 0", lambda s: s.is_nonnegative and not s.is_positive),
        ("> 0", lambda s: s.is_positive and not s.is_integer),
    ):
        names = [typeset(s) for s in plain if test(s)]
        parts += [f"${', '.join(names)} {words}$"] if names else []
    if sizes:
        parts.append(f"model: {', '.join(sizes)}")
    return "; ".join(parts)
