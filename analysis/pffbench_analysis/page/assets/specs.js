// The templates of figures, which Python made, filled with what was chosen. Ink is `currentColor`, so figures follow
// the page into the dark and onto paper.
const INK = "currentColor";
const PAPER = "var(--page)";

// A specification for a width: names that begin with $ are replaced by their values. Names of rows that would take
// half of the width stand above their rows.
const ABOVE = { labelAlign: "left", labelBaseline: "bottom", labelOffset: -14, labelPadding: 0, minExtent: 0 };

// Marks that share a row are drawn closer, without their texts, where there is little room.
const NARROW = 340;
const CLOSE_ROW = 23;
const CLOSE_NAMES = { labelFontSize: 11, labelLineHeight: 11 };
// A panel of a trellis is made smaller below this width; then the height of a row.
const TINY = 150;
const SMALL_ROW = 17;

function withoutTexts(spec) {
  const kept = spec.layer.filter(({ name }) => name !== "written");
  if (kept.length === spec.layer.length) return spec;
  const layer = kept.map((one) => {
    const y = one.encoding.y;
    return y?.axis ? { ...one, encoding: { ...one.encoding, y: { ...y, axis: { ...y.axis, ...CLOSE_NAMES } } } } : one;
  });
  const rows = layer.find(({ name }) => name === "marks").encoding.y.scale.domain.length;
  return { ...spec, layer, height: CLOSE_ROW * rows };
}

// A panel of a trellis on a narrow screen: smaller marks and rows, and an axis with few numbers and without a title.
function smaller(spec) {
  const rows = spec.layer.find(({ name }) => name === "marks").encoding.y.scale.domain.length;
  for (const { name, mark, encoding } of spec.layer) {
    if (name === "marks") mark.size = 26;
    if (encoding.x?.axis) Object.assign(encoding.x, { title: null, axis: { ...encoding.x.axis, tickCount: 3, labelFontSize: 10 } });
    if (encoding.y?.axis) Object.assign(encoding.y.axis, { labelFontSize: 10, minExtent: 0 });
  }
  return { ...spec, height: SMALL_ROW * rows };
}

// A panel whose axis is that of the panel below.
function withoutAxis(spec) {
  for (const { encoding } of spec.layer) if (encoding.x?.axis) Object.assign(encoding.x, { title: null, axis: { ...encoding.x.axis, labels: false, ticks: false } });
  return spec;
}

function filled(template, width, values = {}) {
  const spec = JSON.parse(JSON.stringify(template), (key, value) =>
    typeof value === "string" && value.startsWith("$") && value.slice(1) in values ? values[value.slice(1)] : value);
  const channels = spec.layer.map((layer) => layer.encoding.y).filter((y) => y?.field === "row");
  const names = (channels[0]?.scale.domain ?? []).flatMap((row) => row.slice(row.indexOf(" ") + 1).split("¦"));
  const longest = Math.max(0, ...names.map((name) => name.length));
  if (7 * longest <= width * 0.45) return { ...spec, width };
  for (const y of channels) Object.assign(y.axis, ABOVE, { labelFontSize: Math.max(8, Math.min(12, width / (0.65 * longest))) });
  return { ...spec, width, height: 1.9 * spec.height };
}

// Whether an axis can be logarithmic: what a coarse clock saw as no time at all has no place on one.
function isLog(choice, values) {
  return choice === "log" && values.some((v) => v > 0);
}

// A scale that holds all of some numbers.
function scaleOf(numbers, log, room = 1.08) {
  if (!log) return { domain: [0, Math.max(...numbers) * room || 1], nice: false };
  const found = numbers.filter((v) => v > 0);
  const [low, high] = [Math.min(...found), Math.max(...found)];
  const more = Math.max((high / low) ** 0.05, room);
  return { type: "log", domain: [low / more, high * more], nice: false, clamp: true };
}

// How a case looks: the library's defaults are pale, what has no interval is hollow.
function looksOf(c, hollow = false) {
  return {
    colour: c.colour, fill: hollow ? PAPER : c.colour, stroke: hollow ? c.colour : INK, weight: hollow ? 2 : 0.8,
    shape: c.transfer === "collective" ? "square" : "circle", opacity: c.settings === "defaults" ? 0.45 : 1,
  };
}

const rowOf = (labels, label) => `${labels.indexOf(label)} ${label}`;

// What a repetition says when it is pointed at.
function toldOfRepetition(r, i) {
  return { case: r.label, repetition: `${r.p.blocks[i]}`, value: `${digits(r.of(r.p.seconds[i]))} ${r.unit}` };
}

// Medians as points, with intervals, or the range of few repetitions; dots are repetitions.
function mediansSpec({ rows, labels, title, log, points, limit, width, name }) {
  const medians = rows.map((r) => ({ ...looksOf(r.case, r.low === null), row: rowOf(labels, r.label), value: r.value, low: r.low, high: r.high, sure: r.sure, text: digits(r.value) + (r.unsure ? "†" : ""), told: told(r) }));
  const dots = !points ? [] : rows.flatMap((r) => r.p.seconds.map((s, i) => ({ row: rowOf(labels, r.label), fill: r.case.colour, value: r.of(s), order: (i + 1) / (r.p.seconds.length + 1), told: toldOfRepetition(r, i) })));
  const all = medians.flatMap((v) => [v.value, v.low ?? v.value, v.high ?? v.value]).concat(limit ? [limit.value] : [], dots.map((d) => d.value));
  const values = { medians, dots, limit: limit ? [limit] : [], title, scale: scaleOf(all, log), rows: labels.map((l) => rowOf(labels, l)), height: 27 * labels.length, name };
  return filled(DATA.specs.medians, width, values);
}

