"use strict";
// The server sends "fabric" once, "series" when the meaning of the values changes,
// a "frame" of numbers for each moment, and "event"s. The page keeps frames for the
// history and sends nothing to the server.
const $ = id => document.getElementById(id);
const keep = 1200;
let fabric = null, series = null, frames = [], shown = -1, held = false, ended = false;
let chosen = "", source = null, problem = "connecting", queued = false;
const events = [];

// ---- numbers

const num = (x, digits = 3) => {
  if (x === 0) return "0";
  const a = Math.abs(x);
  return a >= 1000 || Number.isInteger(x) ? Math.round(x).toString() : Number(x.toPrecision(digits)).toString();
};
const scaled = (x, base, names) => {
  let i = 0;
  while (Math.abs(x) >= base && i < names.length - 1) { x /= base; i++; }
  return num(x) + " " + names[i];
};
const rate = x => scaled(x, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
const write = (x, unit) => {
  if (x === null || x === undefined) return "–";
  switch (unit) {
  case "bit/s": return rate(x);
  case "bytes": return scaled(x, 1024, ["B", "KiB", "MiB", "GiB", "TiB"]);
  case "share": return num(100 * x) + " %";
  case "us": return x >= 1e6 ? num(x / 1e6) + " s" : x >= 1000 ? num(x / 1000) + " ms" : num(x) + " µs";
  case "": case "degree": return num(x);
  case "occupancy": case "congestion": return x.toFixed(2);
  }
  return num(x) + " " + unit;
};
const clock = f => f.w ? new Date(f.w).toTimeString().slice(0, 8) + "." + String(f.w % 1000).padStart(3, "0") : elapsed(f.t);
const elapsed = us => us >= 1e6 ? (us / 1e6).toFixed(3) + " s" : (us / 1000).toFixed(2) + " ms";

// ---- frames

// A value is a number, or a pair of a number and its text.
const number = v => Array.isArray(v) ? v[0] : v;
const text = (v, unit) => Array.isArray(v) ? v[1] : write(v, unit);
const now = () => frames[shown];

// places indexes the series of each switch by register and port, and those of paths.
function learn(s) {
  s.at = s.switches.map(sw => {
    const at = { port: new Map(), paths: [], rest: new Map(), ports: new Map() };
    sw.series.forEach((row, i) => {
      const [register, index, port, peer, group, path] = row;
      if (path) { at.paths.push(i); return; }
      if (port) {
        at.port.set(register + " " + port, i);
        if (!at.ports.has(port)) at.ports.set(port, peer);
      }
      if (!(port && own.has(register))) {
        if (!at.rest.has(register)) at.rest.set(register, []);
        at.rest.get(register).push(i);
      }
    });
    return at;
  });
  s.place = new Map(s.switches.map((sw, i) => [sw.name, i]));
}

// The table of ports shows these counters of the switch.
const own = new Set(["rx packets", "tx packets", "rx bytes", "tx bytes", "rx rate", "tx rate", "load", "queued", "queue fill", "drops", "link down"]);

const valueAt = (frame, sw, i) => {
  const list = frame && frame.x[sw];
  return Array.isArray(list) && i !== undefined ? list[i] : undefined;
};
const portValue = (frame, name, register, port) => {
  const sw = series && series.place.get(name);
  return sw === undefined ? undefined : number(valueAt(frame, sw, series.at[sw].port.get(register + " " + port)));
};
// past returns the values of a series up to the shown frame.
function past(sw, i, span = 60) {
  const list = [];
  for (let k = Math.max(0, shown - span + 1); k <= shown; k++) {
    const x = number(valueAt(frames[k], sw, i));
    if (typeof x === "number") list.push(x);
  }
  return list;
}

// ---- drawing

function el(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "rect", "text", "circle", "g", "polyline", "title"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [k, v] of Object.entries(attributes)) k === "onclick" ? e.onclick = v : e.setAttribute(k, v);
  for (const c of children) e.append(c);
  return e;
}

function spark(list, low, high, second) {
  const top = Math.max(high ?? 0, ...list, 1e-9), n = Math.max(list.length - 1, 1);
  const points = list.map((x, i) => (100 * i / n).toFixed(1) + "," + (21 - 20 * (x - low) / (top - low)).toFixed(1)).join(" ");
  return el("svg", { class: "spark" + (second ? " second" : ""), viewBox: "0 0 100 22", preserveAspectRatio: "none", "aria-hidden": "true" }, el("polyline", { points }));
}

