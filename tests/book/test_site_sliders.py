"""A browser moves every slider of the built site, and reads the pages without scripts."""

import pytest

from tests.book.browser import ROOT, every_chapter, visit_fixtures

pytestmark = pytest.mark.slow  # a browser on the built site

site, browser, contexts, visit = visit_fixtures

STATE = """(root) => {
  const inputs = [...root.querySelectorAll("input[type=range]")];
  const visible = [...root.querySelectorAll(".rank-frame")].filter((f) => f.checkVisibility());
  return {
    values: inputs.map((i) => Number(i.value)),
    words: inputs.map((i) => JSON.parse(i.dataset.values)[i.value]),
    announced: inputs.map((i) => i.getAttribute("aria-valuetext")),
    written: inputs.map((i) => i.parentElement.querySelector("output").textContent),
    keys: visible.map((f) => f.dataset.key),
    labels: visible.map((f) => f.getAttribute("aria-label")),
    pictures: visible.map((f) => f.innerHTML),
    heights: visible.map((f) => f.firstElementChild.getBoundingClientRect().height),
    said: root.querySelector(".rank-said").textContent,
  };
}"""


def check_state(state: dict) -> None:
    assert state["keys"] == [",".join(map(str, state["values"]))], (
        "one frame is visible, the one of these values"
    )
    assert state["heights"][0] > 50
    assert state["announced"] == state["written"] == state["words"]
    assert [state["said"]] == state["labels"]


def keys_for(count: int) -> list[tuple[str, int]]:
    """Key presses that visit every value of one slider, and the value expected after each."""
    last = count - 1
    walk = [("Home", 0), *(("ArrowRight", i) for i in range(1, count)), ("ArrowRight", last)]
    return walk + [("Home", 0), ("ArrowLeft", 0), ("End", last), ("ArrowLeft", max(last - 1, 0))]


@every_chapter
def test_every_slider_moves_its_picture_by_keyboard(visit, chapter):
    seen = visit(chapter)
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    notebook = (ROOT / "chapters" / f"{chapter}.ipynb").read_text()
    roots = page.locator(".rank-explore").all()
    assert len(roots) == notebook.count(r"class=\"rank-explore\"")
    for root in roots:
        assert root.locator(".rank-controls").is_visible()
        before = root.evaluate(STATE)
        check_state(before)
        for i, control in enumerate(root.locator("input[type=range]").all()):
            control.focus()
            for key, expected in keys_for(int(control.get_attribute("max")) + 1):
                page.keyboard.press(key)
                after = root.evaluate(STATE)
                assert after["values"][i] == expected, f"slider {i} after {key}"
                check_state(after)
                if after["values"] != before["values"]:
                    same = [after[part] == before[part] for part in ("pictures", "labels")]
                    assert same != [True, True], f"picture and sentence stay at {after['words']}"
                before = after
    assert not seen.faults


@every_chapter
def test_without_scripts_the_default_frame_stands_alone(visit, chapter):
    page = visit(chapter, scripts=False).page
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    for root in page.locator(".rank-explore").all():
        assert not root.locator(".rank-controls").is_visible()
        shown = [frame for frame in root.locator(".rank-frame").all() if frame.is_visible()]
        default = [control.get_attribute("value") for control in root.locator("input").all()]
        assert [frame.get_attribute("data-key") for frame in shown] == [",".join(default)]
        assert root.locator(".rank-said").inner_text() == shown[0].get_attribute("aria-label")
