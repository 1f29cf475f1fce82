// The answer: how many times as long each contender takes as the one with the smallest median.
const ANSWER_SHAPES = { fastest: "diamond", ahead: "diamond", slower: "circle", equal: "square", undecided: "circle" };
const ANSWER_WORDS = { fastest: "fastest", ahead: "smallest median, not decided", slower: "slower", equal: "equally fast", undecided: "not decided" };

function isFirst(row) {
  return row.standing === "fastest" || row.standing === "ahead";
}

// Ratios are written as in the verdict.
function times(x) {
  return x < 10 ? x.toFixed(2) : digits(x);
}

function ratioAndInterval(row) {
  if (row.ratio === null) return "–";
  return `${times(row.ratio)} (${times(row.low ?? 0)}–${row.high === null ? "∞" : times(row.high)})`;
}

function toldOfAnswer(row, panel) {
  const told = { format: row.name, "fastest case": row.case, in: panel.heading };
  if (row.comparison) told.comparison = row.comparison;
  Object.assign(told, { standing: ANSWER_WORDS[row.standing], median: secondsInWords(row.seconds) });
  if (!isFirst(row)) Object.assign(told, { "times as long": ratioAndInterval(row), repetitions: `${row.n}` });
  if (row.needed) told["would decide it"] = `about ${row.needed} repetitions`;
  return told;
}

// The ends of the axis: all that is drawn and bounded, and the band.
function answerDomain({ panels, margin }) {
  const found = panels.flatMap((panel) => panel.rows.flatMap((r) => [r.low, r.ratio, r.high])).filter((v) => v > 0);
  const [low, high] = [Math.min(...found, 1 / (1 + margin)), Math.max(...found, 1 + margin)];
  const room = (high / low) ** 0.05;
  return [low / room, high * room];
}

function drawAnswer() {
  const { answer } = DATA;
  if (!answer) return Promise.resolve();
  const domain = answerDomain(answer);
  const rows = answer.panels.flatMap((panel) => panel.rows.map((row) => ({ ...row, told: toldOfAnswer(row, panel), total: panel.total })));
  return draw("answer", {
    what: "Median time over the smallest one of each comparison, less is better.",
    notes: answer.notes,
    panels: answer.panels.map((panel) => ({ heading: panel.heading, spec: (width) => answerSpec({ panel, margin: answer.margin, domain, width }) })),
    values: rows.map((row) => row.told),
    numbers: rows.map((row) => ({ total: row.total, comparison: row.comparison, format: row.name, case: row.case, standing: row.standing, median_s: row.seconds, ratio: row.ratio, low: row.low, high: row.high, repetitions: row.n, needed: row.needed })),
  });
}

function answerSpec({ panel, margin, domain, width }) {
  // Contenders of several comparisons have the same names: a row is known by its number as well,
  // and the name of a comparison has a row of its own.
  const id = (row) => `${row.number} ${row.name}`;
  const title = (row) => `${row.number}`;
  const lines = unique(panel.rows.flatMap((row) => [...(row.comparison ? [title(row)] : []), id(row)]));
  const values = panel.rows.map((row) => ({
    id: id(row), ratio: row.ratio, shape: ANSWER_SHAPES[row.standing], colour: row.colour,
    hollow: row.standing === "undecided" || row.standing === "ahead",
    low: isFirst(row) ? null : Math.max(row.low ?? 0, domain[0]), high: isFirst(row) ? null : Math.min(row.high ?? Infinity, domain[1]),
    lowEnds: row.low > domain[0], highEnds: row.high !== null,
    text: isFirst(row) ? `${row.standing}, ${secondsInWords(row.seconds)}` : ratioAndInterval(row), told: toldOfAnswer(row, panel),
  }));
  const titles = panel.rows.filter((row, i, all) => row.comparison && all.findIndex((r) => r.number === row.number) === i).map((row) => ({ id: title(row), text: row.comparison }));
  const x = (field) => ({ field, type: "quantitative", title: "time over the smallest median, logarithmic", scale: { type: "log", domain, nice: false }, axis: { values: logTicks(domain, 6), format: ",~r" } });
  const names = { labelExpr: "indexof(datum.label, ' ') < 0 ? '' : slice(datum.label, indexof(datum.label, ' ') + 1)", labelLimit: Math.min(280, width * 0.4), ticks: false, domain: false };
  const y = { field: "id", type: "nominal", sort: lines, title: null, axis: names, scale: { domain: lines, paddingInner: 0.3, paddingOuter: 0.2 } };
  const as = (field) => ({ field, type: "nominal", scale: null, legend: null });
  const only = (test, mark, encoding) => ({ transform: [{ filter: test }], mark, encoding });
  const band = { data: { values: [{ from: 1 / (1 + margin), to: 1 + margin }] }, mark: { type: "rect", color: INK, opacity: 0.1 }, encoding: { x: x("from"), x2: { field: "to" } } };
  const one = { data: { values: [{ at: 1 }] }, mark: { type: "rule", strokeWidth: 1, color: INK }, encoding: { x: x("at") } };
  const interval = only("isValid(datum.low)", { ...TOLD, type: "rule", strokeWidth: 1.8, color: INK }, { x: x("low"), x2: { field: "high" }, y });
  const end = (field, ends, angle) => [
    only(`isValid(datum.low) && datum.${ends}`, { type: "tick", thickness: 1.8, size: 10, color: INK, opacity: 1 }, { x: x(field), y }),
    only(`isValid(datum.low) && !datum.${ends}`, { type: "point", shape: "triangle-right", angle, size: 60, filled: true, color: INK, opacity: 1 }, { x: x(field), y }),
  ];
  const mark = (hollow) => only(`isValid(datum.ratio) && ${hollow ? "" : "!"}datum.hollow`, { ...TOLD, type: "point", size: 130, opacity: 1, ...(hollow ? { fill: "var(--page)", strokeWidth: 2.2 } : { stroke: INK, strokeWidth: 0.8 }) }, { x: x("ratio"), y, shape: as("shape"), [hollow ? "stroke" : "fill"]: as("colour") });
  const written = { mark: { type: "text", align: "left", dx: 6 }, encoding: { x: { value: "width" }, y, text: { field: "text" } } };
  const heading = (more) => ({ data: { values: titles }, mark: { type: "text", align: "left", baseline: "middle", fontWeight: 650, dx: 4, ...more }, encoding: { x: { value: 0 }, y, text: { field: "text" } } });
  const halo = { stroke: "var(--page)", strokeWidth: 5, strokeJoin: "round" };
  const layers = [band, one, interval, ...end("low", "lowEnds", 180), ...end("high", "highEnds", 0), mark(false), mark(true), written, ...(titles.length ? [heading(halo), heading({})] : [])];
  const name = `${panel.heading}: ${panel.rows.map((row) => `${row.comparison} ${row.name} ${isFirst(row) ? row.standing : ratioAndInterval(row)}`.trim()).join(", ")}`;
  return spec(name, width, 25 * lines.length, layers, { data: { values } });
}
