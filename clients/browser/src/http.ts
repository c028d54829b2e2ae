/** Requests to one collector: bounded answers, nothing but the token told, the same bytes again. */

import { printable, Refused } from "./refusal.ts";

const ATTEMPTS = 8;
const PAUSE = 200; // milliseconds, doubled every time
const PATIENCE = 120_000; // milliseconds for all of an answer
const MOST = 8 << 20; // bytes of an answer

export type Fetch = (url: string, how: RequestInit) => Promise<Response>;
export type Asked = { status: number; document: any };

export class Collector {
  readonly url: string;
  #fetch: Fetch;
  #sleep: (milliseconds: number) => Promise<void>;

  constructor(url: string, fetching?: Fetch, sleep?: (milliseconds: number) => Promise<void>) {
    const { protocol, hostname } = new URL(url);
    const here = ["localhost", "127.0.0.1", "[::1]"].includes(hostname);
    if (protocol !== "https:" && !(protocol === "http:" && here)) {
      throw new Refused("collector", "a collector must have an https:// address");
    }
    this.url = url.replace(/\/+$/, "");
    this.#fetch = fetching ?? ((...given) => fetch(...given));
    this.#sleep = sleep ?? ((milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)));
  }

  /** Ask until the request is granted or refused: lost connections, 5xx and 429 are neither. */
  async ask(method: "GET" | "POST", path: string, token?: string, body?: string): Promise<Asked> {
    for (let attempt = 1; ; attempt += 1) {
      const found = await this.#once(method, path, token, body);
      // Asking again at once is no use where an address has its places already: the person is told.
      const full = found?.document?.error?.code === "too_many_here";
      if (found && found.status < 500 && (found.status !== 429 || full)) {
        if (![200, 201, 202].includes(found.status)) throw new NotGranted(found);
        return found;
      }
      if (attempt === ATTEMPTS || offline()) throw new Refused("collector", "the collector cannot be reached: try again later", "collector");
      await this.pause(Math.min(PAUSE * 2 ** (attempt - 1), 10_000));
    }
  }

  pause(milliseconds: number): Promise<void> {
    return this.#sleep(milliseconds);
  }

  async #once(method: string, path: string, token?: string, body?: string): Promise<Asked | null> {
    const headers: Record<string, string> = {};
    if (token !== undefined) headers.Authorization = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    try {
      const answer = await this.#fetch(this.url + path, {
        method, headers, ...(body === undefined ? {} : { body }),
        signal: AbortSignal.timeout(PATIENCE),
        cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
      });
      return { status: answer.status, document: parsed(await read(answer)) };
    } catch {
      return null;
    }
  }
}

/** No use in trying again before the browser says that it is online. */
function offline(): boolean {
  return typeof navigator !== "undefined" && navigator.onLine === false;
}

/** The body, as far as it is no longer than allowed; else nothing. */
async function read(answer: Response): Promise<string> {
  const reader = answer.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let bytes = 0; reader !== undefined; ) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > MOST) {
      await reader.cancel();
      return "";
    }
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

function parsed(text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The collector said no. */
export class NotGranted extends Refused {
  readonly status: number;
  readonly code: string;

  constructor({ status, document }: Asked) {
    const message = document?.error?.message;
    const code = String(document?.error?.code ?? "").slice(0, 40);
    const detail = typeof message === "string" && message ? printable(message) : `HTTP status ${status}`;
    super("collector", `the collector refused: ${detail}`, `collector-${code}`, { detail });
    this.status = status;
    this.code = code;
  }
}
