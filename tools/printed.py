"""Write below each code block of the documentation what it prints.

    python tools/printed.py PAGE ...     for example docs/guides/*.md

Each page is run three times, each time in a new process. Output that is the same every time is
written below its block, in a block ``text title="prints"``, and the test `test_code_blocks_run`
compares it with what the code prints. Output that depends on real noise or on the time is written
once, in a block ``text title="prints, for example"``. If three runs may agree by chance, write
``<!-- output varies -->`` below the block, and nothing is shown.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_FENCE = r"^```(?:python|pycon)[^\n]*\n(?P<code>.*?)^```\n"
_SHOWN = r'\n```text title="prints"\n(?P<output>.*?)^```\n'
_EXAMPLE = r'\n```text title="prints, for example"\n(?P<example>.*?)^```\n'
_VARIES = r"\n(?P<varies><!-- output varies -->)\n"
BLOCK = re.compile(f"{_FENCE}(?:{_SHOWN}|{_EXAMPLE}|{_VARIES})?", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e-?\d+)?")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")  # output that contains one varies
RUNS = 3
MOST_LINES = 25  # longer output is not shown


@dataclass(frozen=True)
class Block:
    """A block of Python code, and the output that the page shows below it, if any."""

    line: int
    code: str
    output: str | None

    @property
    def is_doctest(self) -> bool:
        """Whether the code is a session with prompts, which shows its own output."""
        return self.code.lstrip().startswith(">>>")


def blocks(text: str) -> list[Block]:
    """All blocks of Python code of a page."""
    return [
        Block(text.count("\n", 0, found.start("code")), found["code"], found["output"])
        for found in BLOCK.finditer(text)
    ]


def printed(block: Block, namespace: dict[str, object], name: str) -> str:
    """Run a block and return its standard output."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        # Blank lines in front make a traceback show the line of the page.
        exec(compile("\n" * block.line + block.code, name, "exec"), namespace)
    return output.getvalue()


def same(one: str, other: str) -> bool:
    """Whether two outputs agree, numbers up to one unit of their last digit.

    Examples:
        >>> same("error 0.12", "error 0.13"), same("error 0.12", "error 0.14")
        (True, False)
    """
    if NUMBER.sub("#", one).split() != NUMBER.sub("#", other).split():
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= max(_unit(a), _unit(b)) for a, b in pairs)


def _unit(number: str) -> float:
    """The unit of the last digit, or a millionth of a longer number; integers must agree."""
    digits, _, exponent = number.partition("e")
    decimals = len(digits.partition(".")[2])
    last = float(f"1e{int(exponent or 0) - decimals}") * 1.0001  # for the rounding of doubles
    return max(last, 1e-6 * abs(float(number))) if decimals else 0.0


def outputs(page: Path) -> list[str]:
    """What each block of the page prints when the page is run in an empty folder."""
    command = [sys.executable, "-W", "ignore", __file__, "--run", str(page)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def run(page: Path) -> list[str]:
    """The same in this process and folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    return [
        "" if block.is_doctest else printed(block, namespace, str(page))
        for block in blocks(page.read_text(encoding="utf-8"))
    ]


def main() -> None:
    """Write the output into the pages that are named."""
    if sys.argv[1:2] == ["--run"]:
        print(json.dumps(run(Path(sys.argv[2]))))
        return
    for page in map(Path, sys.argv[1:]):
        path = page.resolve()
        runs = list(zip(*(outputs(path) for _ in range(RUNS)), strict=True))
        text, rest = path.read_text(encoding="utf-8"), iter(runs)
        text = BLOCK.sub(lambda found, rest=rest: _with_output(found, next(rest)), text)
        path.write_text(text, encoding="utf-8")
        print(f"{page}: {sum(bool(own[0]) for own in runs)} blocks print", flush=True)


def _with_output(found: re.Match[str], outputs: tuple[str, ...]) -> str:
    """A block of code, with its output if it is to be shown."""
    code, output = found.string[found.start() : found.end("code")] + "```\n", outputs[0]
    varies = len(set(outputs)) > 1 or TIME.search(output) is not None
    if found["varies"] or (varies and found["example"]):
        return found[0]
    if not output.strip() or output.count("\n") > MOST_LINES:
        return code
    title = "prints, for example" if varies else "prints"
    return f'{code}\n```text title="{title}"\n{output.rstrip()}\n```\n'


if __name__ == "__main__":
    main()
