"""Runs the R code of docs/guides/from-r.md with Rscript and writes what it prints below it.

    python tools/from_r.py

Rscript must be installed (r-base-core of Debian). The blocks run one after the other with real
noise, so the output is that of one run. A block that begins with ``library(ggplot2)`` is left out
where ggplot2 is not installed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "from-r.md"
BLOCK = re.compile(
    r'^```r\n(?P<code>.*?)^```\n(\n```text title="prints, for example"\n.*?^```\n)?',
    re.MULTILINE | re.DOTALL,
)
MARK = "-- block --"


def main() -> None:
    """Run all blocks in one session, and write the page."""
    text = PAGE.read_text(encoding="utf-8")
    codes = [found["code"] for found in BLOCK.finditer(text)]
    session = f'\ncat("\\n{MARK}\\n")\n'.join(map(_runnable, codes))
    own = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "page.R")
        script.write_text("options(width = 100)\n" + session, encoding="utf-8")
        done = subprocess.run(
            ["Rscript", str(script)],
            cwd=folder,
            env=os.environ | {"PATH": own},
            check=False,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise SystemExit(done.stderr)
    printed = iter(part.strip("\n") for part in done.stdout.split(MARK))

    def shown(found: re.Match[str]) -> str:
        output = next(printed)
        below = f'\n```text title="prints, for example"\n{output}\n```\n' if output else ""
        return f"```r\n{found['code']}```\n{below}"

    PAGE.write_text(BLOCK.sub(shown, text), encoding="utf-8")
    print(f"{PAGE.name}: {len(codes)} blocks ran")


def _runnable(code: str) -> str:
    if "library(ggplot2)" in code:
        return f'if (requireNamespace("ggplot2", quietly = TRUE)) {{\n{code}}}\n'
    return code


if __name__ == "__main__":
    main()
