"""Sorting, and the choice between light and dark. The page says all it says without them."""

SCRIPT = """
document.querySelectorAll("thead th").forEach(head => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.onclick = () => {
    const body = head.closest("table").tBodies[0], place = head.cellIndex;
    const isNumber = head.classList.contains("number");
    const wasSorted = head.getAttribute("aria-sort");
    const down = wasSorted ? wasSorted === "ascending" : isNumber;
    const key = row => {
      const cell = row.cells[place], text = cell.dataset.sort ?? cell.textContent;
      return isNumber ? parseFloat(text.replaceAll(",", "")) : text;
    };
    const missing = value => isNumber ? Number.isNaN(value) : value === "";
    const rows = [...body.rows].map(row => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return (isNumber ? a - b : a.localeCompare(b)) * (down ? -1 : 1);
    });
    body.append(...rows.map(([, row]) => row));
    head.parentNode.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
  };
});
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme || (system.matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.onclick = () => { root.dataset.theme = isDark() ? "light" : "dark"; name(); };
  system.onchange = name;
  button.hidden = false;
  name();
})();
""".strip()
