/**
 * Opens the page without a network, where somebody has drawn a reply that was not sent yet. It serves the page's own
 * files and nothing else: what is asked of the collector never comes here. With a network everything comes from there.
 */

declare const FILES: Record<string, string>; // paths beside this file, and their SHA-256: the build writes them
const worker = self as any; // a service worker's own: the types here are those of pages

const NAME = `dpfda ${JSON.stringify(FILES).length} ${Object.values(FILES).map((hash) => hash.slice(7, 15)).join("")}`;
const address = (path: string): string => new URL(path, self.location.href).href;
const PAGE = address("page");
const known = new Set(Object.keys(FILES).map(address));

/** A file of another build is refused by the browser, and then nothing is kept. */
async function keep(): Promise<void> {
  const cache = await caches.open(NAME);
  await cache.addAll(Object.entries(FILES).map(([path, integrity]) => new Request(address(path), { integrity, cache: "reload" })));
  const [open] = await worker.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (open) await keepPage(await fetch(open.url));
  worker.skipWaiting();
}

/** The page is the same for every study: under one name, so that it is no list of studies. */
async function keepPage(answer: Response): Promise<void> {
  if (answer.ok && !answer.redirected) await (await caches.open(NAME)).put(PAGE, answer);
}

async function forgetOthers(): Promise<void> {
  for (const name of await caches.keys()) if (name.startsWith("dpfda ") && name !== NAME) await caches.delete(name);
  await worker.clients.claim();
}

async function answered(request: Request, kept: string): Promise<Response> {
  try {
    const found = await fetch(request);
    if (kept === PAGE) await keepPage(found.clone());
    return found;
  } catch (error) {
    const found = await caches.match(kept);
    if (!found) throw error;
    return found;
  }
}

self.addEventListener("install", (event: any) => event.waitUntil(keep()));
self.addEventListener("activate", (event: any) => event.waitUntil(forgetOthers()));
self.addEventListener("fetch", (event: any) => {
  const { request } = event;
  if (request.method !== "GET") return;
  if (request.mode === "navigate") event.respondWith(answered(request, PAGE));
  else if (known.has(request.url)) event.respondWith(answered(request, request.url));
});
