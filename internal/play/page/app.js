import { $, el, options, download, table } from './dom.js';
import { Editor } from './editor.js';
import { Engine } from './engine.js';
import { player } from './player.js';
import { link, decode, parse } from './share.js';
import { learn } from './learn.js';

const views = ['write', 'packets', 'network', 'learn'];
let list;                                    // what the engine offers
let edited = false;                          // the program differs from the generated one
const app = { engine: null, run: null };

// ——— status, errors

let alertTimer = 0;
function complain(e) {
  if (e && e.stopped) return say('Stopped');
  const text = e && e.message || String(e);
  $('alert').textContent = text;
  $('alert').hidden = false;
  clearTimeout(alertTimer);
}
function calm() { $('alert').hidden = true; }
function say(text) { $('state').textContent = text; }

// work runs a request with its progress and the stop button.
async function work(what, name, request, progress) {
  if (app.engine.busy) throw new Error('The engine is busy: stop the running work first.');
  calm();
  say(what + '…');
  $('stop').hidden = false;
  $('progress').hidden = false;
  $('progress').removeAttribute('value');
  const began = performance.now();
  try {
    const answer = await app.engine.call(name, request, p => {
      $('progress').value = p.done / p.of;
      say(`${what}: ${p.done} of ${p.of} runs, ${p.name}`);
      if (progress) progress(p);
    });
    say(`${what}: done in ${((performance.now() - began) / 1000).toFixed(1)} s`);
    return answer;
  } catch (e) {
    say(e.stopped ? 'Stopped' : `${what}: failed`);
    throw e;
  } finally {
    $('stop').hidden = true;
    $('progress').hidden = true;
  }
}
app.run = (what, yaml) => work(what, 'run', { yaml });

const guarded = f => async (...args) => { try { return await f(...args); } catch (e) { complain(e); } };

// ——— views

function show(view, focus) {
  for (const v of views) {
    const on = v === view, tab = $('tab-' + v);
    $(v).hidden = !on;
    tab.setAttribute('aria-selected', on);
    tab.tabIndex = on ? 0 : -1;
    if (on && focus) tab.focus();
  }
  app.view = view;
  if (view === 'packets' && !test.text && list) guarded(defaultTest)();
}
for (const v of views) {
  $('tab-' + v).onclick = () => show(v);
  $('tab-' + v).onkeydown = e => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step) { e.preventDefault(); show(views[(views.indexOf(v) + step + views.length) % views.length], true); }
  };
}

// ——— write

const program = new Editor($('program'), { label: 'P4 program', onchange: () => { edited = true; programChanged(); }, onsave: () => guarded(format)(), onrun: () => { show('packets'); guarded(walk)(); } });
const test = new Editor($('test'), { language: 'test', label: 'Entries and packets', onrun: () => guarded(walk)(), onsave: () => {} });
const yaml = new Editor($('yaml'), { language: 'yaml', label: 'Experiment', onrun: () => guarded(run)(), onsave: () => {}, onchange: () => { $('flags-line').hidden = true; } });
let programName = 'program.p4';

function nameProgram(name) {
  programName = name;
  $('program-name').textContent = name;
  for (const e of document.querySelectorAll('.program-name')) e.textContent = name;
}

let checkTimer = 0;
function programChanged() {
  clearTimeout(checkTimer);
  $('checked').textContent = '';
  checkTimer = setTimeout(checkSoon, 350);
}
async function checkSoon() {
  if (app.engine.busy) { checkTimer = setTimeout(checkSoon, 300); return; }
  try { await check(); } catch (e) { if (!e.stopped) complain(e); }
}
async function check() {
  const text = program.text;
  const c = await app.engine.call('check', { name: programName, text });
  if (text !== program.text) return;
  const errors = c.messages.filter(m => !m.warning).length, warnings = c.messages.length - errors;
  const count = (n, what) => n ? `${n} ${what}${n > 1 ? 's' : ''}` : '';
  $('checked').textContent = [count(errors, 'error'), count(warnings, 'warning')].filter(Boolean).join(', ') || `compiles for ${c.arch || 'no architecture: it has no main'}`;
  program.mark(c.messages);
  $('messages').replaceChildren(...c.messages.map(m => el('li', { class: m.warning ? 'warning' : '' },
    m.line ? el('button', { onclick: () => program.goTo(m.line, m.col) }, el('span', { class: 'pos' }, `${m.line}:${m.col} `), (m.warning ? 'warning: ' : '') + m.text) : m.text)));
  return c;
}
async function format() {
  const f = await work('Formatting', 'format', { name: programName, text: program.text });
  if (f.messages.length) { program.mark(f.messages); return check(); }
  program.replace(f.text);
  return check();
}

