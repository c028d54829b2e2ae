"""The client as a package: another application imports it, with types, and needs nothing else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from packed_client import CLIENT, packed_client

PROGRAM = """
import { budget, Client, MemoryStore, Refused, setLimit } from "@dpfda/client";
import type { Curve, Plan } from "@dpfda/client";
import { dayCurve, readFile } from "@dpfda/client/files";

const recording = await readFile(new Blob(["time,bpm\\n00:30,61\\n01:00,60\\n"]));
const { hours, values } = dayCurve(recording, { wanted: "heart rate" });
const curve: Curve = { points: hours, values };

export async function takePart(hash: string, label: string): Promise<string> {
  const store = new MemoryStore();
  await setLimit(store, 5);
  const client = new Client({ url: "https://collector.example", store });
  const plan: Plan = await client.join(hash, { mostEpsilon: 1 });
  const body: string = await client.prepare(hash, { curve, label });
  const { spent } = await budget(store);
  console.log(plan.epsilon, spent.toFixed(1), body.length);
  return client.send(hash);
}

takePart("no hash", "yes").catch((error: unknown) => {
  console.log(error instanceof Refused ? `${error.why}: ${error.message}` : "lost");
});
"""
WRONG = 'import { Client } from "@dpfda/client";\nnew Client({ url: 7 });\n'


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packed_client(tmp_path_factory.mktemp("package"))


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )


def test_its_shape_is_what_tools_expect() -> None:
    """Entry points and types resolve for ESM in Node and for bundlers; nobody may require() it."""
    if not (CLIENT / "node_modules" / "publint").is_dir():
        pytest.skip("the client's tools are not installed (npm ci in clients/browser)")
    told = run(CLIENT, "npm", "run", "--silent", "shape")
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
    assert "All good!" in told.stdout
    assert told.stdout.count("node16 (from ESM): 🟢") == told.stdout.count("bundler: 🟢") == 3


def test_what_is_in_it(home: Path) -> None:
    held = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    names = {"package.json", "README.md", "example/index.html", "example/heart-rate.js"}
    assert names | {"dist/client.js", "dist/files.js", "dist/src/index.d.ts"} <= held
    assert {one for one in held if not one.startswith("dist/")} == names
    assert {Path(one).suffix for one in held} <= {".js", ".ts", ".json", ".md", ".html"}
    about = json.loads((home / "package.json").read_text(encoding="utf-8"))
    assert "dependencies" not in about
    assert "private" not in about


@pytest.mark.parametrize("resolution", ["bundler", "nodenext"])
def test_a_program_is_checked_against_its_types(home: Path, resolution: str) -> None:
    folder = home.parents[2]
    module = "esnext" if resolution == "bundler" else "nodenext"
    options = ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom"]
    options += ["--module", module, "--moduleResolution", resolution, "--types", ""]
    compiler = str(CLIENT / "node_modules" / ".bin" / "tsc")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "user.ts").write_text(PROGRAM)
    done = run(folder, compiler, *options, "user.ts")
    assert done.returncode == 0, done.stdout
    (folder / "wrong.ts").write_text(WRONG)
    assert (
        "is not assignable to type 'string'" in run(folder, compiler, *options, "wrong.ts").stdout
    )


def test_a_program_imports_it(home: Path) -> None:
    folder = home.parents[2]
    (folder / "user.ts").write_text(PROGRAM)
    builder = str(CLIENT / "node_modules" / ".bin" / "esbuild")
    kept = ["--format=esm", "--outfile=user.mjs"]  # types away, imports as they are
    done = run(folder, builder, "user.ts", *kept)
    assert done.returncode == 0, done.stderr
    done = run(folder, "node", "user.mjs")
    assert done.stdout == "form: a study is named by 64 hexadecimal digits\n", done.stderr
