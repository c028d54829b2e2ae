/** Taking part in a study from a browser: what the Python client does, to the bit. */

export { canonical, hashOf, type Json } from "./canonical.ts";
export { asks, readTask } from "./designs.ts";
export { drawn, encode, outside, type Curve, type Encoder } from "./encoder.ts";
export { channelsOf, domainOf, readPlan, type Information, type Plan } from "./plan.ts";
export { Refused } from "./refusal.ts";
export { answer, truth, type Task } from "./tasks.ts";
export { secure, type Source } from "./words.ts";
export { assumptions, Client, features, InvitationUsed, labelNumber, type Options } from "./client.ts";
export { NotGranted } from "./http.ts";
export { budget, setLimit } from "./ledger.ts";
export { BrowserStore, MemoryStore, type Letter, type State, type Store } from "./store.ts";
