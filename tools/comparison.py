"""Write docs/project/comparison.md from what `dpfda bench comparison` measured.

dpfda bench comparison --json > comparison.json
python tools/comparison.py comparison.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dpfda_bench.benchmarks.comparison import DELTAS, EPSILONS, METHODS, rivals_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "project" / "comparison.md"
LIBRARIES = list(METHODS["classes"])
ASKED = {
    "classes": "share of wrong classes on 10 % of the rows, left out",
    "numbers": "root mean squared error on 10 % of the rows, left out; the target has range 1",
    "curves": "share of wrong classes on 10 % of the curves, left out",
    "mean": "root mean squared error of the mean curve, in units of the curves",
}
HEAD = """# Comparison with other libraries

The same public data, the same ε and δ, and the lines that a user of each library writes
(`bench/dpfda_bench/rival_methods.py`): diffprivlib 0.6.6, OpenDP and, without privacy,
scikit-learn. These commands measure it and write this page:

```text
python -m venv rivals && rivals/bin/pip install diffprivlib==0.6.6 scikit-learn==1.5.2
DPFDA_DIFFPRIVLIB=rivals/bin/python dpfda bench comparison --json > comparison.json
python tools/comparison.py comparison.json
```

diffprivlib needs an older scikit-learn than this package, hence an environment of its own; without
it, the benchmark leaves it out and says so. diffprivlib has pure ε only: its numbers are the same
for both kinds of guarantee. OpenDP has no estimators for these tasks; its users write them from
noisy sums. Ranges are public round numbers, and equal for all libraries. Errors are means over
three random splits (for means, over three draws of noise).
"""


def page(measured: dict[str, Any]) -> str:
    """The whole page."""
    rows = measured["rows"]
    facts = measured["machine"].items()
    machine = ", ".join(f"{key} {value}" for key, value in facts if key != "platform")
    return "\n".join([HEAD, *_errors(rows), *_read(rows), *_costs(rows), f"Machine: {machine}.\n"])


def _errors(rows: list[dict[str, Any]]) -> list[str]:
    lines = []
    for kind, asked in ASKED.items():
        own = [row for row in rows if row["asked"] == kind]
        libraries = [one for one in LIBRARIES if any(row["library"] == one for row in own)]
        lines += [f"## {_TITLES[kind]}", "", f"Error: {asked}, ± its standard error.", ""]
        lines += ["| data | rows | guarantee | " + " | ".join(libraries) + " |"]
        lines += ["|---" * (3 + len(libraries)) + "|"]
        for data in dict.fromkeys(row["data"] for row in own):
            here = [row for row in own if row["data"] == data]
            for epsilon in EPSILONS:
                for word in DELTAS:
                    cells = [_cell(here, library, epsilon, word) for library in libraries]
                    told = (
                        f"{data} | {here[0]['rows']} | ε = {epsilon:g}, {word.removesuffix(' ε')}"
                    )
                    lines.append(f"| {told} | {' | '.join(cells)} |")
        lines.append("")
    return lines


_TITLES = {
    "classes": "Tables: two classes",
    "numbers": "Tables: a number",
    "curves": "Curves: classes",
    "mean": "Curves: the mean",
}


def _short(word: str) -> str:
    return word.removesuffix(" ε")


def _cell(rows: list[dict[str, Any]], library: str, epsilon: float, word: str) -> str:
    """The row with this guarantee, or with a stronger one."""
    for found in (word, "pure ε"):
        for row in rows:
            same = row["library"] == library and row["guarantee"] == found
            if same and row["epsilon"] in (epsilon, None, float("inf"), "inf"):
                spread = float(f"{row['standard_error']:.1g}")
                return f"{row['error']:.3g} ± {spread:g}"
    return "–"


def _read(rows: list[dict[str, Any]]) -> list[str]:
    """What the tables show, counted."""
    own = [row for row in rows if row["library"] == "dpfda"]
    best, behind = 0, []
    for row in own:
        other = min(rivals_of(row, rows), key=lambda one: float(one["error"]))
        best += row["error"] <= other["error"]
        apart = row["error"] - other["error"]
        if apart > 2 * (row["standard_error"] ** 2 + other["standard_error"] ** 2) ** 0.5:
            told = f"{row['data']} at ε = {row['epsilon']:g}, {_short(row['guarantee'])}"
            behind.append(f"{told} ({other['library']})")
    text = f"dpfda has the smallest private error in {best} of {len(own)} cells. "
    text += (
        f"Another library is better by more than two standard errors for {'; '.join(behind)}."
        if behind
        else "No other library is better by more than two standard errors anywhere."
    )
    return ["## What this shows", "", text, ""]


def _costs(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["## Lines and seconds", ""]
    lines += ["Lines of code that a user writes, and the median seconds of a fit.", ""]
    lines += ["| data | " + " | ".join(LIBRARIES) + " |", "|---" * (1 + len(LIBRARIES)) + "|"]
    for data in dict.fromkeys(row["data"] for row in rows):
        cells = []
        for library in LIBRARIES:
            same = [row for row in rows if (row["data"], row["library"]) == (data, library)]
            seconds = sorted(row["seconds"] for row in same)
            told = f"{same[0]['lines']} lines, {seconds[len(seconds) // 2]:.2g} s" if same else "–"
            cells.append(told)
        lines.append(f"| {data} | {' | '.join(cells)} |")
    return [*lines, ""]


if __name__ == "__main__":
    PAGE.write_text(
        page(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), encoding="utf-8"
    )
