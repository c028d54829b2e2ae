/** What a person's device remembers: the limit, what was spent, and the exact bytes of replies. */

import type { Json } from "./canonical.ts";
import { Refused } from "./refusal.ts";

/** One study on this device. */
export type Letter = {
  url: string;
  plan: Json;
  token: string;
  accepts: string[];
  /** The token is an invitation, which may be used in another browser, too. */
  invited?: boolean;
  task?: Json;
  /** The reply's exact bytes, once they exist. They are never drawn again. */
  body?: string;
  /** Withdraws the reply; it leaves this device only then. */
  secret?: string;
  /** The bytes may have left this device. */
  tried?: boolean;
  /** The study has another reply to the invitation: this one is not sent, or was refused. */
  used?: boolean;
  receipt?: string;
  /** The collector has removed the reply, or never gets it. */
  withdrawn?: boolean;
};

/** All of it. */
export type State = {
  /** What all studies together may cost; null until the person has said so. */
  limit: number | null;
  /** By plan hash: one answer for each study, ever. */
  spent: Record<string, { epsilon: number; at: string }>;
  letters: Record<string, Letter>;
};

/** What a device keeps, and how it keeps tabs and processes apart. `checkStore` of `@dpfda/client/contract` tries one. */
export interface Store {
  /** Reads, decides and writes in one step, durable when it returns; what throws changes nothing. */
  change<T>(work: (state: State) => T): Promise<T>;
  /** Does some work while nobody else who has the same state does work of this key: in no other tab, in no other process. */
  alone<T>(key: string, work: () => Promise<T>): Promise<T>;
}

export const nothing = (): State => ({ limit: null, spent: {}, letters: {} });

/** In memory: for tests, and for people who only want to look. */
export class MemoryStore implements Store {
  #kept = JSON.stringify(nothing());
  #working = new Map<string, Promise<unknown>>();

  alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    const mine = (this.#working.get(key) ?? Promise.resolve()).then(work, work);
    this.#working.set(key, mine);
    return mine;
  }

  async change<T>(work: (state: State) => T): Promise<T> {
    const state = JSON.parse(this.#kept) as State;
    const found = work(state);
    this.#kept = JSON.stringify(state);
    return found;
  }
}

const TABLE = "device";
const KEY = "state";

/** In the browser's own database, which other tabs of this page see too and sites elsewhere do not. */
export class BrowserStore implements Store {
  #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
  }

  /** Open it, and ask the browser not to throw it away when space is short. */
  static async open(name = "dpfda"): Promise<BrowserStore> {
    await navigator.storage?.persist?.();
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
    return new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(new BrowserStore(request.result));
      request.onerror = () => reject(new Refused("budget", "this browser keeps nothing: no budget can be kept either", "storage"));
    });
  }

  async alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    if (!navigator.locks) {
      throw new Refused("budget", "this browser cannot keep two tabs apart: no budget can be kept", "storage");
    }
    return navigator.locks.request(`${this.#database.name} ${key}`, work) as Promise<T>;
  }

  change<T>(work: (state: State) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      // Strict: what was spent is on the disk before anything else happens.
      const step = this.#database.transaction(TABLE, "readwrite", { durability: "strict" });
      const table = step.objectStore(TABLE);
      const read = table.get(KEY);
      let found: T;
      let failure: unknown = new Refused("budget", "the browser could not keep what was spent", "storage");
      read.onsuccess = () => {
        try {
          const state = (read.result as State | undefined) ?? nothing();
          found = work(state);
          table.put(state, KEY);
        } catch (error) {
          failure = error;
          step.abort();
        }
      };
      step.oncomplete = () => resolve(found);
      step.onabort = () => reject(failure);
    });
  }
}
