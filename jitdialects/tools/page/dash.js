// The live page: shows what /snapshot.json has, once a second through /events; with ?once only once. Text of the
// process becomes text of the page and never markup. A part whose data did not change is left alone, so that it can be
// read and selected.
"use strict";

const QUERY = new URLSearchParams(location.search);
const TOKEN = QUERY.get("token");
const ask = (path) => (TOKEN ? `${path}?token=${encodeURIComponent(TOKEN)}` : path);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

const DIALS = {
  compile_share: ["Compile share", "of CPU time spent compiling"],
  hit_rate: ["Hit rate", "of hot calls found code"],
  fusion_rate: ["Fusion rate", "of compiled operators are fused"],
  reuse_rate: ["Reuse rate", "of pool requests recycled"],
};

// ---- numbers as text

const percent = (x) => (x === null ? "–" : x > 0 && x < 0.0995 ? `${(x * 100).toFixed(1)} %` : `${Math.round(x * 100)} %`);
const scaled = (x, steps) => {
  const [size, unit] = steps.find(([s]) => x >= s) ?? steps.at(-1);
  const n = x / size;
  return `${n >= 100 || Number.isInteger(n) ? Math.round(n) : n.toPrecision(3)}${unit}`;
};
const count = (n) => (n < 10000 ? n.toLocaleString("en") : scaled(n, [[1e9, " G"], [1e6, " M"], [1e3, " k"], [1, ""]]));
const bytes = (n) => scaled(n, [[2 ** 30, " GiB"], [2 ** 20, " MiB"], [2 ** 10, " KiB"], [1, " B"]]);
const duration = (s) => (s < 120 ? `${Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`);
const seconds = (s) => (s === 0 ? "0" : scaled(s, [[3600, " h"], [60, " min"], [1, " s"], [1e-3, " ms"], [1e-6, " µs"], [1e-9, " ns"]]));

// ---- elements

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const cell = (text, kind = "") => element("td", { class: kind }, text);
const chip = (word) => element("td", {}, element("span", { class: `chip ${word}` }, word));
/** Code, two lines of it at most, and a remark below; all of both where the pointer rests. */
const code = (text, why = "", kind = "mono") => {
  const made = element("td", { title: why ? `${text}\n${why}` : text }, element("span", { class: `${kind} clamp` }, text));
  if (why) made.append(element("span", { class: "why clamp" }, why));
  return made;
};

/** A bar of parts, each [class, share of the width]. */
function bar(label, parts) {
  const svg = drawn("svg", { role: "img", "aria-label": label, preserveAspectRatio: "none", viewBox: "0 0 100 10" });
  let at = 0;
  for (const [kind, share] of parts) {
    const width = share > 0 ? Math.max(share * 100, 0.7) : 0;
    svg.append(drawn("rect", { class: kind, x: at, y: 0, width, height: 10 }));
    at += width;
  }
  return element("td", { class: "bar" }, svg);
}

const shown = {};
/** Fill the table `id` if its rows changed; `draw` makes the cells of a row. */
function table(id, heads, rows, draw, nothing) {
  const text = JSON.stringify(rows);
  if (shown[id] === text) return;
  shown[id] = text;
  const body = rows.map((row) => element("tr", {}, ...draw(row)));
  const empty = element("tr", {}, element("td", { class: "none" }, nothing));
  const names = heads.map(([name, kind = ""]) => element("th", { scope: "col", class: kind }, name));
  $(id).replaceChildren(
    ...(rows.length ? [element("thead", {}, element("tr", {}, ...names))] : []),
    element("tbody", {}, ...(rows.length ? body : [empty])),
  );
}

const note = (id, text) => { $(`h-${id}`).querySelector("small").textContent = text; };
const more = (part) => (part.left_out ? `${part.rows.length} of ${count(part.rows.length + part.left_out)}` : count(part.rows.length));

// ---- dials

const RADIUS = 36, TURN = 0.75, ROUND = 2 * Math.PI * RADIUS;

function dial(name) {
  const [title, what] = DIALS[name];
  const ring = { cx: 46, cy: 46, r: RADIUS, transform: "rotate(135 46 46)" };
  const made = element("article", { class: "dial", id: `dial-${name}`, role: "meter", "aria-label": title, "aria-valuemin": 0, "aria-valuemax": 100 },
    drawn("svg", { width: 92, height: 82, viewBox: "0 0 92 82", "aria-hidden": "true" },
      drawn("circle", { ...ring, class: "ring", "stroke-dasharray": `${TURN * ROUND} ${ROUND}` }),
      drawn("circle", { ...ring, class: "arc", "stroke-dasharray": `0 ${ROUND}` }),
      drawn("line", { class: "tick", visibility: "hidden" }),
      drawn("text", { class: "value", x: 46, y: 53 }, "–")),
    element("div", {}, element("h2", {}, title), element("p", {}, what), element("p", { class: "start" }, "")),
    drawn("svg", { class: "spark", viewBox: "0 0 119 34", preserveAspectRatio: "none", "aria-hidden": "true" },
      drawn("path", { class: "under" }), drawn("path", { class: "curve" }), drawn("line", { class: "limit", visibility: "hidden" })),
    element("p", { class: "axis", "aria-hidden": "true" }, element("span", {}, "10 min ago"), element("span", {}, "now")));
  $("dials").append(made);
  return made;
}

