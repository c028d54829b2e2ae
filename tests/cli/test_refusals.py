"""What a command line gets wrong is one line that names option and rule, and exit status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dpfda.cli._group import dpfda


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{k % 5},{k % 7},{'no' if k % 2 else 'yes'}" for k in range(40)]
    Path("a.csv").write_text("\n".join(["age,dose,ill", *lines]))
    return tmp_path


AGES = "a.csv --epsilon 1 --columns age --feature-ranges 0:5"
CURVES = "a.csv --epsilon 1 --drop ill"
DOSES = "a.csv --epsilon 1 --target dose --drop ill"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("relase", "unknown command 'relase'; did you mean 'release'?"),
        ("--bogus", "No such option '--bogus' (see dpfda --help)"),
        ("release", "SUMMARY must be given (see dpfda release --help)"),
        ("release mean", "FILE... must be given (see dpfda release --help)"),
        ("release mean a.csv", "--epsilon must be given (see dpfda release --help)"),
        ("release mean b.csv --epsilon 1", "'b.csv' does not exist (see dpfda release --help)"),
        (f"release mean {CURVES} --range 0 1 --bound 1", "--bound must be left out with --range"),
        ("release mean a.csv --epsilon -1 --drop ill --range 0 9", "--epsilon must be a finite"),
        (f"release mean {CURVES} --range 9 0", "--range must be a pair"),
        (f"release mean {CURVES} --range 0 9 --seed -1", "--seed must be"),
        (f"release mean {CURVES} --range 0 9 --mechanism adaptve",
         "unknown function mechanism 'adaptve'; did you mean 'adaptive'?"),
        ("release density a.csv --epsilon 1 --columns age", "--feature-ranges must be given"),
        (f"release kernel-machine {AGES}",
         "--target must be given"),
        (f"release kernel-machine {AGES} --target dose",
         "--target-range must be given"),
        (f"release kernel-machine {AGES} --target ill "
         "--loss logistic", "--classes must be given"),
        (f"release kernel-machine {AGES} --target ill "
         "--loss logistic --classes no,maybe",
         "row 1, column 'ill' must be one of the classes no,maybe"),
        ("classify a.csv --epsilon 1 --label ill --classes no,yes", "--range must be given"),
        ("classify a.csv --epsilon 1 --range 0 9", "--label must be given"),
        ("regress a.csv --epsilon 1", "--target must be given (see dpfda regress --help)"),
        (f"regress {DOSES}", "--target-range must be given"),
        (f"regress {DOSES} --target-range 0 9",
         "--feature-ranges or --feature-norm-bound must be given"),
        (f"regress {DOSES} --target-range 0 9 --delta 0 "
         "--feature-ranges 0:9 --mechanism adassp", "--delta must be above 0"),
        (f"regress {DOSES} --target-range 0 9 --feature-ranges aeg=0:9",
         "--feature-ranges must be a column of the file (did you mean 'age'?), got 'aeg'"),
        ("plan --people 9 --classes a,b --range 0 1 --non-private-error 0.1",
         "--people, --epsilon and --error must be given, two of the three: the third is computed, "
         "got ['--people']"),
        ("plan --people 9 --epsilon 1 --error 0.2 --classes a,b --range 0 1 --sample a.csv",
         "--people, --epsilon and --error must be given, two of the three"),
        ("plan --people 9 --epsilon 1 --classes a,b",
         "--range must be given for curves, or else --feature-ranges for a table"),
        ("plan --people 0 --epsilon 1 --classes a,b --range 0 1", "--people must be an integer"),
        ("submit abc a.csv --label a --columns age,dose --home nowhere",
         "--home must be a folder that `dpfda join` made"),
        ("join http://127.0.0.1:9 abc --most-epsilon 1 --limit-epsilon 2 --home h",
         "HASH must be the 64 digits that name a study"),
        ("join http://127.0.0.1:9 abc --most-epsilon 1 --home h", "--limit-epsilon must be given"),
        ("audit lapalce", "unknown audit 'lapalce'; did you mean 'laplace'"),
        ("audit nothing_like_it", " in all)"),
        ("show a.csv", "must be"),
        ("ledger a.csv", "a.csv has a line that is not a ledger's"),
        ("predict a.csv a.csv", "must be"),
    ],
    ids=lambda part: part.replace("a.csv", "")[:60],
)  # fmt: skip
def test_one_line(folder: Path, call: str, said: str) -> None:
    done = CliRunner().invoke(dpfda, call.split(), prog_name="dpfda")
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    # How a file was read may come first.
    lines = [line for line in done.stderr.splitlines() if not line.startswith("read ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Error: ")
    assert said in lines[0]
    assert "None" not in lines[0]
    assert len(lines[0]) < 400


def test_no_command_is_help() -> None:
    done = CliRunner().invoke(dpfda, [], prog_name="dpfda")
    assert "Commands:" in done.output
    # Nothing that is listed is cut off.
    assert "..." not in done.output.partition("Commands:")[2]
