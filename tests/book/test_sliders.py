"""The two views of an Explorer: frames for the built page, widgets for a live kernel."""

import re

import ipywidgets
import matplotlib.pyplot as plt
import pytest

from ranklib.book.labels import label
from ranklib.book.sliders import MAX_FRAMES, Explorer, explore
from tests.book import example_explorer
from tests.book.example_explorer import draw, folded

explorer = example_explorer.explorer


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
    assert isinstance(explore(draw, a=list(range(MAX_FRAMES))), Explorer)


@pytest.mark.parametrize("sentence", ["", "figure", "no full stop at the end", "Word."])
def test_a_frame_without_a_sentence_is_an_error_and_leaves_no_figure_open(sentence):
    before = plt.get_fignums()
    with pytest.raises(ValueError, match="say in one full sentence"):
        explore(lambda a: (plt.subplots()[0], sentence), a=[1]).to_html()
    assert plt.get_fignums() == before


def test_eyes_and_ears_get_their_own_sentences():
    def fig():
        return plt.subplots(figsize=(2, 1.5))[0]

    (one,) = folded(
        explore(lambda a: (fig(), f"d_qk {a}: log10 is -631, below 1e-06."), a=[8]).to_html(), "rank-frame-of"
    )
    assert one[0]["data-seen"] == "d<sub>qk</sub> 8: log₁₀ is −631, below 10⁻⁶."
    assert one[0]["data-heard"] == "d q k 8: log base ten is minus 631, below 10 to the minus 6."
    (two,) = folded(
        explore(lambda a: (fig(), "It falls to 0.", "Heard -1 only."), a=[8]).to_html(), "rank-frame-of"
    )
    assert (two[0]["data-seen"], two[0]["data-heard"]) == ("It falls to 0.", "Heard minus 1 only.")


def test_only_depth_and_time_are_played():
    ((_, plain),) = folded(explore(draw, a=[1, 2]).to_html(), "rank-controls-of")
    ((_, played),) = folded(explore(draw, a=[1, 2], play="a").to_html(), "rank-controls-of")
    assert "data-do" not in plain and re.findall(r'data-do="(\w+)"', played) == ["back", "play", "on"]
    with pytest.raises(ValueError, match="play to be a quantity, one of \\['a'\\], got 'kind'"):
        explore(draw, a=[1, 2], kind=["x", "y"], play="kind")


def test_axes_that_move_are_an_error():
    def moves(a):
        fig, ax = plt.subplots(figsize=(2, 1.5))
        ax.set(xlim=(0, a))
        return fig, f"A line up to {a}."

    with pytest.raises(ValueError, match="expected axes that stay.*at {'a': 2}.*set xlim and ylim"):
        explore(moves, a=[1, 2]).to_html()


def test_axes_stand_in_the_same_place_whatever_is_labelled():
    def labelled(a):
        fig, ax = plt.subplots(figsize=(3, 2))
        (line,) = ax.plot([0, 2], [0, 1])
        ax.set(xlim=(0, 2), ylim=(0, 1))
        label(ax, "a long label" * (a > 1) or "-", line)
        return fig, f"The axes stay at {a}."

    frames = folded(explore(labelled, a=[1, 2]).to_html(), "rank-frame-of")
    spines = [re.findall(r'<path d="([^"]*)" style="fill: none[^"]*miter', picture) for _, picture in frames]
    assert spines[0] and spines[0] == spines[1]


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
    explorer = explore(lambda a, b, c: draw(a), a=[1, 2, 3], b=[False, True], c=[0.5, 2.5], default={"a": 2})
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
    assert kinds == {"VBox", "IntSlider", "RadioButtons", "HTML"}
    assert explorer.widget.model_id == bundle["application/vnd.jupyter.widget-view+json"]["model_id"]


def test_the_mime_bundle_has_both_views_and_a_stable_text(explorer):
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html", "application/vnd.jupyter.widget-view+json"}
    assert bundle["text/html"] == explorer.to_html()
    assert bundle["text/plain"] == repr(explorer) == "Explorer(a in ['1', '2', '5'], kind in ['x', '<y>'])"