/** The curve of values from 0 to 1 and null for nothing: a path for each run of values. */
function curves(values) {
  let line = "", under = "", begin = null;
  values.forEach((value, k) => {
    if (value === null) return;
    const y = (33 - 32 * value).toFixed(1), x = 2 * k;
    if (begin === null || values[k - 1] === null) { begin = x; line += `M${x} ${y}`; under += `M${x} 34L${x} ${y}`; }
    line += `L${x + (values[k + 1] === null ? 1 : 0)} ${y}`;
    under += `L${x} ${y}`;
    if (k + 1 === values.length || values[k + 1] === null) under += `L${x + 1} ${y}L${x + 1} 34Z`;
  });
  return [line, under];
}

function showDial(name, data, alarms) {
  const made = $(`dial-${name}`) ?? dial(name);
  const { minute, start } = data.indicators[name];
  const limit = data.limits[name];
  made.toggleAttribute("data-alarm", alarms.has(name));
  made.setAttribute("aria-valuenow", minute === null ? 0 : Math.round(minute * 100));
  made.setAttribute("aria-valuetext", `${percent(minute)} over the last minute, ${percent(start)} since start`);
  made.querySelector(".value").textContent = percent(minute);
  made.querySelector(".arc").setAttribute("stroke-dasharray", `${(minute ?? 0) * TURN * ROUND} ${ROUND}`);
  const byBytes = name === "reuse_rate" ? `; of bytes ${percent(data.indicators.reuse_rate_bytes.minute)}` : "";
  made.querySelector(".start").textContent = `since start ${percent(start)}${byBytes}`;
  const [line, under] = curves(data.history[name]);
  made.querySelector(".curve").setAttribute("d", line);
  made.querySelector(".under").setAttribute("d", under);
  if (!limit) return;
  const angle = ((135 + 360 * TURN * limit.begins) * Math.PI) / 180;
  const at = (r) => [46 + r * Math.cos(angle), 46 + r * Math.sin(angle)];
  const [[x1, y1], [x2, y2]] = [at(RADIUS + 1), at(RADIUS + 9)];
  set(made.querySelector(".tick"), { x1, y1, x2, y2, visibility: "visible" });
  const y = 33 - 32 * limit.begins;
  set(made.querySelector(".limit"), { x1: 0, x2: 119, y1: y, y2: y, visibility: "visible" });
}

const set = (target, attributes) => Object.entries(attributes).forEach(([n, v]) => target.setAttribute(n, v));

// ---- the page

