"""A browser on every page of the built site: nothing broken, cut off or unreadable. Sliders: test_site_sliders.py."""

import json
import re
import statistics
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import nbformat
import pytest
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from sphinxext.plain_markdown import THEOREM_LINK
from tests.book import page_facts as facts
from tests.book.browser import CHAPTERS, DESK, PHONE, ROOT, SITE, every_chapter, visit_fixtures

pytestmark = pytest.mark.slow  # a browser on the built site

INK = {"light": "rgb(26, 26, 26)", "dark": "rgb(242, 242, 242)"}
MAX_BYTES = 2_000_000
MAX_NODES, MAX_STOPS, MAX_SHIFT = 12_000, 30, 0.05
site, browser, contexts, visit = visit_fixtures


def test_there_is_a_page_for_every_chapter():
    assert CHAPTERS, "expected chapters/*.ipynb, found none"
    assert {p.stem for p in SITE.glob("chapters/*.html")} == set(CHAPTERS), (
        "run 'make book'; every chapter is in _toc.yml"
    )


# ---------------------------------------------------------------- formulas


def count_formulas(markdown: str) -> int:
    """The formulas of a Markdown text, as MyST reads them. A theorem's link shows only its number."""
    parser = (
        MarkdownIt("commonmark").enable("table").use(dollarmath_plugin, allow_labels=True).use(amsmath_plugin)
    )
    tokens = parser.parse(THEOREM_LINK.sub("", markdown))
    tokens += [child for token in tokens for child in token.children or []]
    return sum(token.type.startswith(("math_", "amsmath")) for token in tokens)


def formulas_in(output: dict) -> int:
    """The formulas of one stored output, in the form that the book shows."""
    data = output.get("data", {})
    if any(kind in data for kind in ("text/html", "image/svg+xml", "image/png")):
        return 0
    return count_formulas(data["text/markdown"]) if "text/markdown" in data else int("text/latex" in data)


def formulas_of(chapter: str) -> int:
    nb = nbformat.read(ROOT / "chapters" / f"{chapter}.ipynb", as_version=4)
    written = sum(count_formulas(cell.source) for cell in nb.cells if cell.cell_type == "markdown")
    return written + sum(formulas_in(output) for cell in nb.cells for output in cell.get("outputs", []))


@pytest.mark.parametrize(
    "markdown,count",
    [
        ("no formula, 5 \\$ and `$x$`", 0),
        ("$a$ and $b$", 2),
        ("> **Theorem.** $a$\n>\n> $$ b\n> $$", 2),
        ("$$\na\n$$ (eq-a)\n\ntext [(eq-a)](#eq-a)", 1),
        ("<details>\n<summary>Solution</summary>\n\nIt is $a$.\n\n- $b$\n\n</details>", 2),
        ("```\n$a$\n```\n| $a$ | $b$ |\n|---|---|\n| $c$ | $d$ |", 4),
        ("[Theorem ($a$)](#thm-a) and [chapter $b$](b.ipynb)", 1),
        ("\\begin{align} a &= b \\end{align}", 1),
    ],
)
def test_formulas_are_counted(markdown, count):
    assert count_formulas(markdown) == count


