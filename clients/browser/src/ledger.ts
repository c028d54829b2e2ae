/** A person's budget over all studies: checked and spent in one step, once for each study. */

import { decimal } from "./exact.ts";
import { Refused } from "./refusal.ts";
import type { State, Store } from "./store.ts";

type Fraction = [bigint, bigint];

function sum(state: State): Fraction {
  return Object.values(state.spent).reduce<Fraction>(([n, d], { epsilon }) => {
    const [a, b] = decimal(epsilon);
    return [n * b + a * d, d * b];
  }, [0n, 1n]);
}

function within([n, d]: Fraction, limit: number): boolean {
  const [a, b] = decimal(limit);
  return n * b <= a * d;
}

/** Say what all studies together may cost: once. */
export async function setLimit(store: Store, limit: number): Promise<void> {
  if (!(Number.isFinite(limit) && limit > 0)) throw new Refused("budget", "the limit must be a number above 0");
  await store.change((state) => {
    if (state.limit !== null && state.limit !== limit) {
      throw new Refused("budget", `the limit was set to ε = ${state.limit} before, and stays`);
    }
    state.limit = limit;
  });
}

/** What was spent, and the limit. */
export async function budget(store: Store): Promise<{ limit: number | null; spent: number; studies: number }> {
  return store.change((state) => {
    const [n, d] = sum(state);
    return { limit: state.limit, spent: Number((n * 10n ** 12n) / d) / 1e12, studies: Object.keys(state.spent).length };
  });
}

/** Spend a study's ε, or refuse with nothing spent. It is on the disk when this returns. */
export async function spend(store: Store, study: string, epsilon: number): Promise<void> {
  await store.change((state) => {
    const reason = refusal(state, study, epsilon);
    if (reason) throw reason;
    state.spent[study] = { epsilon, at: new Date().toISOString() };
  });
}

/** Why a study cannot be paid for; null where it can. */
export function refusal(state: State, study: string, epsilon: number): Refused | null {
  if (!(Number.isFinite(epsilon) && epsilon > 0)) return new Refused("budget", "ε must be a number above 0");
  if (state.limit === null) return new Refused("budget", "say first what all studies together may cost");
  if (Object.hasOwn(state.spent, study)) return new Refused("budget", "this study was answered before: one answer is all it gets", "here");
  const more: State = { ...state, spent: { ...state.spent, [study]: { epsilon, at: "" } } };
  if (within(sum(more), state.limit)) return null;
  const limit = state.limit;
  return new Refused("budget", `ε = ${epsilon} is more than is left of the limit of ε = ${limit}`, "limit", { epsilon, limit });
}
