"""What a browser is asked about a page of the site. Each text is a JavaScript function."""

from importlib.metadata import files

SHIFTS = """
window.shift = 0;
new PerformanceObserver((list) => list.getEntries().forEach((e) => { if (!e.hadRecentInput) window.shift += e.value; }))
  .observe({type: "layout-shift", buffered: true});
"""
RAW_FORMULAS = r"""() => {
  const article = document.querySelector("article.bd-article");
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest("pre, code, script, style, svg, math")) continue;
    if (/\$[^$]+\$|\\\(|\\\[|\\[a-z]+\{/.test(node.data)) found.push(node.data.trim().slice(0, 80));
  }
  return found;
}"""
FORMULAS = """() => {
  const drawn = (m) => { const r = m.getBoundingClientRect(); return r.width > 0 && r.height > 0; };
  const all = [...document.querySelectorAll("article.bd-article math")];
  const packed = [...document.querySelectorAll("article.bd-article details > noscript")].map((n) =>
    new DOMParser().parseFromString(n.textContent, "text/html"));
  const held = packed.flatMap((content) => [...content.querySelectorAll("math")]);
  return {
    article: all.length + held.length,
    empty: all.filter((m) => m.checkVisibility() && !drawn(m)).map((m) => m.outerHTML.slice(0, 200)),
    errors: [document, ...packed].flatMap((part) =>
      [...part.querySelectorAll(".tex-error, merror, math [mathcolor]")]).map((e) => e.textContent),
    small: all.filter((m) => parseFloat(getComputedStyle(m).fontSize) <
      parseFloat(getComputedStyle(m.parentElement.parentElement).fontSize) *
      (m.getAttribute("display") === "block" ? 0.75 : 1) - 0.1).map((m) => m.textContent),
  };
}"""
WIDE = """() => {
  const found = [];
  for (const formula of document.querySelectorAll("article.bd-article math")) {
    if (!formula.checkVisibility()) continue;
    const scroller = formula.closest("details.derivation > *");  // what a machine wrote may scroll in its box
    if (scroller && getComputedStyle(scroller).overflowX === "auto") continue;
    const drawn = formula.getBoundingClientRect();
    if (formula.getAttribute("display") === "block") {
      const box = formula.closest("div.math") ?? formula.parentElement;
      const room = box.getBoundingClientRect();
      const outside = drawn.left < room.left - 1 || drawn.right > room.right + 1;
      if (outside || box.scrollWidth > box.clientWidth + 1) {
        found.push(`display ${Math.round(drawn.width)} in ${Math.round(room.width)}: ${formula.textContent}`);
      }
    } else if (!formula.closest("table") && drawn.right > innerWidth + 1) {
      found.push(`inline up to ${Math.round(drawn.right)} of ${innerWidth}: ${formula.textContent}`);
    }
  }
  return found;
}"""
# Lines of a page that begin with a sign that belongs to the formula before it.
ORPHANS = """() => {
  const found = [];
  for (const formula of document.querySelectorAll("article.bd-article math:not([display])")) {
    const next = formula.nextSibling ?? formula.closest("span.math")?.nextSibling;
    if (next?.nodeType !== 3 || !/^[.,;:!?)]/.test(next.data) || !formula.checkVisibility()) continue;
    const range = document.createRange();
    range.setStart(next, 0);
    range.setEnd(next, 1);
    const sign = range.getBoundingClientRect(), box = formula.getBoundingClientRect();
    if (sign.left < box.right - 2) found.push(formula.parentElement.parentElement.textContent.slice(0, 60));
  }
  return found;
}"""
PICTURES = """() => {
  const article = document.querySelector("article.bd-article");
  return {
    images: [...article.querySelectorAll("img")].filter((i) => !i.closest(".rank-frame")).map((i) => i.alt),
    unlabelled: [...article.querySelectorAll(".rank-frame img:not([alt])")].length,
    frames: [...article.querySelectorAll(".rank-frame")].map((f) => f.getAttribute("aria-label") ?? ""),
    missing: [...article.querySelectorAll("img")].filter((i) => i.checkVisibility() && !i.naturalWidth).length,
    captions: [...article.querySelectorAll("figure")].filter((f) => f.lastElementChild.tagName !== "FIGCAPTION").length,
    loose: [...article.querySelectorAll("p")].filter((p) => /^Figure [\\d.]+\\./.test(p.textContent)).map((p) =>
      p.textContent.slice(0, 60)),
  };
}"""
TABLES = """() => [...document.querySelectorAll("article.bd-article table")].filter((t) =>
  !t.caption?.textContent.trim() || [...t.querySelectorAll("th")].some((h) => !h.scope)).map((t) => t.textContent.slice(0, 80))"""