async function chooseSource(value, keep) {
  const [kind, name] = split(value);
  $('source').value = value;
  $('settings').hidden = kind !== 'row';
  if (kind === 'example') {
    const e = list.examples.find(x => x.name === name);
    if (!e) throw new Error(`There is no example ${name}.`);
    $('source-about').textContent = e.about;
    $('manifest-box').hidden = true;
    if (!keep) { nameProgram(name + '.p4'); program.text = e.text; test.text = e.test; edited = false; clearWalk(); programChanged(); }
    return;
  }
  const row = list.rows.find(x => x.name === name);
  if (!row) throw new Error(`There is no scheme ${name}.`);
  $('source-about').textContent = `${row.title}. ${row.source}`;
  await showParameters();
  if (!keep) await generate();
}
const split = v => { const i = v.indexOf(':'); return [v.slice(0, i), v.slice(i + 1)]; };

function settings() {
  const set = {};
  for (const i of document.querySelectorAll('#parameters [data-name]')) if (i.value !== i.dataset.usual) set[i.dataset.name] = i.value.trim();
  return {
    name: split($('source').value)[1], arch: $('arch').value === list.archs[0] ? '' : $('arch').value, role: $('role').value === list.roles[0] ? '' : $('role').value,
    paths: +$('paths').value === 4 ? 0 : +$('paths').value, statePath: $('state-path').value === list.statePaths[0] ? '' : $('state-path').value, set,
  };
}

async function showParameters(values = {}) {
  const s = await app.engine.call('scheme', { name: split($('source').value)[1], arch: $('arch').value });
  $('parameters').replaceChildren(...s.parameters.map(p => {
    const id = 'p-' + p.name, value = values[p.name] ?? p.default;
    let input;
    if (p.words) { input = el('select', { id, 'data-name': p.name, 'data-usual': p.default }); options(input, p.words, value); }
    else input = el('input', { id, 'data-name': p.name, 'data-usual': p.default, value, inputmode: 'text', autocomplete: 'off' });
    input.value = value;
    input.onkeydown = e => { if (e.key === 'Enter') guarded(generate)(); };
    const bounds = p.words ? '' : [p.min && `from ${p.min}`, p.max && `to ${p.max}`].filter(Boolean).join(' ');
    return el('div', { class: 'param' }, el('label', { for: id }, el('b', {}, p.name), ` (${p.unit})`), input, el('small', {}, p.meaning + (bounds ? `; ${bounds}` : '') + (p.source ? ` (${p.source})` : '')));
  }), s.parameters.length ? '' : el('p', { class: 'soft' }, 'This scheme has no parameters.'));
}

async function generate() {
  const request = settings();
  if (edited && !confirm('Replace the changed program?')) return;
  const g = await work('Generating', 'generate', request);
  app.files = g.files;
  $('gen-command').textContent = g.command;
  $('manifest').textContent = g.manifest;
  $('manifest-box').hidden = false;
  nameProgram(g.files[0].name);
  program.text = g.files[0].text;
  edited = false;
  test.text = '';
  clearWalk();
  if (app.view === 'packets') await defaultTest();
  await check();
}

