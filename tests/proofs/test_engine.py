"""The derivations hold, an independent evaluation agrees, and wrong steps of every kind are caught."""

import dataclasses
import doctest
import importlib
import pkgutil
import random
import subprocess
import sys

import mpmath
import pytest
import sympy as sp

import ranklib.proofs as proofs
from ranklib.proofs import (
    DERIVATIONS,
    Derivation,
    DerivationError,
    by_lemma,
    derivation,
    distinct,
    identity,
    inequality,
)
from ranklib.proofs.engine.decide import searched
from ranklib.proofs.engine.matrices import max_col_sum, max_row_sum, real_matrix
from ranklib.proofs.engine.search import search
from ranklib.proofs.engine.steps import formula_width

A, B, C = sp.symbols("a b c", real=True)
U = sp.Symbol("u", nonnegative=True)
BOX = {A: (-2, 2), B: (-2, 2)}
WHY = "A sentence."
NEARLY = sp.Rational(99, 100)
ALL_STEPS = [(name, step) for name, build in DERIVATIONS.items() for step in build().steps]
IDS = [f"{name}: {step.name}" for name, step in ALL_STEPS]
EXPECTED = """
layer_bias mean_centre mean_family median_centre composite_triangle two_tokens_midpoint rank_lifted_pair
certificate score_expansion softmax_shift centred_score row_stochastic two_token_map safe_softmax saturation
path_two_layers path_induction path_lengths length_generating
mean_absolute_deviation total_variation key_identity kappa master_lemma one_layer two_tokens_theorem
technical_lemma unrolled_exponent printed_steps sharp_constant
two_heads many_heads kantorovich order_seven clean_family pocket_example constant_four oscillation_eight
two_sides slow_decay skip_corollary orthogonal_contribution never_shrinks aligned_directions
difference_map causal_pair position_pairs dobrushin_contraction
column_division ball_projection circle_pair epsilon_threshold rank_two layer_norm_ranks
both_norms two_linear_maps row_wise_readings mlps_in_depth
equal_lengths shared_feature
drawn_circle radial_factor midpoint_factors opposed_heads
weighed_lengths cancelling_lengths distinct_draws frozen_or_recomputed honest_baselines
""".split()


def failing(step, needle):
    """The step fails, and the derivation that holds it refuses to be checked, printed or rendered."""
    verdict = step.verify()
    assert not verdict.ok and needle in verdict.obtained, verdict
    holder = Derivation("holder", "A claim.", (identity("fine", A, A, WHY), step), "a source")
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
    assert page.count("\n$$\n") == 2 * len(built.steps) and page.count("*Verified by ") == len(built.steps)
    assert "{matrix}" not in page and built.claim in page and built.source in page
    for number, (step, (_, verdict)) in enumerate(zip(built.steps, report.rows), 1):
        assert f"**{number}. " in page and step.why in page and verdict.method in page
        assert step.why.endswith(".") and step.why[0].isupper()
        for line in step.display().splitlines():
            assert formula_width(line) <= 40, line
            assert line.count("{") == line.count("}") and line.count(r"\left") == line.count(r"\right")


def test_wide_formulas_are_broken_at_the_relation():
    short = identity("short", (A + B) * A, A**2 + A * B, WHY).display()
    assert short == f"$$\n{sp.latex((A + B) * A)} = {sp.latex(A**2 + A * B)}\n$$"
    wide = identity("wide", sp.expand((A + B) ** 3 + C), sp.expand((A + C) ** 4 + B), WHY).display()
    first, second = wide.splitlines()[2:4]
    assert first.startswith("&") and first.endswith(r"\\") and second.startswith("&=")
    assert max(map(formula_width, wide.splitlines())) <= 40


def test_registry_holds_the_chapters():
    assert sorted(DERIVATIONS) == sorted(EXPECTED)
    assert all(name == build().name for name, build in DERIVATIONS.items())
    with pytest.raises(ValueError, match="expected one of .*layer_bias.*got 'nothing'"):
        derivation("nothing")


def sample(symbol, rng):
    """A random value that the assumptions of the symbol allow."""
    if symbol.is_integer:
        return mpmath.mpf(rng.randint(1, 9))
    value = mpmath.mpf(rng.randint(1, 2000)) / 700
    return value if symbol.is_nonnegative else value * rng.choice([-1, 1])


@pytest.mark.parametrize("name, step", ALL_STEPS, ids=IDS)
def test_numbers_agree_with_the_step(name, step):
    sides = [side.doit() for side in (step.lhs, step.rhs)]
    sides = [list(side) if isinstance(side, sp.MatrixBase) else [side] for side in sides]
    symbols = sorted({s for side in sides for entry in side for s in entry.free_symbols}, key=str)
    evaluate = sp.lambdify(symbols, sides, "mpmath")
    rng = random.Random(step.name)
    with mpmath.workdps(40):
        for _ in range(5):
            left, right = evaluate(*(sample(symbol, rng) for symbol in symbols))
            gaps = [r - l for l, r in zip(left, right, strict=True)]
            scale = max(map(abs, [*left, *right, mpmath.mpf(1)]))
            if step.relation == "=":
                assert max(map(abs, gaps)) < mpmath.mpf(10) ** -30 * scale
            elif step.relation == "<":
                assert gaps[0] > 0
            elif step.relation == "<=":
                assert gaps[0] >= -(mpmath.mpf(10) ** -30) * scale
            else:
                assert symbols or any(gaps)


@pytest.mark.slow
@pytest.mark.parametrize("name, step", ALL_STEPS, ids=IDS)
def test_every_step_can_fail(name, step):
    """Spoil it: move an entry, turn an inequality round, lower a constant by 1 %, separate nothing."""
    if step.relation == "!=":
        spoiled = dataclasses.replace(step, rhs=step.lhs)
    elif getattr(step.check, "func", None) is searched:
        spoiled = dataclasses.replace(step, rhs=step.rhs * NEARLY)
    elif step.relation == "=":
        shift = sp.Rational(1, 1000)
        if isinstance(step.rhs, sp.MatrixBase):
            shift *= sp.eye(step.rhs.rows)[:, 0] * sp.eye(step.rhs.cols)[0, :]
        spoiled = dataclasses.replace(step, rhs=step.rhs + shift)
    else:
        spoiled = dataclasses.replace(step, lhs=step.rhs + sp.Rational(1, 1000), rhs=step.lhs)
    assert not spoiled.verify().ok


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
        (
            by_lemma("both sides vanish", A - A, 0, WHY, lemma="empty statement", box=BOX),
            "no point came near",
        ),
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
    assert step.verify().method == "lemma + search: a bound, 2860 points, worst slack 0.20"


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
        (lambda: Derivation("d", "c", (identity("s", A, A, WHY),) * 2, "s"), ValueError, "distinct names"),
    ],
)
def test_bad_input_is_refused(build, error, message):
    with pytest.raises(error, match=message):
        build()


def test_reports_are_the_same_every_time():
    first, second = (str(derivation("certificate").verify()) for _ in range(2))
    assert first == second and "5560 points, worst slack 0.00" in first


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
