"""Chapters as JupyterLab shows them: not trusted, as after a download, and once run, with a slider moved.

Two chapters here; ``RANKLIB_LAB=all`` opens every one (``make portable``).
"""

import os

import pytest

from tests.book.browser import CHAPTERS, visit_fixtures
from tests.book.lab import IN_LAB, jupyterlab, opened, stored

_, browser, _, _ = visit_fixtures
HEAVIEST, LIGHTEST = "skip-connections", "front-page"
pytestmark = pytest.mark.slow  # a real JupyterLab in a browser
SOME = CHAPTERS if os.environ.get("RANKLIB_LAB") == "all" else [LIGHTEST, HEAVIEST]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with jupyterlab(tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.mark.parametrize("chapter", SOME)
def test_a_chapter_without_trust(browser, lab, chapter):
    page = opened(browser, lab, chapter)
    seen = page.evaluate(IN_LAB)
    page.context.close()
    expected = stored(chapter)
    assert seen["faults"] == []
    assert seen["sliders"] == [[1, 1]] * expected["sliders"], "one picture and one sentence for each slider"
    assert seen["figures"] == expected["figures"]
    assert seen["open"] == expected["open"], "setup and hidden cells are folded"


def test_a_slider_moves_in_a_running_chapter(browser, lab):
    page = opened(browser, lab, LIGHTEST)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    widget = ".jp-Notebook .jp-OutputArea-output .widget-html-content"
    page.wait_for_selector(f"{widget} svg", timeout=90_000)
    assert page.locator(".jp-Notebook .widget-radio-box").count() == 1
    before = page.locator(widget).first.inner_html()
    slider = page.locator(
        ".jp-Notebook .jupyter-widgets .noUi-handle, .jp-Notebook .widget-slider .noUi-handle"
    ).first
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "([where, old]) => document.querySelector(where).innerHTML !== old",
        arg=[widget, before],
        timeout=30_000,
    )
    page.context.close()
