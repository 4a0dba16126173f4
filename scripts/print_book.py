"""Print the built site as one PDF, chapter after chapter, through Chromium: make pdf."""

import re
import sys
import tempfile
from pathlib import Path

import yaml
from pypdf import PdfWriter

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.book.browser import ROOT, SITE, chromium, served

TARGET = ROOT / "_build" / "book.pdf"


def pages() -> list[str]:
    """The pages in the order of the table of contents."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text())
    return [contents["root"], *(c["file"] for part in contents["parts"] for c in part["chapters"])]


def title(page) -> str:
    return re.sub(r"\s*#?$", "", page.locator("article h1").first.inner_text())


if __name__ == "__main__":
    wanted = sys.argv[1:] or pages()
    book = PdfWriter()
    with served(SITE) as address, chromium() as browser, tempfile.TemporaryDirectory() as folder:
        page = browser.new_page()
        for name in wanted:
            page.goto(f"{address}/{name}.html", wait_until="load")
            page.evaluate(
                "document.documentElement.dataset.theme = 'light'; document.fonts.ready.then(() => null)"
            )
            path = Path(folder) / f"{Path(name).name}.pdf"
            page.pdf(path=path, format="A4", print_background=True, prefer_css_page_size=True, outline=False)
            book.append(path, outline_item=title(page))
    TARGET.parent.mkdir(exist_ok=True)
    book.write(TARGET)
    print(f"The book is at {TARGET}, {len(book.pages)} pages.")
