"""The code of estimators stays readable: few classes to inherit from, no frames of callers."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "dpfda"
FRAMES = {"_getframe", "_current_frames", "currentframe", "f_back", "f_locals"}


def test_no_module_looks_at_the_frames_of_its_callers() -> None:
    modules, found = list(SOURCE.rglob("*.py")), []
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            names = {getattr(node, kind, None) for kind in ("attr", "id", "name")}
            found += [f"{module.name}: {name}" for name in names & FRAMES]
    assert len(modules) > 100
    assert found == []
