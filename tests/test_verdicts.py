"""A result that is mostly noise says so, in the same words wherever it is shown; others do not."""

from __future__ import annotations

import html
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import dpfda
from dpfda.central.regression.base import RegressionMechanism
from dpfda.cli._group import dpfda as command_line
from dpfda.errors import DoubtfulResult
from dpfda.report import Picture, documents
from dpfda.report.contents import Drawn

T = np.linspace(0, 1, 16)
MANY, CLEAR = 4000, 4.0
FEW, TINY = 200, 0.02
CLASSES = ("no", "yes")


class Data(NamedTuple):
    """Curves that vary in level and slope; the level decides about everything else."""

    curves: Any
    level: Any

    @classmethod
    def of(cls, n: int, seed: int) -> Data:
        rng = np.random.default_rng(seed)
        level = rng.normal(size=n)
        slope = rng.normal(size=(n, 1))
        return cls(1 + np.sin(5 * T) + 0.6 * level[:, None] + 0.4 * slope * (T - 0.5), level)

    @property
    def labels(self) -> Any:
        return np.where(self.level > 0, "yes", "no")


Fit = Callable[[Data, float, int], Any]
RANGE: dict[str, Any] = {"value_range": (-4, 5)}
COLUMNS: dict[str, Any] = {"feature_ranges": (-4, 4)}
TARGET: dict[str, Any] = {"target_range": (-4, 4)}


def table(data: Data) -> Any:
    return np.column_stack([data.level, data.curves[:, 3] - data.curves[:, 12]])


KINDS: dict[str, Fit] = {
    "mean": lambda data, epsilon, seed: dpfda.PrivateMean(
        epsilon, **RANGE, random_state=seed
    ).fit(data.curves),
    "mean without a δ": lambda data, epsilon, seed: dpfda.PrivateMean(
        epsilon, delta=0, **RANGE, random_state=seed
    ).fit(data.curves),
    "mean for a population": lambda data, epsilon, seed: dpfda.PrivateMean(
        epsilon, inference=True, **RANGE, random_state=seed
    ).fit(data.curves),
    "covariance": lambda data, epsilon, seed: dpfda.PrivateCovariance(
        epsilon, **RANGE, random_state=seed
    ).fit(data.curves),
    "components": lambda data, epsilon, seed: dpfda.PrivateFPCA(
        epsilon, **RANGE, random_state=seed
    ).fit(data.curves),
    "density": lambda data, epsilon, seed: dpfda.PrivateDensity(
        epsilon, **COLUMNS, random_state=seed
    ).fit(data.level),
    "effects": lambda data, epsilon, seed: dpfda.PrivateFunctionOnScalar(
        epsilon, **RANGE, **COLUMNS, random_state=seed
    ).fit(data.level[:, None], data.curves),
    "kernel machine": lambda data, epsilon, seed: dpfda.PrivateKernelMachine(
        5 * epsilon, **COLUMNS, **TARGET, random_state=seed
    ).fit(data.level, 2 * np.tanh(data.level)),
    "moments": lambda data, epsilon, seed: dpfda.PrivateMoments(
        epsilon, **RANGE, random_state=seed
    ).fit(data.curves),
    "synthetic": lambda data, epsilon, seed: dpfda.PrivateMoments(
        epsilon, emphasis="covariances", **RANGE, random_state=seed
    ).fit(data.curves),
    "groups": lambda data, epsilon, seed: dpfda.PrivateGroupComparison(
        epsilon, groups=CLASSES, **RANGE, random_state=seed
    ).fit(data.curves, data.labels),
    "curve regression": lambda data, epsilon, seed: dpfda.PrivateCurveRegression(
        epsilon, **RANGE, **TARGET, random_state=seed
    ).fit(data.curves, data.level),
    "classes of curves": lambda data, epsilon, seed: dpfda.PrivateCurveClassifier(
        epsilon, classes=CLASSES, **RANGE, random_state=seed
    ).fit(data.curves, data.labels),
    "three classes": lambda data, epsilon, seed: dpfda.PrivateCurveClassifier(
        epsilon, classes=(0, 1, 2), **RANGE, random_state=seed
    ).fit(data.curves, np.digitize(data.level, (-0.5, 0.5))),
    **{
        f"{link} {name}": (
            lambda data, epsilon, seed, link=link, name=name: getattr(
                dpfda, f"Private{link.capitalize()}Regression"
            )(
                epsilon,
                **COLUMNS,
                **(TARGET if link == "linear" else {"classes": CLASSES}),
                mechanism=name,
                random_state=seed,
            ).fit(table(data), data.level if link == "linear" else data.labels)
        )
        for link in ("linear", "logistic")
        for name in RegressionMechanism.members()
    },
}  # fmt: skip
MAY_NOT_KNOW = ("linear ", "logistic ")  # mechanisms whose noise has no simple form


