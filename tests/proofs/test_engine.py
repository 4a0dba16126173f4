"""The derivations hold, an independent evaluation agrees, and wrong steps of every kind are caught."""

import dataclasses
import doctest
import importlib
import pkgutil
import random
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import mpmath
import pytest
import sympy as sp

import ranklib.proofs as proofs
from ranklib.proofs import (
    DERIVATIONS,
    Derivation,
    DerivationError,
    by_intervals,
    by_lemma,
    derivation,
    distinct,
    identity,
    inequality,
)
from ranklib.proofs.engine import Kappa
from ranklib.proofs.engine.emptiness import says_nothing
from ranklib.proofs.engine.matrices import max_col_sum, max_row_sum, real_matrix
from ranklib.proofs.engine.printer import formula_width, typeset
from ranklib.proofs.engine.search import search

A, B, C = sp.symbols("a b c", real=True)
U = sp.Symbol("u", nonnegative=True)
BOX = {A: (-2, 2), B: (-2, 2)}
ROOT = Path(__file__).resolve().parents[2]
WHY = "A sentence."
TOO_FAR = sp.Rational(1257, 1000)
NEARLY = sp.Rational(99, 100)


@cache
def steps_of(name):
    """The steps of a derivation; built when a test asks, not while tests are collected."""
    return derivation(name).steps


def all_steps():
    return [(name, step) for name in DERIVATIONS for step in steps_of(name)]


def failing(step, needle):
    """The step fails, and the derivation that holds it refuses to be checked, printed or rendered."""
    verdict = step.verify()
    assert not verdict.ok and needle in verdict.obtained, verdict
    holder = Derivation(
        "holder", "A claim.", (identity("fine", A + A * B, A * (1 + B), WHY), step), "a source"
    )
    assert not holder.verify().ok and "FAILED" in str(holder.verify()) and "1 of 2" in str(holder.verify())
    for show in (holder.check, holder.report, holder._repr_markdown_):
        with pytest.raises(DerivationError) as caught:
            show()
        for part in ("'holder'", repr(step.name), verdict.expected, verdict.obtained, verdict.remedy):
            assert part and part in str(caught.value)


@pytest.mark.parametrize("name", DERIVATIONS)
def test_every_derivation_is_verified_and_reads_well(name):
    built = derivation(name)
    report = built.verify()
    assert report.ok, str(report)
    text, page = built.report(), built._repr_markdown_()
    assert text == str(report)
    assert len(text.splitlines()) == len(built.steps) + 2
    assert page.count("\n$$\n") == 2 * len(built.steps) and page.startswith("<details>\n<summary>Derivation")
    assert f"checked: {len(built.steps)} steps" in page and page.endswith("</details>\n")
    assert built.claim in page and built.source in page and "Chapter" not in built.source
    for number, (step, (_, verdict)) in enumerate(zip(built.steps, report.rows), 1):
        assert f"**{number}. " in page and step.why in page and step.label() in page
        assert step.kind == "definition" or verdict.method[1:] in page
        assert step.why.endswith((".", "!")) and step.why[0].isupper()
        for line in step.display().splitlines():
            assert line.count("{") == line.count("}") and line.count(r"\left") == line.count(r"\right")
            assert not re.search(r"_\{[^{}]*\}_|\d{16}", line), (
                "a double subscript, or a number of too many digits"
            )


def test_wide_formulas_are_broken_at_the_relation():
    short = identity("short", (A + B) * A, A**2 + A * B, WHY).display()
    assert short == "$$\na \\left(a + b\\right) = a^{2} + a b\n$$"
    wide = identity("wide", sp.expand((A + B) ** 3 + C), sp.expand((A + C) ** 4 + B), WHY).display()
    first, second = wide.splitlines()[2:4]
    assert first.startswith("&") and first.endswith(r"\\") and second.startswith("&=")
    assert max(map(formula_width, wide.splitlines())) <= 42


def test_a_formula_has_no_double_subscript_and_no_row_of_zeros():
    first, tiny = sp.MatrixSymbol("P_1", 3, 3), sp.Rational(1, 10) ** 81
    assert typeset(first[0, 1] - 2 * first[2, 2]) == r"(P_{1})_{12} - 2 (P_{1})_{33}"
    assert typeset(tiny) == r"\frac{1}{10^{81}}" and typeset(sp.Integer(10) ** 6) == "1000000"
    assert typeset(-3 * 10**9 * A) == r"-3 \cdot 10^{9} a"


def test_registry_holds_what_the_chapters_show():
    asked = {
        name
        for path in (ROOT / "chapters").glob("*.ipynb")
        for name in re.findall(r'derivation\(\\"(\w+)\\"\)', path.read_text())
    }
    assert len(asked) > 60 and asked <= set(DERIVATIONS)
    assert all(name == build().name for name, build in DERIVATIONS.items())
    with pytest.raises(ValueError, match="expected one of .*layer_bias.*got 'nothing'"):
        derivation("nothing")


