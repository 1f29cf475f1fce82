// Compression against speed: a point for each way, the front as a staircase.
const MARKS = ["cross", "triangle-up", "square", "circle", "diamond", "triangle-down", "triangle-left", "triangle-right", "arrow", "wedge"];
const DIRECTIONS = { write: ["write"], read: ["read"], both: ["write", "read"] };
const PARETO_HEIGHT = 340;
// Ratios further apart than this are shown on a logarithmic axis, as in the figure under plots/.
const LARGE_RANGE = 30;
// By which part of the axis backends stand beside each other at the same ratio.
const ASIDE = 0.011;

const paretoChoice = (name) => document.querySelector(`#pareto select[name=${name}]`);

function makePareto() {
  const { kinds } = DATA.compression;
  options(paretoChoice("kind"), kinds.map((k, i) => [String(i), k.name]));
  paretoChoice("kind").parentElement.hidden = kinds.length < 2;
  paretoChoice("per").parentElement.hidden = kinds[0].ranks < 2;
  document.querySelector("#pareto .choices").addEventListener("change", redraw);
}

function drawPareto() {
  if (!DATA.compression) return Promise.resolve();
  const kind = DATA.compression.kinds[Number(paretoChoice("kind").value)];
  const [choice, amount] = [paretoChoice("direction").value, paretoChoice("amount").value];
  const share = paretoChoice("per").value === "rank" ? kind.ranks : 1;
  const unit = `MiB/s${share > 1 ? " of each rank" : ""}`;
  const found = DIRECTIONS[choice].map((direction) => paretoRows(kind, direction, choice, amount, share, unit)).filter((rows) => rows.length);
  const rows = found.flat();
  const hasLine = choice !== "both" && amount === "bytes";
  return draw("pareto", {
    what: `${kind.name}: compression ratio and rate of ${choice === "both" ? "writing and reading" : paretoChoice("direction").selectedOptions[0].text}, more of both is better.`,
    notes: [
      hasLine ? "Line: the front of the medians; above and right of it there is nothing." : "",
      "Filled: on the front by the medians. Hollow: not told apart from it. Pale: shown to be off it.",
      choice === "both" && "The front is that of ratio, writing and reading together, which has no line.",
      amount === "stored" && "Who is on the front is judged by bytes of the arrays; in bytes of the files what compresses well writes little.",
      rows.some((r) => r.low !== null) && "Lines: 95 % interval of the median, where there are five repetitions or more.",
      "Backends stand a little beside each other at the same ratio.",
      rows.some((r) => r.unsure) && "†: under 100 times what the harness itself takes; not to be relied on.",
    ],
    panels: found.map((some) => ({
      heading: some[0].direction,
      spec: (width) => paretoSpec({ rows: some, kind, width, hasLine, unit, name: `${some[0].direction} of ${kind.name}: ${some.filter((r) => r.onFront).map((r) => `${r.label} ratio ${digits(r.ratio)} ${digits(r.value)} ${unit}`).join(", ")} on the front` }),
    })),
    values: rows.map((r) => r.told),
    numbers: rows.map((r) => ({ data: kind.name, case: r.case, label: r.label, backend: r.backend, codec: r.codec, ratio: r.ratio, stored_bytes: r.stored, direction: r.direction, median_s: r.seconds, repetitions: r.n, unit, of: amount === "stored" ? "bytes in the files" : "bytes of the arrays", rate: r.value, low: r.low, high: r.high, standing: r.words, due_to: r.by ?? "" })),
  });
}

function paretoRows(kind, direction, choice, amount, share, unit) {
  return kind.points.filter((p) => p[direction]?.[amount]).map((p) => {
    const measured = p[direction];
    const { standing, words, by } = choice === "both" ? p.both : measured;
    const [value, low, high] = measured[amount].map((v) => (v === null ? null : v / MIB / share));
    const row = { ...p, direction, value, low, high, seconds: measured.seconds, n: measured.n, unsure: measured.unsure, standing, words, by, onFront: standing === "on" || standing === "median" };
    return { ...row, told: toldOfPoint(row, unit) };
  });
}

function toldOfPoint(row, unit) {
  const told = { way: row.label, direction: row.direction, ratio: digits(row.ratio), "in the files": `${digits(row.stored / MIB)} MiB`, rate: `${digits(row.value)}${row.unsure ? "†" : ""} ${unit}`, "95 % interval": between(row.low, row.high, unit), repetitions: `${row.n}`, standing: row.words };
  const words = { median: "not told from", close: "median below", off: "beaten by" }[row.standing];
  return row.by && words ? { ...told, [words]: row.by } : told;
}

// The bounds of an axis with room at its ends, as parts of its length.
function roomy(values, log, before, after) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  if (log) return [low / (high / low || 1) ** before / 1.05, high * (high / low || 1) ** after * 1.05];
  const span = high - low || 1;
  return [low - before * span, high + after * span];
}

