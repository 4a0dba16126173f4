"""Labels that never lie on data: each finds the nearest free place to what it names."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation, Text

from ranklib.book.style import role

# All lengths in pixels, at 100 an inch.
STEP = 3.0  # between two points of a drawn line that a label must not cover
AIR = 3.0  # around a label
LEADER = 24.0  # a label further from its target gets a thin line to it
REACH = np.array([6, 10, 15, 21, 28, 36, 46, 58, 72, 90, 110])
AROUND = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)]


def label(ax: Axes, text: str, target: Line2D | Sequence, name: str | None = None, **kwargs) -> Text:
    """Name a line, or a point of the plane, directly in the picture: no legend needed.

    The label is put into a free place when the figure is stored: for a line beside its right end, or else
    along it; for a point at it, or else around it. It never covers a line, a marker, an edge or another
    text, and if it must stand further away, a thin line leads to its target. Call it in any order; limits of
    axes may be set later.

    Parameters
    ----------
    ax
        Where to write.
    text
        The words. ``d_qk``, ``1e-6`` and ``10^-6`` are printed with real indices and exponents.
    target
        The line, as ``ax.plot`` returns it, or (x, y) in the coordinates of the data.
    name
        The role whose colour the text has (:func:`ranklib.book.style.role`); for a line its own colour.
    **kwargs
        Further properties of the text, for instance ``fontsize``.

    Example
    -------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> line, = ax.plot([0, 1], [0, 1], **role("skip"))
    >>> label(ax, "with skips", line).get_text()
    'with skips'
    """
    colour = (
        target.get_color() if name is None and isinstance(target, Line2D) else role(name or "ink")["color"]
    )
    if isinstance(target, Line2D):
        x, y = _finite(target)[-1]
    else:
        x, y = (float(v) for v in target)
    options = {"color": colour, "xytext": (5, 0), "textcoords": "offset points", "va": "center"} | kwargs
    note = ax.annotate(text, (x, y), annotation_clip=False, **options)
    note.rank_target = target
    return note


def label_end(ax: Axes, x: float, y: float, text: str, name: str, **kwargs) -> Text:
    """The former name of :func:`label` for a point; offsets are ignored."""
    return label(ax, text, (x, y), name)


def place_labels(fig: Figure) -> None:
    """Move every label made by :func:`label` into a free place. Called when a figure is stored.

    Raises
    ------
    ValueError
        A label finds no free place near its target.

    Example
    -------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> note = label(ax, "here", ax.plot([0, 1], [0, 1])[0])
    >>> place_labels(fig)
    >>> note.get_position() == (5, 0)
    False
    """
    if fig.get_layout_engine() is None:  # saving such a figure would give it the default layout
        fig.set_layout_engine(PlaceHolderLayoutEngine(True, True))
    notes = [t for t in fig.findobj(Annotation) if hasattr(t, "rank_target")]
    if not notes or getattr(fig, "rank_labelled", 0) == len(notes):
        return
    dpi, fig.dpi = fig.dpi, 100
    for note in notes:
        note.set_in_layout(_ends(note))
    for _ in range(2):  # again without room for those that do not stand at the end of their line
        fig.draw_without_rendering()
        found = _places(fig, notes)
        inner = [note for note, (*_, at_end, _) in found.items() if not at_end and note.get_in_layout()]
        if not inner:
            break
        for note in inner:
            note.set_in_layout(False)
    fig.set_layout_engine("none")
    for note, (anchor, box, _, leads) in found.items():
        _move(note, anchor, box, leads)
    fig.dpi = dpi
    fig.rank_labelled = len(notes)


def hold_layout(fig: Figure, boxes: list) -> list:
    """Fix the places of the axes, at ``boxes`` or, if that is empty, where they fit now, and return them.

    Frames of a slider can be laid over each other only if their axes stand in the same place. Labels then get
    no room of their own.

    Example
    -------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> hold_layout(fig, [(0.2, 0.2, 0.7, 0.7)])
    [(0.2, 0.2, 0.7, 0.7)]
    """
    for note in fig.findobj(Annotation):
        note.set_in_layout(not hasattr(note, "rank_target"))
    if not boxes:
        fig.draw_without_rendering()
        boxes = [tuple(round(float(v), 4) for v in ax.get_position(original=True).bounds) for ax in fig.axes]
    fig.set_layout_engine("none")
    for ax, box in zip(fig.axes, boxes, strict=True):
        ax.set_position(box)
    return boxes


def _places(fig: Figure, notes: list[Annotation]) -> dict[Annotation, tuple]:
    """For each label its target's point, its box, whether it stands right of an end, and may have a leader."""
    drawn = {artist: _points(artist) for ax in fig.axes for artist in _artists(ax)}
    written = np.array([_box(t) for t in _texts(fig, notes)]).reshape(-1, 4)
    found = {}
    for note in notes:
        own = drawn.get(note.rank_target, np.empty((0, 2)))
        others = np.concatenate(
            [np.empty((0, 2)), *(p for a, p in drawn.items() if a is not note.rank_target)]
        )
        anchors, boxes, costs, at_end = _candidates(note, own)
        air = boxes + [-AIR, -AIR, AIR, AIR]
        page, frame = fig.bbox.extents, note.axes.bbox.extents + [-1, -1, 1, 12]
        free = (boxes[:, :2] >= page[:2]).all(1) & (boxes[:, 2:] <= page[2:]).all(1)
        free &= at_end | (boxes[:, :2] >= frame[:2]).all(1) & (boxes[:, 2:] <= frame[2:]).all(1)
        free &= ~(_overlaps(air, written)).any(1)
        for points in (own, others):
            free[free] = ~_inside(air[free], points).any(1)
        if not isinstance(note.rank_target, Line2D) and not _near(note, others):
            at_end = np.zeros_like(at_end)  # a word for a place of the plane, not for the end of a line
            free &= boxes[:, 2] <= frame[2]
        if not free.any():
            raise ValueError(
                f"place_labels: expected a free place for {note.get_text()!r} near its target, got none; "
                "widen the limits of the axes, shorten the text, or name another target"
            )
        # Of the free places the nearest, but not one that stands closer to another line.
        room = _distance(boxes[free], others) if len(others) else np.full(free.sum(), 40.0)
        costs = costs[free] - 0.5 * np.minimum(room, 30)
        if len(own):
            costs += 40 * (room < _distance(boxes[free], own) + 2)
        best = np.flatnonzero(free)[costs.argmin()]
        leads = isinstance(note.rank_target, Line2D) or _near(note, others)
        found[note] = anchors[best], boxes[best], at_end[best], leads
        written = np.concatenate([written, boxes[best][None]])
    return found


