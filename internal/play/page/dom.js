// Small helpers for the document.

export const $ = id => document.getElementById(id);

// el makes an element: el('a', {href: '#'}, 'text', child…).
export function el(name, props = {}, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(props)) {
    if (k === 'class') e.className = v;
    else if (k.startsWith('on')) e[k] = v;
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? '' : v);
  }
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}

export function svg(name, props = {}, ...children) {
  const e = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [k, v] of Object.entries(props)) e.setAttribute(k, v);
  e.append(...children);
  return e;
}

export function options(select, list, chosen) {
  select.replaceChildren(...list.map(o => {
    const [value, text] = Array.isArray(o) ? o : [o, o];
    return el('option', { value, selected: [].concat(chosen ?? []).includes(value) }, text);
  }));
}

export function download(name, text, type = 'text/plain') {
  const url = URL.createObjectURL(new Blob([text], { type }));
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// table makes a table of rows of cells, under a row of heads. about has the definitions
// of the metrics, which stand before the comparison of the last column.
export function table(rows, about = []) {
  const head = rows[0], last = / vs this scheme$/.test(head[head.length - 1]) ? 1 : 0, first = head.length - last - about.length;
  return el('div', { class: 'scroll' }, el('table', {},
    el('thead', {}, el('tr', {}, ...head.map((h, i) => el('th', { title: i >= first ? about[i - first] : undefined, scope: 'col' }, h)))),
    el('tbody', {}, ...rows.slice(1).map(r => el('tr', {}, ...r.map(c => el('td', {}, c)))))));
}
