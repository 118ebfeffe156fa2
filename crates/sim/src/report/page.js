"use strict";
const { runs, comparison, moved } = JSON.parse(document.getElementById("data").textContent);
const several = runs.length > 1;
document.documentElement.style.setProperty("--runs", runs.length);
const END = Math.max(1, ...runs.map((run) => run.seconds));
let zoom = [0, END];
const charts = [];

// --- words and numbers

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function short(x) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  const size = Math.abs(x);
  for (const [unit, word] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= unit) return String(Number((x / (word === "k" ? 1e3 : unit)).toPrecision(3))) + " " + word;
  }
  return String(Number(x.toPrecision(size >= 100 ? 4 : 3)));
}

function clock(s) {
  const pad = (x) => String(Math.floor(x)).padStart(2, "0");
  const hours = Math.floor(s / 3600), rest = pad((s % 3600) / 60);
  const span = zoom[1] - zoom[0];
  if (span > 3 * 86400) return (s / 86400).toFixed(span > 20 * 86400 ? 0 : 1) + " d";
  return span < 600 ? hours + ":" + rest + ":" + pad(s % 60) : hours + ":" + rest;
}

/* What the numbers under a chart are. */
function clockUnit() {
  const span = zoom[1] - zoom[0];
  return span > 3 * 86400 ? "days" : span < 600 ? "h:min:s" : "h:min";
}

function nice(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return [1, 2, 2.5, 5, 10].map((k) => k * power).find((k) => k >= step);
}

function niceTime(step) {
  const known = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000, 2592000];
  return known.find((k) => k >= step) || nice(step);
}

// --- charts

const WIDTH = 640, HEIGHT = 220, LEFT = 56, BOTTOM = 22, TOP = 8, RIGHT = 20;

/* layers: {name, color, data: [[times],[values]], area, dash}; stacked areas lie on each other. */
function chart(layers, options) {
  const shown = layers.filter((layer) => layer.data && layer.data[0].length);
  if (!shown.length) return null;
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": options.title });
  const one = { box, layers: shown, options, left: LEFT, height: HEIGHT };
  if (options.stacked) stack(shown);
  charts.push(one);
  listen(one);
  const keys = shown.map(key);
  return element("figure", {}, element("figcaption", {}, element("b", {}, options.title), ...keys), box);
}

function key(layer) {
  const kind = layer.area ? "key area" : layer.dash ? "key dash" : "key";
  return element("span", { class: kind, style: `--of:${layer.color}` }, layer.name);
}

function stack(layers) {
  let below = null;
  for (const layer of layers) {
    const [times, values] = layer.data;
    layer.base = times.map((_, i) => (below ? below[i] || 0 : 0));
    layer.data = [times, values.map((v, i) => v + layer.base[i])];
    below = layer.data[1];
  }
}

function highest(one) {
  let top = 0;
  for (const { data: [times, values] } of one.layers) {
    for (let i = 0; i < times.length; i++) {
      if (times[i] >= zoom[0] && times[i] <= zoom[1]) top = Math.max(top, values[i]);
    }
  }
  return top;
}

