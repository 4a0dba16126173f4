"""The page's view of an Explorer: frames, controls and words as HTML."""

import html
import re

import matplotlib
import matplotlib.pyplot as plt
import pytest

from ranklib.book import slider_markup
from ranklib.book.pictures import use_book_style
from ranklib.book.sliders import explore
from ranklib.book.style import ROLES
from tests.book import example_explorer
from tests.book.example_explorer import SHARP, Elements, draw, folded, visible

explorer = example_explorer.explorer


def test_html_has_one_frame_for_each_grid_point_and_shows_the_default_as_pixels(explorer):
    markup = explorer.to_html()
    frames = folded(markup, "rank-frame-of")
    assert [f["data-key"] for f, _ in frames] == ["0,0", "0,1", "1,0", "1,1", "2,0", "2,1"]
    assert all(picture.startswith("<svg") and picture.endswith("</svg>") for _, picture in frames)
    shown = visible(markup)
    (image,) = [attrs for tag, attrs in shown.tags if tag == "img"]
    assert image["src"].startswith("data:image/png;base64,iVBOR")
    assert image["alt"] == dict(frames[2][0])["data-heard"] == f'{SHARP} up to 2, kind "x".'
    assert not any(tag in ("svg", "input", "fieldset") for tag, _ in shown.tags)
    assert "".join(shown.texts) == f'{SHARP} up to 2, kind "x".'


def test_every_frame_shows_and_says_its_own_values(explorer):
    frames = folded(explorer.to_html(), "rank-frame-of")
    expected = [f'{SHARP} up to {a}, kind "{kind}".' for a in (1, 2, 5) for kind in ("x", "<y>")]
    assert [f["data-heard"] for f, _ in frames] == expected
    assert [html.unescape(f["data-seen"]) for f, _ in frames] == expected
    titles = [f"a = {a}, {kind}" for a in (1, 2, 5) for kind in ("x", "&lt;y&gt;")]
    assert all(title in picture for title, (_, picture) in zip(titles, frames, strict=True))


def test_the_longest_sentence_keeps_its_room():
    said = ["It is so.", "It is a very much longer sentence.", "It is not."]
    markup = explore(lambda a: (plt.subplots(figsize=(2, 1.5))[0], said[a]), a=[0, 1, 2]).to_html()
    assert visible(markup).of_class("rank-seen")[0]["data-longest"] == said[1]


def test_words_of_the_author_are_escaped(explorer):
    markup = explorer.to_html()
    assert "<b>" not in markup and "<y>" not in markup and "<end>" not in markup
    ((_, controls),) = folded(markup, "rank-controls-of")
    assert "Top & <end>" in Elements(controls).texts


def test_a_quantity_is_a_slider_with_ticks_and_a_choice_is_buttons(explorer):
    ((_, controls),) = folded(explorer.to_html(), "rank-controls-of")
    page = Elements(controls)
    slider, *radios = [attrs for tag, attrs in page.tags if tag == "input"]
    assert [slider[k] for k in ("type", "min", "max", "step", "value")] == ["range", "0", "2", "1", "1"]
    assert slider["aria-valuetext"] == "2" and slider["data-texts"] == slider["data-words"] == "1|2|5"
    assert [(r["type"], r["value"], r["data-text"], "checked" in r) for r in radios] == [
        ("radio", "0", "x", True),
        ("radio", "1", "<y>", False),
    ]
    assert len({r["name"] for r in radios}) == 1
    assert sum(tag == "legend" for tag, _ in page.tags) == sum(tag == "fieldset" for tag, _ in page.tags) == 2
    assert sum(tag == "i" for tag, _ in page.tags) == 3, "one tick a value"
    assert controls.count("aria-live") + controls.count('role="status"') == 1, "announced once"


@pytest.mark.parametrize("count", [2, 5, 6, 7, 11, 41])
def test_at_most_six_ticks_are_written_the_first_and_the_last_among_them(count):
    explorer = explore(draw, a=list(range(count)))
    explorer.axes = None
    control = slider_markup.Control("a", "a", [str(i) for i in range(count)], 0, True, False)
    ticks = re.findall(r"<i [^>]*>([^<]*)</i>", slider_markup._slider(control))
    written = [t for t in ticks if t]
    assert len(ticks) == count and 2 <= len(written) <= 7
    assert (ticks[0], ticks[-1]) == ("0", str(count - 1))


def test_identifiers_are_unique_across_frames_and_references_find_them(explorer):
    markup = explorer.to_html()
    ids = re.findall(r'\bid="([^"]+)"', markup)
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', markup))
    assert ids and len(ids) == len(set(ids))
    assert {a or b for a, b in used} == set(ids) - {"a-kind"}


def test_colours_are_variables_of_the_page(explorer):
    with matplotlib.rc_context():
        use_book_style()
        markup = explorer.to_html()
    for name in ("attention", "ink"):
        colour = ROLES[name].light
        assert f"var(--rank-{name}, {colour})" in markup
        assert colour.lower() not in markup.replace(f"var(--rank-{name}, {colour})", "").lower()
    assert not re.search(r"(fill|stroke): ?(black|#000000)", markup)
