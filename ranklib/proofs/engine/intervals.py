"""Inequalities proved on a whole interval or box: ball arithmetic and adaptive bisection.

A box is an interval of the variable. On each box the function is enclosed by arithmetic with error bounds
(python-flint's ``arb``); a box whose enclosure is positive is done, any other one is cut in two. Where the
function vanishes, it is divided by its zero: the first derivatives are zero exactly, by sympy, and the next
one has a sign on a box around the point, again by enclosure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import sympy as sp
from flint import arb, arb_series, ctx, fmpq

PRECISION = 80  # bits; boxes are far wider than 2^-80
MOST_BOXES = 20_000
NEAR = sp.Rational(1, 64)  # first half-width of a box around a zero; halved until the derivative has a sign


@dataclass(frozen=True)
class Enclosed:
    """Whether the function is positive on the whole interval, how many boxes it took, and what is wrong."""

    boxes: int
    trouble: str


def positive(
    function: sp.Expr, symbol: Any, low: Any, high: Any, zeros: Mapping[Any, int] | None = None
) -> Enclosed:
    """Is ``function > 0`` for ``low <= symbol <= high``, but for the points of ``zeros`` (point to order)?

    A number needs no symbol: ``positive(number, None, 0, 0)`` is one box.

    Example
    -------
    >>> x = sp.Symbol("x", real=True)
    >>> positive(1 + 2 * x - sp.exp(x), x, 0, sp.Rational(1256, 1000), {0: 1})
    Enclosed(boxes=5, trouble='')
    >>> positive(1 + 2 * x - sp.exp(x), x, 0, sp.Rational(1257, 1000), {0: 1}).trouble
    'not positive near x = 1.257'
    """
    with ctx.workprec(PRECISION):
        if symbol is None:
            value = enclose(function, {})
            return Enclosed(1, "" if value > 0 else f"the value {value}")
        todo, boxes = [(sp.Rational(low), sp.Rational(high))], 0
        for point, order in (zeros or {}).items():
            point = sp.Rational(point)
            width = _near_zero(function, symbol, point, order, low, high)
            if width is None:
                return Enclosed(boxes, f"no sign of derivative {order} at {symbol} = {point}")
            boxes += 1
            todo = [part for box in todo for part in _without(box, point - width, point + width)]
        todo.reverse()
        while todo:
            start, end = todo.pop()
            boxes += 1
            if boxes > MOST_BOXES:
                return Enclosed(
                    boxes, f"more than {MOST_BOXES} boxes, the last one at {symbol} = {float(start):.6g}"
                )
            if _sure(function, symbol, start, end):
                continue
            middle = (start + end) / 2
            if enclose(function, {symbol: _ball(middle, middle)}) < 0 or end - start < sp.Rational(1, 2**40):
                return Enclosed(boxes, f"not positive near {symbol} = {float(end):.6g}")
            todo += [(middle, end), (start, middle)]
        return Enclosed(boxes, "")


def positive_on_box(function: sp.Expr, box: Mapping[Any, tuple[Any, Any]]) -> Enclosed:
    """Is ``function > 0`` on the box (symbol to its ends)? The relatively longest side is cut in two.

    Example
    -------
    >>> x, y = sp.symbols("x y", real=True)
    >>> positive_on_box(2 - x * y, {x: (0, 1), y: (0, sp.Rational(3, 2))}).trouble
    ''
    >>> positive_on_box(2 - x * y, {x: (0, 1), y: (0, 3)}).trouble[:12]
    'not positive'
    """
    with ctx.workprec(PRECISION):
        whole = {symbol: (sp.Rational(low), sp.Rational(high)) for symbol, (low, high) in box.items()}
        length = {symbol: high - low for symbol, (low, high) in whole.items()}
        todo, boxes = [whole], 0
        while todo:
            part = todo.pop()
            boxes += 1
            if enclose(function, {symbol: _ball(*ends) for symbol, ends in part.items()}) > 0:
                continue
            middle = {symbol: _ball((a + b) / 2, (a + b) / 2) for symbol, (a, b) in part.items()}
            place = ", ".join(f"{symbol} = {float((a + b) / 2):.6g}" for symbol, (a, b) in part.items())
            if enclose(function, middle) < 0:
                return Enclosed(boxes, f"not positive near {place}")
            if boxes > MOST_BOXES:
                return Enclosed(boxes, f"more than {MOST_BOXES} boxes, the last one near {place}")
            cut = max(part, key=lambda symbol: (part[symbol][1] - part[symbol][0]) / length[symbol])
            low, high = part[cut]
            todo += [{**part, cut: ((low + high) / 2, high)}, {**part, cut: (low, (low + high) / 2)}]
        return Enclosed(boxes, "")


def enclose(expr: sp.Expr, values: Mapping[sp.Symbol, Any]) -> Any:
    """An enclosure of the expression: a ball, or a power series of balls where a value is one."""
    if expr.is_Rational:
        return arb(fmpq(int(expr.p), int(expr.q)))
    if expr is sp.pi:
        return arb.pi()
    if expr is sp.E:
        return arb(1).exp()
    if expr.is_Symbol:
        return values[expr]
    args = [enclose(arg, values) for arg in expr.args]
    if expr.is_Add:
        return reduce(lambda a, b: a + b, args)
    if expr.is_Mul:
        return reduce(lambda a, b: a * b, args)
    if expr.is_Pow:
        return _power(args[0], expr.exp, args[1])
    rule = RULES.get(expr.func)
    if rule is None:
        raise TypeError(
            f"enclose: expected exp, log, tanh and the like, got {expr.func.__name__}; add a rule"
        )
    return rule(*args)


def _power(base: Any, exponent: sp.Expr, value: Any) -> Any:
    if exponent.is_Integer:
        power = reduce(lambda a, b: a * b, [base] * abs(int(exponent)), arb(1))
        return power if exponent > 0 else 1 / power
    if exponent == sp.Rational(1, 2):
        return base.sqrt()
    if exponent == -sp.Rational(1, 2):
        return 1 / base.sqrt()
    return (base.log() * value).exp()


def _tanh(x: Any) -> Any:
    return x.tanh() if isinstance(x, arb) else 1 - 2 / ((2 * x).exp() + 1)


def _sinh(x: Any) -> Any:
    return x.sinh() if isinstance(x, arb) else (x.exp() - (-x).exp()) / 2


def _cosh(x: Any) -> Any:
    return x.cosh() if isinstance(x, arb) else (x.exp() + (-x).exp()) / 2


RULES = {
    sp.exp: lambda x: x.exp(),
    sp.log: lambda x: x.log(),
    sp.tanh: _tanh,
    sp.sinh: _sinh,
    sp.cosh: _cosh,
    sp.coth: lambda x: 1 / _tanh(x),
    sp.atanh: lambda x: ((1 + x) / (1 - x)).log() / 2,
    sp.erf: lambda x: x.erf(),
    sp.Abs: abs,
    sp.Max: lambda *args: reduce(lambda a, b: a.max(b), args),
    sp.Min: lambda *args: reduce(lambda a, b: a.min(b), args),
}


def _ball(start: Any, end: Any) -> Any:
    left, right = (arb(fmpq(int(x.p), int(x.q))) for x in (start, end))
    return left.union(right)


def _sure(function: sp.Expr, symbol: sp.Symbol, start: sp.Rational, end: sp.Rational) -> bool:
    """Positive by its enclosure on the box, or by the one of its slope and its value in the middle."""
    box = _ball(start, end)
    if enclose(function, {symbol: box}) > 0:
        return True
    middle = (start + end) / 2
    try:
        slope = _derivative(function, symbol, box, 1)
    except (TypeError, AttributeError, ValueError):  # a maximum has no series, nor has a pole
        return False
    value = enclose(function, {symbol: _ball(middle, middle)})
    return bool(value - abs(slope) * _ball((end - start) / 2, (end - start) / 2) > 0)


def _derivative(function: sp.Expr, symbol: sp.Symbol, box: Any, order: int) -> Any:
    """An enclosure of the derivative over the box, over the factorial of its order."""
    before, ctx.cap = ctx.cap, order + 1
    try:
        series = enclose(function, {symbol: arb_series([box, 1])})
        return series[order] if isinstance(series, arb_series) else arb(0)
    finally:
        ctx.cap = before


def _near_zero(
    function: sp.Expr, symbol: sp.Symbol, point: sp.Rational, order: int, low: Any, high: Any
) -> Any:
    """Half the width of a box in which Taylor's formula gives the sign, or None."""
    if any(not _vanishes(function.diff(symbol, k).subs(symbol, point)) for k in range(order)):
        return None
    inside = low < point < high
    if inside and order % 2:
        return None
    sign = -1 if point == high and order % 2 else 1
    for halvings in range(30):
        width = NEAR / 2**halvings
        start = point if point == low else point - width
        end = point if point == high else point + width
        if sign * _derivative(function, symbol, _ball(start, end), order) > 0:
            return width
    return None


def _vanishes(value: sp.Expr) -> bool:
    return value == 0 or (not value.is_Rational and sp.simplify(value) == 0)


def _without(box: tuple, start: Any, end: Any) -> list[tuple]:
    left, right = box
    parts = [(left, min(right, start)), (max(left, end), right)]
    return [(a, b) for a, b in parts if a < b]


def digits(boxes: int) -> str:
    """The number of boxes, in words for the report."""
    return f"{boxes} box" if boxes == 1 else f"{boxes} boxes"