def luminance(colour: str) -> float:
    """Relative luminance of ``rgb(r, g, b)``, as the Web Content Accessibility Guidelines define it."""
    parts = [int(x) / 255 for x in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def is_sentence(text: str) -> bool:
    return (
        len(text) >= 20 and text.endswith(".") and " " in text and not re.search(r"\.(png|svg|jpe?g)", text)
    )


def parse_colour(colour: str) -> str:
    """``color(srgb r g b)``, as browsers write mixed colours, as ``rgb(r, g, b)``."""
    if not colour.startswith("color(srgb"):
        return colour
    parts = [round(255 * float(x)) for x in re.findall(r"[\d.]+", colour.removeprefix("color(srgb"))[:3]]
    return f"rgb({parts[0]}, {parts[1]}, {parts[2]})"


def pale(pairs: dict[str, str]) -> list[str]:
    """Texts that cannot be told from what lies behind them with the contrast 4.5 that the guidelines demand."""
    split = {pair: [parse_colour(c) for c in pair.split(" on ")] for pair in pairs}
    return [f"{pair}: {pairs[pair]!r}" for pair, both in split.items() if contrast(*both) < 4.49]


def look_at_phone(page, chapter: str) -> list[str]:
    found = []
    formulas = page.evaluate(facts.FORMULAS)
    if formulas["article"] != formulas_of(chapter):
        found.append(f"{formulas['article']} formulas typeset, {formulas_of(chapter)} in the notebook")
    found += [f"formula that cannot be read: {e}" for e in formulas["errors"]]
    found += [f"formula without a picture: {e}" for e in formulas["empty"]]
    found += [f"formula smaller than its text: {e}" for e in formulas["small"]]
    found += [f"raw formula in the text: {t}" for t in page.evaluate(facts.RAW_FORMULAS)]
    if opened := page.locator("details[open]").count():
        found.append(f"{opened} folds are open when the page loads")
    if (shift := page.evaluate("window.shift")) >= MAX_SHIFT:
        found.append(f"the layout shifts by {shift:.3f} while the page loads, expected less than {MAX_SHIFT}")
    if (count := page.evaluate("document.querySelectorAll('*').length")) >= MAX_NODES:
        found.append(f"the page has {count} elements, expected less than {MAX_NODES}")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    page.evaluate("document.fonts.ready.then(() => null)")
    found += [f"formula wider than its box: {f}" for f in page.evaluate(facts.WIDE)]
    found += [f"a line begins with a sign after: {t}" for t in page.evaluate(facts.ORPHANS)]
    found += [f"table without caption or scopes: {t}" for t in page.evaluate(facts.TABLES)]

    pictures = page.evaluate(facts.PICTURES)
    found += [f"alt text is no sentence: {alt!r}" for alt in pictures["images"] if not is_sentence(alt)]
    found += [f"label of a frame is no sentence: {s!r}" for s in pictures["frames"] if not is_sentence(s)]
    found += [f"caption without its figure: {text}" for text in pictures["loose"]]
    for fault in ("missing", "unlabelled", "captions"):
        if pictures[fault]:
            found.append(f"pictures with the fault {fault!r}: {pictures[fault]}")
    return found


def look_at_theme(page, theme: str) -> list[str]:
    page.add_style_tag(content="* { transition: none !important }")
    page.evaluate("(theme) => { document.documentElement.dataset.theme = theme }", theme)
    found = [f"{theme}, too pale: {text}" for text in pale(page.evaluate(facts.PAIRS))]
    for explorer in page.evaluate(facts.INKS):
        if explorer["vector"] and explorer["text"] and INK[theme] not in explorer["text"]:
            found.append(f"no axis text in the ink of the {theme} theme, only {explorer['text']}")
        bad = [t for t in explorer["text"] if contrast(t, explorer["behind"]) < 4.49]
        found += [f"text {t} on {explorer['behind']} cannot be read" for t in bad]
    return found


def look_at_desk(page) -> list[str]:
    page.set_viewport_size({"width": DESK, "height": 900})
    found = [f"formula wider than its box: {f}" for f in page.evaluate(facts.WIDE)]
    lines = page.evaluate(facts.LINES)
    if len(lines) > 10 and not 62 <= statistics.median(lines) <= 74:
        found.append(f"a line has {statistics.median(lines)} characters, expected 65 to 70")
    found += [f"focus cannot be seen on {e}" for e in page.evaluate(facts.UNSEEN_FOCUS)]
    found += walk_to_slider(page)
    return found


def walk_to_slider(page) -> list[str]:
    """From the top of the page by keyboard: Tab, and Enter where a link skips to the first slider."""
    if not page.locator(".rank-explore").count():
        return []
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = false })")
    page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    page.evaluate("document.body.tabIndex = -1; document.body.focus()")
    for _ in range(MAX_STOPS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.skip-to-slider')"):
            page.keyboard.press("Enter")
        if page.evaluate("document.activeElement.closest('.rank-explore') !== null"):
            return []
    return [f"the first slider is not reached within {MAX_STOPS} tab stops"]


def look_with_axe(page) -> list[str]:
    page.evaluate(facts.AXE_FILE.locate().read_text() + "; 0")
    found = page.evaluate(facts.AXE)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    return [f"axe: {fault}" for fault in found + page.evaluate(facts.AXE_CONTRAST)]


def too_wide(page) -> list[str]:
    wide, room = page.evaluate(facts.SIDEWAYS)
    return [f"the page scrolls sideways: {wide} wide in {room}"] if wide > room else []


@every_chapter
def test_page_is_whole(visit, chapter):
    """Each page is loaded once, on a phone; then it is widened, and both themes are looked at."""
    seen = visit(chapter, width=PHONE)
    page, found = seen.page, seen.faults
    assert page.evaluate("document.documentElement.dataset.theme") == "light", (
        "the test could not set the theme"
    )
    found += look_at_phone(page, chapter) + too_wide(page)
    found += look_at_desk(page) + too_wide(page)
    found += look_at_theme(page, "dark") + look_at_theme(page, "light") + look_with_axe(page)
    own = [SITE / path.lstrip("/") for path in seen.paths if not path.startswith("/_static/")]
    weight = sum(path.stat().st_size for path in own if path.is_file())
    if weight >= MAX_BYTES:
        found.append(f"the page weighs {weight} bytes, expected less than {MAX_BYTES}")
    assert not found, "\n".join(found)


def test_contrast_is_the_guidelines():
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
    assert contrast("rgb(118, 118, 118)", "rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)


# ---------------------------------------------------------------- links


class Page(HTMLParser):
    """Identifiers and links of one page's source."""

    def __init__(self, text: str):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs.get("id"), attrs.get("name") if tag == "a" else None}
        if link := attrs.get("href") or attrs.get("src"):
            self.links.append(link)


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    found = {
        p.relative_to(SITE).as_posix(): Page(p.read_text())
        for p in SITE.rglob("*.html")
        if "_static" not in p.parts
    }
    assert set(found) > {f"chapters/{chapter}.html" for chapter in CHAPTERS}
    return found


def broken_links(name: str, pages: dict[str, Page]) -> list[str]:
    broken = []
    for link in pages[name].links:
        if urlsplit(link).scheme:
            continue
        goal = urlsplit(urljoin(f"http://site/{name}", link))
        target, place = unquote(goal.path).lstrip("/") or "index.html", unquote(goal.fragment)
        if goal.netloc != "site" or not (SITE / target).is_file():
            broken.append(f"{link}: no such file")
        elif place and target.endswith(".html") and place not in pages[target].ids:
            broken.append(f"{link}: no such place on the page")
    return broken


def test_every_internal_link_finds_its_page_and_its_place(pages):
    broken = {name: broken_links(name, pages) for name in pages}
    assert not any(broken.values()), json.dumps({name: b for name, b in broken.items() if b}, indent=1)


@every_chapter
def test_every_citation_and_reference_is_a_link(pages, chapter):
    nb = nbformat.read(ROOT / "chapters" / f"{chapter}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in nb.cells if cell.cell_type == "markdown")
    written = set(re.findall(r"\]\((?:[\w-]+\.ipynb)?#([\w-]+)\)", text))
    linked = {urlsplit(link).fragment for link in pages[f"chapters/{chapter}.html"].links}
    assert written - linked == set(), "these links of the notebook are none in the page"


@every_chapter
def test_the_colab_button_opens_this_chapter(pages, chapter):
    address = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]
    owner_and_name = urlsplit(address).path
    expected = f"https://colab.research.google.com/github{owner_and_name}/blob/main/chapters/{chapter}.ipynb"
    buttons = {link for link in pages[f"chapters/{chapter}.html"].links if "colab.research" in link}
    assert buttons == {expected}
    assert (ROOT / "chapters" / f"{chapter}.ipynb").is_file()