const steps = [[0.001, "--u0", "idle"], [0.3, "--u1", "to 30 %"], [0.6, "--u2", "to 60 %"], [0.85, "--u3", "to 85 %"], [Infinity, "--u4", "above"]];
const colour = u => "var(" + steps.find(s => u < s[0])[1] + ")";

// layout places switches in rows by tier, the highest on top, with the hosts of
// each switch below it.
let layout = null;
function place() {
  const nodes = fabric ? fabric.nodes : series.switches.map(s => ({ name: s.name, tier: 1, role: s.role }));
  const links = fabric ? fabric.links : [];
  const tiers = [...new Set(nodes.map(n => n.tier))].filter(t => t > 0).sort((a, b) => b - a);
  const most = Math.max(1, ...tiers.map(t => nodes.filter(n => n.tier === t).length));
  const width = Math.max(320, Math.min($("drawing").clientWidth || 600, 1000));
  const box = Math.min(84, (width - 10) / most - 6);
  const hosts = new Map();
  for (const l of links) {
    for (const [host, sw, port] of [[l.a, l.b, l.bp], [l.b, l.a, l.ap]]) {
      if ((nodes.find(n => n.name === host) || {}).tier !== 0) continue;
      if (!hosts.has(sw)) hosts.set(sw, []);
      hosts.get(sw).push({ name: host, sw, port, rate: l.rate });
    }
  }
  const perRow = Math.max(1, Math.floor((width / most - 4) / 13));
  const rows = Math.max(0, ...[...hosts.values()].map(h => Math.ceil(h.length / perRow)));
  const gap = (tiers.length > 2 ? 84 : 116) * (width > 600 ? 1.4 : 1);
  const at = new Map();
  tiers.forEach((t, row) => {
    const list = nodes.filter(n => n.tier === t);
    list.forEach((n, i) => at.set(n.name, { x: width * (i + 0.5) / list.length, y: 20 + row * gap, node: n }));
  });
  const height = 40 + (tiers.length - 1) * gap + (rows ? 16 + rows * 13 : 0);
  layout = { width, height, box, perRow, at, hosts, links: links.filter(l => at.has(l.a) && at.has(l.b)) };
  draw();
}

// draw creates the elements once. paint colours them for each frame.
function draw() {
  const { width, height, box, at, hosts, perRow } = layout;
  const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "topology" });
  const beside = new Map();
  layout.drawn = layout.links.map(l => {
    const key = [l.a, l.b].sort().join(" "), k = beside.get(key) || 0;
    beside.set(key, k + 1);
    return { l, k };
  });
  for (const d of layout.drawn) {
    const { l, k } = d, n = beside.get([l.a, l.b].sort().join(" "));
    const a = at.get(l.a), b = at.get(l.b), shift = (k - (n - 1) / 2) * Math.min(14, box / n);
    const way = (p, q) => {
      const up = q.y < p.y ? -10 : 10, flat = p.y === q.y;
      return [p.x + (flat ? Math.sign(q.x - p.x) * box / 2 : shift), p.y + (flat ? shift : up)];
    };
    const [x1, y1] = way(a, b), [x2, y2] = way(b, a), mx = (x1 + x2) / 2, my = (y1 + y2) / 2;
    d.halves = [["a", x1, y1, l.a, l.ap], ["b", x2, y2, l.b, l.bp]].map(([, x, y, name, port]) => {
      const title = el("title"), path = el("path", { d: `M${x} ${y}L${mx} ${my}` }, title);
      svg.append(path);
      return { path, title, name, port, peer: name === l.a ? l.b : l.a };
    });
  }
  layout.dots = [];
  for (const [sw, list] of hosts) {
    const p = at.get(sw);
    if (!p) continue;
    list.forEach((h, i) => {
      const row = Math.floor(i / perRow), inRow = Math.min(perRow, list.length - row * perRow);
      const title = el("title");
      const dot = el("circle", { class: "host", r: 4.5, cx: p.x + (i % perRow - (inRow - 1) / 2) * 13, cy: p.y + 24 + row * 13 }, title);
      svg.append(dot);
      layout.dots.push({ dot, title, h });
    });
  }
  layout.boxes = [];
  for (const [name, p] of at) {
    const label = el("text", { x: p.x, y: p.y + 4, "text-anchor": "middle" }, name);
    if (box < 30) label.setAttribute("class", "small");
    const g = el("g", { class: "node", tabindex: 0, role: "button", "aria-label": "switch " + name, onclick: () => choose(name) },
      el("rect", { x: p.x - box / 2, y: p.y - 11, width: box, height: 22, rx: 5 }), label);
    g.onkeydown = e => { if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(name); } };
    svg.append(g);
    layout.boxes.push({ g, name });
  }
  $("drawing").replaceChildren(svg);
}

