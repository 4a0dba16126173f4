// Sliders over precomputed frames. Markup: ranklib/sliders.py. Without scripts the default frame stays.
for (const root of document.querySelectorAll(".rank-explore")) {
  const inputs = [...root.querySelectorAll("input[type=range]")];
  const frames = [...root.querySelectorAll(".rank-frame")];
  const said = root.querySelector(".rank-said");
  const update = () => {
    const key = inputs.map((input) => input.value).join();
    for (const input of inputs) {
      const spoken = JSON.parse(input.dataset.values)[input.value];
      input.nextElementSibling.textContent = spoken;
      input.setAttribute("aria-valuetext", spoken);
    }
    for (const frame of frames) {
      frame.hidden = frame.dataset.key !== key;
      if (!frame.hidden) said.textContent = frame.getAttribute("aria-label");
    }
  };
  for (const input of inputs) {
    input.value = input.getAttribute("value"); // browsers restore an old position after a reload
    input.addEventListener("input", update);
  }
  root.querySelector(".rank-controls").hidden = false;
  update();
}
