// Vega-Lite specifications. Ink is `currentColor`, so figures follow the page into the dark and onto paper.
const INK = "currentColor";
const CONFIG = {
  background: null,
  font: "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', 'DejaVu Sans', sans-serif",
  view: { stroke: null },
  axis: {
    labelColor: INK, titleColor: INK, domainColor: INK, tickColor: INK, gridColor: INK,
    gridOpacity: 0.13, domainOpacity: 0.5, tickOpacity: 0.5, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, labelOverlap: true, labelPadding: 5,
  },
  text: { color: INK, fontSize: 11.5 },
};

function spec(description, width, height, layer, more = {}) {
  return { description, width, height, autosize: { type: "fit-x", contains: "padding" }, padding: { left: 0, right: 4, top: 4, bottom: 0 }, config: CONFIG, layer, ...more };
}

// Whether an axis can be logarithmic: what a coarse clock saw as no time at all has no place on one.
function isLog(choice, values) {
  return choice === "log" && values.some((v) => v > 0);
}

// An axis of values that holds all of some numbers: its scale, and round numbers on it.
function axisOf(numbers, log, room = 1.08) {
  if (!log) return { scale: { domain: [0, Math.max(...numbers) * room || 1], nice: false }, axis: { tickCount: 6, format: ",~r" } };
  const found = numbers.filter((v) => v > 0);
  const [low, high] = [Math.min(...found), Math.max(...found)];
  const more = Math.max((high / low) ** 0.05, room);
  const domain = [low / more, high * more];
  return { scale: { type: "log", domain, nice: false, clamp: true }, axis: { values: logTicks(domain, 6), format: ",~r" } };
}

// Round numbers on a logarithmic axis: 1-2-5, 1-3, decades or fewer; multiples of one step where its ends are close.
function logTicks([low, high], most) {
  const exponents = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const round = (x) => Number(x.toPrecision(12));
  const decades = exponents(Math.floor(Math.log10(low)), Math.ceil(Math.log10(high)));
  const some = [[1, 2, 5], [1, 3], [1]].map((factors) => decades.flatMap((e) => factors.map((f) => round(f * 10 ** e))).filter((v) => v >= low && v <= high));
  const fitting = some.find((ticks) => ticks.length <= most) ?? some.at(-1);
  const ticks = fitting.filter((_, i) => i % Math.ceil(fitting.length / most) === 0);
  if (ticks.length > 2 || low >= high) return ticks;
  const first = Math.floor(Math.log10(high - low)) - 1;
  const steps = exponents(first, first + 2).flatMap((e) => [1, 2, 5].map((f) => f * 10 ** e));
  const step = steps.find((s) => Math.floor(high / s) - Math.ceil(low / s) < most);
  return exponents(Math.ceil(low / step), Math.floor(high / step)).map((n) => round(n * step));
}

// What a mark says when it is pointed at: the words of its own row, whichever they are.
const TOLD = { tooltip: { signal: "datum.told" } };

function appearance(c) {
  return { colour: c.colour, shape: c.transfer === "collective" ? "square" : "circle", opacity: c.settings === "defaults" ? 0.45 : 1 };
}

function rowsAxis(labels, width) {
  return { field: "label", type: "nominal", sort: labels, title: null, axis: { labelLimit: Math.min(280, width * 0.45), ticks: false, domain: false }, scale: { domain: labels, paddingInner: 0.3, paddingOuter: 0.2 } };
}