function paretoSpec({ rows, kind, width, hasLine, unit, name }) {
  const log = Math.max(...rows.map((r) => r.ratio)) > LARGE_RANGE * Math.min(...rows.map((r) => r.ratio));
  // Names stand right of the front, where nothing else is.
  const xDomain = roomy(rows.map((r) => r.ratio), log, 0.07, Math.min(0.6, 150 / Math.max(60, width - 200)));
  const yDomain = roomy(rows.flatMap((r) => [r.value, r.low, r.high]).filter((v) => v > 0), true, 0.05, 0.1);
  const aside = (r) => ASIDE * (kind.backends.indexOf(r.backend) - (kind.backends.length - 1) / 2);
  const moved = (r) => (log ? r.ratio * (xDomain[1] / xDomain[0]) ** aside(r) : r.ratio + aside(r) * (xDomain[1] - xDomain[0]));
  const values = rows.map((r) => ({ x: moved(r), value: r.value, low: r.low, high: r.high, family: r.family, colour: r.colour, fill: r.onFront ? r.colour : "var(--page)", stroke: r.onFront ? INK : r.colour, opacity: r.standing === "off" ? 0.4 : 1, weight: r.onFront ? 1 : 2.2, order: r.onFront ? 1 : 0, told: r.told }));
  const x = { field: "x", type: "quantitative", title: `compression ratio${log ? ", logarithmic" : ""}`, scale: log ? { type: "log", domain: xDomain, nice: false } : { domain: xDomain, nice: false, zero: false }, axis: { ...(log ? { values: logTicks(xDomain, 8) } : { tickCount: 6 }), format: ",~r" } };
  const y = (field) => ({ field, type: "quantitative", title: `${unit}, logarithmic`, scale: { type: "log", domain: yDomain, nice: false }, axis: { values: logTicks(yDomain, 8), format: ",~r" } });
  const shape = { field: "family", type: "nominal", scale: { domain: kind.codecs.map(([name]) => name), range: kind.codecs.map(([, mark]) => MARKS[mark]) }, legend: { orient: "bottom", title: null, columns: Math.max(2, Math.floor(width / 110)), labelColor: INK, labelFontSize: 12, symbolStrokeColor: INK, symbolFillColor: "transparent", symbolOpacity: 1 } };
  const as = (field, kind_ = "nominal") => ({ field, type: kind_, scale: null, legend: null });
  const opacity = as("opacity", "quantitative");
  const whisker = { transform: [{ filter: "isValid(datum.low)" }], mark: { ...TOLD, type: "rule", strokeWidth: 1.6 }, encoding: { x, y: y("low"), y2: { field: "high" }, stroke: as("colour"), opacity } };
  const marks = [0, 1].map((order) => ({ transform: [{ filter: `datum.order === ${order}` }], mark: { ...TOLD, type: "point", size: order ? 120 : 95 }, encoding: { x, y: y("value"), shape, fill: as("fill"), stroke: as("stroke"), strokeWidth: as("weight", "quantitative"), opacity } }));
  const front = hasLine ? [staircase(rows, xDomain, yDomain, x, y)] : [];
  const layers = [...front, whisker, ...marks, ...(hasLine ? namesOfFront(rows, yDomain, x, y) : [])];
  return spec(name, width, PARETO_HEIGHT, layers, { data: { values } });
}

function staircase(rows, xDomain, yDomain, x, y) {
  const corners = rows.filter((r) => r.onFront).map((r) => ({ x: r.ratio, value: r.value })).sort((a, b) => a.x - b.x);
  if (!corners.length) return { data: { values: [] }, mark: "line", encoding: { x, y: y("value") } };
  const steps = [{ x: xDomain[0], value: corners[0].value }, ...corners, { x: corners.at(-1).x, value: yDomain[0] }];
  return { data: { values: steps }, mark: { type: "line", interpolate: "step-before", strokeWidth: 1.4, color: INK, opacity: 0.55 }, encoding: { x, y: y("value"), order: { field: "x", type: "quantitative" } } };
}

// Each name above its point, clear of the one below it.
function namesOfFront(rows, yDomain, x, y) {
  const pixels = (value) => (PARETO_HEIGHT * Math.log(value / yDomain[0])) / Math.log(yDomain[1] / yDomain[0]);
  let lowest = -Infinity;
  const values = rows.filter((r) => r.onFront).sort((a, b) => a.value - b.value).map((r) => {
    lowest = Math.max(pixels(r.value) + 5, lowest + 14);
    return { x: r.ratio, at: yDomain[0] * (yDomain[1] / yDomain[0]) ** (lowest / PARETO_HEIGHT), text: r.codec + (r.unsure ? "†" : "") };
  });
  const encoding = { x, y: y("at"), text: { field: "text" } };
  const mark = { type: "text", align: "left", baseline: "bottom", dx: 12 };
  return [
    { data: { values }, mark: { ...mark, stroke: "var(--page)", strokeWidth: 4, strokeJoin: "round" }, encoding },
    { data: { values }, mark, encoding },
  ];
}
