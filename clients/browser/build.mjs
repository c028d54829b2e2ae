/**
 * Builds what pages load, into a folder (by default the Python package's); `node build.mjs test`
 * the tests, `node build.mjs dist` what other web applications import.
 */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none" };
const pages = "../../src/dpfda/collector/pages/static"; // in the wheel: nobody needs Node
const [what = pages] = process.argv.slice(2);

/** A page loads the client as the file that other pages may load too. */
const apart = {
  name: "apart",
  setup(made) {
    made.onResolve({ filter: /src\/index\.ts$/ }, ({ kind }) => (kind === "entry-point" ? null : { path: "./client.js", external: true }));
  },
};

if (what === "test") {
  rmSync("out", { recursive: true, force: true });
  const tests = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  await build({ ...common, entryPoints: tests, platform: "node", outdir: "out", outExtension: { ".js": ".mjs" } });
} else if (what === "dist") {
  rmSync("dist", { recursive: true, force: true });
  await build({ ...common, entryPoints: { client: "src/index.ts", contract: "src/contract.ts", files: "files/index.ts" }, outdir: "dist" });
} else {
  await build({ ...common, minify: true, entryPoints: ["src/index.ts"], outfile: `${what}/client.js` });
  await build({ ...common, minify: true, entryPoints: ["page/take_part.ts"], plugins: [apart], outfile: `${what}/take-part.js` });
  const files = { "client.js": what, "take-part.js": what, "take-part.css": pages, "take-part.webmanifest": pages, "icon.svg": pages };
  const hashed = ([name, folder]) => [`../static/${name}`, `sha256-${createHash("sha256").update(readFileSync(`${folder}/${name}`)).digest("base64")}`];
  const define = { FILES: JSON.stringify(Object.fromEntries(Object.entries(files).map(hashed))) };
  await build({ ...common, minify: true, entryPoints: ["page/worker.ts"], define, outfile: `${what}/worker.js` });
}