// Medians as points, with intervals, or the range of few repetitions; dots are repetitions.
function mediansSpec({ rows, labels, title, log, points, limit, width, name }) {
  const values = rows.map((r) => ({ ...appearance(r.case), label: r.label, value: r.value, low: r.low, high: r.high, sure: r.sure, text: digits(r.value) + (r.unsure ? "†" : ""), told: told(r) }));
  const dots = rows.flatMap((r) => r.p.seconds.map((s, i) => ({
    label: r.label, colour: r.case.colour, value: r.of(s), order: (i + 1) / (r.p.seconds.length + 1),
    told: { case: r.label, repetition: `${r.p.repetitions[i]}`, value: `${digits(r.of(s))} ${r.unit}` },
  })));
  const all = values.flatMap((v) => [v.value, v.low ?? v.value, v.high ?? v.value]).concat(limit ? [limit.value] : [], points ? dots.map((d) => d.value) : []);
  const { scale, axis } = axisOf(all, log);
  const x = (field) => ({ field, type: "quantitative", title, scale, axis });
  const y = rowsAxis(labels, width);
  const as = (field, type = "nominal") => ({ field, type, scale: null, legend: null });
  const only = (test, mark, encoding) => ({ transform: [{ filter: test }], mark, encoding });
  const several = only("isValid(datum.low)", { ...TOLD, type: "point", size: 130, opacity: 1, stroke: INK, strokeWidth: 0.8 }, { x: x("value"), y, shape: as("shape"), fill: as("colour"), fillOpacity: as("opacity", "quantitative") });
  const alone = only("!isValid(datum.low)", { ...TOLD, type: "point", size: 110, opacity: 1, strokeWidth: 2, filled: false }, { x: x("value"), y, shape: as("shape"), stroke: as("colour") });
  const interval = only("datum.sure", { ...TOLD, type: "rule", strokeWidth: 1.8, color: INK }, { x: x("low"), x2: { field: "high" }, y });
  const range = only("!datum.sure && isValid(datum.low)", { ...TOLD, type: "rule", strokeWidth: 0.9, color: INK }, { x: x("low"), x2: { field: "high" }, y });
  const caps = ["low", "high"].map((end) => only("datum.sure", { type: "tick", thickness: 1.8, size: 10, color: INK, opacity: 1 }, { x: x(end), y }));
  const repetitions = { data: { values: dots }, mark: { ...TOLD, type: "circle", size: 16, opacity: 0.75, strokeWidth: 0 }, encoding: { x: x("value"), y, fill: as("colour"), yOffset: { field: "order", type: "quantitative", scale: { domain: [0, 1] } } } };
  const written = { mark: { type: "text", align: "left", dx: 6 }, encoding: { x: { value: "width" }, y, text: { field: "text" } } };
  const line = limit ? [
    { data: { values: [limit] }, mark: { ...TOLD, type: "rule", strokeDash: [5, 4], strokeWidth: 1.3, color: INK }, encoding: { x: x("value") } },
    { data: { values: [limit] }, mark: { type: "text", baseline: "bottom", align: "center", dy: -2 }, encoding: { x: x("value"), y: { value: 0 }, text: { value: limit.word } } },
  ] : [];
  const has = (test) => values.some(test);
  const layers = [
    ...(points ? [repetitions] : []), ...line,
    ...(has((v) => !v.sure && v.low !== null) ? [range] : []), ...(has((v) => v.sure) ? [interval, ...caps] : []),
    ...(has((v) => v.low !== null) ? [several] : []), ...(has((v) => v.low === null) ? [alone] : []), written,
  ];
  return spec(name, width, 27 * labels.length, layers, { data: { values }, padding: { left: 0, right: 4, top: limit?.word ? 18 : 4, bottom: 0 } });
}

// Marks of an axis of whole numbers: each one while they are few, so that none stands between two.
function wholeTicks(numbers) {
  const found = [...new Set(numbers)].sort((a, b) => a - b);
  return found.length <= 12 ? { values: found, format: "d", grid: false } : { tickMinStep: 1, format: "d", grid: false };
}

