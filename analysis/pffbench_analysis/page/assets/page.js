"use strict";
// Rows of numbers are sorted by a column; rows without a number in it stay last.
function sortBy(table, heading, column) {
  const falling = heading.getAttribute("aria-sort") === "ascending";
  for (const cell of table.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const key = (row) => {
    const value = parseFloat(row.cells[column].textContent);
    return Number.isNaN(value) ? Infinity : (falling ? -value : value);
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b)))));
}

for (const table of document.querySelectorAll("table.numbers")) {
  for (const heading of table.tHead.querySelectorAll("th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading, heading.cellIndex));
    heading.append(button);
  }
}

// Folded tables and figures are printed too.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("#numbers details:not([open]), .added details:not([open])")];
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));
