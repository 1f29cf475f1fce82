// Each figure as it follows from what has been chosen.
const drawn = new Map();

// Draw panels into a figure: each has a heading, and a specification for the width that it gets.
async function draw(id, { what, notes, panels, values, numbers }) {
  const figure = document.getElementById(id);
  figure.hidden = false;
  figure.querySelector(".what").textContent = what;
  figure.querySelector(".notes").textContent = notes.filter(Boolean).join(" ");
  fillTable(figure.querySelector(".values .scroll"), values);
  figure.querySelector(".values").hidden = !values.length;
  figure.querySelector(".download").hidden = !numbers.length;
  offer(figure.querySelector(".download a"), numbers);
  (drawn.get(id) ?? []).forEach((made) => made.finalize());
  const chart = figure.querySelector(".chart");
  const places = panels.map((panel) => {
    const place = Object.assign(document.createElement("div"), { className: "panel" });
    place.append(Object.assign(document.createElement("h4"), { textContent: panel.heading }), document.createElement("div"));
    return place;
  });
  chart.replaceChildren(...(places.length ? places : [Object.assign(document.createElement("p"), { className: "empty", textContent: "Nothing that was measured fits this choice." })]));
  const settings = { renderer: "svg", actions: false, ast: true, defaultStyle: false, tooltip: { theme: "custom" } };
  drawn.set(id, await Promise.all(panels.map((panel, i) => vegaEmbed(places[i].lastChild, panel.spec(places[i].clientWidth), settings))));
  // A layer of which nothing is drawn is an image without a name to screen readers.
  chart.querySelectorAll("g.role-mark:empty").forEach((layer) => layer.remove());
}

function marksUsed(cases) {
  return [
    cases.some((c) => c.settings === "defaults") && "Pale: the library's defaults.",
    cases.some((c) => c.transfer === "collective") && "Squares or dashed lines: collective.",
  ];
}

function thinning(rows) {
  const most = Math.max(0, ...rows.map((r) => r.p.repetitions));
  return most > DATA.mostPoints && `Of up to ${most} repetitions at most ${DATA.mostPoints} evenly spaced ones and the extremes are drawn; medians and intervals are of all of them.`;
}

function axisTitle(rows, log) {
  return rows[0].unit + (log ? ", logarithmic" : "");
}

// What stands around medians, by how many repetitions there are.
function whiskers(rows) {
  return [
    rows.some((r) => r.sure) && "Lines with caps: 95 % interval of the median, by order statistics.",
    rows.some((r) => !r.sure && r.low !== null) && "Lines without caps: range of fewer than five repetitions, no interval.",
    rows.some((r) => r.low === null) && "Hollow: one repetition, no interval.",
  ];
}

function notDrawn(group) {
  return group.invalid.length > 0 && `Not drawn, INVALID: ${group.invalid.join(", ")}.`;
}

function drawMedians(state) {
  const { group, measure } = state;
  const found = state.phases.map((phase) => rowsOf(state, phase, measure)).filter((rows) => rows.length);
  const rows = found.flat();
  const log = isLog(state.scale, rows.map((r) => r.value));
  const labels = labelsOf(rows, MEASURES[measure].more);
  const limits = rows.some((r) => r.unsure) && "†: under 100 times what the harness itself takes; not to be relied on.";
  return draw("medians", {
    what: `${group.name}: ${MEASURES[measure].text}, ${MEASURES[measure].more ? "more" : "less"} is better.`,
    notes: [
      "Points: medians.", ...whiskers(rows), state.points && "Dots: repetitions, the first uppermost.", ...marksUsed(rows.map((r) => r.case)), limits,
      state.points && thinning(rows), notDrawn(group),
      measure === "perArray" && "Time per dataset is job time over the datasets of all ranks: inverse throughput, not latency.",
    ],
    panels: found.map((some) => ({
      heading: phaseName(some[0].phase),
      spec: (width) => mediansSpec({ rows: some, labels, title: axisTitle(some, log), log, points: state.points, limit: limitOf(group, some, measure), width, name: `${phaseName(some[0].phase)} of ${group.name}: ${some.map((r) => `${r.label} ${digits(r.value)} ${r.unit}`).join(", ")}` }),
    })),
    values: rows.map(told),
    numbers: rows.map(numbersOf),
  });
}

// What bounds some rows, in their unit; none for what is not about moving data.
function limitOf(group, rows, measure) {
  const limit = group.limits[rows[0].phase];
  if (!limit || measure === "operations") return null;
  const value = measure === "rate" ? limit.bytes / limit.seconds / MIB : rows[0].of(limit.seconds);
  return { value, text: "raw", told: { "raw bytes": `${digits(value)} ${rows[0].unit}, ${limit.case}` } };
}

function rateOf(limit) {
  return `${digits(limit.bytes / limit.seconds / MIB)} MiB/s`;
}

