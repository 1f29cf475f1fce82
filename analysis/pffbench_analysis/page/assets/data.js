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
  if (measure === "perArray") return scaled(1e3 / group.arrays, "ms per dataset");
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
    const [low, high] = to.inverse ? [p.high, p.low] : [p.low, p.high];
    return {
      label: c.label, case: c, phase, p, unit: to.unit, of: to.of,
      value: to.of(p.median), low: to.of(low), high: to.of(high),
      least: to.of(to.inverse ? p.max : p.min), most: to.of(to.inverse ? p.min : p.max),
      unsure: p.warnings.some((w) => w.code === "below_resolution"),
    };
  });
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

function percent(x) {
  return x === null || x === undefined ? "–" : `${Math.round(100 * x)} %`;
}

// A number and its interval in words.
function between(low, high, unit = "") {
  return low === null || high === null ? "one repetition, no interval" : `${digits(low)} to ${digits(high)} ${unit}`.trim();
}

// What a row says when it is pointed at, or read in the table below its figure.
function told(row) {
  const { p, unit } = row;
  const words = {
    case: row.label,
    phase: phaseName(row.phase),
    median: `${digits(row.value)} ${unit}`,
    "95 % interval": between(row.low, row.high, unit),
    "least to most": `${digits(row.least)} to ${digits(row.most)} ${unit}`,
    repetitions: `${p.n}`,
    CV: percent(p.cv),
  };
  if (p.ratio) words["×best"] = p.ratio[1] === null ? digits(p.ratio[0]) : `${digits(p.ratio[0])} (${between(p.ratio[1], p.ratio[2])})`;
  if (p.roof !== null) words["of best raw"] = percent(p.roof);
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
