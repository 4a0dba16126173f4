// What is packed is unpacked when it unfolds; formulas fit their place; paper shows every fold open; what scrolls can be reached from the keyboard.
{
  let opened = [];
  const packed = (fold) => fold.querySelector(":scope > noscript");
  const unpack = (fold) => {
    const waiting = packed(fold);
    if (!waiting) return;
    const content = document.createElement("template");
    content.innerHTML = waiting.textContent;
    waiting.replaceWith(content.content);
  };
  // A link may lead into a fold that is still packed.
  const show = () => {
    const id = decodeURIComponent(location.hash.slice(1));
    if (!id) return;
    const folds = [...document.querySelectorAll("article details")];
    folds.filter((fold) => packed(fold)?.textContent.includes(`id="${id}"`)).forEach(unpack);
    const place = document.getElementById(id);
    const fold = place?.closest("details");
    if (!fold) return;
    fold.open = true;
    place.scrollIntoView();
  };
  addEventListener("load", show);
  addEventListener("hashchange", show);
  // A displayed formula that is wider than its place is set smaller, down to three quarters; then it scrolls.
  const fit = (part) => {
    const displays = [...part.querySelectorAll('math[display="block"]')];
    displays.forEach((formula) => { formula.style.fontSize = ""; });
    const scales = displays.map((formula) => {
      const place = (formula.closest("div.math") ?? formula.parentElement).getBoundingClientRect().width;
      const width = formula.getBoundingClientRect().width;
      return place && width > place ? Math.max(0.75, Math.floor((98 * place) / width) / 100) : 1;
    });
    displays.forEach((formula, i) => { if (scales[i] < 1) formula.style.fontSize = `${scales[i]}em`; });
  };
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("article details:not([open])")];
    opened.forEach((fold) => { unpack(fold); fold.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((fold) => { fold.open = false; }));
  const boxes = "pre, .pst-scrollable-table-container, div.math, details.derivation > *";
  const article = document.querySelector("article") ?? document.body;
  let named = 0;
  const reach = (part) => {
    fit(part);
    part.querySelectorAll(boxes).forEach((box) => {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      if (scrolls) box.tabIndex = 0;
      else if (box.localName !== "summary") box.removeAttribute("tabindex");
      if (scrolls && box.localName !== "pre") {
        box.setAttribute("role", "region");
        if (!box.ariaLabel) box.setAttribute("aria-label", `box ${++named}, wider than the page, scrolls`);
      }
    });
  };
  const reachAll = () => reach(article);
  reachAll();
  document.fonts.ready.then(reachAll);
  addEventListener("load", reachAll);
  addEventListener("resize", reachAll);
  // Only what unfolds is measured: a page with all its folds opened at once is not measured once for each of them.
  document.querySelectorAll("article details").forEach((fold) => fold.addEventListener("toggle", () => {
    if (!fold.open) return;
    unpack(fold);
    reach(fold);
  }));
}
