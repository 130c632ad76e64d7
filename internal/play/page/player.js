import { el, svg, options } from './dom.js';

// colour is the colour of a link by its load from 0 to 1.
export function colour(u) {
  const stops = [[0, 148, 163, 184], [0.35, 37, 129, 196], [0.7, 240, 160, 32], [1, 214, 40, 40]];
  u = Math.max(0, Math.min(1, u));
  let i = 1;
  while (i < stops.length - 1 && u > stops[i][0]) i++;
  const [a, b] = [stops[i - 1], stops[i]], t = (u - a[0]) / (b[0] - a[0]);
  return `rgb(${[1, 2, 3].map(k => Math.round(a[k] + t * (b[k] - a[k]))).join(',')})`;
}

// layout places switches in rows by tier, the highest above.
function layout(network) {
  const switches = network.nodes.filter(n => !n.at);
  const tiers = [...new Set(switches.map(n => n.tier))].sort((a, b) => b - a);
  const hosts = new Map();
  for (const n of network.nodes) if (n.at) hosts.set(n.at, (hosts.get(n.at) || 0) + 1);
  const most = Math.max(...tiers.map(t => switches.filter(n => n.tier === t).length));
  const width = Math.max(420, Math.min(1600, most * 110)), height = 40 + 130 * (tiers.length - 1) + 45;
  const at = new Map();
  tiers.forEach((t, row) => {
    const list = switches.filter(n => n.tier === t);
    list.forEach((n, i) => at.set(n.name, [width * (i + 0.5) / list.length, 40 + 130 * row]));
  });
  return { at, hosts, width, height };
}

