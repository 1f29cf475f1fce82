// When figures are drawn anew: a choice, another width.
let turn = Promise.resolve();

// Draw everything, one after the other: a choice made meanwhile waits for its turn.
function redraw() {
  turn = turn.then(async () => {
    if (DATA.answer) await drawMade("answer", DATA.answer);
    if (form) {
      const state = stateOf();
      for (const part of [drawMedians, drawRoofline, drawCompression, drawDrift, drawSpread, drawByRank]) await part(state);
    }
    document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn ?? 0) + 1);
  });
  return turn;
}

function followTheme() {
  const place = document.getElementById("theme");
  const set = (value) => {
    if (value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = value;
  };
  place.hidden = false;
  place.addEventListener("change", (event) => set(event.target.value));
}

function followWidth() {
  let width = document.body.clientWidth;
  let waiting;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width) return;
    width = document.body.clientWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 150);
  }).observe(document.body);
}

// What lies folded up below a table is printed with it.
function unfoldForPrint() {
  const closed = () => document.querySelectorAll("#verdict > details:not([open]), #tables details:not([open]), .added details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...closed()];
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));
}

// A run of which no case is valid has nothing to choose from.
function startControls() {
  makeControls();
  refit();
  readAddress();
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => { refit(); writeAddress(); redraw(); });
  document.querySelector("#byrank select").addEventListener("change", () => drawByRank(stateOf()));
}

if (form) startControls();
document.querySelectorAll("table.numbers").forEach(makeSortable);
makeCopies();
followTheme();
makePictures();
unfoldForPrint();
redraw().then(followWidth);
