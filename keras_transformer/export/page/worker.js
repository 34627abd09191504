// The translator in a thread of its own, so that the page stays responsive.
//
// It answers messages { id, task, ...fields } with { id, progress } any number of times, then with
// { id, result } or { id, error }. The task "cancel" ends the one with its id.

import { Graphs } from "./graphs.js";
import { LoadError, loadFiles, loadJson, missing, openCache } from "./loading.js";
import { continued } from "./policy.js";
import { Translator } from "./translator.js";

const RUNTIME = "runtime/ort.wasm.bundle.min.mjs";
const BINARY = "runtime/ort-wasm-simd-threaded.wasm.gz";
const GRAPHS = ["model/encoder.onnx.gz", "model/decoder.onnx.gz"];
const running = new Map(); // abort controllers by id
let translator = null;

// Let messages arrive, and stop if one of them has cancelled the task.
function pauses(signal) {
  const { port1, port2 } = new MessageChannel();
  return async () => {
    const arrived = new Promise((resolve) => (port1.onmessage = resolve));
    port2.postMessage(null);
    await arrived;
    signal.throwIfAborted();
  };
}

const tasks = {
  async load(_, signal, progress) {
    const { version, files } = await loadJson("files.json", signal);
    const cache = await openCache(version);
    const contents = await loadFiles(files, cache, signal, (done, total) => progress({ done, total }));
    const facts = JSON.parse(new TextDecoder().decode(contents["model/translator.json.gz"]));
    const runtime = await import(`./${RUNTIME}`).catch((error) => {
      throw missing(RUNTIME, `cannot be run (${error.message})`);
    });
    Object.assign(runtime.env.wasm, { numThreads: 1, wasmBinary: contents[BINARY].buffer });
    const graphs = await Graphs.load(runtime, ...GRAPHS.map((name) => contents[name])).catch((error) => {
      throw new LoadError(`The model cannot be run by this browser: ${error.message}`);
    });
    signal.throwIfAborted();
    const [source, target] = ["source", "target"].map((side) => contents[`model/${side}.spm.gz`]);
    translator = new Translator(graphs, facts, { source, target });
    const pairs = facts.directions.map(({ source, target }) => ({ source, target }));
    return { name: facts.name, directions: pairs, isKept: cache !== null };
  },

  async translate({ text, source, target }, signal) {
    return translator.nbest(text, translator.direction(source, target), pauses(signal));
  },

  async continue({ text, written, isWhole, source, target }, signal) {
    const direction = translator.direction(source, target);
    return continued(translator, text, written, isWhole, direction, pauses(signal));
  },

  async attention({ text, translation, source, target }, signal) {
    const direction = translator.direction(source, target);
    const pause = pauses(signal);
    const best = translation ?? (await translator.nbest(text, direction, pause))[0].text;
    return translator.attention(text, best, direction, pause);
  },
};

addEventListener("message", async ({ data: { id, task, ...fields } }) => {
  if (task === "cancel") return running.get(id)?.abort();
  const controller = new AbortController();
  running.set(id, controller);
  try {
    const progress = (values) => postMessage({ id, progress: values });
    postMessage({ id, result: await tasks[task](fields, controller.signal, progress) });
  } catch (error) {
    const isKnown = error instanceof LoadError || controller.signal.aborted;
    postMessage({ id, error: isKnown ? error.message : `Something went wrong: ${error.message}` });
  } finally {
    running.delete(id);
  }
});
