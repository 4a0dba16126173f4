"""A real JupyterLab, served for copies of the chapters, with nothing of the user's: no trust, no settings."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.book.browser import ROOT

# All cells are in the page at once, and no news is fetched.
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
}
IN_LAB = r"""() => {
  const book = document.querySelector(".jp-Notebook");
  const faults = [];
  for (const formula of book.querySelectorAll("mjx-container")) {
    const signs = [...formula.querySelectorAll("math *")].filter((e) => !e.children.length).map((e) => e.textContent.trim());
    if (signs[0] === ">" || signs.at(-1) === ">") faults.push(`formula with >: ${signs.join(" ").slice(0, 80)}`);
    if (formula.querySelector("mjx-merror, merror")) faults.push(`formula that is none: ${signs.join(" ").slice(0, 80)}`);
  }
  for (const text of book.querySelectorAll(".jp-MarkdownOutput")) {
    const copy = text.cloneNode(true);
    copy.querySelectorAll("mjx-container, code, pre").forEach((e) => e.remove());
    const stray = copy.textContent.match(/\$\$|\$[^$\n]{1,60}\$|\{prf:|:::|<!--|-->|<a id|<\/?details|<\/?summary/);
    if (stray) faults.push(`stray markup: ${stray[0]}`);
    for (const link of text.querySelectorAll('a[href^="#"]')) {
      const goal = decodeURIComponent(link.getAttribute("href").slice(1));
      if (!document.getElementById(goal) && !book.querySelector(`[data-jupyter-id="${goal}"]`))
        faults.push(`link without target: ${goal}`);
    }
  }
  const seen = { sliders: [], figures: 0, formulas: book.querySelectorAll("mjx-container").length };
  for (const output of book.querySelectorAll(".jp-OutputArea-output")) {
    const shown = [...output.querySelectorAll("img, svg")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height > 50);
    if (output.querySelector(".rank-seen")) seen.sliders.push([shown.length, output.innerText.trim().split("\n").length]);
    else seen.figures += shown.length;
    if (/<Figure size|<svg|<template|Explorer\(/.test(output.textContent)) faults.push(`stray output: ${output.textContent.slice(0, 60)}`);
  }
  const open = [...book.querySelectorAll(".jp-CodeCell")].filter((c) => c.querySelector(".jp-InputArea-editor")?.checkVisibility()).length;
  return { faults, open, ...seen };
}"""


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """The address of a server whose root holds copies of all chapters."""
    chapters = folder / "chapters"
    shutil.copytree(ROOT / "chapters", chapters)
    for name, values in SETTINGS.items():
        path = folder / "settings/@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "PYTHONPATH": str(ROOT),
        "RANKLIB_SIZE": "quick",
    }
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
    ]
    command += [
        f"--ServerApp.root_dir={chapters}",
        "--IdentityProvider.token=",
        "--ServerApp.allow_root=True",
    ]
    with open(folder / "server.log", "w") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{address}/api").close()
                    break
                except OSError:
                    time.sleep(0.2)
            else:
                raise TimeoutError(
                    f"expected JupyterLab to answer in a minute, got {(folder / 'server.log').read_text()[-2000:]}"
                )
            yield address
        finally:
            server.terminate()
            server.wait(20)


def opened(browser: Browser, address: str, chapter: str) -> Page:
    """A chapter in JupyterLab, with all cells shown and all formulas typeset."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.goto(f"{address}/lab/tree/{chapter}.ipynb?reset")
    page.wait_for_selector(".jp-Notebook .jp-MarkdownOutput", timeout=60_000)
    source = (ROOT / "chapters" / f"{chapter}.ipynb").read_text()
    cells = len(json.loads(source)["cells"])
    page.wait_for_function(
        f"document.querySelectorAll('.jp-Notebook .jp-Cell').length >= {cells}", timeout=60_000
    )
    if re.search(r"\$", source):
        page.wait_for_selector(".jp-Notebook mjx-container", timeout=60_000)
    count = -1
    while count != (count := page.locator(".jp-Notebook mjx-container").count()):
        page.wait_for_timeout(400)
    return page


def stored(chapter: str) -> dict[str, int]:
    """What a chapter holds: sliders, figures, and cells whose code is not folded."""
    cells = json.loads((ROOT / "chapters" / f"{chapter}.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output.get("data", {}) for cell in code for output in cell["outputs"]]
    return {
        "sliders": sum("rank-explore" in "".join(data.get("text/html", "")) for data in outputs),
        "figures": sum("image/png" in data for data in outputs),
        "open": sum(not cell["metadata"].get("jupyter", {}).get("source_hidden") for cell in code),
    }
