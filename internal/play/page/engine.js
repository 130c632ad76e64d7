// The engine behind the page: a web worker with WebAssembly, or p4lb over HTTP. One
// request runs at a time; stopping it ends the worker, and a new one starts.

const served = document.querySelector('meta[name=engine]').content === 'http';

export class Engine {
  constructor(status) {
    this.status = status; // called with (text, busy, fraction)
    this.next = 0;
    this.waiting = new Map();
    this.memory = 0;
    if (!served) this.start();
    else this.ready = this.call('list', {}).then(list => { this.listing = list; status(`p4lb ${list.version} on this machine`, false); });
  }

  start() {
    this.status('Loading the engine…', false);
    this.ready = new Promise((resolve, reject) => {
      if (typeof WebAssembly === 'undefined') return reject(new Error('This browser has no WebAssembly, which the playground needs. The command p4lb does the same on your machine.'));
      const worker = this.worker = new Worker('worker.js');
      const dead = text => {
        if (worker !== this.worker) return;
        const e = new Error(`The engine has stopped: ${text}`);
        reject(e);
        for (const w of this.waiting.values()) w.reject(e);
        this.waiting.clear();
        worker.terminate();
        this.broken = true;
        this.status('The engine has stopped.', false);
      };
      worker.onerror = e => dead(e.message || 'its script cannot be loaded');
      worker.onmessage = ({ data }) => {
        if (data.dead) return dead(data.dead);
        if (data.ready) { this.broken = false; this.status('Ready', false); return resolve(); }
        const w = this.waiting.get(data.id);
        if (!w) return;
        if (data.progress) return w.progress(data.progress);
        this.memory = Math.max(this.memory, data.memory || 0);
        this.waiting.delete(data.id);
        w.answer(data.answer);
      };
    });
    this.ready.catch(() => {});
    return this.ready;
  }

  // stop ends the running request.
  stop() {
    const stopped = Object.assign(new Error('Stopped.'), { stopped: true });
    const list = [...this.waiting.values()];
    this.waiting.clear();
    if (served) list.forEach(w => w.abort.abort());
    else { this.worker.terminate(); this.start(); }
    list.forEach(w => w.reject(stopped));
  }

  get busy() { return this.waiting.size > 0; }

  async call(name, request, progress = () => {}) {
    const text = served ? await this.post(name, request, progress) : await this.ask(name, request, progress);
    const answer = JSON.parse(text);
    if (answer.error) throw Object.assign(new Error(answer.error), { line: answer.line || 0, messages: answer.messages || [] });
    return answer;
  }

  async ask(name, request, progress) {
    if (this.broken) this.start();
    await this.ready;
    const id = ++this.next;
    return new Promise((answer, reject) => {
      this.waiting.set(id, { answer, reject, progress });
      this.worker.postMessage({ id, name, request: JSON.stringify(request) });
    });
  }

  // post reads lines: messages about progress, then the answer.
  async post(name, request, progress) {
    const id = ++this.next, abort = new AbortController();
    return new Promise((answer, reject) => {
      this.waiting.set(id, { reject, abort });
      (async () => {
        let response;
        try {
          response = await fetch('api/' + name, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(request), signal: abort.signal, credentials: 'same-origin' });
        } catch (e) {
          throw new Error(abort.signal.aborted ? 'Stopped.' : 'p4lb play does not answer: is it still running?');
        }
        if (response.status === 401) throw new Error('p4lb play does not know this browser. Open the address that the command printed, then this page again.');
        if (!response.ok) throw new Error(`p4lb play: ${await response.text()}`);
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        let rest = '';
        for (;;) {
          const { value, done } = await reader.read();
          if (value) rest += value;
          const lines = rest.split('\n');
          rest = lines.pop();
          for (const line of lines) {
            const m = JSON.parse(line);
            if (m.progress) progress(m.progress);
            else if (m.answer !== undefined) { answer(JSON.stringify(m.answer)); return; }
          }
          if (done) throw new Error('p4lb play ended the answer early');
        }
      })().catch(reject).finally(() => this.waiting.delete(id));
    });
  }
}