def _near(note: Annotation, points: np.ndarray) -> bool:
    """Whether something is drawn at the point that a label names."""
    return (
        bool(len(points))
        and float(np.linalg.norm(points - note.axes.transData.transform(note.xy), axis=1).min()) < 8
    )


def _ends(note: Annotation) -> bool:
    """Whether the target ends at the right edge of the axes, so that the label may stand outside of them."""
    low, high = note.axes.bbox.x0, note.axes.bbox.x1
    return bool(note.axes.transData.transform(note.xy)[0] > high - 0.12 * (high - low))


def _candidates(note: Annotation, own: np.ndarray):
    """Points of the target, boxes, their costs, and which of them stand at the end of a line."""
    x0, y0, x1, y1 = _box(note)
    half = np.array([x1 - x0, y1 - y0]) / 2
    places = []
    if _ends(note):
        end = note.axes.transData.transform(note.xy)
        slide = np.arange(-48, 49, 4)
        ends = np.column_stack([np.full(len(slide), end[0] + 6 + half[0]), end[1] + slide])
        places = [(end, c, abs(d), True) for c, d in zip(ends, slide)]
    if isinstance(note.rank_target, Line2D):
        points = own[np.linspace(0, len(own) - 1, 24).astype(int)] if len(own) else np.empty((0, 2))
    else:
        points = note.axes.transData.transform([note.rank_target])
        places.append((points[0], points[0], 0.0, False))
    for point in points:
        for direction in np.array(AROUND):
            for reach in REACH:
                diagonal = abs(direction).sum() == 2
                away = direction * (half + (reach * 0.7 if diagonal else reach))
                places.append((point, point + away, reach + 4 * diagonal, False))
    anchors, centres, costs, at_end = (np.array(column) for column in zip(*places))
    return anchors, np.column_stack([centres - half, centres + half]), costs + 8.0 * ~at_end, at_end


def _move(note: Annotation, anchor: np.ndarray, box: np.ndarray, leads: bool) -> None:
    """Put the text into the box, held at the side of its target, and draw a leader line if it is far."""
    side = 0.5 if box[0] < anchor[0] < box[2] else float(box[2] <= anchor[0])
    at = np.array([box[0] + side * (box[2] - box[0]), box[1]])
    note.set(ha={0.0: "left", 0.5: "center", 1.0: "right"}[side], va="bottom")
    note.xyann = tuple((at - note.axes.transData.transform(note.xy)) * 72 / 100)
    nearest = np.clip(anchor, box[:2], box[2:])
    far = np.hypot(*(anchor - nearest))
    if leads and far > LEADER:
        start, stop = (nearest + (anchor - nearest) * step / far for step in (AIR, far - AIR))
        line = {"color": note.get_color(), "linewidth": 0.7, "transform": note.figure.dpi_scale_trans}
        note.figure.add_artist(Line2D(*np.array([start, stop]).T / 100, gid="rank-leader", **line))


