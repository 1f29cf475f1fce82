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
  rate: { text: "rate", fits: (p) => p.rate !== null, more: true },
  perArray: { text: "time per dataset", fits: () => true, more: false },
  operations: { text: "operations per second", fits: (p) => p.operations !== null && p.operations > 0, more: true },
};

// How seconds become what is shown, and its unit; `seconds` are those that the unit must suit.
function conversion(measure, phase, group, seconds) {
  const scaled = (factor, unit) => ({ unit, inverse: false, of: (s) => (s === null ? null : s * factor) });
  const over = (amount, unit) => ({ unit, inverse: true, of: (s) => (s ? amount / s : null) });
  if (measure === "rate") return over(((phase.rate ?? 0) * phase.median) / MIB, "MiB/s");
  if (measure === "operations") return over((phase.operations ?? 0) * phase.median, "operations/s");
  if (measure === "perArray") return scaled(1e6 / group.arrays, "µs per dataset");
  return Math.max(...seconds) >= 1 ? scaled(1, "s") : scaled(1e3, "ms");
}

// One row for each case that is chosen and has this phase.
function rowsOf(state, phase, measure) {
  const { group } = state;
  const cases = group.cases.filter((c) => isChosen(c, state) && c.phases[phase] && MEASURES[measure].fits(c.phases[phase]));
  const medians = cases.map((c) => c.phases[phase].median);
  return cases.map((c) => {
    const p = c.phases[phase];
    const to = conversion(measure, p, group, medians);
    return {
      label: c.label, case: c, phase, p, unit: to.unit, of: to.of, value: to.of(p.median), ...reachOf(p, to.of, to.inverse),
      unsure: p.warnings.some((w) => w.code === "below_resolution"),
    };
  });
}

// The interval of a median, of few repetitions their range, of one neither; and the extremes.
function reachOf(p, of, inverse) {
  const ends = (low, high) => (inverse ? [of(high), of(low)] : [of(low), of(high)]);
  const [least, most] = ends(p.min, p.max);
  const [low, high] = p.low !== null ? ends(p.low, p.high) : p.n > 1 ? [least, most] : [null, null];
  return { low, high, least, most, sure: p.low !== null };
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
    repetitions: `${p.n}`,
    CV: percent(p.cv),
  };
  if (p.ratio) words["×best"] = p.ratio[1] === p.ratio[2] ? digits(p.ratio[0]) : `${digits(p.ratio[0])} (${digits(p.ratio[1])} to ${p.ratio[2] === null ? "∞" : digits(p.ratio[2])})`;
  if (p.cpu !== null) words["processor time"] = secondsInWords(p.cpu);
  if (p.roof !== null) words["of raw"] = percent(p.roof);
  if (p.spread) Object.assign(words, toldOfRanks(p.spread));
  if (p.warnings.length) words.warnings = p.warnings.map((w) => w.message).join("; ");
  return words;
}

function toldOfRanks(s) {
  return {
    "slowest rank": `${s.rank} (in ${percent(s.rankShare)} of repetitions)`,
    "slowest host": `${s.host} (in ${percent(s.hostShare)})`,
    imbalance: s.imbalance === null ? "–" : `${digits(s.imbalance)} × the middle rank`,
  };
}