INKS = """() => [...document.querySelectorAll(".rank-explore")].map((root) => {
  let behind = root;
  while (getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
  const frame = [...root.querySelectorAll(".rank-frame")].find((f) => !f.hidden);
  return {
    vector: frame.querySelector("svg") !== null,
    behind: getComputedStyle(behind).backgroundColor,
    text: [...new Set([...frame.querySelectorAll("svg text")].map((t) => getComputedStyle(t).fill))],
  };
})"""
# Each pair of colours of text and of what lies behind it, with an example.
PAIRS = """() => {
  const pairs = {}, behind = new Map();
  const back = (e) => {
    if (!e) return "rgb(255, 255, 255)";
    if (!behind.has(e)) {
      const own = getComputedStyle(e).backgroundColor;
      behind.set(e, /^rgba\\(.*, 0\\)$|transparent/.test(own) ? back(e.parentElement) : own);
    }
    return behind.get(e);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest("script, style, noscript, svg, .fa-solid, .fas, .fab")) continue;
    if (!e.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    pairs[`${getComputedStyle(e).color} on ${back(e)}`] ??= node.data.trim().slice(0, 40);
  }
  return pairs;
}"""
# Characters of the full lines of the longest paragraphs.
LINES = """() => {
  const counts = [];
  for (const p of document.querySelectorAll("article.bd-article section > p")) {
    const text = [...p.childNodes].find((n) => n.nodeType === 3 && n.data.length > 250);
    if (!text) continue;
    const range = document.createRange();
    let top = null, start = 0;
    for (let i = 0; i < text.data.length; i++) {
      range.setStart(text, i);
      range.setEnd(text, i + 1);
      const box = range.getBoundingClientRect();
      if (box.width && top !== null && box.top > top + 5) { if (start) counts.push(i - start); start = i; }
      if (box.width) top = box.top;
    }
  }
  return counts;
}"""
UNSEEN_FOCUS = """() => {
  const found = [];
  for (const e of document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")) {
    if (!e.checkVisibility({visibilityProperty: true}) || e.tabIndex < 0) continue;
    e.focus({preventScroll: true, focusVisible: true});
    const ring = e.type === "range" ? e.closest(".rank-control") : e;  // round its name and numbers too
    const style = getComputedStyle(ring);
    if (document.activeElement === e && (style.outlineStyle === "none" || !parseFloat(style.outlineWidth))) {
      found.push(e.outerHTML.slice(0, 120));
    }
  }
  document.activeElement.blur();
  return found;
}"""
SIDEWAYS = "() => [document.scrollingElement.scrollWidth, innerWidth]"
(AXE_FILE,) = [f for f in files("axe-playwright-python") if f.name == "axe.min.js"]
# Every rule but the one that asks for a contrast of 7. Code is one text for it: PAIRS looks at its colours.
AXE = """async () => {
  document.querySelectorAll(".rank-frame[hidden]").forEach((frame) => frame.remove());
  document.querySelectorAll("pre").forEach((pre) => { pre.textContent = pre.textContent; });
  const rules = Object.fromEntries(axe.getRules().map((r) => [r.ruleId, {enabled: !r.ruleId.endsWith("enhanced")}]));
  const found = await axe.run(document, {rules, resultTypes: ["violations"]});
  return found.violations.map((v) => `${v.id}, ${v.nodes.length} times: ${v.nodes[0].html.slice(0, 150)}`);
}"""
AXE_CONTRAST = """async () => {
  const found = await axe.run(document, {runOnly: ["color-contrast"], resultTypes: ["violations"]});
  return found.violations.map((v) => `${v.id}, ${v.nodes.length} times: ${v.nodes[0].html.slice(0, 150)}`);
}"""
