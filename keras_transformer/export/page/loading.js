// Loading of the model and the runtime, from what an earlier visit kept, else from the host.

const WORDS = {
  runtime: "The runtime cannot be loaded",
  model: "The model cannot be loaded",
  other: "The page cannot be loaded",
};
const GZIP = [0x1f, 0x8b]; // first bytes

// An error whose message is a sentence for the reader of the page.
export class LoadError extends Error {}

const kindOf = (name) => (name.startsWith("runtime/") ? "runtime" : name.startsWith("model/") ? "model" : "other");

export function missing(name, why) {
  const words = `${WORDS[kindOf(name)]}: ${name} ${why}.`;
  return new LoadError(`${words} The folder that the export wrote is needed as a whole.`);
}

// Return the Cache in which files are kept; null if the browser keeps none, as on plain http.
export async function openCache(version) {
  try {
    return await caches.open(`keras_transformer ${new URL("./", import.meta.url)} ${version}`);
  } catch {
    return null;
  }
}

export async function loadJson(name, signal) {
  const response = await request(name, signal);
  try {
    return await response.json();
  } catch {
    throw missing(name, "is not valid JSON");
  }
}

// Return the content of each file by name. `progress(done, total)` is called with numbers of bytes.
export async function loadFiles(files, cache, signal, progress) {
  const done = Object.fromEntries(Object.keys(files).map((name) => [name, 0]));
  const total = Object.values(files).reduce((sum, { bytes }) => sum + bytes, 0);
  const report = (name, bytes) => {
    done[name] = Math.min(bytes, files[name].bytes); // a host that unpacks sends more
    progress(Object.values(done).reduce((x, y) => x + y), total);
  };
  const load = async (name) => {
    const content = await loadFile(name, files[name], cache, signal, (bytes) => report(name, bytes));
    report(name, files[name].bytes);
    return [name, content];
  };
  return Object.fromEntries(await Promise.all(Object.keys(files).map(load)));
}

async function loadFile(name, { unpacked }, cache, signal, report) {
  const kept = await cache?.match(urlOf(name));
  if (kept) {
    const content = await unpack(new Uint8Array(await kept.arrayBuffer())).catch(() => null);
    if (content?.length === unpacked) return content;
  }
  const response = await request(name, signal);
  const packed = await read(response, name, report);
  const content = await unpack(packed).catch(() => null);
  if (content?.length !== unpacked) throw missing(name, "is damaged");
  await cache?.put(urlOf(name), new Response(packed)).catch(() => {}); // no room: load it again next time
  return content;
}

const urlOf = (name) => new URL(name, import.meta.url).href;

async function request(name, signal) {
  let response;
  try {
    response = await fetch(urlOf(name), { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw missing(name, `does not arrive (${error.message}); is there a connection?`.replace("?", ""));
  }
  if (!response.ok) throw missing(name, `is missing (status ${response.status})`);
  return response;
}

async function read(response, name, report) {
  const chunks = [];
  let size = 0;
  try {
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      chunks.push(value);
      report((size += value.length));
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw missing(name, "did not arrive whole");
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

// Unpack what is packed with gzip; some hosts have done so already.
async function unpack(bytes) {
  if (!GZIP.every((byte, i) => bytes[i] === byte)) return bytes;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
