"""A browser moves every control of the built site, and reads the pages without scripts."""

import re

import nbformat
import pytest

from tests.book.browser import CHAPTERS, DESK, PHONE, ROOT, every_chapter, visit_fixtures

pytestmark = pytest.mark.slow  # a browser on the built site

site, browser, contexts, visit = visit_fixtures

STATE = """(root) => {
  const controls = [...root.querySelectorAll(".rank-control")];
  const frame = root.querySelector(".rank-frame");
  const index = (c) => Number((c.querySelector("[type=range]") ?? c.querySelector(":checked")).value);
  const stored = root.querySelector(`.rank-frame-of[data-key="${controls.map(index)}"]`);
  const slider = (c) => c.querySelector("[type=range]");
  return {
    values: controls.map(index),
    expected: { seen: stored.dataset.seen, heard: stored.dataset.heard },
    seen: root.querySelector(".rank-seen > span").innerHTML,
    label: frame.getAttribute("aria-label"),
    role: frame.getAttribute("role"),
    heard: root.querySelector(".rank-heard").textContent,
    pictures: frame.querySelectorAll(":scope > svg").length,
    picture: frame.innerHTML,
    isStored: stored.content.firstChild.data.length > 1000,
    height: frame.getBoundingClientRect().height,
    below: root.getBoundingClientRect().height,
    spoken: controls.filter(slider).map((c) => slider(c).getAttribute("aria-valuetext")),
    words: controls.filter(slider).map((c) => slider(c).dataset.words.split("|")[slider(c).value]),
  };
}"""
OPEN = "document.querySelectorAll('details').forEach((fold) => { fold.open = true })"
SMALL = """() => [...document.querySelectorAll(
  ".rank-explore input[type=range], .rank-choice label, .rank-buttons button")].map((e) => [
    e.textContent || e.dataset.words, e.getBoundingClientRect().width, e.getBoundingClientRect().height])"""


def explorers(page):
    page.evaluate(OPEN)
    return page.locator(".rank-explore").all()


def check_state(state: dict, moved: bool) -> None:
    assert state["pictures"] == 1 and state["role"] == "img" and state["height"] > 50 and state["isStored"]
    assert state["label"] == state["expected"]["heard"]
    assert _plain(state["seen"]) == _plain(state["expected"]["seen"])
    assert state["heard"] == (state["expected"]["heard"] if moved else "")
    assert state["spoken"] == state["words"]


def _plain(markup: str) -> str:
    return re.sub(r"&(amp|lt|gt|quot|#x27);|[<>&]", "", markup)


def presses(control) -> list[tuple[str, int]]:
    """Key presses that visit every value of one control, and the value expected after each."""
    slider = control.locator("input[type=range]")
    if slider.count():
        last = int(slider.get_attribute("max"))
        walk = [("Home", 0), *(("ArrowRight", i) for i in range(1, last + 1)), ("ArrowRight", last)]
        return walk + [("Home", 0), ("ArrowLeft", 0), ("End", last), ("ArrowLeft", max(last - 1, 0))]
    radios = control.locator("input")
    start = next(i for i, radio in enumerate(radios.all()) if radio.is_checked())
    count = radios.count()
    return [("ArrowRight", (start + i) % count) for i in range(1, count + 1)] if count > 1 else []


@every_chapter
def test_every_control_moves_its_picture_by_keyboard(visit, chapter):
    seen = visit(chapter)
    page = seen.page
    notebook = (ROOT / "chapters" / f"{chapter}.ipynb").read_text()
    roots = explorers(page)
    assert len(roots) == notebook.count(r"class=\"rank-explore\"")
    for root in roots:
        before = root.evaluate(STATE)
        check_state(before, moved=False)
        for i, control in enumerate(root.locator(".rank-control").all()):
            control.locator("input[type=range], input:checked").first.focus()
            for key, expected in presses(control):
                page.keyboard.press(key)
                after = root.evaluate(STATE)
                assert after["values"][i] == expected, f"control {i} after {key}"
                if after["values"] != before["values"]:
                    check_state(after, moved=True)
                    same = [after[part] == before[part] for part in ("picture", "label")]
                    assert same != [True, True], f"picture and sentence stay at {after['values']}"
                assert abs(after["below"] - before["below"]) < 1, "the text below stays where it is"
                before = after
    assert not seen.faults


@every_chapter
def test_without_scripts_the_default_frame_stands_alone(visit, chapter):
    page = visit(chapter, scripts=False).page
    for root in explorers(page):
        assert not root.locator(".rank-controls").is_visible()
        assert (
            root.locator(".rank-frame > svg").count() == 1 and root.locator(".rank-frame > svg").is_visible()
        )
        assert root.locator(".rank-seen").inner_text().strip()


