import { el } from './dom.js';

// P4 and the languages beside it, by tokens. The first alternative that matches wins.
const P4 = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:[^"\\\n]|\\.)*")|(^[ \t]*#[^\n]*|@\w+)|\b(action|actions|apply|const|control|default|default_action|else|entries|enum|error|exit|extern|false|if|in|inout|key|match_kind|out|package|parser|return|select|size|state|struct|switch|table|this|transition|true|tuple|typedef|type|header|header_union|register|value_set|for|break|continue)\b|\b(bit|int|bool|varbit|void|string|packet_in|packet_out|exact|lpm|ternary|range|optional|selector)\b|\b(\d+[ws])?(0[xXbBoO][\da-fA-F_]+|\d[\d_]*)\b/gm;
const TEST = /(#[^\n]*)|("[^"\n]*")|(\$\w*)|\b(add|setdefault|packet|expect|no_packet|wait|remove|check_counter|check_register|mirroring_add|mc_mgrp_create|mc_node_create|mc_node_associate|register_write|register_read|ghost)\b|()(?!)|()\b(0x[\da-fA-F*]+|\d+)\b/g;
const YAML = /(#[^\n]*)|("(?:[^"\\\n]|\\.)*")|()(?!)|(^[ ]*(?:- )?[\w-]+(?=:)|[\w-]+(?=: ))|()(?!)|()\b(\d[\w.%]*)\b/gm;
const classes = [, 'tc', 'ts', 'tp', 'tk', 'tt', 'tn', 'tn'];

// An Editor is a text area over a layer with colours, underlines and line numbers.
export class Editor {
  constructor(box, { language = 'p4', label, onchange = () => {}, onsave, onrun } = {}) {
    this.language = language;
    this.marks = [];
    this.box = box;
    this.onchange = onchange;
    this.lines = el('div', { class: 'lines', 'aria-hidden': 'true' });
    this.layer = el('pre', { 'aria-hidden': 'true' });
    this.area = el('textarea', { spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', wrap: 'off', 'aria-label': label });
    box.append(this.lines, el('div', { class: 'text' }, this.layer, this.area));
    this.area.oninput = () => { this.marks = []; this.draw(); this.onchange(); };
    this.area.onkeydown = e => {
      const ctrl = e.ctrlKey || e.metaKey;
      if (ctrl && e.key === 's' && onsave) { e.preventDefault(); onsave(); }
      else if (ctrl && e.key === 'Enter' && onrun) { e.preventDefault(); onrun(); }
      else if (e.key === 'Enter' && !ctrl && !e.isComposing) {
        const start = this.text.lastIndexOf('\n', this.area.selectionStart - 1) + 1;
        const indent = /^[ \t]*/.exec(this.text.slice(start, this.area.selectionStart))[0];
        if (indent) { e.preventDefault(); document.execCommand('insertText', false, '\n' + indent); }
      }
    };
    this.draw();
  }

  set language(name) { this.pattern = { p4: P4, test: TEST, yaml: YAML }[name]; }

  // reset goes to the top.
  reset() { this.marks = []; this.lit = 0; this.draw(); this.box.scrollTo(0, 0); this.area.setSelectionRange(0, 0); }

  get text() { return this.area.value; }
  set text(v) {
    if (v === this.text) return;
    this.area.value = v;
    this.marks = [];
    this.draw();
  }

  // replace changes the text and keeps the place, so that undo still works.
  replace(v) {
    if (v === this.text) return;
    const at = this.area.selectionStart, line = this.text.slice(0, at).split('\n').length, top = this.box.scrollTop, left = this.box.scrollLeft;
    this.area.focus({ preventScroll: true });
    this.area.select();
    if (!document.execCommand('insertText', false, v)) this.area.value = v;
    const to = v.split('\n').slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0);
    this.area.setSelectionRange(to, to);
    this.marks = [];
    this.draw();
    this.box.scrollTo(left, top);
  }

  // mark underlines places: {line, col, warning, text}.
  mark(list) { this.marks = list.filter(m => m.line > 0); this.draw(); }
  // light shows one line, 0 for none.
  light(line, scroll) { if (this.lit !== line) { this.lit = line; this.draw(); } if (line && scroll) this.show(line); }

  show(line) {
    const height = this.lines.scrollHeight / Math.max(1, this.text.split('\n').length);
    const y = (line - 1) * height;
    if (y < this.box.scrollTop + height || y > this.box.scrollTop + this.box.clientHeight - 3 * height) this.box.scrollTop = Math.max(0, y - this.box.clientHeight / 3);
  }

  goTo(line, col) {
    const lines = this.text.split('\n');
    const at = lines.slice(0, line - 1).join('\n').length + (line > 1 ? 1 : 0) + byteToChar(lines[line - 1] || '', col - 1);
    this.area.focus({ preventScroll: true });
    this.area.setSelectionRange(at, at);
    this.show(line);
  }

  draw() {
    const text = this.text, lines = text.split('\n');
    const marks = [];
    let from = 0;
    const starts = lines.map(l => { const s = from; from += l.length + 1; return s; });
    for (const m of this.marks) {
      const line = lines[m.line - 1];
      if (line === undefined) continue;
      let a = byteToChar(line, Math.max(0, (m.col || 1) - 1));
      const word = /^(\w+|[^\w\s]+|\s*)/.exec(line.slice(a))[0].length || 1;
      if (a >= line.length) a = Math.max(0, line.length - 1);
      marks.push({ a: starts[m.line - 1] + a, b: starts[m.line - 1] + Math.min(line.length, a + word), warning: m.warning });
    }
    marks.sort((x, y) => x.a - y.a || x.warning - y.warning);
    this.layer.replaceChildren(...pieces(text, this.pattern, marks), '\n');
    const worst = new Map();
    for (const m of this.marks) worst.set(m.line, m.warning && worst.get(m.line) !== 'bad' ? 'warn' : 'bad');
    const numbers = [];
    let plain = '';
    lines.forEach((_, i) => {
      const kind = [worst.get(i + 1), this.lit === i + 1 && 'now'].filter(Boolean).join(' ');
      if (kind) { if (plain) numbers.push(plain); plain = ''; numbers.push(el('span', { class: kind }, String(i + 1)), '\n'); }
      else plain += i + 1 + '\n';
    });
    this.lines.replaceChildren(...numbers, plain);
  }
}

// byteToChar turns a column in bytes of UTF-8 into one of the string.
function byteToChar(line, bytes) {
  let n = 0, i = 0;
  for (const c of line) {
    if (n >= bytes) break;
    const p = c.codePointAt(0);
    n += p < 0x80 ? 1 : p < 0x800 ? 2 : p < 0x10000 ? 3 : 4;
    i += c.length;
  }
  return i;
}

// largest text that is coloured.
const largest = 400000;

function pieces(text, pattern, marks) {
  const out = [];
  let at = 0, k = 0;
  const put = (a, b, cls) => {
    while (a < b) {
      while (k < marks.length && marks[k].b <= a) k++;
      const m = marks[k];
      const end = m ? (a < m.a ? Math.min(b, m.a) : Math.min(b, m.b)) : b;
      const under = m && a >= m.a;
      const names = [cls, under && 'under', under && m.warning && 'warning'].filter(Boolean).join(' ');
      out.push(names ? el('span', { class: names }, text.slice(a, end)) : text.slice(a, end));
      a = end;
    }
  };
  if (text.length <= largest) {
    pattern.lastIndex = 0;
    for (let m; (m = pattern.exec(text));) {
      if (!m[0]) { pattern.lastIndex++; continue; }
      put(at, m.index);
      put(m.index, m.index + m[0].length, classes[m.findIndex((g, i) => i > 0 && g)]);
      at = m.index + m[0].length;
    }
  }
  put(at, text.length);
  return out;
}
