"""Input text of the experiments: 32 short biographies of mathematicians and scientists."""

import json
from importlib.resources import files
from typing import NamedTuple


class Biography(NamedTuple):
    """One person: name, years of life (``"1707-1783"``, ``"died 415"``), and one paragraph of prose."""

    name: str
    years: str
    text: str


def biographies() -> list[Biography]:
    """The 32 biographies, in a fixed order: each one paragraph, each longer than 128 tokens.

    The paper measured 128-token excerpts of biographies from Wikipedia. These were written for this book,
    with no sentence taken from elsewhere. They are text, not code, and licensed as the book's text is: CC BY
    4.0, see ``LICENSE-TEXT.md``.

    In WordPieces of bert-base-uncased, without [CLS] and [SEP], a text has 173 to 194 tokens, median 184.5.
    Repeated tokens: cut to 128 with [CLS] and [SEP], the share of positions whose token also stands further
    left is 20% to 33%, median 28%; without positions an input thus has at least 86 distinct rows.
    Every text also has at least 128 words: whoever counts words gets full excerpts too.

    Returns
    -------
    list of Biography
        A new list at each call, with the fields ``name``, ``years``, ``text``.

    Examples
    --------
    >>> people = biographies()
    >>> len(people), people[6].name, people[6].years
    (32, 'Leonhard Euler', '1707-1783')
    >>> people[18].text[:51]
    'Oskar Perron, born in Frankenthal in the Palatinate'

    Source: the book's own, in place of the paper's excerpts.
    """
    text = files("ranklib.book").joinpath("biographies.json").read_text(encoding="utf-8")
    return [Biography(**entry) for entry in json.loads(text)]
