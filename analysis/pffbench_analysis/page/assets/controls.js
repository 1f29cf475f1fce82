// The controls: what can be chosen, and what has been.
const form = document.getElementById("controls");

function options(select, entries) {
  const before = select.value;
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
  if (entries.some(([value]) => value === before)) select.value = before;
}

function unique(values) {
  return [...new Set(values)];
}

const allCases = DATA.groups.flatMap((g) => g.cases);
const formats = unique(allCases.map((c) => c.backend));

function makeControls() {
  options(form.elements.group, DATA.groups.map((g, i) => [String(i), g.name]));
  const transfers = unique(allCases.map((c) => c.transfer));
  options(form.elements.transfer, [["all", "all"], ...transfers.map((t) => [t, t])]);
  const settings = unique(allCases.filter((c) => !c.raw).map((c) => c.settings));
  options(form.elements.settings, [["all", "all"], ...settings.map((s) => [s, s])]);
  const place = document.getElementById("formats");
  for (const backend of formats) {
    const { colour } = allCases.find((c) => c.backend === backend);
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", name: "format", value: backend, checked: true });
    const swatch = Object.assign(document.createElement("span"), { className: "swatch" });
    swatch.style.background = colour;
    label.append(box, swatch, backend);
    place.append(label);
  }
}

// What can be chosen depends on what has been.
function refit() {
  const group = DATA.groups[Number(form.elements.group.value)];
  const single = DATA.phases.filter((p) => group.cases.some((c) => c.phases[p])).map((p) => [p, phaseName(p)]);
  const several = Object.entries(TOGETHER).map(([key, [text]]) => [key, text]).filter(([key]) => phasesOf(key, group).length);
  options(form.elements.phase, [...several, ...single]);
  const phases = phasesOf(form.elements.phase.value, group);
  const fits = Object.entries(MEASURES).filter(([, m]) => phases.some((p) => group.cases.some((c) => c.phases[p] && m.fits(c.phases[p]))));
  options(form.elements.measure, fits.map(([key, m]) => [key, m.text]));
}

// The choices are in the address, so that a link shows what its sender saw.
const CHOICES = ["group", "phase", "measure", "transfer", "settings", "scale"];

function writeAddress() {
  const left = [...form.querySelectorAll("input[name=format]:not(:checked)")].map((box) => ["without", box.value]);
  const points = form.elements.points.checked ? [] : [["points", "none"]];
  const chosen = CHOICES.map((name) => [name, form.elements[name].value]);
  history.replaceState(null, "", `#${new URLSearchParams([...chosen, ...points, ...left])}`);
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  for (const name of CHOICES) {
    const select = form.elements[name];
    if ([...select.options].some((option) => option.value === address.get(name))) select.value = address.get(name);
    refit();
  }
  form.elements.points.checked = address.get("points") !== "none";
  for (const box of form.querySelectorAll("input[name=format]")) box.checked = !address.getAll("without").includes(box.value);
}

function stateOf() {
  const { group, phase, measure, transfer, settings, scale, points } = form.elements;
  const chosen = [...form.querySelectorAll("input[name=format]")].filter((box) => box.checked).map((box) => box.value);
  const found = DATA.groups[Number(group.value)];
  return { group: found, phases: phasesOf(phase.value, found), measure: measure.value, transfer: transfer.value, settings: settings.value, scale: scale.value, points: points.checked, formats: new Set(chosen) };
}
