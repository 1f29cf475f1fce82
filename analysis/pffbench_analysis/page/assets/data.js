// What is shown, computed from the numbers in the page: seconds become rates, choices become rows.
const DATA = JSON.parse(document.getElementById("data").textContent);
const MIB = 2 ** 20;
const TOTALS = Object.keys(DATA.totals);
// Several phases that are looked at together.
const TOGETHER = {
  "*totals": ["write and read, everything", () => TOTALS],
  "*transfers": ["write and read, data only", () => ["write", "update", "read"]],
  "*metadata": ["all phases without data", () => DATA.phases.filter((p) => !DATA.moving.includes(p))],
};

function phaseName(phase) {
  return phase.replace("_total", " total").replaceAll("_", " ");
}

// The phases that a choice stands for, as far as a comparison has them.
function phasesOf(choice, group) {
  const names = choice in TOGETHER ? TOGETHER[choice][1]() : [choice];
  return names.filter((name) => group.cases.some((c) => c.phases[name]));
}

const MEASURES = {
  time: { text: "time", fits: () => true, more: false },
  rate: { text: "rate", fits: (p) => p.rate_mib_s !== null, more: true },
  perArray: { text: "time per dataset", fits: () => true, more: false },
  operations: { text: "operations per second", fits: (p) => p.operations_per_s > 0, more: true },
};

// How seconds become what is shown, and its unit; `seconds` are those that the unit must suit.
function conversion(measure, phase, group, seconds) {
  const scaled = (factor, unit) => ({ unit, inverse: false, of: (s) => (s === null ? null : s * factor) });
  const over = (amount, unit) => ({ unit, inverse: true, of: (s) => (s ? amount / s : null) });
  if (measure === "rate") return over((phase.rate_mib_s ?? 0) * phase.median_s, "MiB/s");
  if (measure === "operations") return over((phase.operations_per_s ?? 0) * phase.median_s, "operations/s");
  if (measure === "perArray") return scaled(1e6 / group.arrays, "µs per dataset");
  return Math.max(...seconds) >= 1 ? scaled(1, "s") : scaled(1e3, "ms");
}

// One row for each case that is chosen and has this phase.
function rowsOf(state, phase, measure) {
  const { group } = state;
  const cases = group.cases.filter((c) => isChosen(c, state) && c.phases[phase] && MEASURES[measure].fits(c.phases[phase]));
  const medians = cases.map((c) => c.phases[phase].median_s);
  return cases.map((c) => {
    const p = c.phases[phase];
    const to = conversion(measure, p, group, medians);
    return {
      label: c.label, case: c, phase, p, unit: to.unit, of: to.of, value: to.of(p.median_s), ...reachOf(p, to.of, to.inverse),
      unsure: p.warning_codes.split(" ").includes("below_resolution"),
    };
  });
}

// The cases of some rows, the best first, by the first phase that each has.
function labelsOf(rows, more = false) {
  const best = new Map();
  for (const { label, value } of rows) if (!best.has(label)) best.set(label, value);
  return [...best.keys()].sort((a, b) => (more ? best.get(b) - best.get(a) : best.get(a) - best.get(b)));
}

// The interval of a median, of few repetitions their range, of one neither; and the extremes.
function reachOf(p, of, inverse) {
  const ends = (low, high) => (inverse ? [of(high), of(low)] : [of(low), of(high)]);
  const [least, most] = ends(p.min_s, p.max_s);
  const [low, high] = p.low_s !== null ? ends(p.low_s, p.high_s) : p.repetitions > 1 ? [least, most] : [null, null];
  return { low, high, least, most, sure: p.low_s !== null };
}

function isChosen(c, state) {
  return (
    state.formats.has(c.backend) &&
    (state.transfer === "all" || c.transfer === state.transfer) &&
    (state.settings === "all" || c.raw || c.settings === state.settings)
  );
}

// Three digits, never an exponent where digits will do.
function digits(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  if (size >= 100) return Math.round(x).toString();
  if (size !== 0 && size < 1e-4) return x.toPrecision(3);
  return Number(x.toPrecision(3)).toString();
}

function secondsInWords(seconds) {
  return seconds >= 1 ? `${digits(seconds)} s` : `${digits(seconds * 1e3)} ms`;
}

function percent(x) {
  return x === null || x === undefined ? "–" : `${Math.round(100 * x)} %`;
}

// An interval in words.
function between(low, high, unit = "") {
  return low === null || high === null ? "none of fewer than five repetitions" : `${digits(low)} to ${digits(high)} ${unit}`.trim();
}

// What a row says when it is pointed at, or read in the table below its figure.
function told(row) {
  const { p, unit } = row;
  const words = {
    case: row.label,
    phase: phaseName(row.phase),
    median: `${digits(row.value)} ${unit}`,
    "95 % interval": row.sure ? between(row.low, row.high, unit) : between(null, null),
    "least to most": `${digits(row.least)} to ${digits(row.most)} ${unit}`,
    repetitions: `${p.repetitions}`,
    CV: percent(p.cv),
  };
  if (p.ratio !== null) words["×best"] = p.ratio_low === p.ratio_high ? digits(p.ratio) : `${digits(p.ratio)} (${digits(p.ratio_low)} to ${p.ratio_high === null ? "∞" : digits(p.ratio_high)})`;
  if (p.cpu_s !== null) words["processor time"] = secondsInWords(p.cpu_s);
  if (p.roofline !== null) words["of raw"] = percent(p.roofline);
  if (p.ranks) Object.assign(words, toldOfRanks(p));
  if (p.warnings.length) words.warnings = p.warnings.join("; ");
  return words;
}

function sizeOf(c) {
  return { "in the files": `${digits(c.stored_bytes / MIB)} MiB`, "compression ratio": digits(c.compression_ratio) };
}

function toldOfRanks(p) {
  return {
    "slowest rank": `${p.slowest_rank} (in ${percent(p.slowest_rank_share)} of repetitions)`,
    "slowest host": `${p.slowest_host} (in ${percent(p.slowest_host_share)})`,
    imbalance: p.imbalance === null ? "–" : `${digits(p.imbalance)} × the middle rank`,
  };
}
