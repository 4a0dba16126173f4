"""The stored form of a slider. The script that moves it: ``sphinxext/static/sliders.js``.

One element holds the picture of the default setting as pixels, a sentence, the controls and all frames. Frames
and controls are comments inside ``<template>``: a browser builds nothing of them until a script asks, and the
sanitiser of a notebook that is not trusted drops them whole, so that it shows exactly one picture and one
sentence. The book's build (``sphinxext/pictures.py``) unfolds the controls and the default frame.
"""

import html
from base64 import b64encode
from dataclasses import dataclass

from ranklib.book.typography import in_words, to_markup


@dataclass(frozen=True)
class Frame:
    """A picture as markup, its sentence for eyes, its sentence for ears, and, for the default one, its pixels."""

    picture: str
    seen: str
    heard: str
    pixels: bytes = b""


@dataclass(frozen=True)
class Control:
    """A parameter: its name in the address, its label, its values in words, and which one is set."""

    key: str
    label: str
    values: list[str]
    start: int
    is_quantity: bool
    plays: bool


def explorer(
    title: str, controls: list[Control], frames: dict[tuple, Frame], start: tuple, keep: bool
) -> str:
    """The whole element. Its identifier, which the address uses, is made of the parameters' names."""
    name = "-".join(control.key for control in controls)
    shown = frames[start]
    longest = max((frame.seen for frame in frames.values()), key=len)
    picture = f'<img alt="{html.escape(shown.heard)}" src="data:image/png;base64,{b64encode(shown.pixels).decode()}">'
    stored = "".join(
        f'<template class="rank-frame-of" data-key="{",".join(map(str, key))}" data-heard="{html.escape(f.heard)}" '
        f'data-seen="{html.escape(to_markup(f.seen))}"><!--{f.picture}--></template>'
        for key, f in frames.items()
    )
    return (
        f'<div class="rank-explore" id="{name}" data-keep="{int(keep)}">'
        f'<template class="rank-controls-of"><!--{_fieldset(name, title, controls, keep)}--></template>'
        f'<div class="rank-frame">{picture}</div>'
        f'<p class="rank-seen" data-longest="{html.escape(longest)}"><span>{to_markup(shown.seen)}</span></p>'
        f"{stored}</div>"
    )


def live(frame: Frame) -> str:
    """One frame as the widget view shows it."""
    return (
        f'<div style="max-width: 520px"><div role="img" aria-label="{html.escape(frame.heard)}">{frame.picture}</div>'
        f'<p aria-hidden="true">{to_markup(frame.seen)}</p></div>'
    )


def fault(error: Exception) -> str:
    """An error of the drawing function as the widget view shows it."""
    return f"<pre>{html.escape(f'{type(error).__name__}: {error}')}</pre>"


def _fieldset(name: str, title: str, controls: list[Control], keep: bool) -> str:
    kept = (
        '<div class="rank-buttons"><button type="button" data-do="keep">Keep this curve</button>'
        '<button type="button" data-do="clear" disabled>Remove kept curves</button></div>'
    )
    parts = "".join(_slider(c) if c.is_quantity else _buttons(name, c) for c in controls)
    return (
        f'<fieldset class="rank-controls"><legend>{to_markup(title)}</legend>{parts}{kept * keep}</fieldset>'
        '<p class="rank-heard" role="status"></p>'
    )


def _slider(control: Control) -> str:
    last = len(control.values) - 1
    every = -(-len(control.values) // 6)  # at most six written ticks
    ticks = "".join(
        f'<i style="left: {100 * i / last:.4g}%">{to_markup(v) if i in (0, last) or i % every == 0 and i + every <= last else ""}</i>'
        for i, v in enumerate(control.values)
    )
    words = html.escape("|".join(in_words(v) for v in control.values))
    texts = html.escape("|".join(control.values))
    play = (
        '<span class="rank-buttons"><button type="button" data-do="back">Back</button>'
        '<button type="button" data-do="play">Play</button>'
        '<button type="button" data-do="on">Next</button></span>'
    )
    return (
        f'<div class="rank-control" data-key="{html.escape(control.key)}"><label>'
        f'<span class="rank-name">{to_markup(control.label)}</span> '
        f'<span class="rank-value" aria-hidden="true">{to_markup(control.values[control.start])}</span>'
        f'<input type="range" min="0" max="{last}" step="1" value="{control.start}" data-texts="{texts}" '
        f'data-words="{words}" aria-valuetext="{html.escape(in_words(control.values[control.start]))}"></label>'
        f'<span class="rank-ticks" aria-hidden="true">{ticks}</span>{play * control.plays}</div>'
    )


def _buttons(name: str, control: Control) -> str:
    options = "".join(
        f'<label><input type="radio" name="{html.escape(f"{name}.{control.key}")}" value="{i}" '
        f'data-text="{html.escape(value)}"{" checked" * (i == control.start)}><span>{to_markup(value)}</span></label>'
        for i, value in enumerate(control.values)
    )
    return (
        f'<fieldset class="rank-control rank-choice" data-key="{html.escape(control.key)}">'
        f"<legend>{to_markup(control.label)}</legend><div>{options}</div></fieldset>"
    )
