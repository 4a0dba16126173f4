"""Sliders that tell the truth: one drawing function, seen live in a notebook and precomputed in the book."""

import base64
import html
import io
import itertools
import json
from collections.abc import Callable, Sequence
from numbers import Real

import ipywidgets
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from ranklib.book.pictures import to_svg

Draw = Callable[..., tuple[Figure, str]]
MAX_FRAMES = 64


class Explorer:
    """A picture with sliders. Made by :func:`explore`; displays itself.

    Its MIME bundle has two views. ``text/html`` holds every frame of the grid with native range inputs: the
    built book shows it, without a kernel. The widget view recomputes, also between the grid's values:
    Jupyter and Colab show it.
    """

    def __init__(
        self, draw: Draw, grid: dict[str, Sequence], default: dict, names: dict[str, str], raster: bool
    ):
        self.draw, self.grid, self.default, self.names, self.raster = draw, grid, default, names, raster
        self.frames: dict[tuple[int, ...], tuple[str, str]] = {}

    def frame(self, **values) -> tuple[str, str]:
        """The picture at these values, as markup, and its sentence."""
        fig, sentence = self.draw(**values)
        if not (sentence.endswith(".") and " " in sentence):
            plt.close(fig)
            raise ValueError(
                f"explore: expected the drawing function to return (figure, sentence), got {sentence!r}; "
                "say in one full sentence what this frame shows"
            )
        picture = _to_png(fig) if self.raster else to_svg(fig)
        plt.close(fig)
        return picture, sentence

    def to_html(self) -> str:
        """All frames of the grid, the default one visible, as one HTML element that needs no kernel."""
        if not self.frames:
            for key in itertools.product(*(range(len(v)) for v in self.grid.values())):
                values = {n: v[i] for (n, v), i in zip(self.grid.items(), key)}
                self.frames[key] = self.frame(**values)
        start = tuple(list(v).index(self.default[n]) for n, v in self.grid.items())
        body = "".join(
            f'<div class="rank-frame" data-key="{",".join(map(str, key))}" role="img" '
            f'aria-label="{html.escape(sentence)}"{"" if key == start else " hidden"}>{picture}</div>'
            for key, (picture, sentence) in self.frames.items()
        )
        controls = "".join(
            _range_input(self.names[n], [spoken(v) for v in values], i)
            for (n, values), i in zip(self.grid.items(), start)
        )
        return (
            f'<div class="rank-explore"><fieldset class="rank-controls" hidden>{controls}</fieldset>'
            f'<div class="rank-frames">{body}</div>'
            f'<p class="rank-said" aria-live="polite">{html.escape(self.frames[start][1])}</p></div>'
        )

    def to_widget(self) -> ipywidgets.Widget:
        """The live view: ipywidgets that call the drawing function again at every change."""
        picture = ipywidgets.HTML()
        controls = {n: _control(self.names[n], v, self.default[n]) for n, v in self.grid.items()}

        def show(_=None):
            try:
                markup, sentence = self.frame(**{n: c.value for n, c in controls.items()})
                picture.value = (
                    f'<div role="img" aria-label="{html.escape(sentence)}" '
                    f'style="max-width:520px">{markup}<p>{html.escape(sentence)}</p></div>'
                )
            except Exception as error:  # shown in place: a widget callback has no other way to speak
                picture.value = f"<pre>{html.escape(f'{type(error).__name__}: {error}')}</pre>"

        for control in controls.values():
            control.observe(show, "value")
        show()
        return ipywidgets.VBox([*controls.values(), picture])

    def _repr_mimebundle_(self, include=None, exclude=None):
        self.widget = self.to_widget()
        view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return {
            "text/plain": repr(self),
            "text/html": self.to_html(),
            "application/vnd.jupyter.widget-view+json": view,
        }

    def __repr__(self) -> str:
        axes = ", ".join(f"{n} in {[spoken(x) for x in v]}" for n, v in self.grid.items())
        return f"Explorer({axes})"


def explore(
    draw: Draw,
    default: dict | None = None,
    names: dict[str, str] | None = None,
    raster: bool = False,
    **grid: Sequence,
) -> Explorer:
    """A picture that the reader can turn, from a drawing function and a small grid of parameter values.

    Parameters
    ----------
    draw
        Called with one value for each name of ``grid``; returns ``(figure, sentence)``. The sentence says
        what this frame shows: it is the text alternative, and stands below the picture.
    default
        The frame shown first; for a name left out, the first value.
    names
        The label that a reader sees for a parameter; otherwise its name.
    raster
        True for clouds of many marks: frames become PNG instead of vector graphics.
    **grid
        Parameter names and their values. Numbers become sliders, other values a choice.

    Raises
    ------
    ValueError
        No parameter, an empty list, more than 64 frames in all, or a default that the grid does not hold.

    Example
    -------
    >>> def draw(a):
    ...     fig, ax = plt.subplots()
    ...     _ = ax.plot([0, a])
    ...     return fig, f"A line up to {a}."
    >>> explore(draw, a=[1, 2], default={"a": 2})
    Explorer(a in ['1', '2'])
    """
    grid = {n: list(v) for n, v in grid.items()}
    count = 1
    for values in grid.values():
        count *= len(values)
    if not grid or not 0 < count <= MAX_FRAMES:
        raise ValueError(
            f"explore: expected one parameter or more and 1 to {MAX_FRAMES} frames, "
            f"got {len(grid)} parameters and "
            f"{count if grid else 0} frames; thin out the values"
        )
    default = {n: v[0] for n, v in grid.items()} | (default or {})
    for name, value in default.items():
        if value not in grid.get(name, ()):
            raise ValueError(
                f"explore: expected the default of {name!r} to be one of {grid.get(name)}, got {value!r}; "
                "choose a frame of the grid"
            )
    return Explorer(draw, grid, default, {n: n for n in grid} | (names or {}), raster)


def spoken(value) -> str:
    """How a parameter value is written and read aloud: 'on' and 'off', short numbers, a real minus sign.

    Example
    -------
    >>> spoken(True), spoken(0.25), spoken(-3)
    ('on', '0.25', '−3')
    """
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Real):
        return f"{value:g}".replace("-", "−")
    return str(value)


def _range_input(label: str, values: list[str], start: int) -> str:
    return (
        f'<label class="rank-control"><span class="rank-name">{html.escape(label)}</span>'
        f'<input type="range" min="0" max="{len(values) - 1}" step="1" value="{start}" '
        f'aria-valuetext="{html.escape(values[start])}" data-values="{html.escape(json.dumps(values))}">'
        f"<output>{html.escape(values[start])}</output></label>"
    )


def _control(label: str, values: list, value):
    """The ipywidget for one parameter: a slider for numbers, also between the grid's values."""
    options = {"description": label, "value": value, "style": {"description_width": "initial"}}
    if all(isinstance(v, Real) and not isinstance(v, bool) for v in values) and len(values) > 1:
        low, high = min(values), max(values)
        if all(isinstance(v, int) for v in values):
            return ipywidgets.IntSlider(min=low, max=high, **options)
        return ipywidgets.FloatSlider(
            min=low, max=high, step=(high - low) / 200, readout_format=".3g", **options
        )
    return ipywidgets.Dropdown(options=[(spoken(v), v) for v in values], **options)


def _to_png(fig: Figure) -> str:
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=144, metadata={"Software": None}, transparent=False)
    plt.close(fig)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="" src="data:image/png;base64,{data}">'
