"""``show`` and ``predict`` on what every estimator saves: on any console, and when things fail."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from byte_console import Console

import dpfda
from dpfda.privacy.ledger_file import FileLedger

N, T = 240, np.linspace(0.0, 1.0, 20).round(4)
LABELS = np.arange(N) % 2
WORDS = np.array(["no", "yes"])[LABELS]
THREE = np.array(["a", "b", "c"])[np.arange(N) % 3]
RNG = np.random.default_rng(0)
CURVES = ((LABELS[:, None] - 0.5) * np.sin(3 * T) + RNG.normal(0, 0.3, (N, 20))).round(4)
TABLE = RNG.uniform(-1, 1, (N, 3)).round(4)
TARGET = TABLE[:, 0]
OF_CURVES, OF_ROWS = {"value_range": (-2, 2)}, {"feature_ranges": (-1, 1)}
OF_FIRST, OF_TARGET = {"feature_ranges": {0: (-1, 1)}}, {"target_range": (-1, 1)}
SMALL = {"n_classifiers": 5, "member_size": 5}
CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "mean": ("PrivateMean", OF_CURVES, None),
    "covariance": ("PrivateCovariance", OF_CURVES, None),
    "function on scalar": ("PrivateFunctionOnScalar", OF_ROWS | OF_CURVES, CURVES),
    "density": ("PrivateDensity", OF_FIRST, None),
    "kernel machine": ("PrivateKernelMachine", OF_FIRST | OF_TARGET, TARGET),
    "components": ("PrivateFPCA", OF_CURVES, None),
    "means of groups": ("PrivateMoments", OF_CURVES | {"groups": ("no", "yes")}, WORDS),
    "comparison": ("PrivateGroupComparison", OF_CURVES | {"groups": ("no", "yes")}, WORDS),
    "linear, rows": ("PrivateLinearRegression", OF_ROWS | OF_TARGET, TARGET),
    "linear, curves": ("PrivateCurveRegression", OF_CURVES | OF_TARGET, TARGET),
    "logistic, rows": ("PrivateLogisticRegression", OF_ROWS, WORDS),
    "curves of a curator": ("PrivateCurveClassifier", OF_CURVES, WORDS),
    "three classes": ("PrivateCurveClassifier", OF_CURVES, THREE),
    "three classes, rows": ("PrivateCurveClassifier", OF_ROWS, THREE),
    "local, curves": ("LocalCurveClassifier", OF_CURVES, WORDS),
    "local, rows": ("LocalCurveClassifier", OF_ROWS, WORDS),
    "local, numbers": ("LocalCurveRegressor", OF_CURVES | OF_TARGET, TARGET),
    "moments": ("MomentClassifier", OF_CURVES, WORDS),
    "mrma": ("MRMAClassifier", OF_CURVES | SMALL, WORDS),
    "mrma, votes": ("MRMAClassifier", OF_CURVES | SMALL | {"learner": "shallow_tree"}, WORDS),
    "online": ("OnlineMRMA", OF_CURVES | SMALL | {"new_classifiers": 2}, WORDS),
    "servers": ("MultiServerMRMA", OF_CURVES | SMALL, WORDS),
    "owners": ("LocalGradientBoostingClassifier", OF_ROWS, WORDS),
    "owners, votes": ("LocalAdaBoostClassifier", OF_ROWS | {"validation": "feedback"}, WORDS),
}
GROUPED = ("means of groups", "comparison")
RELEASES = (
    "mean",
    "covariance",
    "components",
    "function on scalar",
    "density",
    "kernel machine",
    *GROUPED,
)


def test_no_estimator_was_forgotten() -> None:
    found = {name for name in dpfda.__all__ if hasattr(getattr(dpfda, name), "fit")}
    assert found - {"CurveEncoder", "PublicTransformer"} == {name for name, _, _ in CASES.values()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of every estimator, and files to predict."""
    found = tmp_path_factory.mktemp("models")
    for case, (name, given, y) in CASES.items():
        model = getattr(dpfda, name)(4.0, **given, random_state=0)
        curves = "value_range" in given and case != "function on scalar"
        model.fit(CURVES if curves else TABLE, *([] if y is None else [y]))
        saved = (
            model.moments_
            if case in GROUPED
            else model.release_
            if case in RELEASES
            else model.model_
        )
        saved.save(found / f"{case}.json")
    for kind, X, names in (("curves", CURVES, T), ("rows", TABLE, "abc")):
        head = ",".join(["ill", "dose", *map(str, names)])
        lines = [f"{WORDS[k]},{TARGET[k]},{','.join(map(str, X[k]))}" for k in range(N)]
        (found / f"{kind}.csv").write_text("\n".join([head, *lines]))
    return found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Console:
    return Console(monkeypatch, folder)


