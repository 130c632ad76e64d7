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

// work runs a request with its progress and the stop button. It waits for the check of a
// program, which is short.
let working = false;
async function work(what, name, request, progress) {
  if (working) throw new Error('The engine is busy: stop the running work first.');
  working = true;
  while (app.engine.busy) await new Promise(done => setTimeout(done, 30));
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
    working = false;
    $('stop').hidden = true;
    $('progress').hidden = true;
  }
}
app.run = (what, yaml, files = []) => work(what, 'run', { yaml, files });

// newest runs one call after the other, and of several waiting calls the last: arrow
// keys in a list choose many entries in a row. Its waiting tells whether a later call waits.
let chain = Promise.resolve();
const newest = f => {
  let last = 0, running = 0;
  const call = (...args) => {
    const mine = ++last;
    chain = chain.then(async () => {
      while (mine === last && app.engine.busy) await new Promise(done => setTimeout(done, 50));
      if (mine !== last) return;
      running = mine;
      await guarded(f)(...args);
    });
    return chain;
  };
  call.waiting = () => running !== last;
  return call;
};
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
  if (view === 'packets' && !test.text && list) planned();
}
for (const v of views) {
  $('tab-' + v).onclick = () => show(v);
  $('tab-' + v).onkeydown = e => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step) { e.preventDefault(); show(views[(views.indexOf(v) + step + views.length) % views.length], true); }
  };
}

// ——— write

const program = new Editor($('program'), { label: 'File', onchange: fileChanged, onsave: () => guarded(format)(), onrun: () => { show('packets'); sent(); } });
const test = new Editor($('test'), { language: 'test', label: 'Entries and packets', onrun: () => sent(), onsave: () => {} });
const yaml = new Editor($('yaml'), { language: 'yaml', label: 'Experiment', onrun: () => guarded(run)(), onsave: () => {}, onchange: () => { yamlEdited = true; $('flags-line').hidden = true; } });
let yamlEdited = false;

// The files of the user: {name, text, made}. made marks a generated program that follows
// from the other files. source has the kind of the start (row, example, own, block, ''
// for the user's own) and its name; scheme is the scheme that the settings generate.
let files = [], current = '', source = { kind: '', name: '' }, scheme = '', base = '', original = '';
const kinds = ['granularity', 'signal', 'choice', 'guard'];
let parts = {};                              // the blocks of the scheme by kind

const fileNamed = name => files.find(f => f.name === name);
const isP4 = name => name.endsWith('.p4');
const isTexts = f => ({ name: f.name, text: f.text });
// main is the program that packets go through: the open one, or the first with a main.
const main = () => (isP4(current) && fileNamed(current)) || files.find(f => isP4(f.name) && /\bmain\s*;/.test(f.text)) || files.find(f => isP4(f.name)) || { name: 'program.p4', text: '' };
const blocks = () => files.filter(f => f.name.startsWith('mine/')).map(isTexts);

