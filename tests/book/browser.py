"""The built site, served from a thread, and Chromium looking at it."""

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.book.page_facts import SHIFTS

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
CHAPTERS = [path.stem for path in sorted(ROOT.glob("chapters/*.ipynb"))]
PHONE, DESK = 375, 1440
every_chapter = pytest.mark.parametrize("chapter", CHAPTERS)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
MISSING = (
    "expected Chromium for the browser tests, found none. Run 'make browser', or install the package "
    "'chromium' (Debian, Ubuntu) or Google Chrome, then run make again."
)


def executable() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    raise FileNotFoundError(MISSING)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server for one folder."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        yield browser
        browser.close()


def context_of(browser: Browser, theme: str = "light", scripts: bool = True) -> BrowserContext:
    """A reader who chose this theme, on a machine that prefers the other one."""
    opposite = {"light": "dark", "dark": "light"}[theme]
    context = browser.new_context(java_script_enabled=scripts, color_scheme=opposite)
    context.add_init_script(SHIFTS)
    context.add_init_script(f"localStorage.mode = localStorage.theme = {theme!r}")
    return context


class Visit:
    """One page, loaded at this width, and all that went wrong meanwhile."""

    def __init__(self, context: BrowserContext, address: str, width: int = 1280):
        self.host = urlsplit(address).netloc
        self.faults: list[str] = []
        self.paths: set[str] = set()
        self.page: Page = context.new_page()
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught exception: {error}"))
        self.page.on(
            "console", lambda m: self.faults.append(f"console: {m.text}") if m.type == "error" else None
        )
        self.page.on("request", self._requested)
        self.page.on("requestfailed", lambda r: self.faults.append(f"request failed: {r.url[:200]}"))
        self.page.on(
            "response",
            lambda r: self.faults.append(f"status {r.status}: {r.url}") if r.status >= 400 else None,
        )
        self.page.goto(address, wait_until="load")

    def _requested(self, request):
        parts = urlsplit(request.url)
        if parts.scheme in ("data", "blob"):
            return
        if parts.netloc == self.host:
            self.paths.add(unquote(parts.path))
        else:
            self.faults.append(f"request to another host: {request.url}")


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


visit_fixtures = site, browser, contexts, visit
"""What a test file binds under these four names."""