function draw(one) {
  if (one.draw) return one.draw(one);
  const { box, layers, options } = one;
  const peers = charts.filter((other) => other.options.group && other.options.group === options.group);
  const top = Math.max(...(peers.length ? peers : [one]).map(highest)) * 1.04 || 1;
  const x = (t) => LEFT + ((t - zoom[0]) / (zoom[1] - zoom[0])) * (WIDTH - LEFT - RIGHT);
  const y = (v) => HEIGHT - BOTTOM - (v / top) * (HEIGHT - BOTTOM - TOP);
  one.x = x;
  box.replaceChildren();
  const clip = "c" + charts.indexOf(one);
  const defs = svg("defs"), path = svg("clipPath", { id: clip });
  path.append(svg("rect", { x: LEFT, y: 0, width: WIDTH - LEFT - RIGHT, height: HEIGHT - BOTTOM + 1 }));
  defs.append(path);
  box.append(defs);
  const step = nice(top / 4);
  for (let v = 0; v <= top; v += step) {
    box.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }));
    box.append(svg("text", { x: LEFT - 6, y: y(v) + 4, "text-anchor": "end" }, short(v)));
  }
  const beat = niceTime((zoom[1] - zoom[0]) / 7);
  for (let t = Math.ceil(zoom[0] / beat) * beat; t <= zoom[1]; t += beat) {
    box.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: TOP, y2: HEIGHT - BOTTOM }));
    box.append(svg("text", { x: x(t), y: HEIGHT - 6, "text-anchor": "middle" }, clock(t)));
  }
  box.append(svg("text", { x: LEFT - 20, y: HEIGHT - 6, "text-anchor": "end" }, clockUnit()));
  const inside = svg("g", { "clip-path": `url(#${clip})` });
  for (const layer of layers) {
    const [times, values] = layer.data;
    let line = "";
    times.forEach((t, i) => {
      const at = x(t).toFixed(1);
      // Amounts hold until the next point: steps, not slopes.
      line += (i === 0 ? "M" : options.smooth ? "L" : `H${at}V`) + (i === 0 || options.smooth ? `${at} ${y(values[i]).toFixed(1)}` : y(values[i]).toFixed(1));
    });
    if (layer.area) {
      let back = "";
      for (let i = times.length - 1; i >= 0; i--) {
        const low = layer.base ? layer.base[i] : 0;
        const at = x(times[i]).toFixed(1);
        back += options.smooth || i === times.length - 1 ? `L${at} ${y(low).toFixed(1)}` : `V${y(low).toFixed(1)}H${at}`;
      }
      inside.append(svg("path", { d: line + back + "Z", fill: layer.color, "fill-opacity": layer.base ? 0.75 : 0.3, stroke: "none" }));
    }
    if (!layer.base) inside.append(svg("path", { d: line, fill: "none", stroke: layer.color, "stroke-width": 1.6, "stroke-dasharray": layer.dash || "none", "stroke-linejoin": "round" }));
  }
  box.append(inside);
  box.append(svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
}

function redraw() {
  charts.forEach(draw);
  const whole = zoom[0] === 0 && zoom[1] === END;
  document.getElementById("whole").style.visibility = whole ? "hidden" : "visible";
}

/* Dragging chooses a time for all charts, a double click goes back. */
function listen(one) {
  let from = null, choice = null;
  const time = (event) => {
    const box = one.box.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    const part = (at - one.left) / (WIDTH - one.left - RIGHT);
    return zoom[0] + Math.min(1, Math.max(0, part)) * (zoom[1] - zoom[0]);
  };
  one.box.addEventListener("pointerdown", (event) => {
    from = time(event);
    choice = svg("rect", { class: "choice", y: TOP, height: one.height - TOP - BOTTOM, x: one.x(from), width: 0 });
    one.box.append(choice);
    one.box.setPointerCapture(event.pointerId);
  });
  one.box.addEventListener("pointermove", (event) => {
    const now = time(event);
    if (from !== null) {
      choice.setAttribute("x", one.x(Math.min(from, now)));
      choice.setAttribute("width", Math.abs(one.x(now) - one.x(from)));
    }
    tell(one, now, event);
  });
  one.box.addEventListener("pointerup", (event) => {
    const to = time(event);
    if (from !== null && Math.abs(one.x(to) - one.x(from)) > 6) {
      zoom = [Math.min(from, to), Math.max(from, to)];
      redraw();
    } else if (choice) choice.remove();
    from = choice = null;
  });
  one.box.addEventListener("pointerleave", () => { readout.style.display = "none"; });
  one.box.addEventListener("dblclick", () => { zoom = [0, END]; redraw(); });
}

const readout = element("div", { id: "readout" });
document.body.append(readout);

function tell(one, now, event) {
  const lines = [element("b", {}, clock(now))];
  for (const layer of one.layers) {
    const [times, values] = layer.data;
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= now) low = middle; else high = middle - 1;
    }
    const value = values[low] - (layer.base ? layer.base[low] : 0);
    lines.push(element("div", { class: "key", style: `--of:${layer.color}` }, `${layer.name} ${short(value)}`));
  }
  readout.replaceChildren(...lines);
  readout.style.display = "block";
  readout.style.left = Math.min(event.clientX + 14, window.innerWidth - 220) + "px";
  readout.style.top = event.clientY + 14 + "px";
}

