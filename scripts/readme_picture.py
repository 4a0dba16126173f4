"""Take the README's picture from the built front page, after `make book browser`."""

import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    page_file = ROOT / "_build/html/chapters/front-page.html"
    if not page_file.exists():
        raise SystemExit("expected the built book, found none; run 'make book' first")
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 700, "height": 1200}, device_scale_factor=1.5)
        page.goto(page_file.as_uri() + "#depth-skip?depth=3&skip=off")  # the README describes this frame
        page.locator(".rank-explore").first.screenshot(path=ROOT / ".github/front-page.png")
        browser.close()