function drawRoofline(state) {
  const { group } = state;
  const phases = state.phases.filter((p) => group.limits[p]);
  const shown = phases.length ? phases : TOTALS.filter((p) => group.limits[p]);
  const found = shown.map((phase) => rowsOf(state, phase, "rate").filter((r) => !r.case.raw && r.p.roofline !== null)).filter((rows) => rows.length);
  if (!found.length) {
    document.getElementById("roofline").hidden = true;
    return Promise.resolve();
  }
  const rows = found.flat().map((r) => {
    const whole = 100 * r.p.roofline * r.p.median_s;
    const of = (s) => (s ? whole / s : null);
    return { ...r, of, unit: "% of raw bytes", value: of(r.p.median_s), ...reachOf(r.p, of, true) };
  });
  const log = isLog(state.scale, rows.map((r) => r.value));
  const labels = labelsOf(rows, true);
  const best = shown.filter((p) => group.limits[p]).map((p) => `${phaseName(p)} ${rateOf(group.limits[p])} (${group.limits[p].case})`);
  return draw("roofline", {
    what: `${group.name}: part of the speed of raw bytes that was reached, more is better.`,
    notes: [
      `100 % is the fastest raw transfer of the same bytes by its median, never faster than memory is copied: ${best.join("; ")}.`,
      "Raw bytes are subject to noise as well, so 100 % can be passed.", ...whiskers(rows),
      DATA.memoryCopy && `All ranks together copy ${digits(DATA.memoryCopy / MIB)} MiB/s in memory.`, phases.length ? "" : "The phase that is chosen moves no data: the totals are shown.", notDrawn(group),
    ],
    panels: shown.map((phase) => rows.filter((r) => r.phase === phase)).filter((some) => some.length).map((some) => ({
      heading: phaseName(some[0].phase),
      spec: (width) => mediansSpec({ rows: some, labels, title: axisTitle(some, log), log, points: state.points, limit: { value: 100, text: "", told: { "raw bytes": `${rateOf(group.limits[some[0].phase])}, ${group.limits[some[0].phase].case}` } }, width, name: `${phaseName(some[0].phase)} of ${group.name} against raw bytes` }),
    })),
    values: rows.map(told),
    numbers: rows.map(numbersOf),
  });
}

function drawCompression(state) {
  const { group } = state;
  const counted = (phase) => rowsOf(state, phase, "time").filter((r) => r.case.stored_bytes > 0);
  const found = state.phases.map(counted).filter((rows) => new Set(rows.map((r) => r.case.stored_bytes)).size > 1);
  const rows = found.flat();
  if (!rows.length) {
    document.getElementById("compression").hidden = true;
    return Promise.resolve();
  }
  const log = isLog(state.scale, rows.map((r) => r.value));
  return draw("compression", {
    what: `${group.name}: time, and bytes of the chunks in the files. Less of both is better.`,
    notes: [...whiskers(rows), ...marksUsed(rows.map((r) => r.case)), notDrawn(group)],
    panels: found.map((some) => ({ heading: phaseName(some[0].phase), spec: (width) => compressionSpec({ rows: some, title: axisTitle(some, log), log, width, name: `${phaseName(some[0].phase)} of ${group.name} against bytes in the files` }) })),
    values: rows.map((r) => ({ ...told(r), ...sizeOf(r.case) })),
    numbers: rows.map((r) => ({ ...numbersOf(r), stored_bytes: r.case.stored_bytes, compression_ratio: r.case.compression_ratio })),
  });
}

function drawDrift(state) {
  const { group, measure } = state;
  const found = state.phases.map((phase) => rowsOf(state, phase, measure)).filter((rows) => rows.length);
  const rows = found.flat();
  const log = isLog(state.scale, rows.map((r) => r.value));
  return draw("drift", {
    what: `${group.name}: ${MEASURES[measure].text} of each repetition that counts, in their order.`,
    notes: ["A slope is drift, a spike a disturbance; lines that move together share it.", ...marksUsed(rows.map((r) => r.case)), thinning(rows), notDrawn(group)],
    panels: found.map((some) => ({ heading: phaseName(some[0].phase), spec: (width) => driftSpec({ rows: some, title: axisTitle(some, log), log, width, name: `${phaseName(some[0].phase)} of ${group.name}, by repetition` }) })),
    values: [],
    numbers: rows.flatMap((r) => r.p.seconds.map((s, i) => ({ case: r.case.case, label: r.label, phase: r.phase, repetition: r.p.blocks[i], seconds: s, value: r.of(s), unit: r.unit }))),
  });
}

// Ranks are timed phase by phase: a total stands for its transfer.
function phasesOfRanks(state) {
  return unique(state.phases.map((p) => (TOTALS.includes(p) ? p.replace("_total", "") : p)));
}

