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
  /** The bytes may have left this device. */
  tried?: boolean;
  /** The study has another reply to the invitation: this one is not sent, or was refused. */
  used?: boolean;
  receipt?: string;
};

/** All of it. */
export type State = {
  /** What all studies together may cost; null until the person has said so. */
  limit: number | null;
  /** By plan hash: one answer for each study, ever. */
  spent: Record<string, { epsilon: number; at: string }>;
  letters: Record<string, Letter>;
};

/** Keeps the state. `change` reads, decides and writes in one step; what throws changes nothing. */
export interface Store {
  /** No two stores of a browser have the same: tabs that share a store wait for each other. */
  readonly name: string;
  change<T>(work: (state: State) => T): Promise<T>;
}

export const nothing = (): State => ({ limit: null, spent: {}, letters: {} });

let made = 0;

/** In memory: for tests, and for people who only want to look. */
export class MemoryStore implements Store {
  readonly name = `memory ${(made += 1)}`;
  #kept = JSON.stringify(nothing());

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
  readonly name: string;
  #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.name = database.name;
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
