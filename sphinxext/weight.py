"""What a page loads: one stylesheet, the icons that are used, and scripts that do not hold up the text.

The theme asks for twelve stylesheets, three icon fonts and a script of 1.5 MB that draws icons which its fonts draw
already. After the pages are written, this extension joins the stylesheets, cuts the icon fonts to the glyphs that
occur, and lets every script wait for the text.
"""

import re
from hashlib import sha1
from pathlib import Path

from sphinxext.fonts import cut
from sphinxext.structure import SKIP

STYLES = """basic.css styles/bootstrap.css styles/pydata-sphinx-theme.css pygments.css styles/sphinx-book-theme.css
copybutton.css mystnb.*.css proof.css exercise.css book/book.css""".split()
ICON_FONTS = {"Free": ("fa-solid-900", "solid"), "Brands": ("fa-brands-400", "brands")}
ICON_CSS = """
@font-face{font-family:"Font Awesome 6 Free";font-weight:900;src:url(fonts/fa-solid-900.woff2)format("woff2");font-display:block}
@font-face{font-family:"Font Awesome 6 Brands";font-weight:400;src:url(fonts/fa-brands-400.woff2)format("woff2");font-display:block}
:root{--fa-font-solid:normal 900 1em/1 "Font Awesome 6 Free";--fa-font-brands:normal 400 1em/1 "Font Awesome 6 Brands";
--fa-style-family-classic:"Font Awesome 6 Free"}
.fas,.fa-solid,.fab,.fa-brands{display:inline-block;line-height:1;text-rendering:auto;-webkit-font-smoothing:antialiased}
.fas,.fa-solid{font:var(--fa-font-solid)}.fab,.fa-brands{font:var(--fa-font-brands)}.fa-lg{font-size:1.25em}
"""
THEME = """<script>
    {
      const page = document.documentElement.dataset, dark = matchMedia("(prefers-color-scheme: dark)").matches;
      page.mode = localStorage.getItem("mode") || "auto";
      page.theme = page.mode === "auto" ? (dark ? "dark" : "light") : page.mode;
    }
  </script>"""
# Names and landmarks for those who hear the page.
NAMES = {
    'console.log("[PST]: Set focus on search field.");': "",
    '<div class="bd-sidebar-primary bd-sidebar">': '<div class="bd-sidebar-primary bd-sidebar" role="complementary" aria-label="Book">',
    'search-button-field search-button__button" title="Search" aria-label="Search"': 'search-button-field search-button__button"',
    'title="Toggle primary sidebar"': 'aria-label="Chapters"',
    'title="Toggle secondary sidebar"': 'aria-label="Contents of this page"',
    '<nav class="bd-toc-nav page-toc">': '<nav class="bd-toc-nav page-toc" aria-label="Contents">',
}
UNUSED = "fontawesome|togglebutton|design-tabs|sphinx-design|sphinx-thebe|toggleHint|toggleOpenOnPrint|\\.pagename ="


def slim(page: str, root: str, style: str) -> str:
    """One page with its head and scripts put in order; a page that is in order stays."""
    page = re.sub(r'<script data-cfasync="false">.*?</script>', THEME, page, count=1, flags=re.S)
    page = re.sub(r'\s*<link rel="preload" as="(?:font|script)"[^>]*>', "", page)
    page = re.sub(r'\s*<link(?=[^>]*rel="stylesheet")[^>]*>', "", page)
    page = re.sub(
        rf"\s*<script(?:(?!</script>).)*?(?:{UNUSED})(?:(?!</script>).)*</script>", "", page, flags=re.S
    )
    page = re.sub(r"<script (?!defer)(?=[^>]*src=)", "<script defer ", page)
    if SKIP in page:  # second on the page, after the link to the main content
        page = page.replace(SKIP, "")
        page = re.sub(r'(<div id="pst-skip-link".*?</div>)', rf"\1{SKIP}", page, count=1, flags=re.S)
    for old, new in NAMES.items():
        page = page.replace(old, new)
    page = re.sub(
        r'\s*<script[^>]*src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>', "", page
    )
    if 'id="search-results"' in page and "search-index.js" not in page:
        scripts = "".join(
            f'<script defer src="{root}_static/book/{name}.js"></script>'
            for name in ("search-index", "search")
        )
        page = page.replace("</body>", f"{scripts}</body>")
    head = f'<link rel="stylesheet" href="{root}_static/book/{style}" />'
    for name in ("text", "math"):
        head += f'\n  <link rel="preload" as="font" type="font/woff2" crossorigin href="{root}_static/book/fonts/{name}.woff2" />'
    head = f"<!-- book -->{head}<!-- /book -->"
    page = re.sub(
        r"<!-- Loaded before other Sphinx assets -->|<!-- book -->.*?<!-- /book -->", head, page, flags=re.S
    )
    return page


def joined(static: Path, pages: str) -> str:
    """All stylesheets as one, for a file in ``_static/book``."""
    parts = [path.read_text() for pattern in STYLES for path in sorted(static.glob(pattern))]
    css = "\n".join(re.sub(r"/\*.*?\*/|@import[^;]*;", "", part, flags=re.S) for part in parts)
    css = css.replace("url(file.png)", "url(../file.png)")
    return icons(static, pages, css) + css


def icons(static: Path, pages: str, css: str) -> str:
    """The rules of the icons that occur in pages or styles, and their fonts, cut to them."""
    (source,) = static.glob("vendor/fontawesome/*/css/all.min.css")
    used = set(re.findall(r"\bfa-[a-z-]+", pages))
    rules = re.findall(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\([0-9a-f]+)"\}', source.read_text())
    chosen = [(names, code) for names, code in rules if used & set(re.findall(r"fa-[\w-]+", names))]
    codes = {code for _, code in chosen} | set(re.findall(r"\\(f[0-9a-f]{3})\b", css))
    folder = static / "book" / "fonts"
    folder.mkdir(parents=True, exist_ok=True)
    for name, _ in ICON_FONTS.values():
        (font,) = static.glob(f"vendor/fontawesome/*/webfonts/{name}.ttf")
        cut(font, {chr(int(code, 16)) for code in codes}, folder / f"{name}.woff2")
    return ICON_CSS + "".join(f'{names}{{content:"\\{code}"}}' for names, code in chosen) + "\n"


def write(app, failure):
    if failure or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    static = folder / "_static"
    paths = [path for path in folder.rglob("*.html") if static not in path.parents]
    texts = {path: path.read_text() for path in paths}
    css = joined(static, "".join(texts.values()))
    (static / "book" / "site.css").write_text(css)
    style = f"site.css?v={sha1(css.encode()).hexdigest()[:8]}"
    for path, text in texts.items():
        root = "../" * len(path.relative_to(folder).parents[:-1])
        path.write_text(slim(text, root, style))


def setup(app):
    app.connect("build-finished", write, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
