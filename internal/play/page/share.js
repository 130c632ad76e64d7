// The state of the page in an address or a file: JSON, compressed by deflate.

const maxLink = 60000;        // characters of an address
const maxState = 2 << 20;     // bytes of JSON
const version = 1;

async function pipe(bytes, transform, limit = Infinity) {
  const reader = new Blob([bytes]).stream().pipeThrough(transform).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    if ((size += value.length) > limit) { reader.cancel(); throw new Error('the state in the address is too large'); }
    parts.push(value);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

export async function encode(state) {
  const text = new TextEncoder().encode(JSON.stringify({ v: version, ...state }));
  const packed = await pipe(text, new CompressionStream('deflate-raw'));
  let s = '';
  for (const b of packed) s += String.fromCharCode(b);
  return btoa(s).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '');
}

export async function link(state) {
  const text = await encode(state);
  if (text.length > maxLink) throw new Error(`The page does not fit into a link: ${text.length} characters, want at most ${maxLink}. Save it as a file instead.`);
  return location.href.split('#')[0] + '#s=' + text;
}

export async function decode(text) {
  if (text.length > maxLink) throw new Error(`The address is too long: ${text.length} characters, want at most ${maxLink}.`);
  let bytes;
  try {
    bytes = Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), c => c.charCodeAt(0));
    bytes = await pipe(bytes, new DecompressionStream('deflate-raw'), maxState);
  } catch (e) {
    throw new Error(e.message.startsWith('the state') ? `The address cannot be opened: ${e.message}.` : 'The address is damaged: the part after # is incomplete or changed. Ask for the link again, or for the saved file.');
  }
  return parse(new TextDecoder().decode(bytes));
}

// parse checks the state, so that the page never shows anything but texts and numbers.
export function parse(text) {
  if (text.length > maxState) throw new Error(`The file is too large: want at most ${maxState >> 20} MB.`);
  let s;
  try { s = JSON.parse(text); } catch { throw new Error('This is not a file of the playground.'); }
  if (!s || typeof s !== 'object' || typeof s.v !== 'number') throw new Error('This is not a file of the playground.');
  if (s.v > version) throw new Error(`The state has version ${s.v}, and this page knows ${version}: use a newer playground.`);
  const string = v => typeof v === 'string' ? v : undefined;
  const texts = o => Object.fromEntries(Object.entries(o && typeof o === 'object' ? o : {}).filter(([, v]) => typeof v === 'string'));
  const list = v => Array.isArray(v) && v.length <= 64 && v.every(f => Array.isArray(f) && f.length === 2 && f.every(t => typeof t === 'string')) ? v.map(([name, text]) => ({ name, text })) : undefined;
  return {
    view: ['write', 'packets', 'network', 'learn'].includes(s.view) ? s.view : 'write',
    source: string(s.source), arch: string(s.arch), role: string(s.role), statePath: string(s.statePath),
    paths: Number.isInteger(s.paths) ? s.paths : undefined, set: texts(s.set),
    files: list(s.files), open: string(s.open), name: string(s.name), program: string(s.program), test: string(s.test), yaml: string(s.yaml),
  };
}