@every_chapter
def test_every_target_is_44_pixels(visit, chapter):
    page = visit(chapter, width=PHONE).page
    explorers(page)
    assert [t for t in page.evaluate(SMALL) if min(t[1:]) < 43.9] == []


# ---------------------------------------------------------------- one page: what every slider can

PAGE = "front-page"
KEEPS = next(c for c in CHAPTERS if r"data-do=\"keep\"" in (ROOT / "chapters" / f"{c}.ipynb").read_text())


def test_the_state_is_in_the_address_and_comes_back(visit, site):
    page = visit(PAGE).page
    (root, *_) = explorers(page)
    root.locator("input[type=range]").focus()
    page.keyboard.press("End")
    root.locator('[data-text="on"]').click()
    moved = root.evaluate(STATE)
    address = page.url
    assert address.endswith("#depth-skip?depth=8&skip=on")
    page.goto("about:blank")
    page.goto(address)
    again = page.locator(".rank-explore").first.evaluate(STATE)
    assert (again["values"], again["picture"]) == (moved["values"], moved["picture"])
    page.evaluate("location.hash = '#depth-skip?depth=2&skip=nonsense'")
    page.wait_for_function("document.querySelector('.rank-explore [type=range]').value === '2'")
    page.evaluate("location.hash = '#no-such-place?depth=5'")
    assert page.locator(".rank-explore").first.evaluate(STATE)["values"][0] == 2


def test_a_reload_without_address_is_the_default(visit):
    page = visit(PAGE).page
    (root, *_) = explorers(page)
    before = root.evaluate(STATE)["values"]
    page.evaluate("document.querySelector('.rank-explore [type=range]').value = 7")
    page.reload()
    assert page.locator(".rank-explore").first.evaluate(STATE)["values"] == before


def test_depth_plays_pauses_and_steps(visit):
    page = visit(PAGE).page
    (root, *_) = explorers(page)

    def value():
        return root.evaluate(STATE)["values"][0]

    start = value()
    root.get_by_role("button", name="Next").click()
    assert value() == start + 1
    root.get_by_role("button", name="Back").click()
    assert value() == start
    root.get_by_role("button", name="Play").click()
    page.wait_for_function(f"document.querySelector('.rank-explore [type=range]').value > {start + 1}")
    root.get_by_role("button", name="Pause").click()
    held = value()
    page.wait_for_timeout(1200)
    assert value() == held and root.get_by_role("button", name="Play").is_visible()
    assert root.evaluate(STATE)["heard"], "announced when it stops"


def test_kept_curves_lie_under_the_next_in_the_same_axes(visit):
    page = visit(KEEPS).page
    root = next(r for r in explorers(page) if r.locator("[data-do=keep]").count())
    axes = "(root) => [...root.querySelectorAll('.rank-frame svg')].map((s) => s.querySelector('[style*=miter]').getAttribute('d'))"
    root.get_by_role("button", name="Keep this curve").click()
    slider = root.locator("input[type=range]").first
    slider.focus()
    page.keyboard.press("End")
    assert root.locator(".rank-kept").count() == 1
    places = root.evaluate(axes)
    assert len(places) == 2 and places[0] == places[1]
    assert root.locator(".rank-kept text").first.is_hidden(), "axes are written once"
    root.get_by_role("button", name="Remove kept curves").click()
    assert root.locator(".rank-kept").count() == 0


def test_a_slider_works_as_soon_as_its_markup_arrives(browser):
    """Handlers wait neither for the rest of the page nor for its scripts; markup from a notebook works as it is."""
    cells = nbformat.read(ROOT / f"chapters/{PAGE}.ipynb", as_version=4).cells
    outputs = [
        output.get("data", {}).get("text/html", "") for cell in cells for output in cell.get("outputs", [])
    ]
    (markup,) = [text for text in outputs if "rank-explore" in text]
    page = browser.new_page()
    page.set_content("<p>early</p>")
    page.add_script_tag(path=str(ROOT / "sphinxext/static/sliders.js"))
    page.evaluate("(markup) => document.body.insertAdjacentHTML('beforeend', markup)", markup)
    root = page.locator(".rank-explore")
    page.wait_for_selector(".rank-controls")
    assert root.locator(".rank-frame > svg").count() == 1, "vector graphics in place of pixels"
    root.locator("input[type=range]").focus()
    page.keyboard.press("End")
    check_state(root.evaluate(STATE), moved=True)
    page.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_frames_are_no_nodes_until_they_are_shown(visit, width):
    page = visit(PAGE, width=width).page
    inside = "[...document.querySelectorAll('template')].map((t) => t.content.querySelectorAll('*').length)"
    assert set(page.evaluate(inside)) == {0}
