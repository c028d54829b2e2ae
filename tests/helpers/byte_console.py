"""The command line in this process, on a console of bytes with an encoding of its own."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from dpfda import cli


class Console:
    """Runs the command line in this process, as it is run: `main`, and a console of bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.patch = monkeypatch
        monkeypatch.chdir(folder)

    def __call__(self, *call: Any, encoding: str = "utf-8") -> tuple[int, str, list[str]]:
        streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
        with self.patch.context() as patch:
            patch.setattr(sys, "argv", ["dpfda", *map(str, call)])
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            with pytest.raises(SystemExit) as ended:
                cli.main()
            for stream in streams:
                stream.flush()
        out, err = (stream.buffer.getvalue().decode(encoding) for stream in streams)  # type: ignore[attr-defined]
        return int(ended.value.code or 0), out, err.splitlines()
