// Vega-Lite specifications. Ink is `currentColor`, so figures follow the page into the dark and onto paper.
const INK = "currentColor";
// Medians further apart than this are shown on a logarithmic axis, as in the figures under plots/.
const LARGE_RANGE = 30;
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

function isLog(choice, values) {
  if (choice !== "auto") return choice === "log";
  const found = values.filter((v) => v > 0);
  return Math.max(...found) > LARGE_RANGE * Math.min(...found);
}

// What a mark says when it is pointed at: the words of its own row, whichever they are.
const TOLD = { tooltip: { signal: "datum.told" } };

function appearance(c, hatches) {
  return {
    colour: c.colour,
    fill: c.transfer === "collective" ? `url(#${hatches.get(c.backend)})` : c.colour,
    opacity: c.settings === "defaults" ? 0.45 : 1,
  };
}

// Bars (points where the axis is logarithmic) with whiskers; dots are repetitions.
function barSpec({ rows, labels, title, log, points, limit, width, hatches, name }) {
  const values = rows.map((r) => ({ ...appearance(r.case, hatches), label: r.label, value: r.value, low: r.low, high: r.high, text: digits(r.value) + (r.unsure ? "†" : ""), most: Math.max(r.value, r.high ?? 0, points ? r.most : 0), told: told(r) }));
  const dots = rows.flatMap((r) => r.p.seconds.map((s, i) => ({
    label: r.label, value: r.of(s), order: (i + 1) / (r.p.seconds.length + 1),
    told: { case: r.label, repetition: `${r.p.repetitions[i]}`, value: `${digits(r.of(s))} ${r.unit}` },
  })));
  const all = values.flatMap((v) => [v.value, v.low ?? v.value, v.most, ...(limit ? [limit.value] : [])]);
  const least = Math.min(...all.filter((v) => v > 0), ...(log && points ? dots.map((d) => d.value) : []));
  const most = Math.max(...all);
  const scale = log ? { type: "log", domain: [least / 1.3, most * 1.8], nice: false } : { domain: [0, most * 1.14], nice: false };
  const x = (field) => ({ field, type: "quantitative", title, scale, axis: { tickCount: 6, format: ",~r" } });
  const y = { field: "label", type: "nominal", sort: labels, title: null, axis: { labelLimit: Math.min(280, width * 0.45), ticks: false, domain: false }, scale: { domain: labels, paddingInner: 0.3, paddingOuter: 0.2 } };
  const fill = { field: "fill", type: "nominal", scale: null };
  const opacity = { field: "opacity", type: "quantitative", scale: null };
  const body = log
    ? { mark: { ...TOLD, type: "point", filled: true, size: 150, opacity: 1, stroke: INK, strokeWidth: 0.8 }, encoding: { x: x("value"), y, fill, fillOpacity: opacity } }
    : { transform: [{ filter: "isValid(datum.low)" }], mark: { ...TOLD, type: "bar", stroke: INK, strokeWidth: 0.6, strokeOpacity: 0.6 }, encoding: { x: x("value"), y, fill, fillOpacity: opacity } };
  const alone = { transform: [{ filter: "!isValid(datum.low)" }], mark: { ...TOLD, type: "point", size: 110, strokeWidth: 2, filled: false }, encoding: { x: x("value"), y, stroke: { field: "colour", type: "nominal", scale: null } } };
  const whisker = { transform: [{ filter: "isValid(datum.low)" }], mark: { ...TOLD, type: "rule", strokeWidth: 1.8, color: INK }, encoding: { x: x("low"), x2: { field: "high" }, y } };
  const caps = ["low", "high"].map((end) => ({ transform: [{ filter: "isValid(datum.low)" }], mark: { type: "tick", thickness: 1.8, size: 9, color: INK, opacity: 1 }, encoding: { x: x(end), y } }));
  const repetitions = { data: { values: dots }, mark: { ...TOLD, type: "circle", size: 24, color: INK, opacity: 0.8, stroke: "var(--page)", strokeWidth: 0.8 }, encoding: { x: x("value"), y, yOffset: { field: "order", type: "quantitative", scale: { domain: [0, 1] } } } };
  const written = { x: x("most"), y, text: { field: "text" } };
  const halo = { mark: { type: "text", align: "left", dx: 8, stroke: "var(--page)", strokeWidth: 4, strokeJoin: "round" }, encoding: written };
  const text = { mark: { type: "text", align: "left", dx: 8 }, encoding: written };
  const line = limit ? [
    { data: { values: [limit] }, mark: { ...TOLD, type: "rule", strokeDash: [5, 4], strokeWidth: 1.3, color: INK }, encoding: { x: x("value") } },
    { data: { values: [limit] }, mark: { type: "text", baseline: "bottom", align: "center", dy: -2 }, encoding: { x: x("value"), y: { value: 0 }, text: { value: limit.word } } },
  ] : [];
  const layers = [body, alone, ...(points ? [repetitions] : []), whisker, ...caps, ...line, halo, text];
  return spec(name, width, 27 * labels.length, layers.filter((l) => l !== alone || values.some((v) => v.low === null)), { data: { values }, padding: { left: 0, right: 4, top: limit?.word ? 18 : 4, bottom: 0 } });
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
  const encoding = {
    x: { field: "repetition", type: "quantitative", title: "repetition", scale: { zero: false, nice: false, padding: 12 }, axis: wholeTicks(values.map((v) => v.repetition)) },
    y: { field: "value", type: "quantitative", title, scale: log ? { type: "log", nice: false, padding: 8 } : { zero: true }, axis: { tickCount: 6, format: ",~r" } },
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
function spreadSpec({ rows, labels, title, log, width, hatches, name }) {
  const values = rows.map((r) => ({ label: r.label, ...appearance(r.case, hatches), ...r.box, told: r.told }));
  const ends = values.flatMap((v) => [v.least, v.most]).filter((v) => v > 0);
  const scale = log ? { type: "log", domain: [Math.min(...ends) / 1.2, Math.max(...ends) * 1.2], nice: false } : { zero: true };
  const x = (field) => ({ field, type: "quantitative", title, scale, axis: { tickCount: 6, format: ",~r" } });
  const y = { field: "label", type: "nominal", sort: labels, title: null, axis: { labelLimit: Math.min(280, width * 0.45), ticks: false, domain: false }, scale: { domain: labels, paddingInner: 0.3, paddingOuter: 0.2 } };
  const fill = { field: "fill", type: "nominal", scale: null };
  const tick = (field, size, thickness) => ({ mark: { ...TOLD, type: "tick", size, thickness, color: INK, opacity: 1 }, encoding: { x: x(field), y } });
  const box = { transform: [{ filter: "isValid(datum.q1)" }], mark: { ...TOLD, type: "bar", size: 12, stroke: INK, strokeWidth: 0.6 }, encoding: { x: x("q1"), x2: { field: "q3" }, y, fill, fillOpacity: { field: "opacity", type: "quantitative", scale: null } } };
  return spec(name, width, 25 * labels.length, [
    { mark: { ...TOLD, type: "rule", strokeWidth: 1.4, color: INK }, encoding: { x: x("least"), x2: { field: "most" }, y } },
    ...(values.some((v) => v.q1 !== null) ? [box] : []),
    tick("least", 8, 1.4), tick("most", 8, 1.4), tick("middle", 15, 2.4),
  ], { data: { values } });
}

// Each rank, or group of neighbouring ranks, of one case: its median, and a line from least to most.
function byRankSpec({ values, colour, title, log, width, name, grouped }) {
  const encoding = { x: { field: "rank", type: "quantitative", title: grouped ? "rank (first of each group of neighbours)" : "rank", axis: wholeTicks(values.map((v) => v.rank)), scale: { zero: false, nice: false, padding: 12 } } };
  const y = (field) => ({ field, type: "quantitative", title, scale: log ? { type: "log", nice: false, padding: 8 } : { zero: true }, axis: { tickCount: 6, format: ",~r" } });
  return spec(name, width, 220, [
    { mark: { ...TOLD, type: "rule", strokeWidth: 1.2, color: INK, opacity: 0.6 }, encoding: { ...encoding, y: y("low"), y2: { field: "high" } } },
    { mark: { ...TOLD, type: "point", filled: true, size: 60, color: colour, stroke: INK, strokeWidth: 0.6, opacity: 1 }, encoding: { ...encoding, y: y("median") } },
  ], { data: { values } });
}