function drawSpread(state) {
  const { group } = state;
  const phases = phasesOfRanks(state);
  const all = phases.map((phase) => rowsOf(state, phase, "time").filter((r) => r.p.ranks)).filter((rows) => rows.length);
  const found = all.map((rows) => rows.map((r) => {
    const q = r.case.ranks?.phases[r.phase]?.quantiles;
    const [first, middle, last] = r.p.ranks;
    const box = q ? { least: q[0], q1: q[2], middle: q[3], q3: q[4], most: q[6] } : { least: first, q1: null, middle, q3: null, most: last };
    return { ...r, box: Object.fromEntries(Object.entries(box).map(([key, value]) => [key, r.of(value)])), told: toldSpread(r, group) };
  }));
  const rows = found.flat();
  const log = isLog(state.scale, rows.map((r) => r.box.most));
  const labels = labelsOf(rows);
  return draw("spread", {
    what: `${group.name}: time of the ranks, from the fastest to the slowest.`,
    notes: [
      rows.some((r) => r.box.q1 !== null) ? "Each rank by its median over the repetitions: points are the middle rank, thick lines go from the lower to the upper quartile, thin ones from the fastest to the slowest." : "Lines from the fastest to the slowest rank, points the middle one: medians over the repetitions.",
      state.phases.some((p) => TOTALS.includes(p)) && "Ranks are timed phase by phase: of the totals the transfers are shown.", DATA.noRanks && `${DATA.noRanks}.`,
    ],
    panels: found.map((some) => ({ heading: phaseName(some[0].phase), spec: (width) => spreadSpec({ rows: some, labels, title: axisTitle(some, log), log, width, name: `${phaseName(some[0].phase)} of ${group.name}: spread of ranks` }) })),
    values: rows.map((r) => r.told),
    numbers: rows.map((r) => ({ case: r.case.case, label: r.label, phase: r.phase, slowest_rank: r.p.slowest_rank, slowest_rank_share: r.p.slowest_rank_share, slowest_host: r.p.slowest_host, slowest_host_share: r.p.slowest_host_share, imbalance: r.p.imbalance, unit: r.unit, ...r.box })),
  });
}

function toldSpread(r, group) {
  const [first, middle, last] = r.p.ranks;
  const done = r.p.rate_mib_s === null ? {} : { "first done": `${digits(r.p.first_done_mib_s)} MiB/s`, "last done": `${digits(r.p.rate_mib_s)} MiB/s` };
  const words = { case: r.label, phase: phaseName(r.phase) };
  for (const [key, value] of [["fastest rank", first], ["middle rank", middle], ["slowest rank's time", last]]) words[key] = `${digits(r.of(value))} ${r.unit}`;
  return { ...words, ...toldOfRanks(r.p), ...done };
}

// Two ranks are the ends of the figure above.
function drawByRank(state) {
  if (DATA.ranks < 3) return Promise.resolve();
  const { group } = state;
  const select = document.querySelector("#byrank select");
  const cases = group.cases.filter((c) => isChosen(c, state) && c.ranks);
  options(select, cases.map((c) => [c.case, c.label]));
  select.parentElement.hidden = !cases.length;
  const chosen = cases.find((c) => c.case === select.value);
  const shown = chosen ? phasesOfRanks(state).filter((p) => chosen.ranks.phases[p]) : [];
  const longest = Math.max(0, ...shown.flatMap((p) => chosen.ranks.phases[p].high));
  const [factor, unit] = longest >= 1 ? [1, "s"] : [1e3, "ms"];
  const panels = shown.map((phase) => ({ phase, values: valuesOfRanks(chosen, phase, factor, unit) }));
  const log = chosen ? isLog(state.scale, panels.flatMap((p) => p.values.map((v) => v.median))) : false;
  const grouped = chosen ? chosen.ranks.first.length < DATA.ranks : false;
  return draw("byrank", {
    what: chosen ? `${group.name}, ${chosen.label}: time of each rank.` : "There are no times of single ranks.",
    notes: [
      chosen ? "Dots: medians over the repetitions; lines from the least to the most." : DATA.noRanks && `${DATA.noRanks}.`,
      grouped && `Of ${DATA.ranks} ranks, neighbours are put together: the median of their medians, and their extremes.`,
    ],
    panels: panels.map(({ phase, values }) => ({ heading: phaseName(phase), spec: (width) => byRankSpec({ values, of: chosen, title: unit + (log ? ", logarithmic" : ""), log, width, grouped, name: `${phaseName(phase)} of ${chosen.label}, by rank` }) })),
    values: [],
    numbers: panels.flatMap(({ phase, values }) => values.map((v) => ({ case: chosen.case, phase, ranks: v.told.ranks, host: v.told.host, unit, median: v.median, low: v.low, high: v.high }))),
  });
}

function valuesOfRanks(chosen, phase, factor, unit) {
  const { first, hosts, phases } = chosen.ranks;
  const { median, low, high } = phases[phase];
  return first.map((rank, i) => {
    const last = (first[i + 1] ?? DATA.ranks) - 1;
    const [m, l, h] = [median[i], low[i], high[i]].map((s) => (s === null ? null : s * factor));
    return { rank, median: m, low: l, high: h, told: { ranks: last > rank ? `${rank} to ${last}` : `${rank}`, host: hosts[i], median: `${digits(m)} ${unit}`, "least to most": `${digits(l)} to ${digits(h)} ${unit}` } };
  });
}