function paint() {
  const f = now();
  let none = true;
  const use = (name, port, way) => {
    const bits = portValue(f, name, way, port);
    return bits === undefined || bits === null ? null : bits;
  };
  for (const d of layout.drawn) {
    for (const h of d.halves) {
      const bits = use(h.name, h.port, "tx rate") ?? use(h.peer, h.name === d.l.a ? d.l.bp : d.l.ap, "rx rate");
      const down = portValue(f, h.name, "link down", h.port) === 1, u = bits === null || !d.l.rate ? 0 : bits / d.l.rate;
      h.path.setAttribute("class", down ? "down" : "");
      h.path.style.stroke = down ? "" : colour(u);
      h.path.style.strokeWidth = down ? 2 : 1.6 + 4 * Math.min(u, 1);
      h.title.textContent = `${h.name} port ${h.port} to ${h.peer}: ${down ? "down" : bits === null ? "no counter" : rate(bits) + ", " + num(100 * u) + " % of " + rate(d.l.rate)}`;
    }
  }
  for (const { dot, title, h } of layout.dots) {
    const inward = use(h.sw, h.port, "rx rate"), out = use(h.sw, h.port, "tx rate");
    const u = h.rate ? Math.max(inward || 0, out || 0) / h.rate : 0;
    dot.style.fill = portValue(f, h.sw, "link down", h.port) === 1 ? "var(--bad)" : colour(u);
    title.textContent = `${h.name}: sends ${write(inward, "bit/s")}, gets ${write(out, "bit/s")}`;
  }
  for (const { g, name } of layout.boxes) {
    const sw = series && series.place.get(name);
    const bad = f && sw !== undefined && typeof f.x[sw] === "string";
    g.setAttribute("class", "node" + (name === chosen ? " chosen" : "") + (bad ? " bad" : ""));
  }
  if (f && series) series.switches.forEach((sw, i) => {
    for (const port of series.at[i].ports.keys()) if (["rx packets", "tx packets", "drops"].some(r => portValue(f, sw.name, r, port) > 0)) none = false;
  });
  const counted = series && series.at.some(a => [...a.port.keys()].some(k => k.startsWith("tx packets")));
  $("hint").textContent = !f ? "" : !counted ? "the switches have no port counters" : none ? "no traffic since deployment" : "";
}

// ---- tables

function choose(name) {
  chosen = name;
  render();
}

function tabs() {
  const f = now();
  $("tabs").replaceChildren(...series.switches.map((sw, i) => {
    const bad = f && typeof f.x[i] === "string";
    return el("button", { type: "button", class: bad ? "bad" : "", "aria-current": sw.name === chosen, onclick: () => choose(sw.name) }, sw.name);
  }));
}

function ports(sw, f) {
  const at = series.at[sw], rows = [];
  const value = (register, port) => number(valueAt(f, sw, at.port.get(register + " " + port)));
  const history = (register, port) => {
    const i = at.port.get(register + " " + port);
    return i === undefined ? [] : past(sw, i);
  };
  for (const [port, peer] of [...at.ports].sort((a, b) => a[0] - b[0])) {
    if (value("tx packets", port) === undefined && value("queued", port) === undefined) continue;
    const drops = at.port.get("drops " + port), lost = value("drops", port), down = value("link down", port) === 1;
    rows.push(el("tr", {},
      el("td", {}, `${port}`, el("span", { class: "faint" }, peer ? " → " + peer : ""), down ? el("span", { class: "bad" }, " down") : ""),
      el("td", { class: "n" }, write(value("tx rate", port), "bit/s")),
      el("td", {}, spark(history("tx rate", port), 0)),
      el("td", { class: "n wide" }, write(value("rx rate", port), "bit/s")),
      el("td", { class: "n" }, write(value("queued", port), "")),
      el("td", {}, spark(history("queued", port), 0, 1, true)),
      el("td", { class: "n " + (lost > 0 ? "bad" : "faint"), title: drops === undefined ? "" : text(valueAt(f, sw, drops), "") }, lost === undefined ? "–" : num(lost)),
      el("td", { class: "n wide" }, write(value("tx bytes", port), "bytes")),
      el("td", { class: "n wide" }, write(value("rx bytes", port), "bytes"))));
  }
  const reasons = [...at.port].filter(([k, i]) => k.startsWith("drops ") && number(valueAt(f, sw, i)) > 0)
    .map(([k, i]) => `port ${k.slice(6)}: ${text(valueAt(f, sw, i), "")}`);
  const table = el("table", {}, el("thead", {}, el("tr", {},
    ...[["port", ""], ["tx rate", "n"], ["", ""], ["rx rate", "n wide"], ["queue", "n"], ["", ""], ["drops", "n"], ["sent", "n wide"], ["received", "n wide"]]
      .map(([t, c]) => el("th", { class: c }, t)))), el("tbody", {}, ...rows));
  if (!rows.length) return [el("p", { class: "faint" }, "this switch has no port counters")];
  return [el("div", { class: "scroll" }, table), ...reasons.length ? [el("h3", {}, "Drops"), ...reasons.map(r => el("p", { class: "fact" }, r))] : []];
}