function setFiles(list, open) {
  files = list.map(f => ({ ...f }));
  current = '';
  openFile(open || files[0].name);
}
function openFile(name) {
  const f = fileNamed(name);
  if (!f) return;
  current = name;
  program.language = isP4(name) || name.endsWith('.tmpl') ? 'p4' : 'yaml';
  program.area.readOnly = !!f.made;
  program.text = f.text;
  program.reset();
  const same = $('files').children.length === files.length && [...$('files').children].every((b, i) => b.dataset.name === files[i].name);
  if (!same) $('files').replaceChildren(...files.map(f => el('button', { role: 'tab', 'data-name': f.name, 'aria-controls': 'program', onclick: () => { openFile(f.name); programChanged(); }, onkeydown: stepFiles }, f.name.replace(/^mine\/(v1model|tna)\//, '$1/').replace(/^mine\//, ''))));
  for (const b of $('files').children) {
    b.setAttribute('aria-selected', b.dataset.name === name);
    b.tabIndex = b.dataset.name === name ? 0 : -1;
  }
  $('made').hidden = !f.made;
  $('format').disabled = !isP4(name) || !!f.made;
  for (const e of document.querySelectorAll('.program-name')) e.textContent = main().name;
}
function stepFiles(e) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!step) return;
  e.preventDefault();
  const i = files.findIndex(f => f.name === current);
  openFile(files[(i + step + files.length) % files.length].name);
  $('files').querySelector('[aria-selected=true]').focus();
  programChanged();
}
function fileChanged() {
  const f = fileNamed(current);
  if (f) f.text = program.text;
  edited = true;
  programChanged();
}

let checkTimer = 0;
function programChanged() {
  clearTimeout(checkTimer);
  $('checked').textContent = '';
  checkTimer = setTimeout(checkSoon, 350);
}
async function checkSoon() {
  if (app.engine.busy) { checkTimer = setTimeout(checkSoon, 300); return; }
  try { await (source.kind === 'block' ? rebuild() : check()); } catch (e) { if (!e.stopped) complain(e); }
}
// rebuild generates the program of changed blocks.
async function rebuild() {
  let g;
  try {
    g = await app.engine.call('generate', settings());
  } catch (e) {
    if (e.stopped || !e.messages.length) throw e;
    return report(e.messages.map(m => ({ ...m, file: m.file || '' })), '');
  }
  placeGenerated(g);
  return check();
}
function placeGenerated(g) {
  const made = { name: g.files[0].name, text: g.files[0].text, made: true };
  const open = current, had = files.find(f => f.made);
  files = [made, ...files.filter(f => !f.made)];
  $('gen-command').textContent = g.command || `p4lb gen --blocks mine --scheme ${scheme}`;
  if (!open || had && open === had.name) openFile(made.name);
  else if (!had || had.name !== made.name) openFile(open);
  return made;
}
async function check() {
  const of = isP4(current) || /manifest\.(ya?ml|json)$/.test(current) ? fileNamed(current) : main();
  if (!of.text) return;
  const text = of.text;
  const c = await app.engine.call('check', { name: of.name, text, files: files.map(isTexts) });
  if (text !== of.text) return;
  report(c.messages.map(m => ({ ...m, file: m.file || of.name })), `compiles for ${c.arch || 'no architecture: it has no main'}`, of.name);
  if (!isP4(of.name) && !c.messages.length) $('checked').textContent = 'agrees with the program';
  return c;
}
// report lists messages, and underlines those in the open file.
function report(messages, fine) {
  const errors = messages.filter(m => !m.warning).length, warnings = messages.length - errors;
  const count = (n, what) => n ? `${n} ${what}${n > 1 ? 's' : ''}` : '';
  $('checked').textContent = [count(errors, 'error'), count(warnings, 'warning')].filter(Boolean).join(', ') || fine;
  program.mark(messages.filter(m => m.file === current));
  $('messages').replaceChildren(...messages.map(m => el('li', { class: m.warning ? 'warning' : '' },
    m.line && fileNamed(m.file) ? el('button', { onclick: () => { if (m.file !== current) { openFile(m.file); program.mark(messages.filter(o => o.file === m.file)); } program.goTo(m.line, m.col); } }, el('span', { class: 'pos' }, `${m.file === current ? '' : m.file + ':'}${m.line}:${m.col} `), (m.warning ? 'warning: ' : '') + m.text)
      : (m.file && m.file !== current ? m.file + (m.line ? ':' + m.line : '') + ': ' : '') + m.text)));
}
async function format() {
  const f = fileNamed(current);
  if (!f || !isP4(f.name) || f.made) return;
  const made = await work('Formatting', 'format', { name: f.name, text: f.text });
  if (made.messages.length) { program.mark(made.messages); return check(); }
  program.replace(made.text);
  return check();
}

// chooseSource opens a start. A list that the user chose from has its value already, and
// perhaps a later one.
async function chooseSource(value, listed) {
  calm();
  const [kind, name] = split(value);
  const known = { row: () => ({}), example: () => list.examples.find(x => x.name === name), own: () => list.own.find(x => x.name === name), block: () => list.blocks.find(b => `${b.kind}-${b.name}` === name) }[kind]?.();
  if (!known) {
    const what = { row: 'scheme', example: 'example', own: 'scheme of the examples', block: 'block' }[kind];
    throw new Error(what ? `There is no ${what} ${name}.` : `There is no start ${value}.`);
  }
  if (kind === 'row') await app.engine.call('scheme', { name }); // there is such a scheme
  source = { kind, name };
  if (!listed) setSource(value);
  $('settings').hidden = kind !== 'row' && kind !== 'block';
  $('compose').hidden = kind !== 'row';
  edited = false;
  original = '';
  test.text = '';
  clearWalk();
  switch (kind) {
    case 'example':
      $('source-about').textContent = known.about;
      setFiles([{ name: name + '.p4', text: known.text }]);
      test.text = known.test;
      return programChanged();
    case 'own': {
      $('source-about').textContent = known.about;
      const hasMain = f => isP4(f.name) && /\bmain\s*;/.test(f.text);
      setFiles(known.files.filter(f => !/\.stf$|^experiment\.yaml$/.test(f.name)), known.files.find(hasMain).name);
      const stf = known.files.find(f => f.name === main().name.replace(/p4$/, 'stf')) || known.files.find(f => /\.stf$/.test(f.name));
      test.text = stf ? stf.text : '';
      return programChanged();
    }
    case 'block': {
      const b = await app.engine.call('block', { kind: known.kind, name: known.name });
      scheme = b.scheme;
      base = b.base;
      $('source-about').textContent = `${b.about} The row ${b.scheme} uses it in place of the original.`;
      files = b.files.map(f => ({ ...f }));
      current = files[0].name;
      await showParameters();
      await generate();
      return openFile(b.files[0].name);
    }
  }
  scheme = name;
  await showParameters();
  await generate();
}
const split = v => { const i = v.indexOf(':'); return [v.slice(0, i), v.slice(i + 1)]; };
// setSource selects a start; one that the list lacks is a composition.
function setSource(value) {
  const s = $('source');
  if (![...s.options].some(o => o.value === value)) s.firstChild.append(el('option', { value }, split(value)[1]));
  s.value = value;
}

function settings() {
  const set = {};
  for (const i of document.querySelectorAll('#parameters [data-name]')) if (i.value !== i.dataset.usual) set[i.dataset.name] = i.value.trim();
  return {
    name: scheme, arch: $('arch').value === list.archs[0] ? '' : $('arch').value, role: $('role').value === list.roles[0] ? '' : $('role').value,
    paths: +$('paths').value === 4 ? 0 : +$('paths').value, statePath: $('state-path').value === list.statePaths[0] ? '' : $('state-path').value, set,
    files: source.kind === 'block' ? blocks() : [],
  };
}

async function showParameters(values = {}) {
  const s = await app.engine.call('scheme', { name: scheme, arch: $('arch').value, files: source.kind === 'block' ? blocks() : [] });
  if (source.kind === 'row') {
    $('source-about').textContent = s.title;
    parts = s.blocks;
    if (!composed.waiting()) for (const k of kinds) $('b-' + k).value = parts[k];
  }
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
  if (source.kind === 'row' && edited && !confirm('Replace the changed program?')) return;
  const g = await work('Generating', 'generate', request);
  if (source.kind === 'block') placeGenerated(g);
  else {
    $('gen-command').textContent = g.command;
    edited = false;
    setFiles(g.files.filter(f => isP4(f.name) || f.name.endsWith('.manifest.json')));
    original = g.manifest;
  }
  test.text = '';
  clearWalk();
  if (app.view === 'packets') await defaultTest();
  await check();
}

// composed changes one block of the scheme.
const composed = newest(async changed => {
  const c = { ...parts, ...changed };
  if (edited && !confirm('Replace the changed program?')) return showParameters();
  edited = false;
  let s;
  try {
    s = await app.engine.call('scheme', { compose: c, arch: $('arch').value });
  } catch (e) {
    $('checked').textContent = '';
    throw e;
  }
  calm();
  await chooseSource('row:' + s.name);
});
for (const k of kinds) $('b-' + k).onchange = () => composed({ [k]: $('b-' + k).value });

// toNetwork opens an experiment with the program in a network.
async function toNetwork() {
  let text;
  switch (source.kind) {
    case 'row': {
      if (!edited) { text = (await app.engine.call('compare', { schemes: [scheme, 'ecmp'] })).yaml; break; }
      const of = files.find(f => isP4(f.name)), manifest = files.find(f => f.name.endsWith('.manifest.json'));
      const a = await work('Making a scheme', 'adopt', { ...settings(), text: of.text, manifest: manifest && manifest.text !== original ? manifest.text : '' });
      source = { kind: '', name: '' };
      $('source').value = '';
      $('settings').hidden = true;
      $('source-about').textContent = `Your scheme “mine”: your changed program, and the other programs of ${scheme}.`;
      setFiles(a.files.filter(f => !f.name.endsWith('.stf')), a.files.find(f => f.text === of.text).name);
      text = a.yaml;
      break;
    }
    case 'block':
      text = (await app.engine.call('compare', { schemes: [scheme, base, 'ecmp'], blocks: true })).yaml;
      break;
    case 'own':
      text = list.own.find(x => x.name === source.name).files.find(f => f.name === 'experiment.yaml').text;
      break;
    default:
      if (!files.some(f => /manifest\.(ya?ml|json)$/.test(f.name))) {
        const of = main(), m = await work('Guessing a manifest', 'manifest', { name: of.name, text: of.text, files: files.map(isTexts) });
        setFiles([...files, m], m.name);
        edited = true;
        programChanged();
        return say('p4lb has guessed a manifest, which describes tables and registers to the controller. Read it, then press “Run in a network” again.');
      }
      text = (await app.engine.call('compare', { schemes: ['.', 'ecmp'] })).yaml;
  }
  app.openNetwork(text);
}

const choose = newest(async value => {
  const was = source.kind ? source.kind + ':' + source.name : '';
  if (edited && !confirm('Replace the changed program?')) { $('source').value = was; return; }
  await chooseSource(value, true);
});
$('source').onchange = () => choose($('source').value);
$('arch').onchange = newest(async () => { await showParameters(settings().set); await generate(); });
for (const id of ['role', 'paths', 'state-path']) $(id).onchange = newest(generate);
$('generate').onclick = newest(generate);
$('format').onclick = guarded(format);
$('download-p4').onclick = () => download(current.split('/').pop(), program.text);
$('to-packets').onclick = () => show('packets', true);
$('to-network').onclick = newest(toNetwork);

// ——— packets

let steps = [], at = 0, walkedSource = '', walkedText = [];

async function defaultTest() {
  if (source.kind === 'example') { test.text = list.examples.find(x => x.name === source.name).test; return; }
  const mine = source.kind === '' || source.kind === 'own';
  if (mine && !files.some(f => /manifest\.(ya?ml|json)$/.test(f.name))) { test.text = '# Write entries and packets, or add packets by the form below.\n'; return; }
  const s = await work('Planning entries', 'setup', mine ? { name: '.', files: files.map(isTexts) } : settings());
  test.text = s.test;
}

function clearWalk() {
  $('walked').hidden = true;
  $('no-walk').hidden = false;
  program.light(0);
}

async function walk() {
  if (!test.text) await defaultTest();
  const of = main();
  let w;
  test.mark([]);
  try {
    w = await work('Sending packets', 'packets', { name: of.name, text: of.text, files: files.map(isTexts), test: test.text });
  } catch (e) {
    if (e.line) { test.mark([{ line: e.line, col: 1 }]); test.goTo(e.line, 1); }
    throw e;
  }
  if (w.messages.length) { await check(); show('write'); throw new Error('The program does not compile: see the messages below it.'); }
  // Tables that the compiler makes for statements only hide the steps.
  steps = w.steps.filter(s => !(s.kind === 'table miss' && /(^|\.)tbl_/.test(s.name)));
  walkedSource = of.name;
  walkedText = of.text.split('\n');
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
    return el('li', { class: [begin && 'begin', s.changes && 'changed'].filter(Boolean).join(' '), onclick: () => go(i), title: `line ${s.line} of the test, packet ${s.packet}` }, ...label(s), s.kind === 'table hit' ? el('span', { class: 'k' }, ' ' + s.detail) : '');
  }));
  go(0);
}
const shortName = n => n.replace(/^(LbIngress|LbEgress|I|E|MyIngress|MyEgress)\./, '');

