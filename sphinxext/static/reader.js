// Paper shows every fold open; what scrolls can be reached from the keyboard.
{
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("article details:not([open])")];
    opened.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((fold) => { fold.open = false; }));
  const reach = () => {
    for (const box of document.querySelectorAll("article pre, .pst-scrollable-table-container, article div.math")) {
      const scrolls = box.scrollWidth > box.clientWidth + 1;
      if (scrolls) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  addEventListener("load", reach);
  addEventListener("resize", reach);
  document.querySelectorAll("article details").forEach((fold) => fold.addEventListener("toggle", reach));
}
