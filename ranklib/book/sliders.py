"""Sliders that tell the truth: one drawing function, seen live in a notebook and precomputed in the book."""

import itertools
from collections.abc import Callable, Sequence
from numbers import Real

import ipywidgets
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from ranklib.book import slider_markup
from ranklib.book.labels import hold_layout
from ranklib.book.pictures import to_png, to_svg, write_powers
from ranklib.book.typography import in_words, printed, spoken, to_markup

Draw = Callable[..., tuple]
MAX_FRAMES = 64


class Explorer:
    """A picture with controls. Made by :func:`explore`; displays itself.

    Its MIME bundle has two views. ``text/html`` holds every frame of the grid with native controls: the built
    book shows it, without a kernel. The widget view recomputes, also between the grid's values: Jupyter and
    Colab show it.
    """

    def __init__(self, draw: Draw, grid: dict[str, list], default: dict, names: dict[str, str], **options):
        self.draw, self.grid, self.default, self.names = draw, grid, default, names
        self.play, self.keep, self.title = options["play"], options["keep"], options["title"]
        self.frames: dict[tuple[int, ...], slider_markup.Frame] = {}
        self.axes: list = []
        self.boxes: list = []

    def frame(self, still: bool = False, **values) -> slider_markup.Frame:
        """The picture at these values and its two sentences; with ``still``, as pixels too."""
        fig, seen, *heard = self.draw(**values)
        try:
            for sentence in (seen, *heard):
                if not (sentence.endswith(".") and " " in sentence):
                    raise ValueError(
                        "explore: expected the drawing function to return (figure, sentence) or (figure, sentence "
                        f"for eyes, sentence for ears), got {sentence!r}; say in one full sentence what this frame shows"
                    )
            self._hold_axes(fig, values)
            self.boxes = hold_layout(write_powers(fig), self.boxes)
            return slider_markup.Frame(
                to_svg(fig), printed(seen), in_words(*heard or [seen]), to_png(fig) if still else b""
            )
        finally:
            plt.close(fig)

    def _hold_axes(self, fig: Figure, values: dict) -> None:
        """Frames can be compared, and laid over each other, only if their axes stay."""
        axes = [(*ax.get_xlim(), *ax.get_ylim()) for ax in fig.axes]
        axes = [tuple(float(f"{v:.6g}") for v in limits) for limits in [*axes, tuple(fig.get_size_inches())]]
        self.axes = self.axes or axes
        if axes != self.axes:
            raise ValueError(
                f"explore: expected axes that stay, got the limits {axes} at {values} after {self.axes}; "
                "set xlim and ylim once for all frames"
            )

    def to_html(self) -> str:
        """All frames of the grid, the default one visible, as one HTML element that needs no kernel.

        What is visible without a script, and after the sanitiser of a notebook that is not trusted, is one
        picture and one sentence. See :mod:`ranklib.book.slider_markup`.
        """
        start = tuple(values.index(self.default[n]) for n, values in self.grid.items())
        if not self.frames:
            for key in itertools.product(*(range(len(v)) for v in self.grid.values())):
                values = {n: v[i] for (n, v), i in zip(self.grid.items(), key)}
                self.frames[key] = self.frame(still=key == start, **values)
        controls = [
            slider_markup.Control(
                n, self.names[n], [spoken(v) for v in values], i, is_quantity(values), n == self.play
            )
            for (n, values), i in zip(self.grid.items(), start)
        ]
        return slider_markup.explorer(self.title, controls, self.frames, start, self.keep)

    def to_widget(self) -> ipywidgets.Widget:
        """The live view: ipywidgets that call the drawing function again at every change."""
        picture = ipywidgets.HTML()
        controls = {n: _control(self.names[n], v, self.default[n]) for n, v in self.grid.items()}

        def show(_=None):
            try:
                frame = self.frame(**{n: c.value for n, c in controls.items()})
                picture.value = slider_markup.live(frame)
            except Exception as error:  # shown in place: a widget callback has no other way to speak
                picture.value = slider_markup.fault(error)

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
    play: str | None = None,
    keep: bool = False,
    title: str = "Try it",
    **grid: Sequence,
) -> Explorer:
    """A picture that the reader can turn, from a drawing function and a small grid of parameter values.

    Parameters
    ----------
    draw
        Called with one value for each name of ``grid``; returns ``(figure, sentence)`` or ``(figure, sentence
        for eyes, sentence for ears)``. The sentence says what this frame shows. The one for eyes stands below
        the picture, the one for ears is its text alternative and is announced when a control moves; if there
        is one only, it is printed with real signs (``log10``, ``1e-06``, ``d_qk`` are understood) and put into
        words for ears. All frames have the same size and the same limits of the axes.
    default
        The frame shown first; for a name left out, the first value.
    names
        The label that a reader sees for a parameter; otherwise its name. ``d_qk`` gets an index.
    play
        A parameter that is depth or time: it can be stepped and played.
    keep
        True where curves of several settings say more together: the reader can keep the present one in the
        picture, under the next.
    title
        The legend of the controls.
    **grid
        Parameter names and their values. Numbers become a slider with ticks, anything else a choice of
        buttons.

    Raises
    ------
    ValueError
        No parameter, an empty list, more than 64 frames in all, a default that the grid does not hold, ``play``
        of what is no quantity, or, when drawing, a frame without a sentence or with other axes.

    Examples
    --------
    >>> def draw(depth):
    ...     fig, ax = plt.subplots()
    ...     _ = ax.plot([0, depth], [1, 0.1**depth])
    ...     _ = ax.set(xlim=(0, 3), ylim=(0, 1))
    ...     return fig, f"At depth {depth} the line ends at {0.1**depth:.0e}."
    >>> explore(draw, depth=[1, 2, 3], default={"depth": 2}, names={"depth": "Depth L"}, play="depth")
    Explorer(depth in ['1', '2', '3'])
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
    if play is not None and not is_quantity(grid.get(play, [])):
        raise ValueError(
            f"explore: expected play to be a quantity, one of "
            f"{[n for n, v in grid.items() if is_quantity(v)]}, got {play!r}; play depth or time"
        )
    names = {n: n for n in grid} | (names or {})
    return Explorer(draw, grid, default, names, play=play, keep=keep, title=title)


def is_quantity(values: Sequence) -> bool:
    """Whether a parameter is a quantity, which has a slider, and not a choice: two numbers or more, in order.

    Example
    -------
    >>> is_quantity([1, 2, 5]), is_quantity([False, True]), is_quantity([1, 5, "all"])
    (True, False, False)
    """
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in values)
    return numbers and len(values) > 1 and sorted(values) == list(values)


def _control(label: str, values: list, value):
    """The ipywidget for one parameter: a slider for a quantity, also between the grid's values, or buttons."""
    label = to_markup(label)
    options = {"description": label, "value": value, "style": {"description_width": "initial"}}
    options |= {"description_allow_html": True}
    if is_quantity(values):
        low, high = min(values), max(values)
        if all(isinstance(v, int) for v in values):
            return ipywidgets.IntSlider(min=low, max=high, **options)
        return ipywidgets.FloatSlider(
            min=low, max=high, step=(high - low) / 200, readout_format=".3g", **options
        )
    return ipywidgets.RadioButtons(options=[(spoken(v), v) for v in values], **options)
