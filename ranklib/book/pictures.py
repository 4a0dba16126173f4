"""A figure as the book stores it: themed vector graphics, and pixels for notebooks that are not trusted."""

import io
import math
import re
import xml.etree.ElementTree as ElementTree
from hashlib import sha1
from numbers import Real

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogFormatter
from PIL import Image

from ranklib.book.labels import place_labels
from ranklib.book.style import PAGE, PANEL, ROLES
from ranklib.book.typography import number, printed

SVG = "http://www.w3.org/2000/svg"
_COLOURS = {r.light.lower(): f"var(--rank-{name}, {r.light})" for name, r in ROLES.items()}
_COLOURS |= {PAGE.light.lower(): f"var(--rank-page, {PAGE.light})"}
_INK = f"fill: {_COLOURS[ROLES['ink'].light.lower()]}"


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
    "axes.prop_cycle": mpl.cycler(color=[ROLES["ink"].light]),
    "lines.color": ROLES["ink"].light,
    "patch.edgecolor": ROLES["ink"].light,
    "hatch.color": ROLES["ink"].light,
    "svg.hashsalt": "ranklib",
    "hatch.linewidth": 0.6,
}


def use_book_style() -> None:
    """Set matplotlib's defaults to the book's look, in this process only.

    In a notebook each figure is stored twice, without a date inside, so that a second run stores the same
    bytes: as themed vector graphics (:func:`to_svg`), which the book and trusted
    notebooks show, and as PNG for notebooks that are not trusted. Called by the setup cell of every chapter;
    importing ``ranklib`` changes nothing.

    Example
    -------
    >>> use_book_style()
    >>> mpl.rcParams["font.size"]
    11.0
    """
    mpl.rcParams.update(_RC)
    from IPython import get_ipython

    if (shell := get_ipython()) is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        set_matplotlib_formats("svg", "png")
        formatters = shell.display_formatter.formatters
        formatters["image/svg+xml"].for_type(Figure, to_svg)
        formatters["image/png"].for_type(Figure, to_png)


def to_svg(fig: Figure) -> str:
    """The figure as one ``<svg>`` element whose colours follow the page's light or dark theme.

    Each role's colour becomes ``var(--rank-ROLE, #light)``; text stays text, in the page's type
    (``--rank-font``), with real indices and exponents; identifiers are made unique by the content, so that
    many figures can share a page. Behind lies a card in ``--rank-paper``, white where the page says nothing.
    Shown at most at 100 pixels an inch. Labels find their places first
    (:func:`ranklib.book.labels.place_labels`). The figure stays open.

    Example
    -------
    >>> import matplotlib.pyplot as plt
    >>> from ranklib.book.style import role
    >>> fig, ax = plt.subplots()
    >>> _ = ax.plot([0, 1], [0, 1], **role("attention"))
    >>> "var(--rank-attention, #07415D)" in to_svg(fig)
    True
    """
    place_labels(write_powers(fig))
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranklib"}):
        fig.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    return _serialise(_clean(ElementTree.fromstring(buffer.getvalue())), fig)


def to_png(fig: Figure) -> bytes:
    """The figure as a PNG image of 110 pixels an inch, on white, in 64 colours. The figure stays open.

    Example
    -------
    >>> import matplotlib.pyplot as plt
    >>> to_png(plt.subplots()[0])[:4]
    b'\\x89PNG'
    """
    place_labels(write_powers(fig))
    marked = {t: t.get_text() for t in fig.findobj(Text) if printed(t.get_text()) != t.get_text()}
    for text, words in marked.items():
        text.set_text(re.sub(r"(\w+[_^]\{[^{}]*\})", r"$\\mathregular{\1}$", printed(words)))
    raw, small = io.BytesIO(), io.BytesIO()
    fig.savefig(raw, format="png", dpi=110, metadata={"Software": None}, facecolor="white")
    for text, words in marked.items():
        text.set_text(words)
    Image.open(raw).convert("RGB").quantize(64).save(small, format="PNG", optimize=True)
    return small.getvalue()


def write_powers(fig: Figure) -> Figure:
    """The same figure, whose logarithmic axes have ticks in plain text: 0.01, 1, 1000, 10⁴.

    Example
    -------
    >>> import matplotlib.pyplot as plt
    >>> fig, ax = plt.subplots()
    >>> ax.set_yscale("log")
    >>> write_powers(fig).axes[0].yaxis.get_major_formatter()(1e-4)
    '10⁻⁴'
    """
    for ax in fig.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                axis.set_major_formatter(FuncFormatter(_power))
    return fig


def _power(value: Real, _=None) -> str:
    exponent = math.log10(value) if value > 0 else 0
    whole = abs(exponent - round(exponent)) < 1e-6 and not -3 < exponent < 4
    return printed(f"10^{round(exponent)}") if whole else number(float(value))


