// Sliders over stored frames. Markup: ranklib/book/slider_markup.py, unfolded by sphinxext/pictures.py.
// Handlers sit on the document, so that a slider works as soon as its markup is there.
(() => {
  const PAUSE = 900; // milliseconds between two steps of "Play"
  const markup = (template) => template.content.firstChild?.data ?? "";
  const controlsOf = (root) => [...root.querySelectorAll(".rank-control")];
  const sliderOf = (control) => control.querySelector("input[type=range]");
  const radiosOf = (control) => [...control.querySelectorAll("input[type=radio]")];
  const textsOf = (control) =>
    sliderOf(control)?.dataset.texts.split("|") ?? radiosOf(control).map((radio) => radio.dataset.text);
  const indexOf = (control) =>
    Number(sliderOf(control)?.value ?? radiosOf(control).findIndex((radio) => radio.checked));

  function set(control, index) {
    const slider = sliderOf(control);
    if (!slider) return void (radiosOf(control)[index].checked = true);
    slider.value = index;
    slider.setAttribute("aria-valuetext", slider.dataset.words.split("|")[index]);
    const [name, below] = textsOf(control)[index].split("^{"); // the printed form of an uneven power
    control.querySelector(".rank-value").textContent = name;
    if (below) control.querySelector(".rank-value").append(Object.assign(document.createElement("sup"), { textContent: below.slice(0, -1) }));
  }

  function show(root, { announce = false, address = false } = {}) {
    const controls = controlsOf(root);
    controls.forEach((control) => set(control, indexOf(control)));
    const key = controls.map(indexOf).join();
    const stored = root.querySelector(`.rank-frame-of[data-key="${key}"]`);
    const frame = root.querySelector(".rank-frame");
    frame.innerHTML = markup(stored) + (root.kept ?? []).join("");
    frame.dataset.key = key;
    frame.setAttribute("role", "img");
    frame.setAttribute("aria-label", stored.dataset.heard);
    root.querySelector(".rank-seen > span").innerHTML = stored.dataset.seen;
    if (announce) root.querySelector(".rank-heard").textContent = stored.dataset.heard;
    if (address) {
      const state = new URLSearchParams(controls.map((c) => [c.dataset.key, textsOf(c)[indexOf(c)]]));
      history.replaceState(null, "", `#${root.id}?${state}`);
    }
  }

  // The state in the address: #layers-skip?layers=5&skip=on. What it does not name keeps its default.
  function restore(root) {
    const [id, query] = location.hash.slice(1).split("?");
    if (decodeURIComponent(id) !== root.id || !query) return false;
    const state = new URLSearchParams(query);
    for (const control of controlsOf(root)) {
      const index = textsOf(control).indexOf(state.get(control.dataset.key));
      if (index >= 0) set(control, index);
    }
    show(root);
    root.closest("details")?.setAttribute("open", "");
    root.scrollIntoView({ block: "center" });
    return true;
  }

  function step(root, control, by) {
    const next = indexOf(control) + by;
    if (next < 0 || next >= textsOf(control).length) return false;
    set(control, next);
    return true;
  }

  function stop(root) {
    clearInterval(root.playing);
    root.playing = 0;
    const button = root.querySelector("[data-do=play]");
    if (button) button.textContent = "Play";
  }

  function play(root, control, button) {
    if (!step(root, control, 1)) set(control, 0);
    show(root);
    button.textContent = "Pause";
    root.playing = setInterval(() => {
      const moved = step(root, control, 1);
      if (!moved || !root.isConnected) stop(root);
      show(root, { announce: !moved, address: !moved });
    }, PAUSE);
  }

  function keep(root, button) {
    const clear = button.dataset.do === "clear";
    const picture = root.querySelector(".rank-frame > svg").outerHTML;
    root.kept = clear ? [] : [...(root.kept ?? []), `<div class="rank-kept" aria-hidden="true">${picture}</div>`].slice(-4);
    root.querySelector("[data-do=clear]").disabled = clear;
    show(root);
  }

  document.addEventListener("input", ({ target }) => {
    const root = target.closest(".rank-control") && target.closest(".rank-explore");
    if (!root) return;
    stop(root);
    show(root, { announce: true, address: true });
  });
  document.addEventListener("click", ({ target }) => {
    const button = target.closest(".rank-explore [data-do]");
    if (!button) return;
    const root = button.closest(".rank-explore");
    const control = button.closest(".rank-control");
    const was = root.playing;
    stop(root);
    if (!control) return keep(root, button);
    if (button.dataset.do === "play") return was ? show(root, { announce: true, address: true }) : play(root, control, button);
    if (step(root, control, button.dataset.do === "on" ? 1 : -1)) show(root, { announce: true, address: true });
  });
  addEventListener("hashchange", () => [...document.querySelectorAll(".rank-explore")].some(restore));

  // Each slider is made ready once, when the parser, or a script, has put its whole markup into the page.
  function ready() {
    for (const root of document.querySelectorAll(".rank-explore:not([data-ready])")) {
      if (!root.nextSibling && document.readyState === "loading") continue;
      root.dataset.ready = "";
      if (!root.querySelector(".rank-controls")) {
        root.insertAdjacentHTML("afterbegin", markup(root.querySelector(".rank-controls-of")));
      }
      root.querySelectorAll("input[type=range]").forEach((slider) => { slider.value = slider.defaultValue; });
      root.querySelectorAll("input[type=radio]").forEach((radio) => { radio.checked = radio.defaultChecked; });
      if (!restore(root) && !root.querySelector(".rank-frame > svg")) show(root);
    }
  }
  new MutationObserver(ready).observe(document, { childList: true, subtree: true });
  document.addEventListener("readystatechange", ready);
  ready();
})();
