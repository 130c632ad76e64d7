import { el } from './dom.js';
import { player } from './player.js';

const fabric = (spines, rate, more = '') => `{leaf-spine: {leaves: 2, spines: ${spines}, hosts: 4, rate: ${rate}, host-rate: 1G, delay: 10us, host-delay: 10us, queue: 64${more}}}`;

// The four lessons. Each has one control; its file is what p4lb lab run takes.
const lessons = [
  {
    title: '1. ECMP: hashes collide',
    text: ['ECMP hashes the addresses and ports of a packet, so all packets of a flow take one path. The hash knows nothing of load. With few large flows, some links carry two or three of them and others none.',
      'RPS sprays packets over all paths and has no collisions, but packets overtake each other, and TCP may take that for loss.'],
    control: { label: 'Load in %', name: 'flows', min: 10, max: 80, step: 10, value: 40 },
    file: v => `name: collisions
topology: ${fabric(4, '500M')}
schemes: [ecmp, rps]
traffic: [{pattern: permutation, workload: fixed, size: 500KB}]
loads: [${(v / 100).toFixed(2)}]
seeds: 4
duration: 40ms
warmup: 0
metrics: [fct-mean, fct-p99, paths-used, reordered]
`,
    look: 'Play both rows. ECMP leaves links grey while others are red. “paths-used” is the share of the uplinks that carry data. “reordered” is the share of the packets that another one overtook.',
  },
  {
    title: '2. Flowlets: move flows in their gaps',
    text: ['TCP sends in bursts. If the gap between two bursts is longer than the difference in delay between two paths, the next burst can take another path and no packet is overtaken. LetFlow picks a random path at each gap.',
      'With a short gap flows move often, and packets overtake each other. With a long gap flows stay where they are, as with ECMP.'],
    control: { label: 'Gap in µs', name: 'gap', min: 20, max: 1000, step: 20, value: 100 },
    file: v => `name: flowlets
topology: ${fabric(4, '400M')}
schemes:
  - {scheme: letflow, set: {gap: ${v}us}}
  - ecmp
traffic: [{workload: websearch, pattern: halves, cut: 200KB}]
loads: [0.7]
seeds: 4
duration: 40ms
metrics: [fct-mean, fct-p99, reordered, queue-mean]
`,
    look: 'Run it with gaps of 20, 100 and 1,000 µs. “reordered” falls, and “queue-mean” rises to that of ECMP.',
  },
  {
    title: '3. Queue awareness: avoid what is full',
    text: ['DRILL looks at the queues of its ports for each packet and takes the shortest of a few. QALL predicts each queue from registers that packets update on their way, and chooses by it.',
      'The higher the load, the more packets wait where ECMP has put too many flows.'],
    control: { label: 'Load in %', name: 'load', min: 10, max: 90, step: 10, value: 70 },
    file: v => `name: queues
topology: ${fabric(4, '400M')}
schemes: [qall-poly3, drill, ecmp]
traffic: [{workload: websearch, pattern: halves, cut: 200KB}]
loads: [${(v / 100).toFixed(2)}]
seeds: 4
duration: 40ms
metrics: [fct-mean, fct-p99, queue-mean, reordered]
`,
    look: 'The circles are waiting packets. Run it at loads of 30 % and 90 % and compare “queue-mean”, the average occupancy of the queues.',
  },
  {
    title: '4. A failure: a link goes down',
    text: ['At 20 ms the link l1-s1 fails, and at 45 ms it comes back. Until the controller has new routes, packets to that spine are lost. Then three paths carry the load of four.',
      'Until then QALL sends some packets of every flow to the dead link, whose queue looks empty to it. ECMP only loses the flows that it has hashed to that link.'],
    control: { label: 'Controller latency in ms', name: 'latency', min: 1, max: 20, step: 1, value: 5 },
    file: v => `name: failure
topology: ${fabric(4, '400M')}
schemes: [qall-poly3, ecmp]
traffic: [{workload: websearch, pattern: halves, cut: 200KB}]
loads: [0.6]
seeds: 4
duration: 70ms
latency: ${v}ms
faults:
  - {at: 20ms, until: 45ms, link: l1-s1, down: true}
metrics: [fct-mean, fct-p99, dropped, timeouts]
`,
    look: 'Play from 20 ms to 45 ms: the link l1-s1 turns grey, and the others carry its load. Run it with 1 ms and 20 ms: a slow controller costs “timeouts”, and QALL more of them than ECMP.',
  },
];

export function learn(section, app, guarded) {
  section.append(el('h2', {}, 'Load balancing in ten minutes'),
    el('p', {}, 'Two leaves are joined by four spines, so there are four paths between hosts of different leaves. Something must choose one for each packet. Below, each switch runs a P4 program in a simulated network; change one thing, and run it again.'));
  for (const l of lessons) section.append(lesson(l, app, guarded));
  section.append(el('h2', {}, 'Go on'), el('p', {}, 'Open a figure in the Network view to change everything else, or write a program of your own in Write. The same files run with ', el('code', {}, 'p4lb lab run'), '.'));
}

function lesson(l, app, guarded) {
  const c = l.control, id = 'lesson-' + c.name;
  const slider = el('input', { type: 'range', id, min: c.min, max: c.max, step: c.step, value: c.value });
  const value = el('output', { for: id }, String(c.value));
  slider.oninput = () => { value.textContent = slider.value; };
  const out = el('div', { 'aria-live': 'polite' });
  const run = guarded(async () => {
    const r = await app.run(l.title.slice(3), l.file(+slider.value));
    out.replaceChildren(
      ...r.conclusion.slice(0, 1).map(t => el('p', { class: 'answer' }, t)),
      el('div', { class: 'scroll' }, el('table', {}, ...r.table.map((row, i) => el('tr', {}, ...row.map(cell => el(i ? 'td' : 'th', {}, cell)))))),
      player(r, { compact: true }));
  });
  const go = el('button', { class: 'main', onclick: run }, 'Run');
  return el('article', {}, el('h2', {}, l.title), ...l.text.map(t => el('p', {}, t)),
    el('div', { class: 'live' },
      el('div', { class: 'row' }, el('label', { for: id }, c.label + ' ', value, slider), go,
        el('button', { onclick: () => { app.openNetwork(l.file(+slider.value)); } }, 'Open in Network')),
      out),
    el('p', { class: 'soft' }, l.look));
}
