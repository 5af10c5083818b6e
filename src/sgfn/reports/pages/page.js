"use strict";
{
  // Sorting: rows within each noise level; what is not known stays last
  const sign = { ascending: 1, descending: -1 };
  const value = (row, column) => {
    const text = row.cells[column].dataset.value;
    return text === undefined ? null : column ? Number(text) : text;
  };
  const compare = (column, order) => (first, second) => {
    const [a, b] = [value(first, column), value(second, column)];
    if (a === null || b === null) return (a === null) - (b === null);
    return sign[order] * (column ? a - b : a.localeCompare(b, "en", { numeric: true }));
  };
  const sort = (head) => {
    const other = { ascending: "descending", descending: "ascending" };
    const order = other[head.getAttribute("aria-sort")] ?? head.querySelector("button").dataset.first;
    for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", order);
    for (const body of head.closest("table").tBodies) {
      const [title, ...rows] = body.rows;
      body.replaceChildren(title, ...rows.sort(compare(head.cellIndex, order)));
    }
  };
  for (const head of document.querySelectorAll(".sortable thead th")) {
    head.querySelector("button").addEventListener("click", () => sort(head));
  }

  // Curves that are shown
  for (const button of document.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", shown);
      for (const curve of document.querySelectorAll(`.chart .series-${button.dataset.series}`)) {
        curve.classList.toggle("off", !shown);
      }
    });
  }

  // Light and dark: the system's choice until the button is pressed
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  const name = () => {
    theme.textContent = dark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`);
  };
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();

  // Paper has no buttons: what is folded is printed
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details:not([open])")) {
      folded.open = true;
      folded.dataset.folded = "";
    }
  });
  addEventListener("afterprint", () => {
    for (const folded of document.querySelectorAll("details[data-folded]")) {
      folded.open = false;
      delete folded.dataset.folded;
    }
  });
}