$('source').onchange = guarded(async () => {
  if (edited && !confirm('Replace the changed program?')) return;
  edited = false;
  await chooseSource($('source').value);
});
$('arch').onchange = guarded(async () => { await showParameters(settings().set); await generate(); });
for (const id of ['role', 'paths', 'state-path']) $(id).onchange = guarded(generate);
$('generate').onclick = guarded(generate);
$('format').onclick = guarded(format);
$('download-p4').onclick = () => download(programName, program.text);
$('to-packets').onclick = () => show('packets', true);

// ——— packets

let steps = [], at = 0, walkedSource = '';

async function defaultTest() {
  const [, name] = split($('source').value);
  const s = await work('Planning entries', 'setup', { ...settings(), name });
  test.text = s.test;
}

function clearWalk() {
  $('walked').hidden = true;
  $('no-walk').hidden = false;
  program.light(0);
}

async function walk() {
  if (!test.text) await defaultTest();
  let w;
  test.mark([]);
  try {
    w = await work('Sending packets', 'packets', { name: programName, text: program.text, test: test.text });
  } catch (e) {
    if (e.line) { test.mark([{ line: e.line, col: 1 }]); test.goTo(e.line, 1); }
    throw e;
  }
  if (w.messages.length) { await check(); show('write'); throw new Error('The program does not compile: see the messages below it.'); }
  steps = w.steps;
  walkedSource = programName;
  $('walked').hidden = false;
  $('no-walk').hidden = true;
  $('walk-title').textContent = `${w.sent} packets in, ${w.received} out, ${steps.length} steps${w.cut ? ' (the rest is left out)' : ''}`;
  $('at').max = Math.max(0, steps.length - 1);
  $('stf').textContent = w.test;
  test.mark(w.failures.map(f => /^test:(\d+):/.exec(f)).filter(Boolean).map(m => ({ line: +m[1], col: 1 })));
  $('failures').replaceChildren(...w.failures.map(f => el('li', {}, f.replace(/^test:(\d+): /, 'line $1: '))));
  let last = -1;
  $('steps').replaceChildren(...steps.map((s, i) => {
    const begin = s.line !== last;
    last = s.line;
    return el('li', { class: [begin && 'begin', s.changes && 'changed'].filter(Boolean).join(' '), onclick: () => go(i), title: `line ${s.line} of the test, packet ${s.packet}` }, el('span', { class: 'k' }, s.kind + ' '), shortName(s.name || ''), s.kind === 'table hit' ? el('span', { class: 'k' }, ' ' + s.detail) : '');
  }));
  go(0);
}
const shortName = n => n.replace(/^(LbIngress|LbEgress|I|E|MyIngress|MyEgress)\./, '');

// stateAt is the headers and metadata of the packet before a step, from its changes.
function stateAt(i) {
  const state = new Map(), packet = steps[i].packet, changed = new Map();
  for (let k = 0; k <= i; k++) {
    if (steps[k].packet !== packet || !steps[k].changes) continue;
    for (const c of steps[k].changes) {
      if (/\[\d+\]$/.test(c.what)) continue;
      if (c.after === '') state.delete(c.what); else state.set(c.what, c.after);
      if (k === i) changed.set(c.what, c);
    }
  }
  return [state, changed];
}