@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
@pytest.mark.parametrize("case", CASES)
def test_show_on_any_console(run: Console, folder: Path, case: str, encoding: str) -> None:
    code, out, err = run("show", f"{case}.json", encoding=encoding)
    assert (code, err) == (0, [])
    assert "epsilon = 4" in out
    code, out, err = run("show", f"{case}.json", "--json", encoding=encoding)
    assert (code, err) == (0, [])
    saved = json.loads((folder / f"{case}.json").read_text(encoding="utf-8"))
    assert json.loads(out)["kind"] == saved["kind"]


def of_curves(case: str) -> bool:
    return "value_range" in CASES[case][1] and case != "function on scalar"


@pytest.mark.parametrize("case", CASES)
def test_predict(run: Console, folder: Path, case: str) -> None:
    kind = "curves" if of_curves(case) else "rows"
    numbers = CASES[case][2] is TARGET
    own = ("--label", "dose", "--drop", "ill") if numbers else ("--label", "ill", "--drop", "dose")
    call = ("predict", f"{case}.json", f"{kind}.csv", *own)
    code, out, err = run(*call, encoding="cp1252")
    if case in RELEASES:
        assert (code, out) == (2, "")
        kind = "moments" if case in GROUPED else "release"
        assert err == [f"Error: MODEL must be one that predicts (see dpfda show), got '{kind}'"]
        return
    assert code == 0, err
    assert err[0].startswith("read 240 rows")
    assert ("grid points" in err[0]) == (kind == "curves")
    found = [row["predicted"] for row in csv.DictReader(out.splitlines())]
    model = dpfda.load(folder / f"{case}.json")
    where = {"grid_points": T} if kind == "curves" else {}
    expected = model.predict(CURVES if kind == "curves" else TABLE, **where)
    if numbers:
        np.testing.assert_allclose(np.array(found, dtype=float), expected)
        off = np.sqrt(np.mean((expected - TARGET) ** 2))
        assert err[-1] == f"root mean squared error: {off:.4g}"
    else:
        assert found == expected.tolist()
        assert err[-1] == f"wrong: {100 * np.mean(expected != WORDS):.1f} % of 240"


