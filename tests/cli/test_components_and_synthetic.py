"""``dpfda release fpca`` and ``dpfda release synthetic``: tables, words, files and pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda

T = np.linspace(0, 24, 13)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    night = rng.random(1500) < 0.4
    load = 1 + rng.normal(0, 0.3, (1500, 1)) + np.outer(night, np.exp(-((T - 3) ** 2) / 6))
    path = tmp_path_factory.mktemp("homes") / "homes.csv"
    lines = [",".join(["tariff", *map(str, T)])]
    names = np.where(night, "night", "day")
    lines += [
        f"{name},{','.join(f'{x:.4f}' for x in row)}" for name, row in zip(names, load, strict=True)
    ]
    path.write_text("\n".join(lines))
    return path


def released(*call: Any, code: int = 0) -> Any:
    done = CliRunner().invoke(dpfda, ["release", *map(str, call)])
    assert done.exit_code == code, done.output
    return done


KNOWN = ("--epsilon", 2, "--range", -2, 6, "--seed", 0)


def test_components(homes: Path, tmp_path: Path) -> None:
    call = ("fpca", homes, "--drop", "tariff", *KNOWN, "--plot", tmp_path / "a.png")
    shown = released(*call, "--out", tmp_path / "a.json").stdout
    assert "component 1" in shown
    assert "stand out of the noise" in shown
    assert "Scores of private curves are as private as the curves" in shown
    assert (tmp_path / "a.png").stat().st_size > 5000
    assert json.loads((tmp_path / "a.json").read_text())["kind"] == "release"
    one = released(*call, "--components", 1).stdout
    assert "1 component(s) were asked for" in one
    assert "component 2" not in one
    assert json.loads(released(*call, "--json").stdout)["kind"] == "release"


def test_synthetic_curves(homes: Path, tmp_path: Path) -> None:
    groups = ("--label", "tariff", "--classes", "day,night")
    files = ("--csv", tmp_path / "s.csv", "--plot", tmp_path / "s.png")
    done = released("synthetic", homes, *groups, *KNOWN, *files, "--curves", 200)
    assert "200 synthetic curves were drawn from this release" in done.stdout.replace("\n", " ")
    assert "200 synthetic curves written to" in done.stderr
    lines = (tmp_path / "s.csv").read_text().splitlines()
    assert lines[0].split(",")[:3] == ["group", "0", "2"]
    assert len(lines) == 201
    assert {line.split(",")[0] for line in lines[1:]} == {"day", "night"}
    assert (tmp_path / "s.png").stat().st_size > 5000
    alone = released("synthetic", homes, "--drop", "tariff", *KNOWN, "--csv", tmp_path / "o.csv")
    assert "1500 synthetic curves" in alone.stdout.replace("\n", " ")
    document = json.loads(released("synthetic", homes, *groups, *KNOWN, "--json").stdout)
    assert document["kind"] == "moments"


def test_options_that_belong_to_others(homes: Path, tmp_path: Path) -> None:
    done = released("mean", homes, "--drop", "tariff", *KNOWN, "--curves", 9, code=2)
    assert "--curves must be left out: it is for synthetic" in done.output
    missing = tmp_path / "no" / "s.csv"
    done = released("synthetic", homes, "--drop", "tariff", *KNOWN, "--csv", missing, code=2)
    assert "--csv must be a file in a folder that exists" in done.output
