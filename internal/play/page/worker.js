'use strict';
// The web worker: it loads the engine and answers one request after the other.
importScripts('wasm_exec.js');

// moduleOf compiles the engine. The file is gzip; some servers deliver it decompressed.
async function moduleOf(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`the engine ${url} cannot be loaded: ${response.status} ${response.statusText}`);
  const reader = response.body.getReader();
  const first = await reader.read();
  const packed = first.value && first.value[0] === 0x1f && first.value[1] === 0x8b;
  let sent = false;
  let stream = new ReadableStream({
    async pull(c) {
      if (!sent) { sent = true; if (first.value) c.enqueue(first.value); if (first.done) c.close(); return; }
      const { value, done } = await reader.read();
      if (done) c.close(); else c.enqueue(value);
    },
  });
  if (packed) {
    if (typeof DecompressionStream === 'undefined') throw new Error('this browser cannot decompress the engine: want Chrome 80, Firefox 113, Safari 16.4 or newer');
    stream = stream.pipeThrough(new DecompressionStream('gzip'));
  }
  return WebAssembly.compileStreaming(new Response(stream, { headers: { 'Content-Type': 'application/wasm' } }));
}

const ready = (async () => {
  if (typeof WebAssembly === 'undefined') throw new Error('this browser has no WebAssembly');
  const go = new Go();
  const started = new Promise(done => { self.p4lbReady = done; });
  const module = await moduleOf('p4lb.wasm.gz');
  const instance = await WebAssembly.instantiate(module, go.importObject);
  go.run(instance).then(() => postMessage({ dead: 'the work needs more memory than its 500 MB. The next request starts a new one.' }), e => postMessage({ dead: String(e) }));
  self.p4lbMemory = () => instance.exports.mem.buffer.byteLength;
  await started;
})();

ready.then(() => postMessage({ ready: true }), e => postMessage({ dead: e.message || String(e) }));

onmessage = async ({ data: { id, name, request } }) => {
  try {
    await ready;
    p4lbCall(name, request,
      text => postMessage({ id, progress: JSON.parse(text) }),
      text => postMessage({ id, answer: text, memory: self.p4lbMemory() }));
  } catch (e) {
    postMessage({ dead: e.message || String(e) });
  }
};