def _clean(root: ElementTree.Element) -> ElementTree.Element:
    """Drop what is invisible, unwrap groups that say nothing, and turn colours into variables."""
    drawn: dict[str, dict] = {}  # what is defined once and used often: its style need not be repeated
    for element in root.iter():
        element.tag = element.tag.partition("}")[2]
        element.attrib = {key.rpartition("}")[2]: _shorter(value) for key, value in element.attrib.items()}
        style = dict(part.split(": ", 1) for part in element.attrib.pop("style", "").split("; ") if part)
        style = {key: _COLOURS.get(value.lower(), value) for key, value in style.items()}
        style.pop("font-family", None)
        if element.tag == "use":
            known = drawn[element.attrib["href"][1:]]
            style = {k: v for k, v in style.items() if known.get(k) != v and f"{k}: {v}" != _INK}
        elif "id" in element.attrib:
            drawn[element.attrib["id"]] = style
        if element.tag == "text":
            _set_indices(element)
            if re.match(r"rotate\(-?0 ", element.get("transform", "")):
                del element.attrib["transform"]
        text = "; ".join(f"{key}: {value}" for key, value in style.items())
        if element.tag in ("text", "tspan"):
            text = text.replace(f"; {_INK}", "")
        if text:
            element.set("style", text)
        if element.tag == "g" and (name := element.attrib.pop("id", "")):
            kind = {
                "matplotlib.axis": "rank-axis",
                "legend": "rank-legend",
                "on-tile": "rank-tile",
                "rank-leader": "rank-leader",
            }
            if found := [word for start, word in kind.items() if name.startswith(start)]:
                element.set("class", found[0])
    _prune(root)
    return root


def _prune(parent: ElementTree.Element) -> None:
    kept = []
    for child in parent:
        child.tail = None
        _prune(child)
        invisible = child.tag == "path" and child.get("style") == "fill: none" and not child.get("id")
        empty = child.tag in ("g", "defs") and not len(child)
        if child.tag in ("metadata", "style") or invisible or empty:
            continue
        kept += list(child) if child.tag == "g" and not child.attrib else [child]
    if parent.tag in ("text", "tspan"):
        return
    parent.text, parent[:] = None, kept
    styles = {child.get("style") for child in kept}
    if parent.tag == "g" and len(kept) > 1 and len(styles) == 1 and {child.tag for child in kept} == {"use"}:
        if style := styles.pop():
            parent.set("style", style)  # markers of one line
        for child in kept:
            child.attrib.pop("style", None)


def _set_indices(element: ElementTree.Element) -> None:
    """``d_{qk}`` in a text becomes a lowered tspan, ``10^{3.5}`` a raised one."""
    pieces = re.split(r"([_^])\{([^{}]*)\}", printed(element.text or ""))
    element.text = pieces[0]
    for sign, inside, after in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
        shift = 0.25 if sign == "_" else -0.4
        index = ElementTree.SubElement(element, "{}tspan", {"dy": f"{shift}em", "font-size": "75%"})
        index.text = inside
        if after:
            back = ElementTree.SubElement(element, "{}tspan", {"dy": f"{-0.75 * shift}em"})
            back.text = after


def _serialise(root: ElementTree.Element, fig: Figure) -> str:
    width, height = root.get("viewBox").split()[2:]
    root.attrib = {"xmlns": SVG, "viewBox": f"0 0 {width} {height}"}
    type_ = "font-family: var(--rank-font, sans-serif)"
    root.set("style", f"max-width: {100 * fig.get_figwidth():.0f}px; {_INK}; stroke-linejoin: round; {type_}")
    card = {"width": width, "height": height, "style": f"fill: var(--rank-paper, {PAGE.light})"}
    root.insert(0, ElementTree.Element("rect", card))
    text = ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")
    # Matplotlib's identifiers hash the last bit of its floats, which differs by processor. These count.
    reference = r'(href="#|url\(#)([^")]+)'
    names = {name: str(k) for k, name in enumerate(dict.fromkeys(m[1] for m in re.findall(reference, text)))}
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", text)
    text = re.sub(reference, lambda m: m[1] + names[m[2]], text)
    tag = f"p{sha1(text.encode()).hexdigest()[:6]}-"
    return re.sub(r'( id="|href="#|url\(#)(?=\d)', rf"\g<1>{tag}", text)


def _shorter(value: str) -> str:
    value = re.sub(r"-?\d+\.\d{2,}", _rounded, value)
    return re.sub(r"\s+", " ", value).strip()


def _rounded(found: re.Match) -> str:
    """A coordinate to a tenth of a point; what is less than one, an opacity say, to two digits."""
    number = float(found[0])
    return (f"{number:.2g}" if abs(number) < 1 else f"{number:.1f}").removesuffix(".0")
