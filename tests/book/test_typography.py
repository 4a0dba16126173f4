"""Numbers and formulas as words and as markup."""

import re

import matplotlib.pyplot as plt
import pytest

from ranklib.book.pictures import to_svg
from ranklib.book.typography import spoken


@pytest.mark.parametrize(
    "value,text",
    [(True, "on"), (False, "off"), (3, "3"), (-0.5, "−0.5"), (1e-7, "10⁻⁷"), ("words", "words")],
)
def test_spoken_values(value, text):
    assert spoken(value) == text


def test_written_numbers_are_not_rounded():
    """Coordinates are shortened, text is not: it is read."""
    fig, ax = plt.subplots()
    words = ["0.99752", "4.5398·10⁻⁵", "10.123456 of 1.0000001"]
    for k, word in enumerate(words):
        ax.text(0.123456, k / 3, word)
    markup = to_svg(fig)
    written = re.findall(r"<text[^>]*>([^<]*)</text>", markup)
    assert [w for w in words if w not in written] == []
    assert not re.search(r'"[^"]*\d\.\d{3,}[^"]*"', "".join(re.findall(r"<[^>]+>", markup)))