// player shows a network with its links over virtual time.
export function player(result, { row = 0, compact = false } = {}) {
  const box = el('div', { class: 'player' });
  const { network, loads } = result;
  if (!network || !loads.length || !loads.some(l => l.times.length)) {
    box.append(el('p', { class: 'soft' }, network ? 'There are no samples of links.' : 'The cases have different networks, so there is no picture.'));
    return box;
  }
  const { at, hosts, width, height } = layout(network);
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'The network with the load of its links' });
  const strokes = new Map(), dots = new Map();
  const parallel = new Map();
  for (const l of network.links) {
    const key = [l.a, l.b].sort().join(' ');
    parallel.set(key, (parallel.get(key) || 0) + 1);
  }
  const seen = new Map();
  for (const l of network.links) {
    const [x1, y1] = at.get(l.a), [x2, y2] = at.get(l.b);
    const key = [l.a, l.b].sort().join(' '), n = parallel.get(key), i = seen.get(key) || 0;
    seen.set(key, i + 1);
    const long = Math.hypot(x2 - x1, y2 - y1) || 1, nx = -(y2 - y1) / long, ny = (x2 - x1) / long, off = (i - (n - 1) / 2) * 13;
    for (const [name, side, from] of [[l.ab, 2.7, [x1, y1, x2, y2]], [l.ba, -2.7, [x2, y2, x1, y1]]]) {
      const d = off + side, [fx, fy, tx, ty] = from;
      const title = svg('title');
      const line = svg('line', { class: 'link', x1: fx + nx * d, y1: fy + ny * d, x2: tx + nx * d, y2: ty + ny * d, 'stroke-width': 4, stroke: colour(0) }, title);
      const q = svg('circle', { cx: fx + nx * d + (tx - fx) * 0.24, cy: fy + ny * d + (ty - fy) * 0.24, r: 0, fill: 'none', stroke: colour(1), 'stroke-width': 2 });
      picture.append(line, q);
      strokes.set(name, { line, title, rate: l.rate });
      dots.set(name, q);
    }
  }
  for (const [name, [x, y]] of at) {
    picture.append(svg('rect', { class: 'node', x: x - 27, y: y - 14, width: 54, height: 28, rx: 5 }), svg('text', { x, y: y + 5 }, name));
    const n = hosts.get(name);
    if (n) picture.append(svg('text', { class: 'hosts', x, y: y + 31 }, `${n} host${n > 1 ? 's' : ''}`));
  }
  const pick = el('select', { 'aria-label': 'Row' });
  options(pick, loads.map((l, i) => [String(i), l.row]), String(row));
  const slider = el('input', { type: 'range', min: 0, value: 0, 'aria-label': 'Virtual time' });
  const time = el('output');
  const play = el('button', { type: 'button', 'aria-label': 'Play' }, '▶');
  const most = { queue: 1 };
  const queues = el('div', { class: 'queues' });
  let current = loads[row] || loads[0];

  const draw = () => {
    const k = +slider.value;
    time.textContent = `${(current.times[k] * 1000 || 0).toPrecision(4)} ms`;
    let busiest = ['', 0], total = 0;
    for (const [name, s] of strokes) {
      const series = current.links[name];
      const use = series ? Math.min(1, series.use[k] || 0) : 0, // a packet counts when it begins
         q = series ? series.queue[k] || 0 : 0;
      s.line.setAttribute('stroke', colour(use));
      s.title.textContent = `${name.replace('>', ' → ')}: ${Math.round(use * 100)} % of ${s.rate}, ${q} packets wait`;
      dots.get(name).setAttribute('r', q ? 3 + 11 * Math.sqrt(q / most.queue) : 0);
      if (use > busiest[1]) busiest = [name, use];
      total += q;
    }
    says.textContent = busiest[0] ? `busiest ${busiest[0].replace('>', ' → ')} ${Math.round(busiest[1] * 100)} %, ${total} packets wait` : 'idle';
    cursor.setAttribute('x1', 600 * k / Math.max(1, current.times.length - 1));
    cursor.setAttribute('x2', 600 * k / Math.max(1, current.times.length - 1));
  };
  const says = el('span');
  const cursor = svg('line', { y1: 0, y2: 90 });
  const load = () => {
    current = loads[+pick.value];
    slider.max = Math.max(0, current.times.length - 1);
    if (+slider.value > +slider.max) slider.value = 0;
    most.queue = Math.max(1, ...loads.flatMap(l => Object.values(l.links).map(s => s.queue.reduce((a, b) => Math.max(a, b), 0))));
    const sums = current.times.map((_, k) => Object.values(current.links).reduce((a, s) => a + (s.queue[k] || 0), 0));
    const top = Math.max(1, ...loads.map(l => l.times.reduce((m, _, k) => Math.max(m, Object.values(l.links).reduce((a, s) => a + (s.queue[k] || 0), 0)), 0)));
    const points = sums.map((v, k) => `${600 * k / Math.max(1, sums.length - 1)},${86 - 80 * v / top}`).join(' ');
    queues.replaceChildren(el('span', { class: 'soft' }, `Waiting packets of all links, up to ${top}`), svg('svg', { viewBox: '0 0 600 90', preserveAspectRatio: 'none', height: 70, role: 'img', 'aria-label': 'Queues over virtual time' }, svg('path', { d: 'M0 88H600' }), svg('polyline', { points, 'vector-effect': 'non-scaling-stroke' }), cursor));
    draw();
  };
  let timer = 0;
  const halt = () => { clearInterval(timer); timer = 0; play.textContent = '▶'; play.setAttribute('aria-label', 'Play'); };
  play.onclick = () => {
    if (timer) return halt();
    if (+slider.value >= +slider.max) slider.value = 0;
    play.textContent = '⏸';
    play.setAttribute('aria-label', 'Pause');
    timer = setInterval(() => {
      if (!box.isConnected || +slider.value >= +slider.max) return halt();
      slider.value = +slider.value + 1;
      draw();
    }, 120);
  };
  slider.oninput = draw;
  pick.onchange = load;
  const scale = svg('svg', { viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  for (let i = 0; i < 25; i++) scale.append(svg('rect', { x: 4 * i, y: 0, width: 4.1, height: 10, fill: colour(i / 24) }));
  box.append(el('div', { class: 'row' }, pick, play, slider, time), picture,
    el('div', { class: 'scale' }, '0 %', scale, '100 % of a link; circles are waiting packets.', says));
  if (!compact) box.append(queues);
  load();
  // Begin where something happens.
  let best = 0, peak = -1;
  current.times.forEach((_, k) => {
    const sum = Object.values(current.links).reduce((a, s) => a + (s.use[k] || 0), 0);
    if (sum > peak) { peak = sum; best = k; }
  });
  slider.value = best;
  draw();
  return box;
}