const color = (i) => `var(--c${i % 8})`;

/* Lanes: stretches of time in which something was so. */
function lanes(rows, title) {
  const busy = rows.filter((row) => row.spans.length);
  if (!busy.length) return element("p", {}, title + ": never.");
  const left = 150, height = TOP + 16 * busy.length + BOTTOM;
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": title });
  const one = { box, layers: [], options: {}, left, height, draw: () => {
    one.x = (t) => left + ((t - zoom[0]) / (zoom[1] - zoom[0])) * (WIDTH - left - RIGHT);
    box.replaceChildren();
    const beat = niceTime((zoom[1] - zoom[0]) / 6);
    for (let t = Math.ceil(zoom[0] / beat) * beat; t <= zoom[1]; t += beat) {
      box.append(svg("line", { class: "grid", x1: one.x(t), x2: one.x(t), y1: TOP, y2: height - BOTTOM }));
      box.append(svg("text", { x: one.x(t), y: height - 6, "text-anchor": "middle" }, clock(t)));
    }
    box.append(svg("text", { x: left - 20, y: height - 6, "text-anchor": "end" }, clockUnit()));
    busy.forEach((row, i) => {
      const top = TOP + 16 * i;
      box.append(svg("text", { x: left - 6, y: top + 12, "text-anchor": "end" }, row.name.length > 22 ? row.name.slice(0, 21) + "…" : row.name));
      box.append(svg("line", { class: "grid", x1: left, x2: WIDTH - RIGHT, y1: top + 16, y2: top + 16 }));
      for (const [a, b] of row.spans) {
        if (b < zoom[0] || a > zoom[1]) continue;
        const from = Math.max(left, one.x(a)), to = Math.min(WIDTH - RIGHT, one.x(b));
        box.append(svg("rect", { x: from, width: Math.max(1, to - from), y: top + 3, height: 11, fill: row.color }));
      }
    });
  } };
  charts.push(one);
  listen(one);
  return element("figure", {}, element("figcaption", {}, element("b", {}, title)), box);
}

