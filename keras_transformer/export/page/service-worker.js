// Keeps the page for use without a network. The export adds VERSION, a hash of all files, and PAGE,
// the names of the small ones; loading.js keeps the large ones in the same cache.

const PREFIX = `keras_transformer ${registration.scope} `;

addEventListener("install", (event) => {
  const requests = PAGE.map((name) => new Request(name, { cache: "reload" }));
  event.waitUntil(caches.open(PREFIX + VERSION).then((cache) => cache.addAll(requests)));
});

addEventListener("activate", (event) => {
  const isOld = (name) => name.startsWith(PREFIX) && name !== PREFIX + VERSION;
  const removal = caches.keys().then((names) => Promise.all(names.filter(isOld).map((x) => caches.delete(x))));
  event.waitUntil(removal);
});

addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET" || !url.startsWith(registration.scope)) return;
  event.respondWith(answer(event.request));
});

async function answer(request) {
  const cache = await caches.open(PREFIX + VERSION);
  return (await cache.match(request, { ignoreSearch: true })) ?? fetch(request);
}
