"""One look for every picture of the book: a role has one colour, one line and one marker."""

from dataclasses import dataclass
from numbers import Real

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from torch import Tensor

PANEL = (4.6, 3.0)
"""Inches of one panel. Two panels stand on top of each other in ``STACK``, never side by side."""
STACK = (4.6, 5.4)
"""Inches of a figure of two panels, one below the other."""


@dataclass(frozen=True)
class Role:
    """What a line stands for: its colour on white, its colour on dark, its dashes, its marker."""

    light: str
    dark: str
    dashes: tuple | str
    width: float
    marker: str | None


ROLES = {
    "attention": Role("#07415D", "#4DA0F5", "solid", 2.2, "o"),
    "skip": Role("#1C7C46", "#2BE478", (0, (8, 3)), 2.0, "s"),
    "mlp": Role("#85620C", "#EC9803", "dashdot", 2.0, "^"),
    "norm": Role("#B01E9C", "#DA88D2", (0, (4, 2)), 1.6, "D"),
    "bound": Role("#8D1B1A", "#F0745C", (0, (1, 2)), 2.0, None),
    "ink": Role("#1A1A1A", "#F2F2F2", "solid", 1.2, "+"),
    "floor": Role("#6A6A6A", "#9C9C9C", (0, (1, 2)), 1.2, None),
    # What has no part in the model: tasks, data sets, models, runs. In this order.
    "first": Role("#0B6E6E", "#4FC3C3", "solid", 2.0, "o"),
    "second": Role("#5B48A8", "#B3A1F2", (0, (6, 2)), 2.0, "v"),
    "third": Role("#9A4A1E", "#E7A37B", (0, (3, 1, 1, 1)), 2.0, "P"),
    "fourth": Role("#4C5F73", "#A9BCCF", (0, (1, 1)), 2.0, "X"),
}
"""Seven roles with a meaning, then four neutral ones. Colour never carries meaning alone: line and marker differ.

This table is the only place that holds the colours: :func:`css` makes the site's variables from it. Every
colour has a contrast of 4.5 or more against the page in its theme, so that text may have it too.
"""

PAGE = Role("#FFFFFF", "#14181E", "solid", 0.0, None)
"""What lies behind a figure: the colour to give to boxes that should hide what is under them."""


def role(name: str, marker: bool = True) -> dict:
    """Keyword arguments that draw a line in a role of the book.

    Parameters
    ----------
    name
        A part of the model, ``attention``, ``skip``, ``mlp``, ``norm``; ``bound`` for a promise of a theorem,
        ``ink`` for the rest of the theory, ``floor`` for rounding; for anything else (tasks, data, models)
        ``first``, ``second``, ``third``, ``fourth``, which mean nothing.
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


def shade_floor(ax: Axes, level: Real, bottom: Real) -> None:
    """Hatch everything from ``bottom`` up to ``level``: below here a number is rounding, not a result."""
    line = role("floor")
    ax.axhline(level, **line)
    ax.axhspan(bottom, level, facecolor="none", edgecolor=line["color"], hatch="///", linewidth=0)


def draw_matrix(ax: Axes, matrix: Tensor, limit: Real) -> None:
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
    for (i, j), value in np.ndenumerate(np.asarray(matrix)):
        # A tile of 0 is not quite white: white is the page, which is dark in the dark theme.
        share = max(0.02, min(abs(float(value)) / limit, 1))
        full = np.array(mpl.colors.to_rgb(ROLES["attention" if value > 0 else "bound"].light))
        # The tiles keep their colours in both themes, and so must what is written on them.
        fill, ink = 1 - 0.5 * share * (1 - full), "#1B1B1B"
        ax.add_patch(
            plt.Rectangle((j - 0.5, i - 0.5), 1, 1, facecolor=fill, edgecolor="#1B1B1B", linewidth=0.5)
        )
        ax.text(j, i, f"{value:.3g}".replace("-", "−"), ha="center", va="center", color=ink, gid="on-tile")
    rows, columns = matrix.shape
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5), xticks=[], yticks=[], aspect="equal")


def tints(name: str, count: int) -> list[tuple[float, ...]]:
    """So many shades of one role, from almost nothing to strong, which stay readable under text in both themes.

    Example
    -------
    >>> [round(shade[3], 2) for shade in tints("attention", 3)]
    [0.05, 0.25, 0.45]
    """
    return [mpl.colors.to_rgba(role(name)["color"], float(alpha)) for alpha in np.linspace(0.05, 0.45, count)]


def css() -> str:
    """The colours of all roles as variables of the page, one block for each theme.

    Example
    -------
    >>> css().splitlines()[1].strip()
    '--rank-attention: #07415D;'
    """
    blocks = []
    for theme, selector in (("light", ":root"), ("dark", 'html[data-theme="dark"]')):
        lines = [f"  --rank-{name}: {getattr(r, theme)};" for name, r in ROLES.items()]
        blocks += [f"{selector} {{", *lines, "}"]
    return "\n".join(blocks) + "\n"