function go(i) {
  if (!steps.length) return;
  at = Math.max(0, Math.min(steps.length - 1, i));
  $('at').value = at;
  $('back').disabled = $('first').disabled = at === 0;
  $('next').disabled = $('last').disabled = at === steps.length - 1;
  const items = $('steps').children;
  for (const li of $('steps').querySelectorAll('[aria-current]')) li.removeAttribute('aria-current');
  items[at].setAttribute('aria-current', 'step');
  const box = $('steps'), li = items[at];
  if (li.offsetTop - box.offsetTop < box.scrollTop || li.offsetTop - box.offsetTop + li.offsetHeight > box.scrollTop + box.clientHeight) box.scrollTop = li.offsetTop - box.offsetTop - box.clientHeight / 2;
  const s = steps[at];
  test.light(s.line);
  if (s.source && walkedSource === programName) program.light(s.source, true); else program.light(0);
  const parts = [el('h3', {}, `Step ${at + 1} of ${steps.length}: ${s.kind} ${s.name || ''}`)];
  if (s.detail) parts.push(el('p', { class: 'soft' }, s.detail));
  if (s.source) parts.push(el('p', { class: 'soft' }, `${programName}, line ${s.source}: `, el('code', {}, (program.text.split('\n')[s.source - 1] || '').trim())));
  if (s.data) parts.push(el('p', { class: 'hex' }, s.data.replace(/(..)/g, '$1 ')));
  if (s.changes) parts.push(table([['changes', 'before', 'after'], ...s.changes.map(c => [c.what, c.before || '–', c.after || '–'])]));
  const [state, changed] = stateAt(at);
  if (state.size) {
    const rows = [...state].filter(([k]) => !/^(scalars|standard_metadata)\.(_padding|tmp)/.test(k)).sort((a, b) => changed.has(b[0]) - changed.has(a[0]));
    parts.push(el('details', {}, el('summary', {}, `Headers and metadata set so far (${rows.length})`), el('div', { class: 'fields' }, el('table', {}, el('tbody', {}, ...rows.map(([k, v]) => el('tr', { class: changed.has(k) ? 'changed' : '' }, el('td', {}, k), el('td', {}, v))))))));
  }
  const open = $('detail').querySelector('details')?.open;
  $('detail').replaceChildren(...parts);
  for (const row of $('detail').querySelectorAll(':scope > .scroll tbody tr')) row.lastChild.className = 'after';
  const d = $('detail').querySelector('details');
  if (d && open) d.open = true;
}
$('at').oninput = () => go(+$('at').value);
$('back').onclick = () => go(at - 1);
$('next').onclick = () => go(at + 1);
$('first').onclick = () => go(0);
$('last').onclick = () => go(steps.length - 1);
$('steps').onkeydown = e => {
  const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: steps.length - 1, PageDown: at + 10, PageUp: at - 10 }[e.key];
  if (to !== undefined) { e.preventDefault(); go(to); }
};
$('walk').onclick = guarded(walk);
$('setup').onclick = guarded(async () => {
  const [kind, name] = split($('source').value);
  if (kind === 'example') test.text = list.examples.find(x => x.name === name).test;
  else await defaultTest();
});
function addLines(lines) {
  test.text = test.text.replace(/\n*$/, '\n') + lines.join('\n') + '\n';
  $('test').scrollTop = $('test').scrollHeight;
}
$('form').onsubmit = e => {
  e.preventDefault();
  const f = Object.fromEntries(new FormData(e.target));
  for (const k of ['port', 'srcPort', 'dstPort', 'ttl', 'payload']) f[k] = +f[k];
  guarded(async () => addLines((await app.engine.call('capture', { form: f })).lines))();
};
$('pcap').onchange = guarded(async () => {
  const file = $('pcap').files[0];
  if (!file) return;
  if (file.size > 4 << 20) throw new Error(`${file.name}: ${file.size} bytes: want at most 4 MB`);
  let s = '';
  for (const b of new Uint8Array(await file.arrayBuffer())) s += String.fromCharCode(b);
  const c = await work('Reading the capture', 'capture', { pcap: btoa(s), port: +$('pcap-port').value });
  addLines(c.lines);
  say(`${c.lines.length} packets${c.cut ? ', the first of more' : ''}`);
  $('pcap').value = '';
});

// ——— network