// Lines over the repetitions, in their order: drift, outliers and slow starts show here.
function driftSpec({ rows, title, log, width, name }) {
  const values = rows.flatMap((r) => r.p.seconds.map((s, i) => ({
    label: r.label, colour: r.case.colour, dash: r.case.transfer === "collective" ? "collective" : "other", opacity: r.case.settings === "defaults" ? 0.5 : 1, repetition: r.p.repetitions[i], value: r.of(s),
    told: { case: r.label, repetition: `${r.p.repetitions[i]}`, value: `${digits(r.of(s))} ${r.unit}` },
  })));
  const { scale, axis } = axisOf(values.map((v) => v.value), log);
  const encoding = {
    x: { field: "repetition", type: "quantitative", title: "repetition", scale: { zero: false, nice: false, padding: 12 }, axis: wholeTicks(values.map((v) => v.repetition)) },
    y: { field: "value", type: "quantitative", title, scale, axis },
    detail: { field: "label" },
    stroke: { field: "colour", type: "nominal", scale: null },
    opacity: { field: "opacity", type: "quantitative", scale: null },
  };
  const dash = { field: "dash", type: "nominal", scale: { domain: ["other", "collective"], range: [[1, 0], [6, 3]] }, legend: null };
  return spec(name, width, 260, [
    { mark: { type: "line", strokeWidth: 1.8 }, encoding: { ...encoding, strokeDash: dash } },
    { mark: { ...TOLD, type: "point", filled: true, size: 34, strokeWidth: 0 }, encoding: { ...encoding, fill: { field: "colour", type: "nominal", scale: null } } },
  ], { data: { values } });
}

// For each case the distribution over its ranks: extremes, quartiles, median.
function spreadSpec({ rows, labels, title, log, width, name }) {
  const values = rows.map((r) => ({ label: r.label, ...appearance(r.case), ...r.box, told: r.told }));
  const { scale, axis } = axisOf(values.flatMap((v) => [v.least, v.most]), log);
  const x = (field) => ({ field, type: "quantitative", title, scale, axis });
  const y = rowsAxis(labels, width);
  const as = (field, type = "nominal") => ({ field, type, scale: null, legend: null });
  const quartiles = { transform: [{ filter: "isValid(datum.q1)" }], mark: { ...TOLD, type: "rule", strokeWidth: 7 }, encoding: { x: x("q1"), x2: { field: "q3" }, y, stroke: as("colour"), strokeOpacity: as("opacity", "quantitative") } };
  const ends = ["least", "most"].map((end) => ({ mark: { ...TOLD, type: "tick", size: 8, thickness: 1.4, color: INK, opacity: 1 }, encoding: { x: x(end), y } }));
  const middle = { mark: { ...TOLD, type: "point", size: 90, opacity: 1, stroke: INK, strokeWidth: 0.8 }, encoding: { x: x("middle"), y, shape: as("shape"), fill: as("colour"), fillOpacity: as("opacity", "quantitative") } };
  return spec(name, width, 25 * labels.length, [
    { mark: { ...TOLD, type: "rule", strokeWidth: 1.4, color: INK }, encoding: { x: x("least"), x2: { field: "most" }, y } },
    ...(values.some((v) => v.q1 !== null) ? [quartiles] : []),
    ...ends, middle,
  ], { data: { values } });
}

// Each rank, or group of neighbouring ranks, of one case: its median, and a line from least to most.
function byRankSpec({ values, colour, title, log, width, name, grouped }) {
  const encoding = { x: { field: "rank", type: "quantitative", title: grouped ? "rank (first of each group of neighbours)" : "rank", axis: wholeTicks(values.map((v) => v.rank)), scale: { zero: false, nice: false, padding: 12 } } };
  const { scale, axis } = axisOf(values.flatMap((v) => [v.low, v.median, v.high]), log);
  const y = (field) => ({ field, type: "quantitative", title, scale, axis });
  return spec(name, width, 220, [
    { mark: { ...TOLD, type: "rule", strokeWidth: 1.2, color: INK, opacity: 0.6 }, encoding: { ...encoding, y: y("low"), y2: { field: "high" } } },
    { mark: { ...TOLD, type: "point", filled: true, size: 60, color: colour, stroke: INK, strokeWidth: 0.6, opacity: 1 }, encoding: { ...encoding, y: y("median") } },
  ], { data: { values } });
}
