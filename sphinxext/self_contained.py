"""Everything a page needs lies in the site: the book's style and its scripts.

The book's own files are in ``sphinxext/static``. Scripts of other hosts that Jupyter Book would add are left out.
"""

import shutil
from pathlib import Path

from ranklib.book.style import css

STATIC = Path(__file__).resolve().parent / "static"
STYLE = "type layout boxes code figures tables phones print".split()
FOREIGN = ("sphinx-thebe", "THEBE_JS_URL", "require.js", "embed-amd")


def configure(app, config):
    config.nb_ipywidgets_js = {}  # stored outputs are plain HTML: no widget player


def copy_files(app):
    """Runs before pages are written, so that Sphinx finds the files and adds their checksums."""
    if app.builder.format != "html":
        return
    target = Path(app.outdir) / "_static" / "book"  # the theme owns "_static/vendor"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(STATIC, target, ignore=shutil.ignore_patterns("css"))
    parts = [css(), *((STATIC / "css" / f"{name}.css").read_text() for name in STYLE)]
    (target / "book.css").write_text("\n".join(parts))


def page_context(app, pagename, templatename, context, doctree):
    """Drop scripts of other hosts, and repeated ones, from the theme's list."""
    kept = {}
    for script in context.get("script_files", []):
        attributes = dict(getattr(script, "attributes", {}))
        key = (str(getattr(script, "filename", script)), attributes.get("body"))
        if not any(word in part for part in key if part for word in FOREIGN):
            kept.setdefault(key, script)
    context["script_files"][:] = kept.values()


def setup(app):
    app.add_css_file("book/book.css")
    app.add_js_file("book/sliders.js", loading_method="async")  # ready before the page is typeset
    app.add_js_file("book/reader.js", loading_method="defer")
    app.connect("config-inited", configure, priority=900)
    app.connect("builder-inited", copy_files)
    app.connect("html-page-context", page_context, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
