// Derivations are unpacked when they unfold; paper shows every fold open; what scrolls can be reached from the keyboard.
{
  let opened = [];
  const unpack = (fold) => {
    const packed = fold.querySelector(":scope > template");
    if (packed) packed.replaceWith(packed.content);
  };
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("article details:not([open])")];
    opened.forEach((fold) => { unpack(fold); fold.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((fold) => { fold.open = false; }));
  const boxes = "article pre, .pst-scrollable-table-container, article div.math, article details.derivation > *";
  const reach = () => {
    document.querySelectorAll(boxes).forEach((box, i) => {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      if (scrolls) box.tabIndex = 0;
      else if (box.localName !== "summary") box.removeAttribute("tabindex");
      if (scrolls && box.localName !== "pre") {
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", `box ${i + 1}, wider than the page, scrolls`);
      }
    });
  };
  addEventListener("load", reach);
  addEventListener("resize", reach);
  document.querySelectorAll("article details").forEach((fold) => fold.addEventListener("toggle", () => {
    if (fold.open) unpack(fold);
    reach();
  }));
}
