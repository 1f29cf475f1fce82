// Rows as a table to read and as CSV to take away. Text goes in as text, never as markup.
function fillTable(place, rows) {
  place.replaceChildren();
  if (!rows.length) return;
  const table = document.createElement("table");
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const head = table.createTHead().insertRow();
  for (const name of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = name;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    columns.forEach((name, i) => {
      const cell = document.createElement(i ? "td" : "th");
      if (!i) cell.scope = "row";
      cell.textContent = row[name] ?? "";
      line.append(cell);
    });
  }
  place.append(table);
}

function csvOf(rows) {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows.map((row) => columns.map((name) => row[name]))].map((line) => line.map(cell).join(",") + "\n").join("");
}

// The link is made when it is used, so that nothing is held for links that nobody follows.
function offer(link, rows) {
  link.onclick = () => {
    const url = URL.createObjectURL(new Blob([csvOf(rows)], { type: "text/csv" }));
    link.href = url;
    setTimeout(() => URL.revokeObjectURL(url), 60000);
  };
}

// Numbers of a median, in the unit of the figure and in seconds.
function numbersOf(row) {
  const { p, unit } = row;
  return {
    case: row.case.case, label: row.label, backend: row.case.backend, settings: row.case.settings, transfer: row.case.transfer, phase: row.phase,
    unit, median: row.value, low: row.sure ? row.low : null, high: row.sure ? row.high : null, least: row.least, most: row.most, repetitions: p.repetitions, cv: p.cv,
    median_s: p.median_s, low_s: p.low_s, high_s: p.high_s, ratio: p.ratio, ratio_low: p.ratio_low, ratio_high: p.ratio_high, of_raw: p.roofline, cpu_s: p.cpu_s,
    slowest_rank: p.slowest_rank, slowest_host: p.slowest_host, imbalance: p.imbalance, warnings: p.warnings.join("; "),
  };
}

// Numbers can be sorted by their column; rows without numbers, and raw bytes, stay last.
function makeSortable(table) {
  const lines = table.tHead.rows;
  const before = [...lines[0].cells].filter((cell) => cell.rowSpan > 1).length;
  [...lines[1].cells].forEach((cell, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    button.addEventListener("click", () => sortBy(table, cell, before + i));
    cell.append(button);
  });
}

function sortBy(table, heading, column) {
  const falling = heading.getAttribute("aria-sort") === "ascending";
  for (const cell of table.tHead.rows[1].cells) cell.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const key = (row) => {
    const value = parseFloat(row.cells[column]?.firstChild?.textContent);
    return row.className || Number.isNaN(value) ? Infinity : (falling ? -value : value);
  };
  const body = table.tBodies[0];
  body.append(...[...body.rows].sort((a, b) => (key(a) < key(b) ? -1 : Number(key(a) > key(b)))));
}

// A browser that allows no copying shows no button.
function makeCopies() {
  if (!navigator.clipboard) return;
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.closest("details").querySelector("pre").textContent);
      button.nextElementSibling.textContent = "Copied.";
    });
  }
}
