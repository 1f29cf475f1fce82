// Compression against speed: each choice is a figure that Python made.
const paretoChoice = (name) => document.querySelector(`#pareto select[name=${name}]`);

function makePareto() {
  const { kinds } = DATA.compression;
  options(paretoChoice("kind"), kinds.map((k, i) => [String(i), k.name]));
  paretoChoice("kind").parentElement.hidden = kinds.length < 2;
  document.querySelector("#pareto .choices").addEventListener("change", redraw);
}

function drawPareto() {
  if (!DATA.compression) return Promise.resolve();
  const kind = DATA.compression.kinds[Number(paretoChoice("kind").value)];
  const view = ["direction", "amount"].map((name) => paretoChoice(name).value).join(" ");
  return drawMade("pareto", kind.views[view]);
}
