"""Every stored figure and slider frame, on a phone: no text lies on data, on another text, or outside."""

import json
import re

import nbformat
import pytest

from tests.book.browser import PHONE, ROOT, visit_fixtures

_, browser, _, _ = visit_fixtures
pytestmark = pytest.mark.slow  # a browser
CHAPTERS = sorted(ROOT.glob("chapters/*.ipynb"))
COLUMN = PHONE - 32
"""Pixels between the margins of a phone's page."""
OVERLAPS = r"""() => [...document.querySelectorAll("svg")].map((svg) => {
  const page = svg.getBoundingClientRect(), scale = page.width / svg.viewBox.baseVal.width;
  const drawn = [], faults = [];
  const clipOf = (e) => {
    const id = (e.closest("[clip-path]")?.getAttribute("clip-path") ?? "").match(/#([^)]+)/)?.[1];
    const r = id && svg.querySelector(`#${id} rect`);
    const [x, y, w, h] = r ? ["x", "y", "width", "height"].map((k) => Number(r.getAttribute(k))) : [-1e9, -1e9, 2e9, 2e9];
    return (p) => p[0] >= x - 1 && p[0] <= x + w + 1 && p[1] >= y - 1 && p[1] <= y + h + 1;
  };
  const screen = (p) => [page.left + p[0] * scale, page.top + p[1] * scale];
  for (const path of svg.querySelectorAll("path")) {
    if (path.closest("defs, .rank-axis, .rank-leader")) continue;
    const style = path.getAttribute("style") ?? "";
    const inside = clipOf(path);
    let last = null;
    const points = [];
    for (const [, command, rest] of path.getAttribute("d").matchAll(/([MLCQz])([^MLCQz]*)/g)) {
      const n = (rest.match(/-?[\d.]+(?:e-?\d+)?/g) ?? []).map(Number);
      for (let i = 0; i + 1 < n.length; i += 2) {
        const p = [n[i], n[i + 1]];
        const steps = last && !(command === "M" && i === 0) ? Math.min(2000, Math.ceil(Math.hypot(p[0] - last[0], p[1] - last[1]))) : 1;
        for (let k = 1; k <= steps; k++) {
          const t = k / steps, q = last && steps > 1 ? [last[0] + (p[0] - last[0]) * t, last[1] + (p[1] - last[1]) * t] : p;
          if (inside(q)) points.push(q);
        }
        last = p;
      }
    }
    const area = !/stroke: /.test(style) && /fill: var\(--rank-(?!page|paper)|fill: url/.test(style) && !/opacity: 0?\.[0-4]/.test(style);
    if (/stroke: /.test(style)) drawn.push(...points.map(screen));
    else if (area && points.length) {
      const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
      const box = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
      for (let x = box[0]; x <= box[1]; x += 3) for (let y = box[2]; y <= box[3]; y += 3) drawn.push(screen([x, y]));
    }
  }
  for (const use of svg.querySelectorAll("use")) {
    if (use.closest(".rank-axis, defs")) continue;
    const p = [Number(use.getAttribute("x")), Number(use.getAttribute("y"))];
    if (clipOf(use)(p)) drawn.push(screen(p));
  }
  const texts = [...svg.querySelectorAll("text")].filter((t) => !t.closest(".rank-tile") && t.textContent.trim());
  const boxes = texts.map((t) => { const r = t.getBoundingClientRect(); return [r.left + 1, r.right - 1, r.top + 2, r.bottom - 2]; });
  boxes.forEach((b, i) => {
    const word = texts[i].textContent.slice(0, 40);
    if (drawn.some((p) => p[0] > b[0] && p[0] < b[1] && p[1] > b[2] && p[1] < b[3])) faults.push(`on data: ${word}`);
    if (b[0] < page.left - 2 || b[1] > page.right + 2 || b[2] < page.top - 2 || b[3] > page.bottom + 2) faults.push(`outside: ${word}`);
    boxes.slice(0, i).forEach((c, k) => {
      if (b[0] < c[1] && c[0] < b[1] && b[2] < c[3] && c[2] < b[3]) faults.push(`on each other: ${word} and ${texts[k].textContent.slice(0, 40)}`);
    });
    const size = parseFloat(getComputedStyle(texts[i]).fontSize) * scale;
    if (size < 9) faults.push(`small, ${size.toFixed(1)} pixels: ${word}`);
  });
  return faults;
})"""