function paths(sw, f) {
  const groups = new Map();
  for (const i of series.at[sw].paths) {
    const [register, index, port, peer, group, path, unit, meaning] = series.switches[sw].series[i];
    if (!groups.has(register)) groups.set(register, { unit, meaning, rows: [] });
    groups.get(register).rows.push({ index, port, peer, path, i });
  }
  const first = ["carried", "share"];
  const order = [...groups].sort((a, b) => (first.indexOf(b[0]) - first.indexOf(a[0])));
  return order.map(([register, g]) => {
    const body = el("div", {}, ...g.rows.map(r => {
      const v = valueAt(f, sw, r.i), x = number(v);
      return el("div", { class: "fact" }, el("span", { class: "bar" }, el("b", { style: `width:${g.unit === "share" ? Math.min(100, 100 * (x || 0)) : 0}%` })),
        ` ${text(v, g.unit)} `, el("span", { class: "faint" }, `${r.index}${r.port ? ", port " + r.port : ""}${r.peer ? " to " + r.peer : ""}`));
    }));
    const head = el("h3", {}, register + " ", el("small", {}, g.meaning));
    if (g.unit === "share") return el("div", {}, head, body);
    return values(register, g.meaning, g.rows.map(r => r.i), sw, f);
  });
}

const open = new Set();
function values(register, meaning, list, sw, f) {
  const cells = list.slice(0, 256).map(i => {
    const [, index, , peer, , , unit] = series.switches[sw].series[i];
    return el("div", {}, el("span", {}, (index || "switch") + (peer ? " → " + peer : "")), el("span", {}, text(valueAt(f, sw, i), unit)));
  });
  const head = el("h3", {}, register + " ", el("small", {}, meaning || ""));
  const grid = el("div", { class: "values" }, ...cells);
  if (list.length <= 24) return el("div", {}, head, grid);
  const used = list.filter(i => number(valueAt(f, sw, i))).length, key = sw + register;
  const d = el("details", {}, el("summary", {}, `${used} of ${list.length} are not zero`), grid);
  d.open = open.has(key);
  d.ontoggle = () => d.open ? open.add(key) : open.delete(key);
  return el("div", {}, head, d);
}

function registers(sw, f) {
  const list = [...series.at[sw].rest].map(([register, at]) => values(register, series.switches[sw].series[at[0]][7], at, sw, f));
  return list.length ? list : [el("p", { class: "faint" }, "the program has no registers for the switch or its ports")];
}

function listEvents() {
  if (!events.length) {
    $("events").replaceChildren(el("li", { class: "none faint" }, "no events yet"));
    return;
  }
  $("events").replaceChildren(...events.slice(-100).reverse().map(e => el("li", { class: e.good ? "good" : "" },
    el("time", {}, e.w ? new Date(e.w).toTimeString().slice(0, 8) : elapsed(e.t)), `${e.sw || ""}${e.port ? " port " + e.port : ""}${e.sw ? ": " : ""}${e.text}`)));
}

// ---- figures

// drawFigures shows the latest figures. A paused page keeps those on it. Figures have texts of
// p4lb alone, which it has escaped.
let figures = null, figuresShown = null;
function drawFigures() {
  if (!figures || figures === figuresShown || held && figuresShown) return;
  figuresShown = figures;
  $("figures-box").hidden = false;
  $("progress").textContent = figures.text;
  const at = [...$("figures").querySelectorAll(".plot")].map(p => p.scrollLeft);
  $("figures").replaceChildren(...figures.figures.map(f => {
    const plot = el("div", { class: "plot" });
    plot.innerHTML = f.svg;
    return el("figure", { class: f.wide ? "broad" : "" }, el("h3", {}, f.title),
      el("p", { class: "keys" }, ...f.keys.map(k => el("span", { class: "chart" }, el("i", { class: "k" + k.colour }), k.label))),
      plot, el("figcaption", {}, f.about));
  }));
  [...$("figures").querySelectorAll(".plot")].forEach((p, i) => p.scrollLeft = at[i] || 0);
}

