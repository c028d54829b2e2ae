"""Everything that sites can be asked together, over guards: the same bits as in one process."""

from __future__ import annotations

import warnings

import pytest
from click.testing import CliRunner
from hospitals import Hospitals, site_folder, write_curves

from dpfda.cli._group import dpfda as command_line
from dpfda.cli.consortium import ESTIMATORS, listed
from dpfda.curves.files import Reading
from dpfda.errors import InvalidParameter
from dpfda.noise import SimulationSource
from dpfda.protocol.consortium import convene
from dpfda.report import documents
from dpfda.sites.plan import Plan

CURVES = "--columns t0..t9 --range -3 4"
TABLE = "--feature-ranges t0=-3:4,t5=-3:4"
OPTIONS = {
    "classes": f"{CURVES} --target group --classes no,yes",
    "components": CURVES,
    "covariance": CURVES,
    "curve-regression": f"{CURVES} --target dose --target-range -3 4",
    "density": "--feature-ranges t5=-3:4",
    "groups": f"{CURVES} --target group --classes no,yes",
    "linear": f"{TABLE} --target dose --target-range -3 4",
    "logistic": f"{TABLE} --target group --classes no,yes",
    "mean": CURVES,
    "moments": CURVES,
    "function-on-scalar": "--feature-ranges dose=-3:4 --target t0..t9 --range -3 4",
}
RANGES = {"*": [-3.0, 4.0], "group": ["no", "yes"]}


def planned(place, options):
    """What the command line writes for three sites."""
    names, runner = ["a", "b", "c"], CliRunner()
    for name in names:
        site_folder(place / name, name, 0, write=write_curves, ranges=RANGES)
    cards = " ".join(f"--site {place / name / 'card.json'}" for name in names)
    done = runner.invoke(
        command_line,
        f"consortium plan {place / 'study'} --name r --study s --epsilon 20 {cards} {options}",
    )
    return done, place / "study" / "plan.json"


@pytest.mark.parametrize("what", ESTIMATORS)
def test_every_ask_has_the_bits_of_one_process(tmp_path, what):
    done, path = planned(tmp_path / "plan", f"--ask {what} {OPTIONS[what]}")
    assert done.exit_code == 0, done.output
    written = Plan.load(path).body
    hospitals = Hospitals(
        tmp_path, sites=3, dropouts=0, asked=written.inquiry,
        write=write_curves, ranges=RANGES, epsilon=25.0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        published = hospitals.coordinator().run()["result"]
        asked = hospitals.plan.inquiry
        plan = hospitals.plan
        tables = {
            name: Reading().open(folder.path / "table.csv").table()
            for name, folder in hospitals.folders.items()
        }
        records = {name: asked.records(table) for name, table in tables.items()}
        result, sites = convene(
            asked.conversation, records, source=SimulationSource(7), colluders=1
        )
        again = asked.document(result, sites.transcript, plan.guarantee)
    assert len(sites.transcript) == len(hospitals.folder.attempts)
    assert published.to_json() == again.to_json()
    published.save(tmp_path / "published.json")
    assert documents.load(tmp_path / "published.json").guarantee == plan.guarantee
    shown = CliRunner().invoke(command_line, ["show", str(tmp_path / "published.json")])
    assert shown.exit_code == 0


WRONG = {
    "nothing": ("--ask mean", "--feature-ranges or --columns must be given"),
    "both": (f"--ask mean {CURVES} {TABLE}", "--feature-ranges or --columns must be given"),
    "no labels": (f"--ask groups {CURVES} --target group", "--classes must be given"),
    "labels of nothing": (f"--ask mean {CURVES} --classes no,yes", "--classes must be left out"),
    "no range": ("--ask mean --columns t0..t9", "no public range of the column"),
    "ranges of no names": ("--ask density --feature-ranges 0:1", "the columns by their names"),
    "ends that are turned round": (
        "--ask density --feature-ranges age=9:0",
        "--feature-ranges['age'] must be a pair",
    ),
    "pure": (f"--ask mean {CURVES} --delta 0", "sums with Gaussian noise (delta above 0)"),
    "too many": (f"--ask mean {CURVES} --colluders 3", "colluders, dropouts must be"),
    "no grid": (f"--ask mean {CURVES} --grid 0", "--grid must be like 0:24"),
    "no address": (f"--ask mean {CURVES} --address here", "--address must be like"),
    "no such": ("--ask meanings", "--ask"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_planned_is_refused_in_one_line(tmp_path, case):
    options, said = WRONG[case]
    done, path = planned(tmp_path, options)
    assert done.exit_code == 2
    assert said in done.output
    assert len(done.output.strip().split("\n")) == 1
    assert not path.exists()


def test_columns_are_counted_through():
    assert listed("a, t8..t11") == ("a", "t8", "t9", "t10", "t11")
    for wrong in ("t3..u5", "t5..t3", "t0..t99999", "a,,b"):
        with pytest.raises(InvalidParameter):
            listed(wrong)


def test_a_plan_is_written_once(tmp_path):
    options = f"--ask mean {CURVES}"
    assert planned(tmp_path, options)[0].exit_code == 0
    before = (tmp_path / "study" / "plan.json").read_bytes()
    again = CliRunner().invoke(
        command_line,
        f"consortium plan {tmp_path / 'study'} --name r --study s --epsilon 1 "
        f"--site {tmp_path / 'a' / 'card.json'} --site {tmp_path / 'b' / 'card.json'} {options}",
    )
    assert "a folder without a plan" in again.output
    assert (tmp_path / "study" / "plan.json").read_bytes() == before
