"""The code of estimators stays readable: few classes to inherit from, no frames of callers."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

from dpfda import estimators

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


def test_no_estimator_inherits_from_more_than_three_of_our_classes() -> None:
    deep, seen = {}, 0
    for module in pkgutil.iter_modules(estimators.__path__, "dpfda.estimators."):
        for name, kind in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(kind) and kind.__module__ == module.name:
                own = [one.__name__ for one in kind.__mro__ if one.__module__.startswith("dpfda.")]
                seen += 1
                deep |= {name: own} if len(own) > 4 else {}
    assert seen > 20
    assert deep == {}
