"""One look for every picture of the book: a role has one colour, one line and one marker."""

import io
import re
from dataclasses import dataclass
from hashlib import sha1

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from torch import Tensor

PANEL = (4.6, 3.0)
"""Inches of one panel. Two panels stand on top of each other in ``STACK``, never side by side."""
STACK = (4.6, 5.4)


@dataclass(frozen=True)
class Role:
    """What a line stands for: its colour on white, its colour on dark, its dashes, its marker."""

    light: str
    dark: str
    dashes: tuple | str
    width: float
    marker: str | None


ROLES = {
    "attention": Role("#07415D", "#1780EF", "solid", 2.2, "o"),
    "skip": Role("#28A761", "#2BE478", (0, (8, 3)), 2.0, "s"),
    "mlp": Role("#9B7414", "#EC9803", "dashdot", 2.0, "^"),
    "norm": Role("#CE2AB8", "#DA88D2", (0, (4, 2)), 1.6, "D"),
    "bound": Role("#8D1B1A", "#E25236", (0, (1, 2)), 2.0, None),
    "ink": Role("#1A1A1A", "#F2F2F2", "solid", 1.2, "+"),
    "floor": Role("#767676", "#8C8C8C", (0, (1, 2)), 1.2, None),
}
"""Colour never carries meaning alone: the seven roles also differ by line and marker."""

_RC = {
    "figure.figsize": PANEL,
    "figure.dpi": 100,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "axes.titlesize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": ROLES["ink"].light,
    "axes.labelcolor": ROLES["ink"].light,
    "xtick.color": ROLES["ink"].light,
    "ytick.color": ROLES["ink"].light,
    "text.color": ROLES["ink"].light,
    "svg.hashsalt": "ranklib",
    "hatch.linewidth": 0.6,
}


def use_book_style() -> None:
    """Set matplotlib's defaults to the book's look, in this process only.

    In a notebook, figures become vector graphics on a white card, without a date inside, so that a second
    run stores the same bytes. Called by the setup cell of every chapter; importing ``ranklib`` changes
    nothing.

    Example
    -------
    >>> use_book_style()
    >>> mpl.rcParams["font.size"]
    11.0
    """
    mpl.rcParams.update(_RC)
    from IPython import get_ipython

    if get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", metadata={"Date": None})


def role(name: str, marker: bool = True) -> dict:
    """Keyword arguments that draw a line in a role of the book.

    Parameters
    ----------
    name
        ``attention``, ``skip``, ``mlp``, ``norm``, ``bound``, ``ink`` or ``floor``.
    marker
        Whether to set the role's marker too.

    Raises
    ------
    ValueError
        There is no such role.

    Example
    -------
    >>> role("skip")["marker"]
    's'
    """
    if name not in ROLES:
        raise ValueError(
            f"role: expected one of {', '.join(ROLES)}, got {name!r}; choose the nearest of these"
        )
    r = ROLES[name]
    line = {"color": r.light, "linestyle": r.dashes, "linewidth": r.width}
    return line | ({"marker": r.marker, "markersize": 6} if marker and r.marker else {})


def shade_floor(ax: Axes, level: float, bottom: float) -> None:
    """Hatch everything from ``bottom`` up to ``level``: below here a number is rounding, not a result."""
    line = role("floor")
    ax.axhline(level, **line)
    ax.axhspan(bottom, level, facecolor="none", edgecolor=line["color"], hatch="///", linewidth=0)


def label_end(ax: Axes, x: float, y: float, text: str, name: str, **kwargs) -> None:
    """Write ``text`` beside the end (x, y) of a line, in the colour of its role: no legend needed."""
    options = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "annotation_clip": False}
    ax.annotate(text, (x, y), color=ROLES[name].light, **(options | kwargs))


def draw_matrix(ax: Axes, matrix: Tensor, limit: float) -> None:
    """A small signed matrix as coloured tiles with the number in each: blue for plus, red-brown for minus.

    Parameters
    ----------
    ax
        Where to draw.
    matrix
        At most 6 x 6, so that the numbers stay readable.
    limit
        The absolute value that has the full colour.

    Raises
    ------
    ValueError
        The matrix is larger than 6 x 6, or has another number of axes than two.

    Example
    -------
    >>> import torch
    >>> fig, ax = plt.subplots()
    >>> draw_matrix(ax, torch.eye(2), limit=1)
    >>> [t.get_text() for t in ax.texts]
    ['1', '0', '0', '1']
    """
    if matrix.ndim != 2 or max(matrix.shape) > 6:
        raise ValueError(f"draw_matrix: expected at most 6 x 6, got {tuple(matrix.shape)}; draw a part of it")
    colours = LinearSegmentedColormap.from_list(
        "signed", [ROLES["bound"].light, "white", ROLES["attention"].light]
    )
    ax.imshow(matrix, cmap=colours, vmin=-limit, vmax=limit)
    for (i, j), value in np.ndenumerate(np.asarray(matrix)):
        ink = "white" if abs(value) > limit / 2 else ROLES["ink"].light
        ax.text(j, i, f"{value:.3g}".replace("-", "−"), ha="center", va="center", color=ink)
    ax.set(xticks=[], yticks=[])


def to_svg(fig: Figure) -> str:
    """The figure as one ``<svg>`` element whose colours follow the page's light or dark theme.

    Each role's colour becomes ``var(--rank-ROLE, #light)``; text stays text, in the page's sans-serif type;
    identifiers are made unique by the content, so that many frames can share a page. Shown at most at 100
    pixels an inch. The figure is closed.

    Example
    -------
    >>> fig, ax = plt.subplots()
    >>> _ = ax.plot([0, 1], [0, 1], **role("attention"))
    >>> "var(--rank-attention, #07415D)" in to_svg(fig)
    True
    """
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranklib"}):
        fig.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    plt.close(fig)
    text = buffer.getvalue()
    shown = f'<svg style="max-width: {100 * fig.get_figwidth():.0f}px"'
    text = text[text.index("<svg") :].replace("<svg", shown, 1)
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"| xmlns:xlink="[^"]*"', r"\1", text).replace(
        "xlink:href", "href"
    )
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", text)
    text = re.sub(
        r"<[^>]+>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _short, tag[0]), text
    )  # never what is read
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    tag = sha1(text.encode()).hexdigest()[:8]
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{tag}{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r'(href="#|url\(#)', rf"\g<1>{tag}", text)
    for name, r in ROLES.items():
        text = re.sub(re.escape(r.light), f"var(--rank-{name}, {r.light})", text, flags=re.I)
    return re.sub(r"\s*\n\s*", " ", text).replace("<g> ", "<g>").strip()


def _short(number: re.Match) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
