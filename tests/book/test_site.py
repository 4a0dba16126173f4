"""A browser on every page of the built site: nothing broken or cut off. Sliders: test_site_sliders.py."""

import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote, urljoin, urlsplit

import nbformat
import pytest
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from sphinxext.plain_markdown import THEOREM_LINK
from tests.book.browser import CHAPTERS, DESK, PHONE, ROOT, SITE, every_chapter, visit_fixtures

pytestmark = pytest.mark.slow  # a browser on the built site

INK = {"light": "rgb(26, 26, 26)", "dark": "rgb(242, 242, 242)"}
MAX_BYTES = 2_000_000
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


RAW_FORMULAS = r"""() => {
  const article = document.querySelector("article.bd-article");
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest("pre, code, script, style, svg, mjx-container")) continue;
    if (/\$[^$]+\$|\\\(|\\\[|\\[a-z]+\{/.test(node.data)) found.push(node.data.trim().slice(0, 80));
  }
  return found;
}"""
FORMULAS = """() => ({
  all: document.querySelectorAll("mjx-container").length,
  article: document.querySelectorAll("article.bd-article mjx-container").length,
  errors: [...document.querySelectorAll("mjx-merror, [data-mjx-error], mjx-container [style*='color: red']")]
    .map((e) => e.closest("mjx-container").textContent),
})"""
WIDE = """() => {
  const found = [];
  for (const formula of document.querySelectorAll("article.bd-article mjx-container")) {
    const drawn = formula.querySelector("mjx-math").getBoundingClientRect();
    if (formula.getAttribute("display") === "true") {
      const box = formula.closest("div.math") ?? formula.parentElement;
      const room = box.getBoundingClientRect();
      const outside = drawn.left < room.left - 1 || drawn.right > room.right + 1;
      if (outside || box.scrollWidth > box.clientWidth + 1) {
        found.push(`display ${Math.round(drawn.width)} in ${Math.round(room.width)}: ${formula.textContent}`);
      }
    } else if (!formula.closest("table") && drawn.right > innerWidth + 1) {
      found.push(`inline up to ${Math.round(drawn.right)} of ${innerWidth}: ${formula.textContent}`);
    }
  }
  return found;
}"""
PICTURES = """() => {
  const article = document.querySelector("article.bd-article");
  return {
    images: [...article.querySelectorAll("img")].filter((i) => !i.closest(".rank-frame")).map((i) => i.alt),
    unlabelled: [...article.querySelectorAll(".rank-frame img:not([alt])")].length,
    frames: [...article.querySelectorAll(".rank-frame")].map((f) => f.getAttribute("aria-label") ?? ""),
    missing: [...article.querySelectorAll("img")].filter((i) => i.checkVisibility() && !i.naturalWidth)
      .length,
  };
}"""
INKS = """() => [...document.querySelectorAll(".rank-explore")].map((root) => {
  let behind = root;
  while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
  const frame = [...root.querySelectorAll(".rank-frame")].find((f) => !f.hidden);
  return {
    vector: frame.querySelector("svg") !== null,
    behind: getComputedStyle(behind).backgroundColor,
    text: [...new Set([...frame.querySelectorAll("svg text")].map((t) => getComputedStyle(t).fill))],
  };
})"""
SIDEWAYS = "() => [document.scrollingElement.scrollWidth, innerWidth]"


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


@every_chapter
@pytest.mark.parametrize("theme,width", [("light", PHONE), ("light", DESK), ("dark", DESK)])
def test_page_is_whole(visit, chapter, width, theme):
    seen = visit(chapter, width=width, theme=theme)
    page, found = seen.page, seen.faults
    assert page.evaluate("document.documentElement.dataset.theme") == theme, (
        "the test could not set the theme"
    )

    formulas = page.evaluate(FORMULAS)
    source = Page((SITE / "chapters" / f"{chapter}.html").read_text())
    if formulas["all"] != source.formulas:
        found.append(f"{formulas['all']} formulas typeset, {source.formulas} in the page's source")
    if formulas["article"] != formulas_of(chapter):
        found.append(f"{formulas['article']} formulas typeset, {formulas_of(chapter)} in the notebook")
    found += [f"formula that MathJax cannot read: {e}" for e in formulas["errors"]]
    found += [f"raw formula in the text: {t}" for t in page.evaluate(RAW_FORMULAS)]

    if opened := page.locator("details[open]").count():
        found.append(f"{opened} folds are open when the page loads")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    page.evaluate("document.fonts.ready.then(() => null)")
    found += [f"formula wider than its box: {f}" for f in page.evaluate(WIDE)]
    wide, room = page.evaluate(SIDEWAYS)
    if wide > room:
        found.append(f"the page scrolls sideways: {wide} wide in {room}")

    pictures = page.evaluate(PICTURES)
    found += [f"alt text is no sentence: {alt!r}" for alt in pictures["images"] if not is_sentence(alt)]
    found += [
        f"label of a frame is no sentence: {label!r}"
        for label in pictures["frames"]
        if not is_sentence(label)
    ]
    if pictures["missing"] or pictures["unlabelled"]:
        found.append(
            f"{pictures['missing']} images without a picture, {pictures['unlabelled']} without alt in a frame"
        )
    for explorer in page.evaluate(INKS):
        if explorer["vector"] and INK[theme] not in explorer["text"]:
            found.append(f"no axis text in the ink of the {theme} theme, only {explorer['text']}")
        pale = [t for t in explorer["text"] if contrast(t, explorer["behind"]) < 3]
        found += [f"text {t} on {explorer['behind']} cannot be read" for t in pale]

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
    """Identifiers, links and formulas of one page's source."""

    def __init__(self, text: str):
        super().__init__()
        self.ids, self.links, self.formulas = set(), [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs.get("id"), attrs.get("name") if tag == "a" else None}
        self.formulas += "math" in (attrs.get("class") or "").split()
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