// label names a step. An action without a name is a statement of the program.
function label(s) {
  if (statement(s)) return [el('span', { class: 'k' }, `line ${s.source} `), (walkedText[s.source - 1] || '').trim()];
  return [el('span', { class: 'k' }, s.kind + ' '), shortName(s.name || '')];
}
const statement = s => s.kind === 'action' && s.source && s.name === walkedSource.replace(/\.p4$/, '') + s.source;

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
  if (s.source && walkedSource === current) program.light(s.source, true); else program.light(0);
  const parts = [el('h3', {}, `Step ${at + 1} of ${steps.length}: ${statement(s) ? 'statement' : s.kind + ' ' + (s.name || '')}`)];
  if (s.detail && !statement(s)) parts.push(el('p', { class: 'soft' }, s.detail));
  if (s.source) parts.push(el('p', { class: 'soft' }, `${walkedSource}, line ${s.source}: `, el('code', {}, (walkedText[s.source - 1] || '').trim())));
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
const sent = newest(walk), planned = newest(defaultTest);
$('walk').onclick = sent;
$('setup').onclick = planned;
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
$('pcap').onchange = newest(async () => {
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
async function compose() {
  formKinds();
  if (yamlEdited && !confirm('Replace the changed experiment?')) return;
  const v = Object.fromEntries(new FormData(form));
  const schemes = [...form.schemes.selectedOptions].map(o => o.value);
  if (!schemes.length) throw new Error('Choose one or more schemes.');
  const c = await app.engine.call('compose', {
    topology: v.topology, leaves: +v.leaves, spines: +v.spines, hosts: +v.hosts, rate: v.rate, hostRate: v.hostRate, schemes,
    workload: v.workload, pattern: v.pattern, load: +v.load, transport: v.transport, cut: v.cut, seeds: +v.seeds, duration: v.duration, engine: v.engine,
    failure: v.link ? { link: v.link, at: v.from, until: v.until } : null,
    collective: v.kind === 'collective' ? { kind: v.collective, size: v.size, groups: +v.groups, order: v.order } : null,
  });
  yaml.text = c.yaml;
  yamlEdited = false;
  $('experiment').value = '';
  $('experiment-about').textContent = '';
  $('run-command').textContent = c.command;
  $('flags-command').textContent = c.flags;
  $('flags-line').hidden = !c.flags;
}
form.onsubmit = e => e.preventDefault();
form.onchange = guarded(compose);
$('experiment').onchange = () => {
  if (yamlEdited && !confirm('Replace the changed experiment?')) { $('experiment').value = ''; return; }
  chooseExperiment($('experiment').value);
};
function chooseExperiment(name) {
  const x = list.experiments.find(x => x.name === name);
  if (!x) return;
  $('experiment').value = name;
  $('experiment-about').textContent = x.about;
  yaml.text = x.yaml;
  yamlEdited = false;
  $('flags-line').hidden = true;
}

async function run() {
  let r;
  yaml.mark([]);
  try {
    r = await app.run('Running', yaml.text, files.filter(f => !f.made).map(isTexts));
  } catch (e) {
    if (e.messages?.length) report(e.messages, '');
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
    el('div', { class: 'figures' }, ...r.figures.map(f => el('figure', { class: f.wide ? 'wide' : '' }, el('img', { alt: f.title, src: 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(f.svg) }), el('figcaption', {}, f.about)))),
  );
}
app.openNetwork = text => { yaml.text = text; yamlEdited = false; $('experiment').value = ''; $('experiment-about').textContent = ''; $('flags-line').hidden = true; show('network', true); };
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
    view: app.view, source: source.kind && source.kind + ':' + source.name, arch: s.arch, role: s.role, statePath: s.statePath, paths: s.paths, set: s.set,
    ...((edited || !source.kind) && { files: files.filter(f => !f.made).map(f => [f.name, f.text]), open: current }), ...(test.text && { test: test.text }), yaml: yaml.text,
  };
}
async function restore(s) {
  if (s.source) {
    if (s.arch && list.archs.includes(s.arch)) $('arch').value = s.arch;
    if (s.role && list.roles.includes(s.role)) $('role').value = s.role;
    if (s.statePath && list.statePaths.includes(s.statePath)) $('state-path').value = s.statePath;
    if (s.paths) $('paths').value = s.paths;
    await chooseSource(s.source);
    if (source.kind === 'row' && Object.keys(s.set).length) { await showParameters(s.set); await generate(); }
  }
  const mine = s.files || s.program !== undefined && [{ name: s.name || 'program.p4', text: s.program }];
  if (mine && mine.length) {
    if (!s.source) {
      source = { kind: '', name: '' };
      $('source').value = '';
      $('settings').hidden = true;
      $('source-about').textContent = 'Your own files.';
      test.text = '';
      clearWalk();
    }
    edited = true;
    setFiles([...files.filter(f => s.source && f.made), ...mine], s.open);
    programChanged();
  }
  if (s.test !== undefined) test.text = s.test;
  if (s.yaml !== undefined) { yaml.text = s.yaml; yamlEdited = false; $('experiment').value = list.experiments.find(x => x.yaml === s.yaml)?.name || ''; $('experiment-about').textContent = ''; $('flags-line').hidden = true; }
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
    case 'example': await chooseSource((list.own.some(x => x.name === value) ? 'own:' : 'example:') + value); return show('write');
    case 'block': await chooseSource('block:' + value); return show('write');
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
    el('optgroup', { label: 'Schemes of the catalogue' }, ...list.rows.map(r => el('option', { value: 'row:' + r.name }, r.name))),
    el('optgroup', { label: 'Your own load balancer, with a manifest' }, ...list.own.map(o => el('option', { value: 'own:' + o.name }, o.name))),
    el('optgroup', { label: 'Programs' }, ...list.examples.map(e => el('option', { value: 'example:' + e.name }, e.name))),
    el('optgroup', { label: 'Blocks to change' }, ...list.blocks.filter(b => b.name !== 'none').map(b => el('option', { value: `block:${b.kind}-${b.name}` }, `${b.kind} ${b.name}`))),
    el('option', { value: '', hidden: true }, '(your own files)'));
  for (const k of kinds) options($('b-' + k), list.blocks.filter(b => b.kind === k).map(b => [b.name, b.name === 'none' ? 'none' : `${b.name}: ${b.about}`]));
  options($('arch'), list.archs);
  options($('role'), list.roles);
  options($('state-path'), list.statePaths);
  $('paths').max = list.maxPaths;
  options(form.schemes, list.rows.map(r => r.name), ['qall-poly3', 'ecmp']);
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
    if (!files.length) await chooseSource('row:qall-poly3');
    show('write');
  }
  document.documentElement.dataset.ready = 'yes';
  say(`p4lb ${list.version}: ready`);
}
window.onhashchange = guarded(async () => { calm(); await fromAddress(); });
begin().catch(e => { complain(e); say('The playground cannot start.'); document.documentElement.dataset.ready = 'failed'; });
