"""The one shape of what a check finds: bounds, an enclosed size, and what may be said of them."""

import math

import pytest

from ranklib.exact.verdicts import Bounds, Check, Hypothesis, log10, power

NOTHING = -math.inf


def at_most(bound: float, low: float, high: float) -> Check:
    return Check((NOTHING, bound), (low, high))


def at_least(bound: float, low: float, high: float) -> Check:
    return Check((bound, math.inf), (low, high))


@pytest.mark.parametrize(
    "bound, holds, certified", [(-1.0, True, True), (-2.5, True, False), (-4.0, False, True)]
)
def test_a_check_is_certified_unless_the_upper_bound_lies_inside_the_enclosure(bound, holds, certified):
    found = at_most(bound, -3.0, -2.0)
    assert (found.holds, found.certified) == (holds, certified)


@pytest.mark.parametrize(
    "bound, holds, certified", [(-4.0, True, True), (-2.5, True, False), (-1.0, False, True)]
)
def test_and_so_for_the_lower_bound(bound, holds, certified):
    found = at_least(bound, -3.0, -2.0)
    assert (found.holds, found.certified) == (holds, certified)


def test_rounding_is_forgiven_on_both_sides_and_no_more():
    for size, within, beyond in ((-2.0, 2e-12, 4e-12), (-2000.0, 1e-9, 3e-9)):
        for check, sign in ((at_most, 1), (at_least, -1)):
            assert check(size, size + sign * within, size + sign * within).holds
            assert not check(size, size + sign * beyond, size + sign * beyond).holds


def test_slack_speaks_of_the_near_end_of_the_enclosure():
    found = Check((-4.0, 1.0), (-3.0, -2.0))
    assert found.slack == pytest.approx(1e3) and found.slack_below == pytest.approx(10)
    assert at_most(0.0, 0.1, 0.2).slack < 1 and at_least(0.0, -0.2, -0.1).slack_below < 1
    assert at_most(0.0, NOTHING, NOTHING).slack == at_most(0.0, 0.0, 0.0).slack_below == math.inf


def test_sizes_below_and_above_float64_keep_their_logarithm():
    found = at_most(-400.0, -500.0, -450.0)
    assert found.upper == 0 and found.measured == (0, 0) and found.holds and found.certified
    assert at_most(999.0, 998.0, 998.0).upper == math.inf and not at_most(-450.0, -420.0, -410.0).holds


def test_nothing_left_is_at_most_nothing():
    assert at_most(NOTHING, NOTHING, NOTHING).holds and not at_most(NOTHING, -5.0, -4.0).holds


def test_bounds_and_sizes_from_the_sizes_themselves():
    found = Bounds.of(0.0, 1e-3)
    assert found.lower == 0 and found.upper == pytest.approx(1e-3, rel=1e-14)
    assert log10(0.0) == NOTHING and power(NOTHING) == 0 and power(log10(7.0)) == pytest.approx(7, rel=1e-14)


def test_that_a_check_holds_and_that_it_applies_are_two_things():
    broken = {"osc": Hypothesis(2.0, 1.0, False)}
    found = Check((NOTHING, 0.0), (-2.0, -1.0), broken, applies=False)
    assert found.holds and not found.applies and not at_most(0.0, 1.0, 2.0).hypotheses
