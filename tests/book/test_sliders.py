"""The two views of an Explorer: frames for the built page, widgets for a live kernel."""

import json
import re
from html.parser import HTMLParser

import ipywidgets
import matplotlib
import matplotlib.pyplot as plt
import pytest

from ranklib.book.sliders import MAX_FRAMES, Explorer, explore
from ranklib.book.style import ROLES, role, use_book_style

SHARP = 'A "sharp" & <b>bold</b> view'


def draw(a, kind="x"):
    fig, ax = plt.subplots(figsize=(2, 1.5))
    ax.plot([0, 1], [0, a], **role("attention"))
    ax.set_title(f"a = {a}, {kind}")
    return fig, f'{SHARP} up to {a}, kind "{kind}".'


class Elements(HTMLParser):
    """All start tags with their attributes, and the text of each class's element."""

    def __init__(self, markup: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    def of_class(self, name: str) -> list[dict]:
        return [attrs for _, attrs in self.tags if name in (attrs.get("class") or "").split()]


@pytest.fixture
def explorer():
    return explore(
        draw, a=[1, 2, 5], kind=["x", "<y>"], default={"a": 2}, names={"a": "Top & <end>", "kind": "Kind"}
    )


@pytest.mark.parametrize(
    "grid,default,message",
    [
        ({}, None, "got 0 parameters and 0 frames"),
        ({"a": []}, None, "got 1 parameters and 0 frames"),
        ({"a": [1], "kind": []}, None, "0 frames"),
        (
            {"a": range(13), "kind": "abcde"},
            None,
            f"1 to {MAX_FRAMES} frames, got 2 parameters and 65 frames; thin out",
        ),
        ({"a": [1, 2]}, {"a": 3}, r"default of 'a' to be one of \[1, 2\], got 3"),
        ({"a": [1, 2]}, {"b": 1}, "default of 'b'"),
    ],
)
def test_explore_refuses_a_grid_it_cannot_show(grid, default, message):
    def never(**values):
        raise AssertionError("a refused grid draws nothing")

    with pytest.raises(ValueError, match=message):
        explore(never, default=default, **grid)


def test_the_largest_grid_is_allowed():
    assert isinstance(explore(draw, a=range(MAX_FRAMES)), Explorer)


@pytest.mark.parametrize("sentence", ["", "figure", "no full stop at the end", "Word."])
def test_a_frame_without_a_sentence_is_an_error_and_leaves_no_figure_open(sentence):
    before = plt.get_fignums()
    with pytest.raises(ValueError, match="say in one full sentence"):
        explore(lambda a: (plt.subplots()[0], sentence), a=[1]).to_html()
    assert plt.get_fignums() == before


def test_html_has_one_frame_for_each_grid_point_and_shows_only_the_default(explorer):
    frames = Elements(explorer.to_html()).of_class("rank-frame")
    assert [f["data-key"] for f in frames] == ["0,0", "0,1", "1,0", "1,1", "2,0", "2,1"]
    assert [f["data-key"] for f in frames if "hidden" not in f] == ["1,0"]
    assert {f["role"] for f in frames} == {"img"}


def test_every_frame_shows_and_says_its_own_values(explorer):
    markup = explorer.to_html()
    frames = Elements(markup).of_class("rank-frame")
    expected = [f'{SHARP} up to {a}, kind "{kind}".' for a in (1, 2, 5) for kind in ("x", "<y>")]
    assert [f["aria-label"] for f in frames] == expected
    pictures = re.split(r'<div class="rank-frame"', markup)[1:]
    titles = [f"a = {a}, {kind}" for a in (1, 2, 5) for kind in ("x", "&lt;y&gt;")]
    assert all(title in picture for title, picture in zip(titles, pictures, strict=True))
    said = markup.split('class="rank-said"')[1]
    assert Elements(f"<p{said}").texts == [expected[2]]


def test_words_of_the_author_are_escaped(explorer):
    markup = explorer.to_html()
    assert "<b>" not in markup and "<y>" not in markup and "<end>" not in markup
    names = [text for text in Elements(markup).texts if text.startswith("Top")]
    assert names == ["Top & <end>"]


def test_controls_are_native_and_hidden_until_the_script_runs(explorer):
    page = Elements(explorer.to_html())
    assert "hidden" in page.of_class("rank-controls")[0]
    inputs = [attrs for tag, attrs in page.tags if tag == "input"]
    assert [(i["type"], i["min"], i["max"], i["step"], i["value"]) for i in inputs] == [
        ("range", "0", "2", "1", "1"),
        ("range", "0", "1", "1", "0"),
    ]
    assert [i["aria-valuetext"] for i in inputs] == ["2", "x"]
    assert [json.loads(i["data-values"]) for i in inputs] == [["1", "2", "5"], ["x", "<y>"]]
    assert sum(tag == "label" for tag, _ in page.tags) == 2, "each input has its label around it"


def test_identifiers_are_unique_across_frames_and_references_find_them(explorer):
    markup = explorer.to_html()
    ids = re.findall(r'\bid="([^"]+)"', markup)
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', markup))
    assert ids and len(ids) == len(set(ids))
    assert {a or b for a, b in used} == set(ids)


def test_colours_are_variables_of_the_page(explorer):
    with matplotlib.rc_context():
        use_book_style()
        markup = explorer.to_html()
    for name in ("attention", "ink"):
        colour = ROLES[name].light
        assert f"var(--rank-{name}, {colour})" in markup
        assert colour.lower() not in markup.replace(f"var(--rank-{name}, {colour})", "").lower()
    assert not re.search(r"(fill|stroke): ?(black|#000000)", markup)


def test_a_second_call_and_a_second_explorer_give_the_same_bytes(explorer):
    first = explorer.to_html()
    again = explore(draw, a=[1, 2, 5], kind=["x", "<y>"], default={"a": 2}, names=explorer.names)
    assert explorer.to_html() == first == again.to_html()


def test_frames_are_drawn_once_and_figures_closed():
    calls = []

    def counting(a):
        calls.append(a)
        return draw(a)

    before = plt.get_fignums()
    explorer = explore(counting, a=[1, 2, 5])
    explorer.to_html(), explorer.to_html()
    assert calls == [1, 2, 5] and plt.get_fignums() == before


def test_raster_frames_are_png_without_text_of_their_own():
    explorer = explore(draw, a=[1, 2], raster=True)
    page = Elements(explorer.to_html())
    pictures = [attrs for tag, attrs in page.tags if tag == "img"]
    assert len(pictures) == 2 and not any(tag == "svg" for tag, _ in page.tags)
    assert all(p["alt"] == "" and p["src"].startswith("data:image/png;base64,iVBOR") for p in pictures)
    assert pictures[0]["src"] != pictures[1]["src"]
    assert explorer.to_html() == explore(draw, a=[1, 2], raster=True).to_html()


def widgets_of(root) -> list:
    return [root, *(w for child in getattr(root, "children", ()) for w in widgets_of(child))]


def test_the_widget_view_recomputes_at_every_change_also_between_grid_values():
    calls = []

    def recording(a, kind):
        calls.append((a, kind))
        return draw(a, kind)

    explorer = explore(
        recording, a=[0.0, 1.0], kind=["x", "<y>"], default={"kind": "<y>"}, names={"a": "Top"}
    )
    slider, choice, picture = explorer.to_widget().children
    assert (slider.description, choice.description) == ("Top", "kind")
    assert calls == [(0.0, "<y>")]
    seen = [picture.value]
    slider.value = 0.25
    seen.append(picture.value)
    choice.value = "x"
    seen.append(picture.value)
    assert calls[1:] == [(0.25, "<y>"), (0.25, "x")]
    assert len(set(seen)) == 3
    assert "up to 0.25" in seen[1] and "&lt;y&gt;" in seen[1] and "<y>" not in seen[1]
    assert 'role="img"' in seen[2] and "<svg" in seen[2]


def test_the_widget_view_offers_what_the_grid_holds():
    explorer = explore(lambda a, b, c: draw(a), a=[3, 1, 2], b=[False, True], c=[0.5, 2.5], default={"a": 2})
    whole, switch, real, _ = explorer.to_widget().children
    assert isinstance(whole, ipywidgets.IntSlider) and (whole.min, whole.max, whole.value) == (1, 3, 2)
    assert switch.options == (("off", False), ("on", True)) and switch.value is False
    assert isinstance(real, ipywidgets.FloatSlider) and (real.min, real.max, real.value) == (0.5, 2.5, 0.5)
    assert real.step <= 0.02, "many positions between the values of the grid"


def test_an_error_while_drawing_is_shown_in_the_widget_and_goes_away():
    def fails_in_between(a):
        if a == 0.5:
            raise ArithmeticError("no value at <half>")
        return draw(a)

    slider, picture = explore(fails_in_between, a=[0.0, 1.0]).to_widget().children
    slider.value = 0.5
    assert picture.value == "<pre>ArithmeticError: no value at &lt;half&gt;</pre>"
    slider.value = 1.0
    assert "<svg" in picture.value


def test_no_output_and_no_interact_is_used(explorer, monkeypatch):
    def banned(*args, **options):
        raise AssertionError("dead in the built page, and known to hang a run")

    for name in ("Output", "Play", "interact", "interactive", "interactive_output"):
        monkeypatch.setattr(ipywidgets, name, banned)
    bundle = explorer._repr_mimebundle_()
    kinds = {type(w).__name__ for w in widgets_of(explorer.widget)}
    assert kinds == {"VBox", "IntSlider", "Dropdown", "HTML"}
    assert explorer.widget.model_id == bundle["application/vnd.jupyter.widget-view+json"]["model_id"]


def test_the_mime_bundle_has_both_views_and_a_stable_text(explorer):
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert bundle["text/html"] == explorer.to_html()
    assert bundle["text/plain"] == repr(explorer) == "Explorer(a in ['1', '2', '5'], kind in ['x', '<y>'])"