function show(data) {
  const p = data.process;
  $("process").textContent = `${p.program}, pid ${p.pid}, up ${duration(p.uptime)}, Python ${p.python}, ${p.features}`;
  document.title = `${data.alarms.length ? `(${data.alarms.length}) ` : ""}${p.program} – jitdialects`;
  const alarms = new Set(data.alarms.map((a) => a.name));
  for (const name of Object.keys(DIALS)) showDial(name, data, alarms);
  showAlarms(data.alarms);

  const most = Math.max(1e-12, ...data.blocks.rows.map((r) => r.seconds + r.served_seconds));
  note("blocks", `${more(data.blocks)}; ${seconds(data.start.run_seconds)} in all`);
  table("blocks", [["Function, block"], ["Tier"], ["Interpreted", "num extra"], ["Compiled", "num extra"], ["Time", "num"], ["Share"]], data.blocks.rows,
    (r) => [code(r.function, r.place ? `${r.block}, ${r.place}` : r.block), chip(r.tier), cell(count(r.executions), "num extra"),
      cell(r.served ? count(r.served) : "", "num extra"), cell(seconds(r.seconds + r.served_seconds), "num"),
      bar(`${seconds(r.served_seconds)} compiled, ${seconds(r.seconds)} interpreted`, [["full", r.served_seconds / most], ["warm", r.seconds / most]])],
    "Nothing has run yet.");

  const { rows, wasted } = data.padding;
  note("entries", `${more(data.entries)}; ${bytes(data.cache.bytes)} of ${bytes(data.cache.cap)}${data.cache.evictions ? `, ${count(data.cache.evictions)} evicted` : ""}${wasted ? `; ${percent(wasted / (rows + wasted))} of padded rows are padding` : ""}`);
  table("entries", [["Signature and why it was made"], ["Sizes"], ["Calls", "num"], ["Code", "num extra"], ["Compile", "num extra"], ["Fused", "num extra"], ["Key, version", "extra"]], data.entries.rows,
    (r) => [code(r.signature, r.stale || r.why), chip(r.strategy), cell(count(r.hits), "num"), cell(bytes(r.bytes), "num extra"),
      cell(r.source === "compiler" ? seconds(r.compile_seconds) : r.source, "num extra"), cell(`${r.fused} of ${r.operators}`, "num extra"), cell(`${r.key} v${r.version}`, "soft extra mono")],
    "No code yet: functions are compiled once they are hot.");

  note("misses", count(data.start.misses));
  table("misses", [["Calls", "num"], ["Reason"]], data.misses.rows,
    (r) => [cell(count(r.count), "num"), code(r.reason, r.example + (r.signatures > 1 ? ` and ${r.signatures - 1} more` : ""), "")],
    "Every hot call found code.");

  const top = Math.max(1, ...data.signatures.rows.map((r) => r.count));
  note("signatures", `${more(data.signatures)} by calls`);
  table("signatures", [["Signature"], ["Calls", "num"], ["Share"]], data.signatures.rows,
    (r) => [code(r.signature), cell(count(r.count), "num"),
      bar(`${r.count} ${r.tier}, ${r.missed} hot without code`, r.tier === "compiled" ? [["full", r.count / top]]
        : [["warm", r.missed / top], ["hollow", (r.count - r.missed) / top]])],
    "No calls yet.");

  const pool = data.pool;
  const largest = Math.max(1, ...pool.sizes.map((s) => s.capacity * (s.live + s.free)));
  note("pool", `${bytes(pool.reserved_bytes)}; largest free block ${percent(pool.fragmentation)} of what is free`);
  const whole = { all: true, live: pool.live_bytes + pool.waste_bytes, free: pool.free_bytes, of: Math.max(1, pool.reserved_bytes) };
  table("pool", [["Blocks of"], ["Live", "num"], ["Free", "num"], ["Bytes"]], pool.sizes.length ? [whole, ...pool.sizes] : [],
    (s) => s.all ? [cell("all sizes"), cell(bytes(s.live), "num"), cell(bytes(s.free), "num"),
      bar(`${bytes(s.live)} live, ${bytes(s.free)} free`, [["full", s.live / s.of], ["hollow", s.free / s.of]])] : [cell(bytes(s.capacity) + (s.exact ? " exact" : ""), "mono"), cell(count(s.live), "num"), cell(count(s.free), "num"),
      bar(`${s.live} live, ${s.free} free`, [["full", (s.capacity * s.live) / largest], ["hollow", (s.capacity * s.free) / largest]])],
    "The pool has no blocks yet.");

  note("compiler", `${count(data.start.compiles)} done, ${count(data.queue.rows.length + data.queue.left_out)} wait, ${count(data.start.compile_failures)} failed; ${seconds(data.start.compile_cpu_seconds)} CPU`);
  const work = [...data.failures.rows.map((r) => ({ ...r, state: "refused" })), ...data.queue.rows.map((r) => ({ ...r, state: "compiling" }))];
  table("compiler", [["Signature"], ["State"]], work, (r) => [code(r.signature, r.reason ?? ""), chip(r.state)], "Nothing waits, nothing failed.");
}

function showAlarms(alarms) {
  const text = JSON.stringify(alarms);
  if (shown.alarms === text) return;
  shown.alarms = text;
  $("alarms").replaceChildren(...alarms.map((a) => {
    const most = a.signatures.length ? ` Most calls without code: ${a.signatures.map(([s, n]) => `${s} (${count(n)})`).join(", ")}.` : "";
    return element("p", { class: "alarm" }, element("strong", {}, "▲ "), a.text[0].toUpperCase() + a.text.slice(1), element("span", {}, a.advice + "." + most));
  }));
}

function state(word, text) {
  $("status").dataset.state = word;
  if ($("status").textContent !== text) $("status").textContent = text;
}

let paused = false;
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", paused);
  $("pause").textContent = paused ? "Go on" : "Pause";
  state(paused ? "wait" : "live", paused ? "paused" : "live");
});
$("explain").href = ask("explain");

function take(data) {
  if (paused) return;
  show(data);
  state("live", "live");
}

fetch(ask("snapshot.json")).then((answer) => {
  if (!answer.ok) return answer.text().then((why) => state("lost", why));
  if (!QUERY.has("once")) {
    const events = new EventSource(ask("events"));
    events.onmessage = (event) => take(JSON.parse(event.data));
    events.onerror = () => state("lost", "connection lost, trying again");
  }
  return answer.json().then(take);
}).catch(() => state("lost", "the process does not answer"));