// Marks of an axis of whole numbers: each one while they are few, so that none stands between two.
function wholeTicks(numbers) {
  const found = [...new Set(numbers)].sort((a, b) => a - b);
  return found.length <= 12 ? { values: found, format: "d", grid: false } : { tickMinStep: 1, format: "d", grid: false };
}

// The name of each line at its end, moved apart so that none covers another: 14 pixels of the height each.
function namesOfLines(rows, scale, height) {
  const [to, from] = scale.type === "log" ? [Math.log, Math.exp] : [(v) => v, (v) => v];
  const [low, high] = scale.domain.map(to);
  const step = Math.min((14 / height) * (high - low), (high - low) / rows.length);
  const ends = rows.map((r) => ({ ...looksOf(r.case), text: r.label, at: Math.max(low, to(r.of(r.p.seconds.at(-1)))) })).sort((a, b) => a.at - b.at);
  ends.forEach((end, i) => { end.at = Math.max(end.at, i ? ends[i - 1].at + step : low + step / 2); });
  ends.forEach((_, i) => {
    const [above, end] = [ends.at(-i), ends.at(-1 - i)];
    end.at = Math.min(end.at, i ? above.at - step : high - step / 2);
  });
  return ends.map(({ at, ...end }) => ({ ...end, value: from(at) }));
}

// Each case at the bytes in its files and its time: both are better when small.
function compressionSpec({ rows, title, log, width, name }) {
  const ways = rows.map((r) => ({ ...looksOf(r.case, r.low === null), stored: r.case.stored_bytes / MIB, value: r.value, low: r.low, high: r.high, text: r.case.variant, told: { ...told(r), ...sizeOf(r.case) } }));
  const reached = ways.flatMap((v) => [v.value, v.low ?? v.value, v.high ?? v.value]);
  return filled(DATA.specs.compression, width, { ways, title, scale: scaleOf(reached, log), sizes: scaleOf(ways.map((v) => v.stored), log, 1.5), name });
}

// Lines over the repetitions, in their order.
function driftSpec({ rows, title, log, width, name }) {
  const values = rows.flatMap((r) => r.p.seconds.map((s, i) => ({
    line: r.label, ...looksOf(r.case), stroke: r.case.colour, dash: r.case.transfer === "collective" ? [6, 3] : null, repetition: r.p.blocks[i], value: r.of(s), told: toldOfRepetition(r, i),
  })));
  const scale = scaleOf(values.map((v) => v.value), log);
  // Each line has its name at its end, where there is room.
  const named = 7 * Math.max(...rows.map((r) => r.label.length)) <= 0.62 * width;
  const height = named ? Math.max(260, 14 * rows.length) : 260;
  return filled(DATA.specs.drift, width, { rows: values, names: named ? namesOfLines(rows, scale, height) : [], title, scale, height, ticks: wholeTicks(values.map((v) => v.repetition)), name });
}

// For each case the distribution over its ranks.
function spreadSpec({ rows, labels, title, log, width, name }) {
  const boxes = rows.map((r) => ({ row: rowOf(labels, r.label), ...looksOf(r.case), ...r.box, told: r.told }));
  return filled(DATA.specs.spread, width, { boxes, title, scale: scaleOf(boxes.flatMap((v) => [v.least, v.most]), log), rows: labels.map((l) => rowOf(labels, l)), height: 25 * labels.length, name });
}

// Each rank, or group of neighbouring ranks, of one case.
function byRankSpec({ values, of, title, log, width, name, grouped }) {
  const ranks = values.map((v) => ({ ...v, ...looksOf(of), shape: "circle", opacity: 1 }));
  const rank = grouped ? "rank (first of each group of neighbours)" : "rank";
  return filled(DATA.specs.byrank, width, { ranks, rank, title, scale: scaleOf(values.flatMap((v) => [v.low, v.median, v.high]), log), ticks: wholeTicks(values.map((v) => v.rank)), name });
}

// A figure that Python made as a whole. Its panels have one scale: only the lowest of each column shows the axis.
function drawMade(id, figure) {
  const last = figure.panels.length - 1;
  const made = (spec, i) => (width) => {
    const columns = Math.max(1, Math.floor(document.querySelector(`#${id} .chart`).clientWidth / width));
    const shared = spec.layer.some(({ name, encoding }) => name === "marks" && encoding.yOffset);
    const shown = filled(shared && width < NARROW ? withoutTexts(spec) : spec, width);
    const fitted = width < TINY ? smaller(shown) : shown;
    return i + columns <= last ? withoutAxis(fitted) : fitted;
  };
  return draw(id, { ...figure, panels: figure.panels.map(({ heading, spec }, i) => ({ heading, spec: made(spec, i) })) });
}
