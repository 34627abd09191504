// The page's side of the worker that translates.

// Bytes of a WebAssembly module with an instruction of SIMD, `i8x16.popcnt`.
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15,
  253, 98, 11,
];

// Return why this browser cannot translate, as a sentence; "" if it can.
export function whyNot() {
  const needs = "Chrome and Edge 91, Firefox 114, Safari 16.4 and later versions can.";
  if (globalThis.WebAssembly?.validate(new Uint8Array(SIMD)) !== true) {
    return `This browser cannot translate here: it lacks WebAssembly with SIMD. ${needs}`;
  }
  if (!globalThis.DecompressionStream) {
    return `This browser cannot translate here: it cannot unpack files. ${needs}`;
  }
  return "";
}

export class Client {
  constructor() {
    this.waiting = new Map(); // calls without an answer, by id
    this.count = 0;
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.worker.addEventListener("message", ({ data }) => this.hear(data));
    this.worker.addEventListener("error", (event) => {
      event.preventDefault();
      const error = new Error("A part of the page is missing: reload it, or export it again.");
      for (const { reject } of this.waiting.values()) reject(error);
      this.waiting.clear();
    });
  }

  // Do a task of worker.js; an abort of `signal` ends it.
  ask(task, fields = {}, { signal, progress } = {}) {
    const id = this.count++;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      this.waiting.set(id, { resolve, reject, progress });
      this.worker.postMessage({ id, task, ...fields });
      signal?.addEventListener("abort", () => {
        this.waiting.delete(id);
        this.worker.postMessage({ id, task: "cancel" });
        reject(signal.reason);
      });
    });
  }

  hear({ id, progress, result, error }) {
    const call = this.waiting.get(id);
    if (!call) return;
    if (progress) return call.progress?.(progress);
    this.waiting.delete(id);
    if (error === undefined) call.resolve(result);
    else call.reject(new Error(error));
  }
}