// ---- page

function render() {
  queued = false;
  drawFigures();
  if (!series) { status(); return; }
  if (!layout) place();
  if (!series.place.has(chosen)) chosen = (series.switches[0] || {}).name || "";
  const f = now(), sw = series.place.get(chosen);
  paint();
  tabs();
  status();
  $("history").max = Math.max(frames.length - 1, 0);
  $("history").value = shown;
  if (!f || sw === undefined) return;
  const failed = typeof f.x[sw] === "string" ? f.x[sw] : "";
  $("ports-head").textContent = "Ports of " + chosen;
  $("paths-head").textContent = "Paths of " + chosen;
  $("registers-head").textContent = "Registers of " + chosen;
  if (failed) {
    $("ports").replaceChildren(el("p", { class: "bad" }, "no answer: " + failed));
    $("paths").replaceChildren();
    $("registers").replaceChildren();
    return;
  }
  $("ports").replaceChildren(...ports(sw, f));
  const ways = paths(sw, f);
  $("paths").replaceChildren(...ways.length ? ways : [el("p", { class: "faint" }, "this switch does not choose between paths")]);
  $("registers").replaceChildren(...registers(sw, f));
}

function status() {
  const f = now(), s = $("state");
  s.className = problem ? "bad" : held ? "held" : "";
  s.textContent = problem || (!f ? "waiting for the switches" : (ended ? "ended, " : held ? "paused, " : "live, ") + clock(f) + (series.virtual ? " simulated" : ""));
  $("pause").textContent = held ? "Live" : "Pause";
  $("pause").setAttribute("aria-pressed", held);
}

function later() {
  if (!queued) { queued = true; requestAnimationFrame(render); }
}

function listen() {
  source = new EventSource("events");
  source.onopen = () => { problem = ""; frames = []; shown = -1; events.length = 0; ended = false; later(); };
  source.onerror = () => { problem = ended ? "" : "no connection to p4lb"; if (ended) source.close(); later(); };
  source.addEventListener("fabric", e => { fabric = JSON.parse(e.data); layout = null; later(); });
  source.addEventListener("series", e => {
    series = JSON.parse(e.data);
    learn(series);
    frames = []; shown = -1; held = false;
    if (!fabric) layout = null;
    $("title").textContent = document.title = series.scheme + (series.fabric ? " on " + series.fabric : "");
    later();
  });
  source.addEventListener("frame", e => {
    const f = JSON.parse(e.data);
    if (!series || f.v !== series.v) return;
    frames.push(f);
    if (frames.length > keep) { frames.shift(); shown = Math.max(0, shown - 1); }
    if (!held) shown = frames.length - 1;
    later();
  });
  source.addEventListener("figures", e => { figures = JSON.parse(e.data); later(); });
  source.addEventListener("event", e => {
    events.push(JSON.parse(e.data));
    if (events.length > 500) events.shift();
    listEvents();
  });
  source.addEventListener("end", () => { ended = true; source.close(); later(); });
}

$("pause").onclick = () => {
  held = !held;
  if (!held) shown = frames.length - 1;
  later();
};
$("history").oninput = e => {
  shown = Number(e.target.value);
  held = shown < frames.length - 1;
  later();
};
function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = name === "dark" ? "Light" : "Dark";
}
theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
matchMedia("(prefers-color-scheme: dark)").onchange = e => theme(e.matches ? "dark" : "light");
$("theme").onclick = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
$("legend").replaceChildren("each half of a link shows the load sent by the nearer switch:", ...steps.map(([, c, t]) => {
  const s = el("span"), i = el("i");
  i.style.background = `var(${c})`;
  s.append(i, t);
  return s;
}), (() => { const s = el("span"), i = el("i"); i.style.background = "var(--bad)"; s.append(i, "down"); return s; })());
addEventListener("resize", () => { layout = null; later(); });
// A hidden page closes its connection.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) { if (source) source.close(); source = null; } else if (!source && !ended) listen();
});
listEvents();
if (!document.hidden) listen();
