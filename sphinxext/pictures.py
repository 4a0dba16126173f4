"""Stored pictures and sliders as the book shows them: vector graphics in the page, captions as figcaption.

A notebook stores a figure twice, as themed SVG and as PNG, and a slider as one picture with folded frames (see
``ranklib/book/slider_markup.py``). This extension puts the SVG into the page, where it follows the theme, with
its alt text, and unfolds a slider's controls and its default frame, so that nothing moves when the script starts.
Captions: ``structure.py``.
"""

import html
import json
import re

CONTROLS = re.compile(r'<template class="rank-controls-of"><!--(.*?)--></template>', re.S)
STILL = re.compile(r'<div class="rank-frame"><img alt="([^"]*)" src="[^"]*"></div>')
FRAME = r'<template class="rank-frame-of" data-key="{}"[^>]*><!--(.*?)--></template>'


def unfold(explorer: str) -> str:
    """A stored slider with its controls in the page and its default frame as vector graphics."""
    if not CONTROLS.search(explorer):
        raise ValueError("a slider: expected its stored form, with templates, got another; remedy: make run")
    controls = CONTROLS.search(explorer)[1]
    set_to = re.findall(r'type="range"[^>]*? value="(\d+)"|value="(\d+)"[^>]*? checked', controls)
    start = ",".join(slider or radio for slider, radio in set_to)
    drawn = re.search(FRAME.format(re.escape(start)), explorer, re.S)[1]
    said = STILL.search(explorer)[1]
    shown = f'<div class="rank-frame" role="img" data-key="{start}" aria-label="{said}">{drawn}</div>'
    explorer = STILL.sub(lambda _: shown, explorer, count=1)
    explorer = explorer.replace('<p class="rank-seen"', '<p class="rank-seen" aria-hidden="true"', 1)
    return CONTROLS.sub(lambda _: controls, explorer, count=1)


def show_outputs(cell: dict) -> None:
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        markup = "".join(data.get("text/html", ""))
        if "rank-explore" in markup:
            data["text/html"] = unfold(markup)
        elif "image/svg+xml" in data:
            alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
            drawn = "".join(data["image/svg+xml"])
            output["data"] = {
                "text/html": f'<div class="rank-figure" role="img" aria-label="{html.escape(alt)}">{drawn}</div>'
            }


def on_source_read(app, docname, source):
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        notebook = json.loads(source[0])
        notebook["cells"] = [
            c for c in notebook["cells"] if "colab-badge" not in c["metadata"].get("tags", [])
        ]
        for cell in notebook["cells"]:
            show_outputs(cell)
        source[0] = json.dumps(notebook)


def setup(app):
    app.connect("source-read", on_source_read)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
