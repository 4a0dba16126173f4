// The book's search: every word of the question must occur, in any script; titles and statements come first.
{
  const out = document.getElementById("search-results");
  const raw = new URLSearchParams(location.search).get("q") ?? "";
  const plain = (text) => text.normalize("NFKC").toLowerCase();
  const words = plain(raw).replace(/[_^{}\\$]/g, "").split(/\s+/).filter(Boolean);
  const field = document.querySelector(".bd-search-container input[type=search]");
  if (field) field.value = raw;
  const score = (entry) => {
    const title = plain(entry.t), head = plain(`${entry.k} ${entry.c}`), text = plain(entry.x), greek = entry.g;
    let sum = 0;
    for (const word of words) {
      const start = title.split(/[\s(]+/).some((part) => part.startsWith(word));
      const hit = (start ? 40 : title.includes(word) ? 15 : 0) + (head.includes(word) ? 12 : 0) +
        (text.includes(word) ? 5 : 0) + (greek.split(" ").includes(word) ? 4 : 0);
      if (!hit) return 0;
      sum += hit;
    }
    const question = words.join(" ");
    if (plain(`${entry.k} ${entry.t}`).startsWith(question)) sum += 60;
    return sum + (/^(Chapter|Section|Readers)/.test(entry.k) ? 0 : 8);
  };
  const excerpt = (text) => {
    const at = Math.max(0, ...words.map((word) => plain(text).indexOf(word)));
    const start = at > 60 ? text.indexOf(" ", at - 60) + 1 : 0;
    return (start ? "… " : "") + text.slice(start, start + 180) + (text.length > start + 180 ? " …" : "");
  };
  if (out && words.length) {
    const found = window.bookIndex.map((entry) => [score(entry), entry]).filter(([sum]) => sum > 0)
      .sort((a, b) => b[0] - a[0]).slice(0, 60);
    const count = document.createElement("p");
    count.setAttribute("role", "status");
    count.textContent = found.length ? `${found.length} places` : `Nothing is called “${raw}”. Try one word, or part of one.`;
    const list = document.createElement("ul");
    list.className = "search";
    for (const [, entry] of found) {
      const item = list.appendChild(document.createElement("li"));
      const link = item.appendChild(document.createElement("a"));
      link.href = (document.documentElement.dataset.content_root ?? "") + entry.u;
      const kind = link.appendChild(document.createElement("span"));
      kind.className = "kind";
      kind.textContent = entry.k;
      link.append(" ", entry.t);
      if (entry.c !== entry.t) item.append(" in ", entry.c);
      item.appendChild(document.createElement("p")).textContent = excerpt(entry.x);
    }
    out.replaceChildren(count, list);
  }
}