@pytest.mark.parametrize(
    "lhs, relation, rhs, given, empty",
    [
        (A - C, "=", (A - B) + (B - C), {}, "built equal"),
        (Kappa(A), "=", (sp.exp(A) - 1) / A, {}, "built equal"),
        (sp.Symbol("alpha"), "=", 1 / (1 + A), {sp.Symbol("alpha"): 1 / (1 + A)}, "built equal"),
        (sp.Integer(200), "<", sp.Integer(216), {}, "two numbers"),
        (U, "<=", U + sp.Symbol("v", nonnegative=True), {}, "differ by a letter"),
        (U, "<=", U + 3, {}, "differ by a letter"),
    ],
)
def test_statements_that_say_nothing_are_refused(lhs, relation, rhs, given, empty):
    assert empty in says_nothing(lhs, relation, rhs, given)
    with pytest.raises(ValueError, match="could be false"):
        (identity if relation == "=" else inequality)("empty", lhs, rhs, WHY, given=given)


def test_no_step_of_the_book_says_nothing():
    """Also where a letter is filled in for the whole derivation, after the step was made."""
    for name, step in all_steps():
        assert not says_nothing(step.lhs, step.relation, step.rhs, step.given), (name, step.name)


def test_kinds_are_shown():
    kinds = {
        "identity",
        "inequality",
        "intervals",
        "search only",
        "cited lemma and search",
        "difference",
        "definition",
    }
    assert {step.kind for _, step in all_steps()} == kinds
    for _, step in all_steps():
        assert step.label().startswith(step.kind)
        if step.kind == "cited lemma and search":
            assert step.options["lemma"]


def sample(symbol, rng, over):
    """A random value that the assumptions of the symbol, or the interval of the step, allow."""
    if symbol in over:
        low, high = map(float, over[symbol])
        return mpmath.mpf(low + (high - low) * rng.random())
    if symbol.is_integer:
        return mpmath.mpf(rng.randint(1, 9))
    value = mpmath.mpf(rng.randint(1, 2000)) / 700
    return value if symbol.is_nonnegative else value * rng.choice([-1, 1])


@pytest.mark.parametrize("name", DERIVATIONS)
def test_numbers_agree_with_each_step(name):
    for step in steps_of(name):
        agree_in_numbers(step)


def agree_in_numbers(step):
    if step.kind == "definition":
        return
    sides = [list(side) if isinstance(side, sp.MatrixBase) else [side] for side in step.sides()]
    symbols = sorted({s for side in sides for entry in side for s in entry.free_symbols}, key=str)
    evaluate = sp.lambdify(symbols, sides, "mpmath")
    rng = random.Random(step.name)
    over = step.options.get("over") or {}
    with mpmath.workdps(40):
        for _ in range(5):
            left, right = evaluate(*(sample(symbol, rng, over) for symbol in symbols))
            gaps = [mpmath.mpmathify(r) - l for l, r in zip(left, right, strict=True)]
            scale = max(map(abs, [*left, *right, mpmath.mpf(1)]))
            if step.relation == "=":
                assert max(map(abs, gaps)) < mpmath.mpf(10) ** -30 * scale, step.name
            elif step.relation == "<":
                assert gaps[0] > 0, step.name
            elif step.relation == "<=":
                assert gaps[0] >= -(mpmath.mpf(10) ** -30) * scale, step.name
            else:
                assert symbols or any(gaps), step.name


@pytest.mark.slow
@pytest.mark.parametrize("name", DERIVATIONS)
def test_every_step_can_fail(name):
    for step in steps_of(name):
        assert step.kind == "definition" or not spoil(step).verify().ok, step.name


def spoil(step):
    """Move an entry, turn an inequality round, lower a constant by 1 %, separate nothing."""
    left, right = step.sides()
    plain = dataclasses.replace(step, lhs=left, rhs=right, given={})
    if step.relation == "!=":
        return dataclasses.replace(plain, rhs=left)
    elif "box" in step.options:
        return dataclasses.replace(plain, rhs=right * NEARLY)
    elif step.relation == "=":
        shift = sp.Rational(1, 1000)
        if isinstance(right, sp.MatrixBase):
            shift *= sp.eye(right.rows)[:, 0] * sp.eye(right.cols)[0, :]
        return dataclasses.replace(plain, rhs=right + shift)
    else:
        options = {key: value for key, value in step.options.items() if key != "form"}
        return dataclasses.replace(plain, lhs=right + sp.Rational(1, 1000), rhs=left, options=options)


