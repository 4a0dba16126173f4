"""The site is found and shared: search, addresses, descriptions, pictures, weight, print and the list of statements."""

import gzip
import json
import re

import pytest
import yaml
from PIL import Image

from sphinxext.fonts import FONTS
from sphinxext.mathml import to_mathml
from sphinxext.quiet_code import quieten
from sphinxext.shared import address, described
from sphinxext.weight import slim
from tests.book.browser import CHAPTERS, ROOT, SITE, Visit, every_chapter, visit_fixtures

site, browser, contexts, visit = visit_fixtures
BASE = address(yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"])
MAX_FRONT = 500_000


def source(chapter: str) -> str:
    return (SITE / f"chapters/{chapter}.html").read_text()


def meta(text: str, name: str) -> str:
    found = re.findall(rf'<meta (?:property|name)="{name}" content="([^"]*)"', text)
    assert len(found) == 1, f"{name}: expected once, found {found}"
    return found[0]


@every_chapter
def test_a_page_says_what_and_where_it_is(chapter):
    text = source(chapter)
    place = f"{BASE}chapters/{chapter}.html"
    assert f'<link rel="canonical" href="{place}"' in text and meta(text, "og:url") == place
    assert 40 <= len(meta(text, "description")) <= 220 and "\\" not in meta(text, "description")
    assert meta(text, "og:description") == meta(text, "description")
    picture = SITE / meta(text, "og:image").removeprefix(BASE)
    assert Image.open(picture).size == (1200, 630)
    assert "Project name not set" not in text


def test_descriptions_are_all_different():
    words = [meta(source(chapter), "description") for chapter in CHAPTERS]
    assert len(set(words)) == len(words)


def test_the_map_of_the_site_names_every_page():
    listed = set(re.findall(r"<loc>(.*?)</loc>", (SITE / "sitemap.xml").read_text()))
    none = {"404", "index", "search", "genindex", "prf-prf"}
    pages = [
        p.relative_to(SITE) for p in SITE.rglob("*.html") if "_static" not in p.parts and p.stem not in none
    ]
    assert listed == {f"{BASE}{page.as_posix()}" for page in pages} and len(listed) > len(CHAPTERS)
    assert f"{BASE}sitemap.xml" in (SITE / "robots.txt").read_text()
    assert BASE in (SITE / "404.html").read_text()


def test_described_takes_whole_sentences():
    body = f"<h1>T</h1><p>short</p><p>{'A first sentence that is <em>long</em> enough to say something at all. ' * 4}</p>"
    assert described(body) == "A first sentence that is long enough to say something at all. " * 2 + (
        "A first sentence that is long enough to say something at all."
    )


def test_no_page_waits_for_scripts_or_loads_what_it_does_not_use():
    for page in SITE.rglob("*.html"):
        if "_static" in page.parts or page.name in ("404.html", "index.html"):
            continue
        head = page.read_text().partition("</head>")[0]
        assert len(re.findall(r'rel="stylesheet"', head)) == 1, page.name
        assert not re.findall(r"<script src=", page.read_text()), page.name
        assert "fontawesome" not in page.read_text() and "mathjax/" not in page.read_text()


def test_a_page_in_order_stays_as_it_is():
    text = source("front-page")
    once = slim(text, "../", "site.css")
    assert once.count('class="skip-to-slider"') == 1 and slim(once, "../", "site.css") == once


def test_the_front_page_is_light(visit):
    seen = visit("front-page")
    files = [SITE / path.lstrip("/") for path in seen.paths]
    counted = [path for path in files if path.is_file() and path.suffix not in (".woff2", ".ico")]
    assert sum(len(gzip.compress(path.read_bytes())) for path in counted) < MAX_FRONT
    for name in ("text", "math", "fa-solid-900"):
        assert f"/_static/book/fonts/{name}.woff2" in seen.paths
    fonts = "[...document.fonts].filter((f) => f.status === 'loaded').map((f) => f.family)"
    assert {"Book Text", "Font Awesome 6 Free"} <= {name.strip('"') for name in seen.page.evaluate(fonts)}
    assert set(FONTS) == {
        p.stem for p in SITE.glob("_static/book/fonts/*.woff2") if not p.stem.startswith("fa-")
    }


@pytest.mark.parametrize(
    "question,kind,place",
    [
        ("Theorem 2.1", "Theorem 2.1", "chapters/softmax-shift-invariance.html#thm-sees"),
        ("λ", "", ""),
        ("lambda", "", ""),
        ("√2", "", ""),
        ("WQK", "", ""),
    ],
)
def test_search_finds_words_and_lands_on_the_statement(contexts, site, question, kind, place):
    seen = Visit(contexts("light", True), f"{site}/search.html?q={question}")
    links = seen.page.locator("ul.search a")
    assert links.count() > 0, f"nothing found for {question}"
    first = links.first
    assert first.get_attribute("href").endswith(place) and kind in first.inner_text().replace(
        "THEOREM", "Theorem"
    )
    assert "#" in first.get_attribute("href")
    texts = " ".join(seen.page.locator("ul.search li").all_inner_texts())
    assert "\\" not in texts and "$" not in texts
    assert not seen.faults
    seen.page.close()


def test_every_place_of_the_search_exists():
    index = json.loads((SITE / "_static/book/search-index.js").read_text()[len("window.bookIndex = ") : -2])
    pages = {
        p: set(re.findall(r'id="([^"]+)"', (SITE / p).read_text()))
        for p in {e["u"].split("#")[0] for e in index}
    }
    assert len(index) > 200
    assert [e["u"] for e in index if e["u"].split("#")[1] not in pages[e["u"].split("#")[0]]] == []


def test_the_list_of_statements_is_for_people():
    text = (SITE / "statements.html").read_text().partition("<article")[2].partition("</article>")[0]
    assert (
        '<a class="reference internal" href="chapters/softmax-shift-invariance.html#thm-sees">Theorem 2.1 (What softmax sees)</a>'
        in text
    )
    written = sum(source(chapter).count('<div class="proof ') for chapter in CHAPTERS)
    assert text.count("<li>") == written > 80


def test_paper_shows_every_fold_and_cuts_nothing(visit):
    page = visit("path-decomposition").page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.set_viewport_size({"width": 680, "height": 960})
    assert page.locator("article details:not([open])").count() == 0 < page.locator("article details").count()
    cut = """() => [...document.querySelectorAll("article pre, article div.math, article table")].filter((e) =>
      e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.textContent.slice(0, 60))"""
    assert page.evaluate(cut) == []
    assert not page.locator(".bd-sidebar-primary").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("article details[open]").count() == 0


# ---------------------------------------------------------------- what the extensions write


@pytest.mark.parametrize(
    "tex,expected",
    [
        (r"\mathbb R", "<mi>ℝ</mi>"),
        (r"\mathbf 1x", "<mn>𝟏</mn>"),
        (r"\mathrm{res}(X)", "<mi>res</mi><mo stretchy"),
        (r"\tanh x", '<mi>tanh</mi><mo rspace="0.1667em">\u2061</mo><mi>x</mi>'),
        (r"\|x\|", "<mi>‖</mi>"),
        (r"P_{1}_{2j}", "<msub><msub><mi>P</mi><mn>1</mn></msub>"),
        (r"x_\max", "<msub><mi>x</mi><mi>max</mi></msub>"),
        (r"\sqrt c", '<msqrt><mspace height="0.68em" /><mi>c</mi></msqrt>'),
    ],
)
def test_formulas_become_mathml_that_browsers_follow(tex, expected):
    assert expected in to_mathml(tex)


def test_a_formula_that_cannot_be_read_is_named():
    with pytest.raises(ValueError, match="expected TeX that KaTeX reads"):
        to_mathml(r"\frac{1}{")


@pytest.mark.parametrize(
    "source,printed,words",
    [
        ("# Checked: 500 random pairs\nassert a\nprint(1)\nprint(2)", "1\n2\n", "Checked: 500 random pairs"),
        ("assert a\nprint(1)", "500 pairs: at most 1.000\n", "Checked: 500 pairs: at most 1.000"),
        ("# The layer agrees.\nassert a", "", "Checked: The layer agrees"),
        ("assert a\nassert b", "", "Checked: 2 assertions in this cell"),
        ("assert a\nprint(1)\nprint(2)", "1\n2\n", None),
        ("print(1)", "1\n", None),
        ('check("x", None)', "x: no answer yet. Write it.\n", "Answer this in the notebook"),
    ],
)
def test_cells_that_check_fold_to_what_they_checked(source, printed, words):
    outputs = [{"output_type": "stream", "text": printed}] if printed else []
    cell = {"cell_type": "code", "source": source, "metadata": {}, "outputs": outputs}
    quieten(cell)
    assert cell["metadata"].get("mystnb", {}).get("code_prompt_show") == words
    assert "no answer" not in json.dumps(cell["outputs"])
