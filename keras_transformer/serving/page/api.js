// Requests to the server that this page came from.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Return a route's answer. While the server is busy or cannot be reached, tell `say` and try again,
// until `signal` is aborted. Throw Refused with the server's message if it refuses the request.
export async function ask(path, { body, signal, say } = {}) {
  return await (await answer(path, options(body, signal), signal, say)).json();
}

// Like `ask`, with the key in a header, which all routes accept.
export async function askWithKey(path, { body, signal, say } = {}) {
  return await (await answer(path, withKeyInHeader(body, signal), signal, say)).json();
}

// Yield the chunks of a streamed answer of OpenAI's API. Waiting and errors are those of `ask`.
export async function* askForChunks(path, { body, signal, say } = {}) {
  const request = withKeyInHeader({ ...body, stream: true }, signal);
  yield* eventsOf(await answer(path, request, signal, say));
}

// Yield the events of a route that streams its answer.
export async function* askForEvents(path, { body, signal, say } = {}) {
  yield* eventsOf(await answer(path, options(body, signal), signal, say));
}

// Yield the server-sent events of a response, up to "[DONE]".
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the connection was lost");
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const data = event.slice("data: ".length);
      if (data === "[DONE]") return;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Refused(500, chunk.error.message);
      yield chunk;
    }
  }
}

async function answer(path, request, signal, say = () => {}) {
  for (;;) {
    let wait = 3;
    let words = "The server cannot be reached.";
    try {
      const response = await fetch(path, request);
      if (response.ok) return response;
      if (response.status !== 429) throw new Refused(response.status, await reason(response));
      wait = Number(response.headers.get("Retry-After")) || 5;
      words = "The server is busy.";
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // TypeError: fetch found no network
    }
    say(`${words} Trying again in ${wait} s.`);
    await pause(wait, signal);
  }
}

export function storedKey() {
  return sessionStorage.getItem("api_key") ?? "";
}

export function storeKey(key) {
  sessionStorage.setItem("api_key", key);
}

function options(body, signal) {
  if (!body) return { signal };
  const key = storedKey();
  if (body instanceof FormData) {
    if (key) body.set("api_key", key);
    return { method: "POST", body, signal };
  }
  return {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(key ? { ...body, api_key: key } : body),
    signal,
  };
}

// The routes of OpenAI's API and of other tasks accept the key only in a header.
function withKeyInHeader(body, signal) {
  const headers = { "Content-Type": "application/json" };
  if (storedKey()) headers.Authorization = `Bearer ${storedKey()}`;
  return { method: "POST", headers, body: JSON.stringify(body), signal };
}

async function reason(response) {
  const { error } = await response.json().catch(() => ({}));
  return error?.message ?? error ?? `${response.status} ${response.statusText}`;
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