@pytest.mark.parametrize(
    "step, needle",
    [
        (identity("wrong sign", (A - B) ** 2, A**2 + 2 * A * B + B**2, WHY), "-4*a*b"),
        (identity("wrong matrix", real_matrix("x", 3, 2).T, real_matrix("y", 2, 3), WHY), "x_11 - y_11"),
        (identity("exponentials", sp.tanh(A) * sp.cosh(A), sp.cosh(A), WHY), "exp"),
        (inequality("constant 1 % too small", 2 * A * B, NEARLY * (A**2 + B**2), WHY), "sign"),
        (inequality("form of another", 2 * A * B, NEARLY * (A**2 + B**2), WHY, form=(A - B) ** 2), "sign"),
        (inequality("false sign", A, -abs(A), WHY), "sign"),
        (inequality("triangle reversed", abs(A) + abs(B), abs(A + B), WHY), "sign"),
        (inequality("triangle 1 % too small", abs(A + B), NEARLY * (abs(A) + abs(B)), WHY), "sign"),
        (inequality("maximum as minimum", sp.Max(A, B), A, WHY), "sign"),
        (
            by_intervals("chord", sp.exp(U), 1 + 2 * U, WHY, over={U: (0, TOO_FAR)}, zeros={0: 1}),
            "not positive",
        ),
        (
            by_intervals("wrong order", sp.tanh(U), U, WHY, over={U: (0, 1)}, zeros={0: 1}),
            "no sign of derivative",
        ),
        (
            inequality(
                "strict in spite of equality", 2 * A * B, A**2 + B**2, WHY, form=(A - B) ** 2, strict=True
            ),
            "sign",
        ),
        (inequality("not monotone", sp.tanh(U), NEARLY * U, WHY, grows_in=U), "sign"),
        (inequality("starts below", 1, sp.exp(U) - sp.Rational(1, 100), WHY, grows_in=U), "sign"),
        (inequality("through a pole", 0, 1 / (1 - U), WHY, grows_in=U), "sign"),
        (inequality("grows in a signed symbol", 0, A, WHY, grows_in=A), "sign"),
        (inequality("complex symbols", sp.Symbol("z"), abs(sp.Symbol("z")), WHY), "sign"),
        (
            by_lemma(
                "false lemma",
                max_col_sum(real_matrix("x", 2, 3)),
                max_row_sum(real_matrix("x", 2, 3)),
                WHY,
                lemma="false",
                box={s: (-1, 1) for s in real_matrix("x", 2, 3)},
            ),
            "relative slack of -",
        ),
        (
            by_lemma(
                "constant 1 % too small", 2 * abs(A * B), NEARLY * (A**2 + B**2), WHY, lemma="false", box=BOX
            ),
            "relative slack of -0.0",
        ),
        (by_lemma("empty domain", A * B, A**2 + B**2, WHY, lemma="empty", box=BOX, where=A > 3), "no valid"),
        (by_lemma("not a number", sp.sqrt(A), 4, WHY, lemma="undefined", box=BOX, near=1), "NaN or infinity"),
        (by_lemma("never near", A, 5, WHY, lemma="far", box=BOX), "no point came near"),
        (distinct("equal at the point", A**2, A, WHY, at={A: 1}), "differences 0"),
        (distinct("a symbol left open", A, B, WHY, at={A: 1}), "differences"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_wrong_steps_are_caught(step, needle):
    failing(step, needle)


@pytest.mark.parametrize("row", range(2))
@pytest.mark.parametrize("column", range(3))
def test_no_entry_of_a_matrix_is_overlooked(row, column):
    x, wrong = real_matrix("x", 2, 3), real_matrix("x", 2, 3)
    wrong[row, column] += A
    failing(identity("one entry", x, wrong, WHY), "a difference of -a")
    where = {symbol: 0 for symbol in [*x, A]}
    failing(distinct("equal", x, wrong, WHY, at=where), "differences 0")
    assert distinct("one entry", x, wrong, WHY, at=where | {A: 1}).verify().ok


def test_right_steps_of_every_kind_are_verified():
    right = [
        inequality("sharp", 2 * A * B, A**2 + B**2, WHY, form=(A - B) ** 2),
        inequality("reverse triangle", abs(A) - abs(B), abs(A - B), WHY),
        inequality("maximum of sums", sp.Max(A + B, A - B), abs(A) + abs(B), WHY),
        inequality("growth", 1 + U, sp.exp(U), WHY, grows_in=U),
        by_lemma("restricted", A, B, WHY, lemma="a condition", box=BOX, where=A <= B),
    ]
    report = Derivation("right", "A claim.", tuple(right), "a source").verify()
    assert report.ok, str(report)


def test_case_rules_are_sound():
    """What the rules for maxima and absolute values decide holds at random points; not all is."""
    rng, verdicts = random.Random(7), []
    for _ in range(40):
        atoms = [abs(A), abs(B), abs(A + B), abs(A - 2 * B), sp.Max(A, B), sp.Max(A, -B)]
        weights = [rng.choice([-1, 0, 0, 1, 2]) for _ in atoms]
        expr = sum((w * atom for w, atom in zip(weights, atoms, strict=True)), rng.choice([-1, 0, 1]) * A)
        verdicts.append(inequality("random", 0, expr, WHY).verify().ok)
        if verdicts[-1]:
            value = sp.lambdify((A, B), expr, "math")
            points = [(rng.uniform(-1, 1), rng.uniform(-1, 1)) for _ in range(500)]
            assert min(value(x, y) for x, y in points) >= -1e-12, expr
    assert 5 < sum(verdicts) < 35


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("centre", [(0.9, -1.3, 0.2), (2, 2, 2), (0, 0, 0), (-2, 0, 1.7)])
def test_search_finds_a_small_pocket(seed, centre):
    """A violation in a ball of radius a tenth, inside a box of side four, at its faces and corners."""
    symbols = real_matrix("x", 1, 3)
    distance = sum((x - sp.Rational(str(c))) ** 2 for x, c in zip(symbols, centre, strict=True))
    box = {symbol: (-2, 2) for symbol in symbols}
    found = search(sp.S.One, NEARLY + distance, box, sp.true, 600, 0.01, seed)
    assert found.slack < -0.009 and "relative slack of -0.01" in found.trouble
    assert not search(sp.S.One, 1 + distance, box, sp.true, 600, 0.01, seed).trouble


def test_report_states_points_and_slack():
    bound = sp.Rational(5, 2)
    step = by_lemma("loose", A, bound, WHY, lemma="a bound", box={A: (0, 2)}, near=0.5, points=300)
    assert step.verify().method == "search: 2860 points, least slack 0.20, no violation"


@pytest.mark.parametrize(
    "build, error, message",
    [
        (lambda: identity("s", 0.5, A, WHY), TypeError, "got float"),
        (lambda: identity("s", "a + b", A, WHY), TypeError, "got str"),
        (lambda: identity("s", A + 0.5, A, WHY), ValueError, "sp.Rational"),
        (lambda: identity("s", sp.nan, A, WHY), ValueError, "exact numbers"),
        (lambda: identity("s", sp.ones(2, 3), sp.ones(3, 2), WHY), ValueError, r"\(2, 3\) and \(3, 2\)"),
        (lambda: inequality("s", sp.eye(2), sp.eye(2), WHY), ValueError, "two scalars"),
        (lambda: by_lemma("s", A + C, B, WHY, lemma="l", box=BOX), ValueError, r"without \['c'\]"),
        (lambda: by_lemma("s", A, B, WHY, lemma="l", box={A: (1, 1), B: (0, 1)}), ValueError, "low < high"),
        (
            lambda: by_lemma("s", A, B, WHY, lemma="l", box=BOX | {A: (0, float("nan"))}),
            ValueError,
            "low < high",
        ),
        (lambda: Derivation("d", "c", (), "s"), ValueError, "at least one step"),
        (
            lambda: Derivation("d", "c", (identity("s", A + A * B, A * (1 + B), WHY),) * 2, "s"),
            ValueError,
            "distinct names",
        ),
    ],
)
def test_bad_input_is_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_reports_are_the_same_every_time():
    first, second = (str(derivation("certificate").verify()) for _ in range(2))
    assert first == second and "5560 points, least slack 0.00" in first


def test_check_all_stops_at_a_failure(monkeypatch):
    wrong = Derivation("wrong", "A claim.", (identity("wrong", A, B, WHY),), "a source")
    monkeypatch.setitem(DERIVATIONS, "wrong", lambda: wrong)
    assert proofs.check_all(["composite_triangle"])["composite_triangle"].ok
    with pytest.raises(DerivationError, match="'wrong'"):
        proofs.check_all(["composite_triangle", "wrong"])


@pytest.mark.slow
def test_messages_do_not_need_the_test_hook():
    code = (
        "import sympy as sp; from ranklib.proofs import identity\n"
        "try: identity('s', 'a', sp.Symbol('a'), 'w')\n"
        "except TypeError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "expected a sympy expression, matrix or integer, got str" in run.stdout


@pytest.mark.parametrize(
    "name", [m.name for m in pkgutil.iter_modules(proofs.__path__) if not m.ispkg] + ["__init__"]
)
def test_docstring_examples(name):
    module = proofs if name == "__init__" else importlib.import_module(f"ranklib.proofs.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted > 0 or hasattr(module, "DERIVATIONS")