const form = $('settings-form');
function formKinds() {
  const collective = form.kind.value === 'collective', own = form.topology.value === '';
  for (const e of form.querySelectorAll('[data-flows]')) e.hidden = collective;
  for (const e of form.querySelectorAll('[data-collective]')) e.hidden = !collective;
  for (const e of form.querySelectorAll('[data-own]')) e.hidden = !own;
}
form.kind.onchange = form.topology.onchange = formKinds;
async function compose() {
  const v = Object.fromEntries(new FormData(form));
  const schemes = [...form.schemes.selectedOptions].map(o => o.value);
  if (!schemes.length) throw new Error('Choose one or more schemes.');
  const c = await app.engine.call('compose', {
    topology: v.topology, leaves: +v.leaves, spines: +v.spines, hosts: +v.hosts, rate: v.rate, hostRate: v.hostRate, schemes,
    workload: v.workload, pattern: v.pattern, load: +v.load, transport: v.transport, seeds: +v.seeds, duration: v.duration, engine: v.engine,
    failure: v.link ? { link: v.link, at: v.from, until: v.until } : null,
    collective: v.kind === 'collective' ? { kind: v.collective, size: v.size, groups: +v.groups, order: v.order } : null,
  });
  yaml.text = c.yaml;
  $('experiment').value = '';
  $('experiment-about').textContent = '';
  $('run-command').textContent = c.command;
  $('flags-command').textContent = c.flags;
  $('flags-line').hidden = !c.flags;
}
form.onsubmit = e => { e.preventDefault(); guarded(compose)(); };
$('experiment').onchange = () => chooseExperiment($('experiment').value);
function chooseExperiment(name) {
  const x = list.experiments.find(x => x.name === name);
  if (!x) return;
  $('experiment').value = name;
  $('experiment-about').textContent = x.about;
  yaml.text = x.yaml;
  $('flags-line').hidden = true;
}

async function run() {
  let r;
  yaml.mark([]);
  try {
    r = await app.run('Running', yaml.text);
  } catch (e) {
    if (e.line) { yaml.mark([{ line: e.line, col: 1 }]); yaml.goTo(e.line, 1); }
    throw e;
  }
  app.result = r;
  $('result').replaceChildren(
    el('div', { class: 'head' }, el('b', {}, r.name), el('span', { class: 'soft' }, `${r.seconds.toFixed(1)} s, ${r.hops.toLocaleString('en')} packets through switches`), el('button', { onclick: () => download('report.html', r.report, 'text/html') }, 'Download report.html')),
    ...r.conclusion.map(t => el('p', { class: 'says' }, t)),
    table(r.table, r.about),
    el('p', { class: 'soft' }, 'Means over the seeds ± the half-width of the 95 % confidence interval.'),
    ...r.warnings.map(t => el('p', { class: 'warned' }, 'Warning: ' + t)),
    el('h3', {}, 'Links over virtual time, first seed'),
    player(r),
    el('div', { class: 'figures' }, ...r.figures.map(f => el('figure', {}, el('img', { alt: f.title, src: 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(f.svg) }), el('figcaption', {}, f.about)))),
  );
}
app.openNetwork = text => { yaml.text = text; $('experiment').value = ''; $('experiment-about').textContent = ''; $('flags-line').hidden = true; show('network', true); };
$('run').onclick = guarded(run);
$('download-yaml').onclick = () => download('playground.yaml', yaml.text, 'text/yaml');

// ——— copy, share