@pytest.mark.parametrize("case", [case for case in CASES if case not in RELEASES])
def test_files_that_do_not_fit(run: Console, case: str) -> None:
    other = "rows" if of_curves(case) else "curves"
    code, out, err = run("predict", f"{case}.json", f"{other}.csv", "--label", "ill")
    if of_curves(case) and code == 0:
        # Three points evenly on the domain are a curve, if nobody says better: it is said.
        assert "curves of 4 points" in err[0]
        return
    assert (code, out) == (2, "")
    named = ("Error: FILE must be ", "Error: row 1, column 'ill' must be a number, got a word")
    assert len([line for line in err if line.startswith(named)]) == 1, err
    assert len(err) <= 2


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_written_or_drawn_is_one_line(
    run: Console, folder: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    kind = "curves" if of_curves(case) else "rows"
    for wrong in ("nowhere/a.png", ".", "/dev/null"):
        code, out, err = run("show", f"{case}.json", "--plot", wrong)
        assert (code, out, len(err)) == (2, "", 1)
        assert err[0].startswith("Error: ")
        assert "--plot" in err[0]
        code, out, err = run("predict", f"{case}.json", f"{kind}.csv", "--out", wrong)
        assert (code, out, len(err)) == (2, "", 1)
        assert err[0].startswith("Error: ")
        assert "--out" in err[0]
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = run("show", f"{case}.json", "--plot", "a.png")
    assert (code, out) == (2, "")
    assert err == ["Error: this needs matplotlib: pip install 'dpfda[plot]'"]
    for name, package in (("a.parquet", "pyarrow"), ("a.xlsx", "openpyxl")):
        if case in RELEASES:
            continue
        (folder / name).write_bytes(b"")
        monkeypatch.setitem(sys.modules, package, None)
        code, out, err = run("predict", f"{case}.json", name)
        assert (code, out) == (2, "")
        assert err == [f"Error: this needs {package}: pip install 'dpfda[files]'"]
        (folder / name).unlink()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("case", CASES)
def test_pictures(run: Console, folder: Path, case: str) -> None:
    pytest.importorskip("matplotlib")
    code, out, err = run("show", f"{case}.json", "--plot", "a.svg")
    if case.startswith("owners") or case == "mrma, votes":
        kind = "row" if case.startswith("owners") else "vote"
        assert (code, out) == (2, "")
        said = f"Error: --plot must be left out: a {kind} model has no picture, got 'a.svg'"
        assert err == [said]
        return
    assert (code, err) == (0, ["plot written to a.svg"])
    assert (folder / "a.svg").stat().st_size > 1000
    (folder / "a.svg").unlink()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device without room")
@pytest.mark.parametrize("call", [
    ("show", "owners.json"), ("show", "mean.json", "--json"), ("show", "mrma.json"),
    ("predict", "curves of a curator.json", "curves.csv", "--label", "ill", "--drop", "dose"),
    ("predict", "owners.json", "rows.csv", "--label", "ill", "--drop", "dose", "--json"),
])  # fmt: skip
def test_output_without_room_is_one_line(folder: Path, call: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dpfda.cli", *call], stdout=full, stderr=subprocess.PIPE,
            cwd=folder, env=os.environ, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    errors = [line for line in done.stderr.decode().splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert "No space left" in errors[0] or "could not be printed" in errors[0]
    assert b"Traceback" not in done.stderr


SPENDS = {
    "release": ("release", "mean", "curves.csv", "--drop", "ill,dose", "--range", -2, 2),
    "classify": ("classify", "curves.csv", "--label", "ill", "--drop", "dose", "--classes",
                 "no,yes", "--range", -2, 2),
    "regress": ("regress", "rows.csv", "--target", "dose", "--drop", "ill", "--target-range", -1,
                1, "--feature-ranges", "-1:1"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPENDS)
def test_commands_that_spend_fail_before_they_do(
    run: Console, folder: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    ledger = FileLedger(tmp_path / "budget.jsonl", limit_epsilon=9.0, limit_delta=0.1)
    call = (*SPENDS[name], "--epsilon", 1, "--ledger", ledger.path)
    for option in ("--out", "--plot"):
        for wrong in ("nowhere/a.png", ".", "/dev/full"):
            code, out, err = run(*call, option, wrong)
            assert (code, out, len(err)) == (2, "", 1)
            assert err[0].startswith("Error: ")
            assert option in err[0]
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        code, out, err = run(*call, "--plot", tmp_path / "a.png")
        assert (code, out) == (2, "")
        assert err == ["Error: this needs matplotlib: pip install 'dpfda[plot]'"]
        patch.setitem(sys.modules, "pyarrow", None)
        (tmp_path / "a.parquet").write_bytes(b"")
        parts = [tmp_path / "a.parquet" if str(one).endswith(".csv") else one for one in call]
        code, out, err = run(*parts)
        assert (code, out) == (2, "")
        assert err == ["Error: this needs pyarrow: pip install 'dpfda[files]'"]
    assert not ledger.entries
    code, out, err = run(*call, "--out", tmp_path / "a.json", encoding="cp1252")
    assert code == 0, err
    assert "epsilon = 1" in out
    assert "�" not in out
    assert dpfda.load(tmp_path / "a.json").guarantee.epsilon == 1
    assert ledger.entries
    code, out, err = run("show", tmp_path / "a.json", encoding="ascii")
    assert (code, err) == (0, [])