/* Distributions: the part of all that is no more than so much. From a second on the scale is by powers of ten. */
function distributions(rows, title, most) {
  const shown = rows.filter((row) => row.points.length);
  if (!shown.length) return null;
  const box = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title, style: "cursor:default" });
  const longest = Math.max(10, most);
  const scale = (s) => Math.log10(Math.max(s, 1));
  const x = (s) => LEFT + (scale(s) / scale(longest)) * (WIDTH - LEFT - RIGHT);
  const y = (part) => HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP);
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    box.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(part), y2: y(part) }));
    box.append(svg("text", { x: LEFT - 6, y: y(part) + 4, "text-anchor": "end" }, part * 100 + " %"));
  }
  for (const [s, name] of [[1, "\u2264 1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [36000, "10 h"], [864000, "10 d"], [8640000, "100 d"]]) {
    if (s > longest) break;
    box.append(svg("line", { class: "grid", x1: x(s), x2: x(s), y1: TOP, y2: HEIGHT - BOTTOM }));
    box.append(svg("text", { x: x(s), y: HEIGHT - 6, "text-anchor": "middle" }, name));
  }
  for (const row of shown) {
    const line = row.points.map(([s, part], i) => `${i === 0 ? `M${x(0).toFixed(1)} ${y(0).toFixed(1)}H${x(s).toFixed(1)}V` : `H${x(s).toFixed(1)}V`}${y(part).toFixed(1)}`).join("");
    box.append(svg("path", { d: line + `H${WIDTH - RIGHT}`, fill: "none", stroke: row.color, "stroke-width": 1.6 }));
  }
  box.append(svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  return element("figure", {}, element("figcaption", {}, element("b", {}, title), ...shown.map(key)), box);
}

function table(header, rows) {
  const head = element("tr", {}, ...header.map((name) => element("th", {}, name)));
  const body = rows.map((row) => element("tr", row.broken ? { class: "broken" } : {}, ...row.cells.map((cell) => {
    const text = typeof cell === "number" || cell === null ? short(cell) : cell;
    return element("td", typeof cell === "string" ? { class: "text" } : {}, text);
  })));
  return element("div", { class: "scroll" }, element("table", {}, head, ...body));
}

// --- the page

const main = document.getElementById("main");
const contents = document.getElementById("contents");

function section(title, note) {
  const id = "s" + contents.children.length;
  contents.append(element("a", { href: "#" + id }, title));
  const node = element("section", { id }, element("h2", {}, title), note ? element("p", {}, note) : null);
  main.append(node);
  return node;
}

/* The same of every run beside each other. */
function beside(node, title, make) {
  const parts = runs.map((run) => make(run));
  if (parts.every((part) => !part)) return;
  if (title) node.append(element("h3", {}, title));
  node.append(element("div", { class: "side" }, ...runs.map((run, i) => element("div", {}, several && parts[i] ? element("p", {}, run.name) : null, parts[i]))));
}

const at = (value, path) => path.split(".").reduce((inner, key) => (inner === undefined || inner === null ? undefined : inner[key]), value);

function overview() {
  document.getElementById("lead").append(
    `${runs.map((run) => run.name).join(" | ")}. Drag over a chart to look closer, double click to see everything again. `,
    element("button", { id: "whole", type: "button" }, "whole time"),
  );
  document.getElementById("whole").addEventListener("click", () => { zoom = [0, END]; redraw(); });
  const node = section("Overview");
  beside(node, null, (run) => {
    const s = run.summary;
    const tiles = [
      ["hours", run.seconds / 3600], ["cores", at(s, "cluster.cores")],
      ["of them allocated", (at(s, "cluster.utilisation") * 100).toFixed(1) + " %"],
      ["jobs completed", at(s, "cluster.counts.jobs_completed")],
      ["preempted", at(s, "cluster.counts.jobs_preempted")],
      ["core-hours lost to preemption", at(s, "cluster.waste.preempted_cpu_s") / 3600],
      ["wait of an operation, 95 %, s", at(s, "cluster.operation_wait_s.p95")],
    ];
    return element("div", { class: "tiles" }, ...tiles.map(([name, value]) =>
      element("div", { class: "tile" }, element("b", {}, typeof value === "string" ? value : short(value)), element("span", {}, name))));
  });
  beside(node, null, (run) => (run.summary.interrupted ? element("p", {}, "The run was ended early.") : null));
}

function pools(tree) {
  const node = section("Pools of " + tree, "Means over the run, cores. Violation: core-hours that were missing of min(demand, guarantee) after the time that starvation and preemption take.");
  beside(node, null, (run) => {
    const of = run.trees[tree];
    if (!of) return null;
    const rows = of.pools.filter((pool) => pool.figures && pool.figures.usage_cpu_s !== undefined).map((pool) => {
      const mean = (name) => pool.figures[name] / run.seconds;
      return { cells: ["\u00a0\u00a0".repeat(pool.depth) + pool.name, mean("demand_cpu_s"), mean("usage_cpu_s"), mean("fair_share_cpu_s"),
        mean("guaranteed_cpu_s"), mean("integral_cpu_s"), at(pool.figures, "violation_cpu_s.after_timeout") / 3600] };
    });
    return table(["pool", "demand", "usage", "fair share", "guaranteed", "by volume", "violation"], rows);
  });
  for (const [what, name] of [["stack_cpu", "cores"], ["stack_gpu", "GPUs"]]) {
    beside(node, null, (run) => {
      const stacked = (run.trees[tree] || {})[what] || {};
      const used = Object.entries(stacked).filter(([, data]) => data[1].some((v) => v > 0));
      const layers = used.map(([pool, data], i) => ({ name: pool, color: color(i), data, area: true }));
      return chart(layers, { title: `Usage by pool, ${name}`, stacked: true, group: tree + what });
    });
  }
}

function integral(tree) {
  const names = [...new Set(runs.flatMap((run) => ((run.trees[tree] || {}).pools || []).filter((pool) => pool.integral).map((pool) => pool.name)))];
  if (!names.length) return;
  const node = section("Integral guarantees", "What a pool wants, gets and is entitled to, and the volume that it saves up and spends.");
  for (const name of names) {
    const pool = (run) => ((run.trees[tree] || {}).pools || []).find((one) => one.name === name);
    beside(node, name, (run) => cpu(pool(run), tree + name));
    beside(node, null, (run) => {
      const lines = (pool(run) || {}).lines || {};
      return chart([
        { name: "accumulated volume", color: color(3), data: lines.accumulated_volume_cpu_s, area: true },
        { name: "cap", color: color(7), data: lines.integral_pool_capacity_cpu_s, dash: "5 4" },
      ], { title: "Volume, core-seconds", smooth: true, group: tree + name + "volume" });
    });
  }
}

function cpu(pool, group) {
  const lines = (pool || {}).lines || {};
  return chart([
    { name: "usage", color: color(0), data: lines.usage_cpu, area: true },
    { name: "demand", color: color(1), data: lines.demand_cpu },
    { name: "fair share", color: color(2), data: lines.fair_share_cpu },
    { name: "guarantee", color: color(3), data: lines.guarantee_cpu, dash: "5 4" },
  ], { title: "Cores", group });
}

function others(tree) {
  const names = [...new Set(runs.flatMap((run) => ((run.trees[tree] || {}).pools || []).filter((pool) => pool.lines && !pool.integral && pool.name !== "<Root>").map((pool) => pool.name)))];
  if (!names.length) return;
  const node = section("Other pools");
  for (const name of names) {
    const pool = (run) => ((run.trees[tree] || {}).pools || []).find((one) => one.name === name);
    beside(node, name, (run) => cpu(pool(run), tree + name));
  }
}

function starvation(tree) {
  const node = section("Starvation and guarantees", "When pools starved, and when they had less than min(demand, guarantee), as the samples saw it.");
  beside(node, null, (run) => lanes(((run.trees[tree] || {}).pools || []).map((pool) => ({ name: pool.name, spans: pool.starving, color: "var(--c1)" })), "Starving"));
  beside(node, null, (run) => lanes(((run.trees[tree] || {}).pools || []).map((pool) => ({ name: pool.name, spans: pool.violated, color: "var(--bad)" })), "Below the guarantee"));
}

function attempts() {
  if (runs.every((run) => !run.attempts.memory)) return;
  const waits = section("Waits", "From the submission of the operation to the first start of the job, seconds.");
  beside(waits, null, (run) => table(["pool", "jobs", "50 %", "90 %", "95 %", "99 %", "longest"],
    Object.entries(run.attempts.waits || {}).map(([pool, one]) => ({ cells: [pool, one.jobs, ...one.seconds] }))));
  // The last of five percentiles is the longest wait; all runs have the same axis.
  const most = Math.max(...runs.flatMap((run) => Object.values(run.attempts.waits || {}).map((one) => one.seconds[4])));
  beside(waits, null, (run) => {
    const pools = Object.entries(run.attempts.waits || {}).sort((a, b) => b[1].jobs - a[1].jobs).slice(0, 8);
    return distributions(pools.map(([name, one], i) => ({ name, color: color(i), points: one.curve || [] })), "Jobs that waited no longer than", most);
  });
  const lost = section("Preemption", "Who lost jobs, and to whom.");
  beside(lost, null, (run) => {
    const rows = [...(run.attempts.lost || [])].sort((a, b) => b.core_hours - a.core_hours).slice(0, 60);
    if (!rows.length) return element("p", {}, "Nobody was preempted.");
    return table(["lost by", "to", "jobs", "core-hours"], rows.map((row) => ({ cells: [row.loser, row.winner, row.jobs, row.core_hours] })));
  });
  if (runs.some((run) => run.attempts.nodes)) {
    const nodes = section("Nodes", "By the part of their cores that jobs hold, as the scenario has them: a node that is away is idle.");
    beside(nodes, null, (run) => {
      const of = run.attempts.nodes;
      if (!of) return null;
      const shades = ["var(--c7)", "var(--c4)", "var(--c2)", "var(--c0)"];
      const layers = Object.entries(of.bands).map(([name, data], i) => ({ name, color: shades[i], data, area: true }));
      return chart(layers.reverse(), { title: "Nodes", stacked: true, group: "nodes" });
    });
  }
  const memory = section("Memory and CPU", "Of jobs that run: what their specifications say, what is reserved or guaranteed, and what they use.");
  beside(memory, null, (run) => {
    const one = run.attempts.memory || {};
    return chart([
      { name: "limits", color: color(1), data: one.limits },
      { name: "reserved (with the job proxies)", color: color(0), data: one.reserved, area: true },
      { name: "peaks", color: color(2), data: one.peaks },
    ], { title: "Memory, GiB", smooth: true, group: "memory" });
  });
  beside(memory, null, (run) => {
    const one = run.attempts.cpu || {};
    return chart([
      { name: "specified", color: color(1), data: one.specified },
      { name: "guaranteed", color: color(0), data: one.guaranteed, area: true },
      { name: "used", color: color(2), data: one.used },
    ], { title: "Cores of running jobs", smooth: true, group: "cores" });
  });
}

/* A time for people. */
function lasting(ms) {
  if (ms === null || ms === undefined) return "never";
  const s = ms / 1000;
  for (const [unit, word] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (s >= 2 * unit) return (s / unit).toFixed(1) + " " + word;
  }
  return s.toFixed(1) + " s";
}

/* Operations of several runs, those that move most first. */
function operations() {
  if (!moved.length) return;
  const node = section("Operations that move", `From the submission to the first allocation and to the end, and jobs that had to give way; ${moved.length} of those that move most, "never" within the run.`);
  const header = ["operation", ...runs.flatMap((run) => [run.name + ": starts after", "ends after", "preempted"])];
  node.append(table(header, moved.map((one) => ({ cells: [one.id, ...one.runs.flatMap((fate) =>
    fate ? [lasting(fate.wait_ms), lasting(fate.lasts_ms), fate.preempted] : ["–", "–", null])] }))));
}

function flatten(value, path, out) {
  for (const [key, inner] of Object.entries(value || {})) {
    const name = path ? path + "." + key : key;
    if (typeof inner === "number") out[name] = inner;
    else if (inner && typeof inner === "object" && !Array.isArray(inner) && key !== "performance") flatten(inner, name, out);
  }
  return out;
}

function metrics() {
  const checked = runs.filter((run) => run.checks.length);
  if (checked.length) {
    const node = section("Checks");
    beside(node, null, (run) => {
      const broken = run.checks.filter((check) => !check.holds);
      node.append(element("p", {}, `${run.name}: ${broken.length} of ${run.checks.length} do not hold.`));
      return broken.length ? table(["check", "found", "allowed"], broken.map((c) => ({ broken: true, cells: [c.what, c.found, c.allowed] }))) : null;
    });
  }
  const node = section("All figures", several ? "Those that differ most from the first run come first; faint ones are within the noise of the seeds." : null);
  const flat = runs.map((run) => flatten(run.summary, "", {}));
  const names = [...new Set(flat.flatMap((one) => Object.keys(one)))];
  const change = (name) => {
    const [base, ...rest] = flat.map((one) => one[name]);
    return Math.max(0, ...rest.map((v) => (base === undefined || v === undefined ? (base === v ? 0 : 1) : base === v ? 0 : Math.abs(v - base) / Math.max(Math.abs(v), Math.abs(base)))));
  };
  if (several) names.sort((a, b) => change(b) - change(a));
  const rows = names.map((name) => ({ cells: [name, ...flat.map((one) => (one[name] === undefined ? null : one[name]))] }));
  const full = table(["figure", ...runs.map((run) => run.name)], rows);
  if (comparison) {
    for (const [i, name] of names.entries()) {
      const noise = (comparison[name] || {}).noise;
      if (noise) full.querySelectorAll("tr")[i + 1].style.opacity = 0.45;
    }
  }
  node.append(element("details", several || names.length < 60 ? { open: "" } : {}, element("summary", {}, `${names.length} figures`), full));
}

overview();
for (const tree of new Set(runs.flatMap((run) => Object.keys(run.trees)))) {
  pools(tree);
  integral(tree);
  starvation(tree);
  others(tree);
}
attempts();
operations();
metrics();
redraw();