def fitted(kind: str, n: int, epsilon: float, seed: int = 0) -> tuple[Any, list[str]]:
    """The document of a fit, and what Python warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = KINDS[kind](Data.of(n, seed), epsilon, seed)
    told = [str(one.message) for one in seen if issubclass(one.category, DoubtfulResult)]
    return model, told


def document(model: Any) -> Any:
    return next(getattr(model, name) for name in ("model_", "moments_", "release_")
                if name in vars(model))  # fmt: skip


def printed(result: Any, folder: Path) -> str:
    """What ``dpfda show`` prints, on one line."""
    result.save(folder / "a.json")
    shown = CliRunner().invoke(command_line, ["show", str(folder / "a.json")])
    assert shown.exit_code == 0, shown.output
    return squeezed(shown.output)


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


@pytest.fixture(autouse=True)
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Picture, "drawn", lambda picture, *, dark=False: Drawn(b"", 4.0))


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_called_noise_everywhere(kind: str, tmp_path: Path) -> None:
    model, told = fitted(kind, FEW, TINY)
    result = document(model)
    verdict = result.verdict
    assert verdict.kind != "signal"
    assert verdict.sentences
    assert set(verdict.sentences) <= set(told)
    assert set(verdict.sentences) <= set(result.warnings)
    written = json.loads(result.to_json())
    assert written["verdict"] == {"kind": verdict.kind, "sentences": list(verdict.sentences)}
    assert set(verdict.sentences) <= set(written["warnings"])
    assert documents.read(result.to_json().encode()).verdict == verdict
    pages = [html.unescape(one.report().html()) for one in (result, model)]
    on_terminal = printed(result, tmp_path)
    for sentence in verdict.sentences:
        assert all(page.count(sentence) == 1 for page in pages)
        assert on_terminal.count(squeezed(f"warning: {sentence}")) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_clear_result_is_not_doubted(kind: str, tmp_path: Path) -> None:
    model, told = fitted(kind, MANY, CLEAR)
    result = document(model)
    assert told == []
    if result.verdict.kind == "unclear":
        assert kind.startswith(MAY_NOT_KNOW)
        assert result.verdict.sentences == ()
    else:
        assert result.verdict.kind == "signal"
    assert not set(result.verdict.sentences) & set(result.warnings)
    on_terminal = printed(result, tmp_path)
    page = html.unescape(result.report().html())
    for sentence in result.verdict.sentences:
        assert squeezed(sentence) in on_terminal
        assert sentence in page


def test_components_of_noise_do_not_stand_out() -> None:
    for n, epsilon, clear in ((FEW, TINY, False), (30, 1.0, False), (MANY, CLEAR, True)):
        model, _ = fitted("components", n, epsilon)
        told = model.in_words()
        assert ("stand out of the noise, with" in told) is clear
        assert told.startswith("No component stands out of the noise") is not clear


COMMANDS: dict[str, tuple[Any, ...]] = {
    "mean": ("release", "mean", "--range", -4, 5),
    "covariance": ("release", "covariance", "--range", -4, 5),
    "fpca": ("release", "fpca", "--range", -4, 5),
    "moments": ("release", "moments", "--range", -4, 5),
    "synthetic": ("release", "synthetic", "--range", -4, 5),
    "groups": ("release", "groups", "--range", -4, 5, "--label", "ill", "--classes", "no,yes"),
    "function-on-scalar": ("release", "function-on-scalar", "--range", -4, 5, "--delta", 1e-6,
        "--covariates", "level", "--feature-ranges", "level=-4:4"),
    "classify": ("classify", "--range", -4, 5, "--label", "ill", "--classes", "no,yes"),
    "curves": ("regress", "--range", -4, 5, "--target", "level", "--target-range", -4, 4),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_what_their_result_is_worth(command: str, tmp_path: Path) -> None:
    points = ",".join(f"{t:.3f}" for t in T)
    for n, epsilon, clear in ((FEW, TINY, False), (MANY, CLEAR, True)):
        data = Data.of(n, 0)
        lines = [f"ill,level,{points}"]
        for curve, level, label in zip(data.curves, data.level, data.labels, strict=True):
            lines.append(f"{label},{level:.4f},{','.join(f'{value:.4f}' for value in curve)}")
        file = tmp_path / "rows.csv"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        first, *rest = COMMANDS[command]
        used = set(map(str, rest))
        spare = [name for name in ("ill", "level") if name not in used]
        known = ["--drop", ",".join(spare)] if spare else []
        place = 1 if first == "release" else 0
        call = [first, *rest[:place], file, *rest[place:], *known, "--epsilon", epsilon]
        call += ["--seed", 0]
        done = CliRunner().invoke(command_line, [str(part) for part in call])
        assert done.exit_code == 0, done.output
        as_json = CliRunner().invoke(command_line, [*(str(part) for part in call), "--json"])
        verdict = json.loads(as_json.stdout)["verdict"]
        assert (verdict["kind"] == "signal") is clear
        warned = squeezed(done.stdout)
        for sentence in verdict["sentences"]:
            assert squeezed(sentence) in warned
            assert (squeezed(f"warning: {sentence}") in warned) is not clear
