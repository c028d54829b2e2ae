/** What a store must do, as a check of one: for apps that keep a device's state elsewhere than in a browser. */

import type { Store } from "./store.ts";

const ROUNDS = 20;

/**
 * Resolves if a store does what the client relies on, rejects with what it does not.
 *
 * @param open opens the same, empty state every time, as another tab or the next start of an app does.
 */
export async function checkStore(open: () => Promise<Store>): Promise<void> {
  const one = await open();
  const other = await open();
  const first = await one.change((state) => structuredClone(state));
  require(first.limit === null && Object.keys(first.spent).length === 0 && Object.keys(first.letters).length === 0, "a new state is that of `nothing()`");

  const at = new Date(0).toISOString();
  require((await one.change((state) => ((state.spent.a = { epsilon: 0.1, at }), (state.limit = 5), "told"))) === "told", "`change` returns what the work returns");
  require((await other.change((state) => state.spent.a?.epsilon)) === 0.1, "what was written is there for whoever opens the store again");

  const wrong = new Error("on purpose");
  const thrown = await one.change((state) => { state.limit = 7; throw wrong; }).then(() => null, (error: unknown) => error);
  require(thrown === wrong, "`change` rejects with what the work throws");
  require((await other.change((state) => state.limit)) === 5, "work that throws changes nothing");

  const both = [one, other];
  await Promise.all(Array.from({ length: ROUNDS }, (_, k) => both[k % 2]!.change((state) => void (state.limit = state.limit! + 1))));
  require((await one.change((state) => state.limit)) === 5 + ROUNDS, "changes at the same time do not lose each other");

  let working = 0;
  let most = 0;
  const work = async (): Promise<void> => {
    most = Math.max(most, (working += 1));
    await new Promise((resolve) => setTimeout(resolve, 2));
    working -= 1;
  };
  await Promise.all(Array.from({ length: ROUNDS }, (_, k) => both[k % 2]!.alone("a", work)));
  require(most === 1, "work of one key is never done twice at the same time");
  require((await one.alone("a", () => Promise.reject(wrong)).then(() => null, (error: unknown) => error)) === wrong, "`alone` rejects with what the work rejects with");
  require((await other.alone("a", async () => "next")) === "next", "work that fails lets the next one in");
  require((await one.alone("a", () => other.alone("b", async () => "inner"))) === "inner", "work of different keys does not wait for each other");
}

function require(holds: boolean, rule: string): void {
  if (!holds) throw new Error(`the store breaks a rule: ${rule}`);
}
