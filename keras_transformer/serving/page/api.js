// Requests to the server that this page came from.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Return a route's answer. While the server is busy or cannot be reached, tell `say` and try again,
// until `signal` is aborted. Throw Refused with the server's message if it refuses the request.
export async function ask(path, { body, signal, say = () => {} } = {}) {
  for (;;) {
    let wait = 3;
    let words = "The server cannot be reached.";
    try {
      const response = await fetch(path, options(body, signal));
      if (response.ok) return await response.json();
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

async function reason(response) {
  const { error } = await response.json().catch(() => ({}));
  return error ?? `${response.status} ${response.statusText}`;
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
