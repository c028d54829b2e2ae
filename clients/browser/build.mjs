/** Builds the bundle that pages load, or the tests (`node build.mjs test`). */

import { mkdirSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none" };

const [what] = process.argv.slice(2);

if (what === "test") {
  mkdirSync("out", { recursive: true });
  await build({ ...common, entryPoints: ["test/vectors.test.ts", "test/client.test.ts"], platform: "node", outdir: "out", outExtension: { ".js": ".mjs" } });
} else {
  const target = what ?? "../../src/dpfda/collector/pages/static/client.js"; // in the wheel: Python users need no Node
  await build({ ...common, entryPoints: ["src/index.ts"], minify: true, outfile: target });
}
