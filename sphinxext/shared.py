"""How a page is found and shared: its address, a description, a picture, the list of all pages, a page for lost links.

The public address follows from the repository's, which ``_config.yml`` names: pages of github.com/NAME/BOOK are at
NAME.github.io/BOOK.
"""

import base64
import json
import re
from html import escape, unescape
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

from sphinxext.fonts import find

SIZE = (1200, 630)
LOST = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>No such page: {title}</title><meta name="robots" content="noindex">
<style>body {{ font: 1.2rem/1.5 Georgia, serif; max-width: 34rem; margin: 15vh auto; padding: 0 1rem }}
@media (prefers-color-scheme: dark) {{ body {{ background: #121212; color: #ddd }} a {{ color: #8ab4f8 }} }}</style></head>
<body><main><h1>There is no such page</h1><p>It may have been renamed. <a href="{home}">The front page</a> lists every
chapter, and <a href="{home}search.html">the search</a> knows each statement.</p></main></body></html>
"""


def address(repository: str) -> str:
    """The site's public address.

    Example
    -------
    >>> address("https://github.com/name/book")
    'https://name.github.io/book/'
    """
    owner, name = urlsplit(repository).path.strip("/").split("/")[:2]
    return f"https://{owner.lower()}.github.io/{name}/"


def choose(app, config):
    config.html_theme_options.setdefault("logo", {"text": config.html_title, "alt_text": ""})
    config.html_use_index = config.html_domain_indices = False  # statements.md is the index
    config.html_baseurl = address(config.html_theme_options["repository_url"])


def described(body: str, limit: int = 200) -> str:
    """The first sentences of a page, without mark-up."""
    paragraphs = re.findall(r"<p>(.*?)</p>", re.sub(r"<h1>.*?</h1>", "", body, flags=re.S), re.S)
    text = next((p for p in paragraphs if len(p) > 60), "")
    text = " ".join(unescape(re.sub(r"<[^>]+>", "", text)).split())
    if len(text) <= limit:
        return text
    whole = re.match(rf".{{60,{limit}}}[.?!](?= )", text)
    return whole[0] if whole else text[: limit - 1].rsplit(" ", 1)[0] + "…"


def add_tags(app, pagename, templatename, context, doctree):
    if doctree is None:
        return
    base = app.config.html_baseurl
    title = unescape(re.sub(r"<[^>]+>", "", context.get("title") or app.config.html_title))
    words = described(context.get("body") or "")
    picture = f"{base}_static/book/shared/{Path(pagename).name}.png"
    tags = {"og:type": "article", "og:title": title, "og:description": words, "og:image": picture,
            "og:url": f"{base}{pagename}.html", "og:site_name": app.config.html_title}  # fmt: skip
    lines = [f'<meta property="{name}" content="{escape(value)}" />' for name, value in tags.items()]
    lines += [f'<meta name="description" content="{escape(words)}" />',
              '<meta name="twitter:card" content="summary_large_image" />']  # fmt: skip
    context["metatags"] = context.get("metatags", "") + "\n    ".join(["", *lines])
    draw(
        Path(app.outdir) / "_static/book/shared",
        Path(app.env.doc2path(pagename)),
        title,
        app.config.html_title,
    )


def first_picture(source: Path):
    """The first picture that the notebook stores as PNG, or nothing."""
    from PIL import Image

    if source.suffix != ".ipynb":
        return None
    for cell in json.loads(source.read_text())["cells"]:
        for output in cell.get("outputs", []):
            if data := output.get("data", {}).get("image/png"):
                return Image.open(BytesIO(base64.b64decode("".join(data)))).convert("RGBA")
    return None


def draw(folder: Path, source: Path, title: str, book: str) -> None:
    """A card with the title of a page and its first figure."""
    from PIL import Image, ImageDraw, ImageFont

    card = Image.new("RGB", SIZE, "white")
    pen = ImageDraw.Draw(card)
    large, small = (ImageFont.truetype(str(find("matplotlib", name)), size)
                    for name, size in (("STIXGeneralBol.ttf", 62), ("STIXGeneral.ttf", 34)))  # fmt: skip
    picture = first_picture(source)
    room = 560 if picture else 1080
    lines, y = [""], 70
    for word in title.split():
        if pen.textlength(f"{lines[-1]} {word}", large) > room:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    for line in lines:
        pen.text((60, y), line, "#1A1A1A", large)
        y += 76
    pen.text((60, 545), book, "#555555", small)
    if picture:
        picture.thumbnail((540, 520))
        card.paste(picture, (640, (SIZE[1] - picture.height) // 2), picture)
    folder.mkdir(parents=True, exist_ok=True)
    card.save(folder / f"{source.stem}.png", optimize=True)


def write(app, failure):
    if failure or app.builder.format != "html":
        return
    base, folder = app.config.html_baseurl, Path(app.outdir)
    pages = [f"<url><loc>{base}{name}.html</loc></url>" for name in sorted(app.env.found_docs)]
    (folder / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        + "\n".join(pages) + "\n</urlset>\n"
    )  # fmt: skip
    (folder / "robots.txt").write_text(f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n")
    (folder / "404.html").write_text(LOST.format(title=escape(app.config.html_title), home=base))


def setup(app):
    app.connect("config-inited", choose, priority=950)
    app.connect("html-page-context", add_tags, priority=700)
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
