// Begins: what the page can do once there is a script; without it the page is still complete.
(async () => {
  "use strict";
  const { byId } = drawing;
  function onPaper() {
    let shut = [];
    addEventListener("beforeprint", () => { shut = [...document.querySelectorAll("details:not([open])")]; shut.forEach((d) => { d.open = true; }); });
    addEventListener("afterprint", () => shut.forEach((d) => { d.open = false; }));
  }
  function copying() {
    for (const button of document.querySelectorAll("[data-copies]")) {
      const text = byId(button.dataset.copies), copied = button.nextElementSibling;
      button.hidden = false;
      button.addEventListener("click", async () => {
        getSelection().selectAllChildren(text);
        try { await navigator.clipboard.writeText(text.textContent); copied.textContent = button.textContent = "Copied"; }
        catch { copied.textContent = button.textContent = "Selected"; }
      });
    }
  }
  copying();
  onPaper();
  if (!("DecompressionStream" in window)) return;
  const plots = [...await overlaid(), ...await aligned()];
  if (!plots.length) return;
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((u) => u.redraw()));
  document.documentElement.classList.add("drawn");
})();