def pictures_of(path) -> dict[str, str]:
    """Where it stands -> markup, for each figure and each frame of a notebook."""
    found = {}
    for i, cell in enumerate(nbformat.read(path, as_version=4).cells):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                found[f"cell {i}"] = data["image/svg+xml"]
            for key, frame in re.findall(
                r'data-key="([\d,]+)"[^>]*><!--(.*?)--></template>', data.get("text/html", ""), re.S
            ):
                found[f"cell {i}, frame {key}"] = frame
    return found


def overlaps(browser, pictures: list[str]) -> list[list[str]]:
    page = browser.new_page(viewport={"width": PHONE, "height": 900})
    body = "".join(f'<div style="width: {COLUMN}px">{picture}</div>' for picture in pictures)
    page.set_content(f'<meta charset="utf-8"><style>svg {{ display: block; width: 100% }}</style>{body}')
    found = page.evaluate(OVERLAPS)
    page.close()
    return found


@pytest.mark.parametrize("path", CHAPTERS, ids=[p.stem for p in CHAPTERS])
def test_no_text_lies_on_data(browser, path):
    pictures = pictures_of(path)
    faults = dict(zip(pictures, overlaps(browser, list(pictures.values())))) if pictures else {}
    assert not any(faults.values()), json.dumps(
        {k: f for k, f in faults.items() if f}, indent=1, ensure_ascii=False
    )


@pytest.mark.parametrize("path", CHAPTERS, ids=[p.stem for p in CHAPTERS])
def test_every_text_has_a_colour_that_can_be_read_in_both_themes(path):
    """Roles have contrast (test_labels.py); so a text has a role's colour, whole, or stands on a tile."""
    for place, picture in pictures_of(path).items():
        outside = re.sub(r'<g class="rank-tile">.*?</g>', "", picture)
        for style in re.findall(r'<(?:text|tspan)[^>]*style="([^"]*)"', outside):
            assert re.search(r"fill: (?!var\(--rank-)", style) is None and "opacity" not in style, (
                place,
                style,
            )


AXES = '<svg viewBox="0 0 331 216"><path d="M 20 180 L 320 20" style="fill: none; stroke: var(--rank-ink, #000)"/>{}</svg>'


@pytest.mark.parametrize(
    "planted,fault",
    [
        ('<text x="150" y="105" style="font-size: 11px">on the line</text>', "on data"),
        ('<text x="30" y="60" style="font-size: 11px">free</text>', None),
        ('<text x="310" y="150" style="font-size: 11px">too far right</text>', "outside"),
        ('<text x="30" y="60" style="font-size: 5px">small</text>', "small"),
        (
            '<text x="30" y="60" style="font-size: 11px">one</text><text x="35" y="62" style="font-size: 11px">two</text>',
            "on each other",
        ),
        (
            '<defs><path id="d" d="M 0 0"/></defs><use href="#d" x="45" y="56"/><text x="30" y="60" style="font-size: 11px">marker</text>',
            "on data",
        ),
        (
            '<path d="M 20 30 L 99 30 L 99 90 L 20 90 z" style="fill: var(--rank-skip, #0f0)"/><text x="30" y="60" style="font-size: 11px">bar</text>',
            "on data",
        ),
    ],
)
def test_a_planted_fault_is_seen(browser, planted, fault):
    (found,) = overlaps(browser, [AXES.format(planted)])
    assert [f.split(":")[0].split(",")[0] for f in found] == ([fault] if fault else [])
