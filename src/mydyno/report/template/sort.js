// Sorts the profile by a column at the press of its heading; without it, it is as it was asked for.
(() => {
  "use strict";
  const table = document.querySelector(".sortable");
  if (!table) return;
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const key = (row, i) => row.cells[i].dataset.value;
  function sort(i) {
    const text = key(body.rows[0], i) === undefined;
    const up = heads[i].ariaSort ? heads[i].ariaSort === "descending" : text || i === 0;
    for (const head of heads) head.removeAttribute("aria-sort");
    heads[i].setAttribute("aria-sort", up ? "ascending" : "descending");
    const order = text
      ? (a, b) => a.cells[i].textContent.localeCompare(b.cells[i].textContent)
      : (a, b) => Number(key(a, i)) - Number(key(b, i));
    body.append(...[...body.rows].sort((a, b) => (up ? order(a, b) : order(b, a))));
  }
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(i));
    head.append(button);
  });
  let shut = [];
  addEventListener("beforeprint", () => { shut = [...document.querySelectorAll("details:not([open])")]; shut.forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => shut.forEach((d) => { d.open = false; }));
})();
