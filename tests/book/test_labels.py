"""Labels find free places, figures become themed vector graphics, and colours stand in one table."""

import io
import re

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from PIL import Image

from ranklib.book.labels import AIR, label, place_labels
from ranklib.book.pictures import to_png, to_svg, use_book_style
from ranklib.book.style import PAGE, ROLES, draw_matrix, role, shade_floor
from tests.book.test_style import contrast


@pytest.fixture(autouse=True)
def book_style():
    with matplotlib.rc_context():
        use_book_style()
        yield
        plt.close("all")


def drawn_under(fig, note) -> int:
    """Dark pixels under a label's box when the label itself is hidden: what it would cover."""
    note.set_visible(False)
    fig.canvas.draw()
    pixels = np.asarray(fig.canvas.buffer_rgba())[::-1, :, :3]
    note.set_visible(True)
    x0, y0, x1, y1 = matplotlib.text.Text.get_window_extent(note).extents.astype(int)
    return int((pixels[y0:y1, x0:x1].min(-1) < 200).sum())


def crowded(kind: str):
    """A picture and its labels; the naive place of at least one lies on data."""
    fig, ax = plt.subplots(figsize=(3.4, 2.4))
    x = np.linspace(0, 6, 200)
    if kind == "curves that end together":
        lines = [
            ax.plot(x, k * np.exp(-k * x), **role(n, marker=False))[0] for n, k in zip(ROLES, (1, 2, 3, 4))
        ]
        notes = [label(ax, f"curve {k}", line) for k, line in enumerate(lines)]
    elif kind == "a line through a point":
        ax.plot(x, x, **role("attention"), markevery=10)
        ax.plot([3], [3], "o")
        notes = [label(ax, "the point (3, 3)", (3, 3), "ink"), label(ax, "later", (3, 3), "bound")]
    elif kind == "bars":
        ax.barh(range(5), [1, 2, 3, 4, 5], color=ROLES["skip"].light)
        notes = [label(ax, "inside a bar", (2, 3), "ink")]
    else:
        ax.plot(x, np.sin(x), **role("norm", marker=False))
        shade_floor(ax, -0.6, -1)
        ax.set(yscale="linear", ylim=(-1, 1))
        notes = [label(ax, "in the floor", (3, -0.8), "floor")]
    return fig, notes


@pytest.mark.parametrize("kind", ["curves that end together", "a line through a point", "bars", "floor"])
def test_a_label_covers_nothing_and_stays_in_the_picture(kind):
    fig, notes = crowded(kind)
    place_labels(fig)
    fig.dpi = 100
    assert [drawn_under(fig, note) for note in notes] == [0] * len(notes)
    boxes = [matplotlib.text.Text.get_window_extent(note) for note in notes]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(fig.bbox.padded(AIR).contains(*corner) for b in boxes for corner in (b.min, b.max))


def test_without_placing_a_label_would_cover_data():
    fig, notes = crowded("a line through a point")
    fig.set_dpi(100)
    fig.canvas.draw()
    assert sum(drawn_under(fig, note) for note in notes) > 0


def test_a_label_stands_nearest_to_its_own_line():
    fig, ax = plt.subplots()
    x = np.linspace(0, 1, 50)
    lines = [ax.plot(x, x + gap, **role("ink", marker=False))[0] for gap in (0, 0.25, 0.5)]
    notes = [label(ax, word, line) for word, line in zip(("low", "middle", "high"), lines)]
    place_labels(fig)
    fig.dpi = 100
    for own, note in enumerate(notes):
        box = matplotlib.text.Text.get_window_extent(note).extents
        far = []
        for line in lines:
            p = ax.transData.transform(line.get_xydata())
            far.append(np.linalg.norm(np.maximum(np.maximum(box[:2] - p, p - box[2:]), 0), axis=1).min())
        assert np.argmin(far) == own


def test_a_picture_without_room_is_an_error():
    fig, ax = plt.subplots(figsize=(1.2, 1))
    ax.bar([0.5], [1], width=1, color=ROLES["bound"].light)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    label(ax, "far too long for such a picture", (0.5, 0.5), "ink")
    with pytest.raises(ValueError, match="expected a free place for 'far too long.*widen the limits"):
        to_svg(fig)


def test_pictures_are_the_same_twice_and_the_figure_stays_open():
    fig, notes = crowded("curves that end together")
    first, pixels = to_svg(fig), to_png(fig)
    assert (to_svg(fig), to_png(fig)) == (first, pixels)
    again, _ = crowded("curves that end together")
    assert to_svg(again) == first
    assert plt.fignum_exists(fig.number)
    assert Image.open(io.BytesIO(pixels)).size == (374, 264)


def test_no_colour_of_a_picture_is_fixed():
    """What is drawn without a colour is ink: every fill and stroke follows the theme."""
    fig, (ax, tiles) = plt.subplots(2)
    ax.plot([0, 1], [1, 2])
    ax.annotate("", (0, 1), (1, 1), arrowprops={"arrowstyle": "->"})
    ax.bar([0], [1], fill=False)
    ax.text(0, 1.5, "words", bbox={"facecolor": PAGE.light, "edgecolor": "none"})
    shade_floor(ax, 1, 0)
    draw_matrix(tiles, torch.tensor([[1, -1], [0.2, 0]]), limit=1)
    markup = to_svg(fig)
    outside = re.sub(r"var\(--rank-\w+, #\w{6}\)", "", markup)
    loose = re.findall(r"(?:fill|stroke): (#\w+|black|white)", outside)
    assert "#1b1b1b" in loose, "tiles keep their colours, and so do their numbers"
    tiles_only = re.sub(r'<g class="rank-tile">.*?</g>|<path[^>]*stroke: #1b1b1b[^>]*>', "", outside)
    assert re.findall(r"(?:fill|stroke): (#\w+|black|white)", tiles_only) == []
    assert "<style" not in markup and "DejaVu" not in markup


def test_a_number_can_be_read_on_its_tile():
    for sign in (1, -1):
        for k in range(0, 101, 4):
            _, ax = plt.subplots()
            draw_matrix(ax, torch.tensor([[sign * k / 100]]), limit=1)
            tile, word = matplotlib.colors.to_hex(ax.patches[0].get_facecolor()), ax.texts[0].get_color()
            assert contrast(tile, word.lower()) > 4.5, (sign * k, tile, word)
            assert tile.lower() != PAGE.light.lower(), (
                "the page is dark in the dark theme, a number on a tile too"
            )
            plt.close()


def test_powers_and_indices_are_real_ones():
    fig, ax = plt.subplots()
    ax.set(yscale="log", ylim=(1e-6, 1), title="d_qk, 10^3.5, log10 of 2e-7")
    markup = to_svg(fig)
    assert ">10⁻⁶<" in markup and "mathdefault" not in markup
    assert 'd<tspan dy="0.25em" font-size="75%">qk</tspan><tspan dy="-0.19em">, 10</tspan>' in markup
    assert "log₁₀ of 2·10⁻⁷" in markup
    to_png(fig)
    assert ax.get_title() == "d_qk, 10^3.5, log10 of 2e-7"
