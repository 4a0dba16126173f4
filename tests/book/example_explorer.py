"""An Explorer of two quantities, and the elements of its page."""

import re
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import pytest

from ranklib.book.sliders import explore
from ranklib.book.style import role

SHARP = 'A "sharp" & <b>bold</b> view'


def draw(a, kind="x"):
    fig, ax = plt.subplots(figsize=(2, 1.5))
    ax.plot([0, 1], [0, a], **role("attention"))
    ax.set(xlim=(0, 1), ylim=(0, 5))
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


def folded(markup: str, name: str) -> list[tuple[dict, str]]:
    """The templates of one class: their attributes and what their comment holds."""
    found = re.findall(r"<template ([^>]*)><!--(.*?)--></template>", markup, re.S)
    found = [(Elements(f"<a {attributes}>").tags[0][1], inside) for attributes, inside in found]
    return [(attributes, inside) for attributes, inside in found if attributes["class"] == name]


def visible(markup: str) -> Elements:
    """What stands outside of templates: all that is left without a script."""
    return Elements(re.sub(r"<template.*?</template>", "", markup, flags=re.S))