for (const b of document.querySelectorAll('.copy')) b.onclick = guarded(async () => {
  const text = b.dataset.editor ? yaml.text : $(b.dataset.from).textContent;
  await copy(text);
  const was = b.textContent;
  b.textContent = 'Copied';
  setTimeout(() => { b.textContent = was; }, 1200);
});
async function copy(text) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = el('textarea', { 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
}

function state() {
  const s = settings();
  return {
    view: app.view, source: $('source').value, arch: s.arch, role: s.role, statePath: s.statePath, paths: s.paths, set: s.set,
    ...(edited && { name: programName, program: program.text }), ...(test.text && { test: test.text }), yaml: yaml.text,
  };
}
async function restore(s) {
  if (s.source) {
    if (s.arch && list.archs.includes(s.arch)) $('arch').value = s.arch;
    if (s.role && list.roles.includes(s.role)) $('role').value = s.role;
    if (s.statePath && list.statePaths.includes(s.statePath)) $('state-path').value = s.statePath;
    if (s.paths) $('paths').value = s.paths;
    edited = false;
    await chooseSource(s.source, true);
    const [kind] = split(s.source);
    if (kind === 'row') { await showParameters(s.set); await generate(); } else await chooseSource(s.source);
  }
  if (s.program !== undefined) { program.text = s.program; nameProgram(s.name || 'program.p4'); edited = true; programChanged(); }
  if (s.test !== undefined) test.text = s.test;
  if (s.yaml !== undefined) { yaml.text = s.yaml; $('experiment').value = list.experiments.find(x => x.yaml === s.yaml)?.name || ''; $('experiment-about').textContent = ''; $('flags-line').hidden = true; }
  show(s.view);
}
$('share').onclick = guarded(async () => {
  calm();
  const address = await link(state());
  history.replaceState(null, '', address);
  await copy(address);
  say('The address of this page now holds everything on it, and is in the clipboard.');
});
$('save').onclick = () => download('playground.json', JSON.stringify({ v: 1, ...state() }), 'application/json');
$('open').onclick = () => $('file').click();
$('file').onchange = guarded(async () => {
  const f = $('file').files[0];
  $('file').value = '';
  if (!f) return;
  if (f.size > 4 << 20) throw new Error(`${f.name}: ${f.size} bytes: want at most 4 MB`);
  calm();
  await restore(parse(await f.text()));
});
$('stop').onclick = () => app.engine.stop();

// fromAddress opens what the part of the address after # names.
async function fromAddress() {
  const hash = decodeURIComponent(location.hash.slice(1).split('&')[0]);
  const [key, value] = [hash.split('=')[0], hash.slice(hash.indexOf('=') + 1)];
  if (views.includes(hash)) { await chooseSource('row:qall-poly3'); return show(hash); }
  switch (hash && key) {
    case '': await chooseSource('row:qall-poly3'); return show('write');
    case 's': return restore(await decode(value));
    case 'program': await chooseSource('row:' + value); return show('write');
    case 'example': await chooseSource('example:' + value); return show('write');
    case 'experiment':
      if (!list.experiments.some(x => x.name === value)) throw new Error(`There is no experiment ${value}.`);
      await chooseSource('row:qall-poly3');
      chooseExperiment(value);
      return show('network');
  }
  throw new Error(`The address names nothing here: #${hash.slice(0, 40)}`);
}

async function begin() {
  if (typeof CompressionStream === 'undefined') return complain('This browser is too old for the playground: want Chrome 80, Firefox 113, Safari 16.4 or newer.');
  app.engine = new Engine(text => say(text));
  await app.engine.ready;
  list = app.engine.listing || await app.engine.call('list', {});
  $('source').append(
    el('optgroup', { label: 'Schemes' }, ...list.rows.map(r => el('option', { value: 'row:' + r.name }, r.name))),
    el('optgroup', { label: 'Examples' }, ...list.examples.map(e => el('option', { value: 'example:' + e.name }, e.name))));
  options($('arch'), list.archs);
  options($('role'), list.roles);
  options($('state-path'), list.statePaths);
  $('paths').max = list.maxPaths;
  options(form.schemes, list.rows.map(r => r.name), ['qall-poly3', 'drill', 'ecmp']);
  options(form.topology, [['', 'leaf-spine of these sizes'], ...list.topologies.map(t => [t.name, `${t.name}: ${t.about}`.slice(0, 70)])]);
  options(form.workload, list.workloads, 'websearch');
  options(form.pattern, list.patterns, 'halves');
  options(form.collective, list.collectives);
  options(form.order, list.orders, 'strided');
  options(form.transport, list.transports);
  options($('experiment'), [['', '(your own)'], ...list.experiments.map(x => [x.name, x.name])]);
  formKinds();
  chooseExperiment('quick');
  learn($('learn'), app, guarded);
  try { await fromAddress(); } catch (e) {
    complain(e);
    if (!program.text) await chooseSource('row:qall-poly3');
    show('write');
  }
  document.documentElement.dataset.ready = 'yes';
  say(`p4lb ${list.version}: ready`);
}
window.onhashchange = guarded(async () => { calm(); await fromAddress(); });
begin().catch(e => { complain(e); say('The playground cannot start.'); document.documentElement.dataset.ready = 'failed'; });
