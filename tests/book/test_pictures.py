"""Pictures have the same identifiers on every processor."""

import io
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from ranklib.book.pictures import to_svg
from ranklib.book.style import role

ULP = 1 + 2**-52


def picture(stretch: float, height: float = 1.0) -> Figure:
    """Markers, a hatch, a collection and a clip, with every float multiplied by stretch."""
    fig, ax = plt.subplots()
    ax.set_position([0.123 * stretch, 0.2 * stretch, 0.7 * stretch, 0.7 * stretch])
    ax.plot([0.1 * stretch, 0.7 * stretch], [0.3 * stretch, height * stretch], **role("skip"))
    ax.axhspan(0.1 * stretch, 0.17 * stretch, hatch="///", facecolor="none")
    ax.scatter([0.3 * stretch], [0.4 * stretch], s=[30 * stretch])
    return fig


def by_matplotlib(fig: Figure) -> str:
    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "ranklib"}):
        fig.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def names(svg: str) -> set[str]:
    return set(re.findall(r' id="([^"]+)"', svg))


def test_identifiers_are_the_same_on_every_processor_and_others_in_another_picture():
    pictures = [picture(1.0), picture(ULP), picture(1.0, height=0.9)]
    ours, shaken, other = map(to_svg, pictures)
    assert names(by_matplotlib(pictures[0])) != names(by_matplotlib(pictures[1])), (
        "no need of names of our own"
    )
    assert ours == shaken
    assert len(names(ours)) >= 3 and not names(ours) & names(other)
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', ours)) == names(ours)
    plt.close("all")
