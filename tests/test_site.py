"""A browser on every page of the built site: nothing broken or cut off, every slider moves its picture."""

import functools
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import nbformat
import pytest
import yaml
from markdown_it import MarkdownIt
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin

from sphinxext.plain_markdown import THEOREM_LINK
from tests.browser import Visit, chromium, context_of, served

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "_build" / "html"
CHAPTERS = [path.stem for path in sorted(ROOT.glob("chapters/*.ipynb"))]
PHONE, DESK = 375, 1280
INK = {"light": "rgb(26, 26, 26)", "dark": "rgb(242, 242, 242)"}
MAX_BYTES = 2_000_000
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)


@pytest.fixture(scope="module")
def site():
    assert (SITE / "index.html").exists(), "expected the built site, found none: run 'make book'"
    with served(SITE) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def contexts(browser):
    """One browser context for each kind of reader: files of the theme load once."""
    return functools.cache(functools.partial(context_of, browser))


@pytest.fixture
def visit(contexts, site):
    """Opens a chapter's page; it is closed after the test."""
    opened = []

    def go(chapter, width=DESK, theme="light", scripts=True):
        opened.append(Visit(contexts(theme, scripts), f"{site}/chapters/{chapter}.html", width))
        return opened[-1]

    yield go
    for one in opened:
        one.page.close()


def test_there_is_a_page_for_every_chapter():
    assert CHAPTERS, "expected chapters/*.ipynb, found none"
    assert {p.stem for p in SITE.glob("chapters/*.html")} == set(
        CHAPTERS
    ), "run 'make book'; every chapter is in _toc.yml"


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
@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_page_is_whole(visit, chapter, width, theme):
    seen = visit(chapter, width=width, theme=theme)
    page, found = seen.page, seen.faults
    assert (
        page.evaluate("document.documentElement.dataset.theme") == theme
    ), "the test could not set the theme"

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


# ---------------------------------------------------------------- sliders

STATE = """(root) => {
  const inputs = [...root.querySelectorAll("input[type=range]")];
  const visible = [...root.querySelectorAll(".rank-frame")].filter((f) => f.checkVisibility());
  return {
    values: inputs.map((i) => Number(i.value)),
    words: inputs.map((i) => JSON.parse(i.dataset.values)[i.value]),
    announced: inputs.map((i) => i.getAttribute("aria-valuetext")),
    written: inputs.map((i) => i.parentElement.querySelector("output").textContent),
    keys: visible.map((f) => f.dataset.key),
    labels: visible.map((f) => f.getAttribute("aria-label")),
    pictures: visible.map((f) => f.innerHTML),
    heights: visible.map((f) => f.firstElementChild.getBoundingClientRect().height),
    said: root.querySelector(".rank-said").textContent,
  };
}"""


def check_state(state: dict) -> None:
    assert state["keys"] == [
        ",".join(map(str, state["values"]))
    ], "one frame is visible, the one of these values"
    assert state["heights"][0] > 50
    assert state["announced"] == state["written"] == state["words"]
    assert [state["said"]] == state["labels"]


def keys_for(count: int) -> list[tuple[str, int]]:
    """Key presses that visit every value of one slider, and the value expected after each."""
    last = count - 1
    walk = [("Home", 0), *(("ArrowRight", i) for i in range(1, count)), ("ArrowRight", last)]
    return walk + [("Home", 0), ("ArrowLeft", 0), ("End", last), ("ArrowLeft", max(last - 1, 0))]


@every_chapter
def test_every_slider_moves_its_picture_by_keyboard(visit, chapter):
    seen = visit(chapter)
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    notebook = (ROOT / "chapters" / f"{chapter}.ipynb").read_text()
    roots = page.locator(".rank-explore").all()
    assert len(roots) == notebook.count(r"class=\"rank-explore\"")
    for root in roots:
        assert root.locator(".rank-controls").is_visible()
        before = root.evaluate(STATE)
        check_state(before)
        for i, control in enumerate(root.locator("input[type=range]").all()):
            control.focus()
            for key, expected in keys_for(int(control.get_attribute("max")) + 1):
                page.keyboard.press(key)
                after = root.evaluate(STATE)
                assert after["values"][i] == expected, f"slider {i} after {key}"
                check_state(after)
                if after["values"] != before["values"]:
                    same = [after[part] == before[part] for part in ("pictures", "labels")]
                    assert same != [True, True], f"picture and sentence stay at {after['words']}"
                before = after
    assert not seen.faults


@every_chapter
def test_without_scripts_the_default_frame_stands_alone(visit, chapter):
    page = visit(chapter, scripts=False).page
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    for root in page.locator(".rank-explore").all():
        assert not root.locator(".rank-controls").is_visible()
        shown = [frame for frame in root.locator(".rank-frame").all() if frame.is_visible()]
        default = [control.get_attribute("value") for control in root.locator("input").all()]
        assert [frame.get_attribute("data-key") for frame in shown] == [",".join(default)]
        assert root.locator(".rank-said").inner_text() == shown[0].get_attribute("aria-label")


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