def _artists(ax: Axes) -> list:
    """What a label must not cover: lines, markers, bars, edges. Faint areas may be written on."""
    spines = [spine for spine in ax.spines.values() if spine.get_visible() and ax.axison]
    return [a for a in [*ax.lines, *ax.patches, *ax.collections, *spines] if a.get_visible()]


def _points(artist) -> np.ndarray:
    """Points, in pixels, every few pixels along what is drawn, and all over what is filled or hatched."""
    ax = artist.axes
    if isinstance(artist, Line2D):
        path = artist.get_transform().transform(artist.get_xydata().astype(float))
        points = [path] if artist.get_linestyle() in ("None", "none", "") else [_along(path)]
        if artist.get_marker() not in ("None", "none", "", None):
            points += [_disc(path, artist.get_markersize() / 2 * 100 / 72)]
    elif isinstance(artist, Collection):
        if (artist.get_alpha() or 1) < 0.5 or type(artist).__name__ == "QuadContourSet" and artist.filled:
            return np.empty((0, 2))
        offsets = artist.get_offset_transform().transform(np.asarray(artist.get_offsets(), dtype=float))
        paths = [p.transformed(artist.get_transform()) for p in artist.get_paths()]
        size = max((np.abs(p.vertices).max() for p in paths if len(p.vertices)), default=0)
        one = len(offsets) and np.abs(artist.get_offsets()).max() > 0
        points = [_disc(offsets, min(size, 12))] if one else [_along(p.vertices) for p in paths]
    elif isinstance(artist, Patch):
        path = artist.get_path().transformed(artist.get_transform())
        polygons = [np.asarray(p) for p in path.to_polygons(closed_only=False)]
        edged = artist.get_linewidth() > 0 and artist.get_edgecolor()[3] > 0
        points = [_along(p) for p in polygons] if edged else []
        solid = artist.get_hatch() or (artist.get_fill() and artist.get_facecolor()[3] > 0.3)
        if solid and polygons:
            low, high = path.vertices.min(0), path.vertices.max(0)
            low, high = np.maximum(low, ax.bbox.min), np.minimum(high, ax.bbox.max)
            grid = np.meshgrid(*(np.arange(a, b + 1, 6.0) for a, b in zip(low, high)))
            inside = np.column_stack([g.ravel() for g in grid])
            points += [inside[path.contains_points(inside)]] if len(inside) else []
    found = np.concatenate([np.empty((0, 2)), *points])
    seen = ax.bbox.padded(2).extents if artist.get_clip_on() else artist.figure.bbox.extents
    found = found[((found >= seen[:2]) & (found <= seen[2:])).all(1)]
    return np.unique(np.round(found / STEP), axis=0) * STEP if len(found) > 1000 else found


def _along(path: np.ndarray) -> np.ndarray:
    """Points every few pixels along a polygon line; it may have gaps, where its points are not finite."""
    path = np.clip(path, -5000, 5000)
    pieces = [path[np.isfinite(path).all(1)]]
    for a, b in zip(path, path[1:]):
        if np.isfinite([a, b]).all() and (count := int(np.hypot(*(b - a)) / STEP)):
            pieces.append(a + (b - a) * np.linspace(0, 1, count + 1)[1:, None])
    return np.concatenate(pieces)


def _disc(centres: np.ndarray, radius: float) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, 8, endpoint=False)
    rim = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    return (centres[:, None] + np.concatenate([rim, [[0, 0]]])).reshape(-1, 2)


def _texts(fig: Figure, notes: list[Annotation]) -> list[Text]:
    """All texts that are drawn, without the labels to be placed and without ticks outside of the view."""
    hidden = set(notes)
    for ax in fig.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not (ax.axison and axis.get_visible() and low <= tick.get_loc() <= high):
                    hidden |= {tick.label1, tick.label2}
        if not ax.axison:
            hidden |= {ax.xaxis.label, ax.yaxis.label}
    return [t for t in fig.findobj(Text) if t not in hidden and t.get_visible() and t.get_text().strip()]


def _box(text: Text) -> np.ndarray:
    return Text.get_window_extent(text).extents


def _finite(line: Line2D) -> np.ndarray:
    points = line.get_xydata().astype(float)
    return points[np.isfinite(points).all(1)]


def _overlaps(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    a, b = boxes[:, None], others[None]
    return ((a[..., :2] < b[..., 2:]) & (b[..., :2] < a[..., 2:])).all(-1)


def _inside(boxes: np.ndarray, points: np.ndarray) -> np.ndarray:
    a, p = boxes[:, None], points[None]
    return ((a[..., :2] < p) & (p < a[..., 2:])).all(-1)


def _distance(boxes: np.ndarray, points: np.ndarray) -> np.ndarray:
    a, p = boxes[:, None], points[None]
    return np.linalg.norm(np.maximum(np.maximum(a[..., :2] - p, p - a[..., 2:]), 0), axis=-1).min(1)
