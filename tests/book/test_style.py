"""Roles and their colours: readable, told apart without colour, and the page's CSS is theirs."""

import re

import matplotlib
import matplotlib.pyplot as plt
import pytest

from ranklib.book.pictures import use_book_style
from ranklib.book.style import PAGE, ROLES, css


@pytest.fixture(autouse=True)
def book_style():
    with matplotlib.rc_context():
        use_book_style()
        yield
        plt.close("all")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ROLES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_label_in_the_colour_of_a_role_can_be_read(name, theme):
    assert contrast(getattr(ROLES[name], theme), getattr(PAGE, theme)) >= 4.5


def test_roles_differ_by_more_than_colour():
    looks = [(str(r.dashes), r.marker, r.width) for r in ROLES.values()]
    assert len(set(looks)) == len(looks)
    assert len({r.light for r in ROLES.values()}) == len({r.dark for r in ROLES.values()}) == len(ROLES)


def test_the_css_holds_every_role_in_both_themes():
    for theme, block in zip(("light", "dark"), css().split("}")):
        assert dict(re.findall(r"--rank-([\w-]+): (#\w+);", block)) == {
            n: getattr(r, theme) for n, r in ROLES.items()
        }
