"""Forecasts of a curator's releases, from public facts alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda import forecast_release
from dpfda.cli._group import dpfda as main
from dpfda.errors import InvalidParameter
from dpfda.planning import releases
from dpfda.planning.releases import SUMMARIES, ReleaseForecast

RANGE: dict[str, Any] = {"value_range": (0, 1000), "repeats": 4}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["plan", "release", *map(str, arguments)])


@pytest.mark.parametrize("summary", SUMMARIES)
def test_privacy_adds_less_with_a_larger_budget_and_sampling_stays(summary: Any) -> None:
    little, much = (forecast_release(summary, 2000, epsilon, **RANGE) for epsilon in (0.1, 3.0))
    assert much.privacy < little.privacy
    assert much.sampling == little.sampling  # the same people
    assert little.interval[0] <= little.error <= little.interval[1] * 1.001
    assert summary != "density" or forecast_release(summary, 2000, 3.0, **RANGE) == much


def test_sampling_is_what_theory_says() -> None:
    found = forecast_release("mean", 4000, 1.0, value_range=(0, 1000), repeats=30, spread=0.1)
    # 1000 * 0.1 / √4000; the squared error of three components varies by √(2/3) a release.
    assert found.sampling == pytest.approx(100 / np.sqrt(4000), rel=4 * np.sqrt(2 / 3 / 30) / 2)


def test_more_people_than_are_simulated_are_replaced_by_less_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts: dict[str, Any] = {"value_range": (0, 1000), "repeats": 6, "delta": 1e-5}
    scaled = forecast_release("groups", 8000, 0.5, **facts)
    monkeypatch.setattr(releases, "_SIMULATED_CURVES", 8000)
    real = forecast_release("groups", 8000, 0.5, **facts)
    assert scaled.privacy == pytest.approx(real.privacy, rel=0.5)  # six releases each


def test_the_number_of_people_has_two_names() -> None:
    given = "mean", "--epsilon", 1, "--range", 0, 1000
    outputs = {run(*given, name, 500).output for name in ("--people", "--n")}
    assert len(outputs) == 1
    assert "n = 500" in outputs.pop()


def test_what_is_found_reaches_the_error() -> None:
    people = forecast_release("regression", epsilon=1.0, error=20, **RANGE)
    assert people.sought == "n"
    assert people.error <= 20
    fewer = forecast_release("regression", people.n // 2, 1.0, **RANGE)
    assert fewer.error > 20
    price = forecast_release("regression", 2000, error=20, **RANGE)
    assert price.error <= 20
    assert f"ε = {price.epsilon:.3g} is needed." in str(price)
    with pytest.raises(InvalidParameter, match="error must be at least"):
        forecast_release("regression", 2000, error=1e-3, **RANGE)
    with pytest.raises(InvalidParameter, match="two of the three"):
        forecast_release("mean", 2000, **RANGE)


def test_the_command_says_what_python_says() -> None:
    facts = ("density", "--people", 2000, "--epsilon", 1, "--range", 0, 1000, "--repeats", 4)
    found = forecast_release("density", 2000, 1.0, **RANGE)
    assert json.loads(run(*facts, "--json").stdout)["error"] == found.error
    assert found.sentences[0] in " ".join(run(*facts).stdout.split())
    assert (
        "--people, --epsilon and --error must be given, two of the three"
        in run("mean", "--people", 9, "--range", 0, 1).stderr
    )
    outside = CliRunner().invoke(main, ["plan", "--epsilon", "1", "release", "mean"])
    assert "--epsilon must be given after the word release" in outside.stderr
    assert isinstance(found, ReleaseForecast)
