"""The index that the book's search reads: every section and every statement, in words.

Formulas stand in it as the characters that a reader sees, so that WQK and √2 are found; Greek letters also by
their names. The search itself is ``sphinxext/static/search.js``; it looks for parts of words, in any script.
"""

import json
import re
import unicodedata
from pathlib import Path

from bs4 import BeautifulSoup

GONE = "details.hide, script, style, svg, .headerlink, .margin-reference, .skip-to-slider, .rank-explore, .output pre"
STATEMENTS = ".proof[id], .exercise[id], .admonition[id]"


def plain(text: str) -> str:
    """One line of plain characters: slanted and bold letters of formulas become the usual ones."""
    text = unicodedata.normalize("NFKC", text).replace("\u2061", "").replace("\xad", "")
    return re.sub(r"\s+", " ", text).strip()


def greek(text: str) -> str:
    names = {unicodedata.name(c, "").split()[-1].lower() for c in text if "α" <= c.lower() <= "ω"}
    return " ".join(sorted(names | ({"lambda"} if "lamda" in names else set())))


def entry(node, title: str, kind: str, page: str, place: str, chapter: str) -> dict:
    for root in node.select("msqrt"):
        root.insert(0, "√")
    text = plain(node.get_text(" ") if not node.find("math") else joined(node))
    return {"t": title, "k": kind, "u": f"{page}#{place}", "c": chapter, "x": text, "g": greek(title + text)}


def joined(node) -> str:
    """The text with formulas written without gaps."""
    for formula in node.select("math"):
        formula.replace_with(plain(formula.get_text("")).replace(" ", ""))
    return node.get_text(" ")


def entries(page: str, html: str) -> list[dict]:
    soup = BeautifulSoup(html, "html.parser")
    article = soup.select_one("article.bd-article")
    if article is None or article.h1 is None:
        return []
    for gone in article.select(GONE):
        gone.decompose()
    chapter = title_of(article.h1)
    found = []
    for box in article.select(STATEMENTS):
        head = box.select_one(".admonition-title")
        kind = head.select_one(".caption-number, .kind") if head else None
        if kind is None:
            continue
        name = plain(kind.get_text(" "))
        kind.decompose()
        title = plain(head.get_text("")).strip("() ")
        head.decompose()
        found.append(entry(box, title or name, name, page, box["id"], chapter))
        box.decompose()
    for section in reversed(article.select("section[id]")):
        head = section.find(re.compile("^h[1-6]$"), recursive=False)
        if head is None:
            continue
        title, kind = title_of(head), "Chapter" if head.name == "h1" else "Section"
        head.decompose()
        found.append(entry(section, title, kind, page, section["id"], chapter))
        section.decompose()
    return found


def title_of(head) -> str:
    return plain(head.get_text(""))


def write(app, failure):
    if failure or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    found = [
        e
        for name in sorted(app.env.found_docs)
        for e in entries(f"{name}.html", (folder / f"{name}.html").read_text())
    ]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    (folder / "_static/book/search-index.js").write_text(f"window.bookIndex = {text};\n")


def setup(app):
    app.connect("build-finished", write, priority=300)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
