"""What a person is told by their own device before a place is taken and anything is spent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from dpfda.cli._group import dpfda
from dpfda.client import RemoteClient
from dpfda.client.http import Answer, Unreachable, persistently
from dpfda.client.own_data import look_over
from dpfda.curves import CurveEncoder, RowEncoder
from dpfda.errors import AlreadySpent, BudgetExceeded, InvalidData, InvalidParameter
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server

Call = Callable[..., Result]


class Collector:
    """Honest; it remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.sent: list[bytes] = []
        self.plan: StudyPlan
        self.lost = 0  # replies that find nobody

    def ask(self, method: str, path: str, *, body: Any = None, headers: Any = None) -> Answer:
        name = path.rpartition("/")[2]
        self.asked.append(name)
        if name == "reply":
            self.sent.append(body)
            if self.lost:
                self.lost -= 1
                raise Unreachable("the collector did not answer (Test)")
        task = Server(self.plan).issue(1).to_dict()
        answers: dict[str, Any] = {
            "enrol": {"token": "t" * 43},
            "task": {"plan": self.plan.hash, "phase": 0, "ticket": 0, "task": task},
            "reply": {"receipt": "r"},
        }
        return Answer(200, json.dumps(answers.get(name, {"plan": self.plan.to_dict()})).encode())

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def collector(make_plan: Any, monkeypatch: pytest.MonkeyPatch) -> Collector:
    made = Collector()
    made.plan = replace(
        make_plan(10, epsilon=4.0),
        classes=("day", "night"),
        encoder=CurveEncoder("bspline", n_basis=3, order=2, feature_ranges=(-1, 1)),
    )
    monkeypatch.setattr(RemoteClient, "_connect", lambda *_: made)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return made


@pytest.fixture
def call(collector: Collector, tmp_path: Path) -> Call:
    def called(name: str, *options: str, text: str = "0\n0.5\n-0.5\n", answer: str = "") -> Result:
        command = [name, "http://127.0.0.1", collector.plan.hash, "--most-epsilon", "9"]
        if name == "submit":
            (tmp_path / "a.csv").write_text(text)
            command = [name, collector.plan.hash, str(tmp_path / "a.csv")]
        home = ["--home", str(tmp_path / "home")]
        return CliRunner().invoke(dpfda, [*command, *options, *home], input=answer)

    return called


def joined(call: Call) -> None:
    done = call("join", "--limit-epsilon", "8")
    assert done.exit_code == 0, done.output


def nothing_happened(collector: Collector, tmp_path: Path) -> None:
    assert "task" not in collector.asked
    assert collector.sent == []
    assert RemoteClient(tmp_path / "home").ledger.entries == ()


def test_a_label_of_another_study_costs_nothing(
    call: Call, collector: Collector, tmp_path: Path
) -> None:
    joined(call)
    done = call("submit", "--label", "evening")
    assert done.exit_code == 2
    assert "--label must be one of day, night, got 'evening'" in done.stderr
    with pytest.raises(InvalidData, match=r"label must be one of day, night$"):
        RemoteClient(tmp_path / "home").submit(
            collector.plan.hash, curve=[0.1, 0.2], label="evening"
        )
    nothing_happened(collector, tmp_path)
    assert call("submit", "--label", "night").stdout == "sent; receipt r\n"


def test_a_target_outside_its_range_counts_as_its_end(make_plan: Any) -> None:
    """The organizer chooses the range: silence would tell on which side of its end a number is."""
    plan = replace(make_plan(10), classes=(), target_range=(0.0, 10.0))
    for right in (0, "10", 3.5):
        assert look_over(plan, curve=[0.1, 0.2], label=right) == []
    for far in ("10.01", -0.01, 1e308, float("-inf")):
        told = look_over(plan, curve=[0.1, 0.2], label=far)
        assert told == ["the number lies outside 0…10: the nearer end counts"]
    for wrong in ("many", None, float("nan"), 10**400):
        with pytest.raises(InvalidData, match=r"label must be a number from 0 to 10$"):
            look_over(plan, curve=[0.1, 0.2], label=wrong)


def test_points_outside_the_domain_are_told_before(
    call: Call, collector: Collector, tmp_path: Path
) -> None:
    joined(call)
    hours = [f"{t},0.5" for t in np.linspace(0, 24, 30)]
    text = "\n".join(["t,x", *hours])
    declined = call("submit", "--label", "day", "--show", text=text, answer="n\n")
    assert "a.csv: 28 of 30 points lie outside 0…1 and are left out" in declined.stderr
    assert declined.stdout == "nothing was spent or sent\n"
    refused = call("submit", "--label", "day", text="\n".join(["t,x", hours[0], *hours[2:]]))
    assert refused.exit_code == 2
    assert "two points or more between 0 and 1, got 1 of 29 points there" in refused.stderr
    nothing_happened(collector, tmp_path)
    done = call("submit", "--label", "day", text=text)
    assert done.stdout == "sent; receipt r\n"
    assert "28 of 30 points" in done.stderr


def test_what_of_a_curve_is_changed(collector: Collector) -> None:
    plan = collector.plan

    def said(curve: Any, **more: Any) -> list[str]:
        return look_over(plan, curve=curve, label="day", **more)

    assert said([1.0, 1.0, 1.0, 1.0]) == [], "along the edge"
    assert said([0.5]) == [], "all that there is"
    assert said([0.1, 0.2, np.nan]) == ["1 of 3 points have no value and are left out"]
    edge = (
        "{} of 3 features of the curve lie outside the study's range and count as its nearest bound"
    )
    assert said([1.01] * 4) == [edge.format(3)]
    assert said(([0.0, 0.5, 1.0], [-1.1, 0.0, 1.0])) == [edge.format(1)]
    assert said([0.1, 0.2], grid_points=[0.0, 1.0]) == []
    for nothing in ([], [np.nan], [0.1, np.nan], "a word", [0.1, np.inf, 0.2]):
        with pytest.raises(InvalidData, match="two points or more"):
            said(nothing)
    plan = replace(plan, encoder=CurveEncoder("bspline", n_basis=3, order=2))
    assert said([99.0] * 4) == [], "tanh has no edge"


def test_what_of_a_row_is_changed(make_plan: Any) -> None:
    def said(row: Any) -> list[str]:
        return look_over(make_plan(10), curve=row, label="yes")

    assert said([1.0, -1.0]) == []
    assert said([1.1, -1.0]) == [
        "1 of 2 numbers lie outside the study's range and count as its nearest bound"
    ]
    assert said([np.nan, 0.5]) == ["1 of 2 numbers are unknown"]
    for wrong in ([0.1], [0.1, 0.2, 0.3], [[0.1, 0.2]] * 3):
        with pytest.raises(InvalidData, match="2 numbers, as the study asks for"):
            said(wrong)
    for unknown in ([np.nan, np.nan], [0.5, np.inf]):
        with pytest.raises(InvalidData, match="at least one finite number"):
            said(unknown)


def test_what_of_a_table_is_changed(make_plan: Any) -> None:
    encoder = CurveEncoder("identity", feature_ranges={"age": (0, 100), "sex": ["f", "m"]})
    plan = replace(make_plan(10), encoder=encoder)
    assert look_over(plan, curve={"age": 5, "sex": "f"}, label="no") == []
    (told,) = look_over(plan, curve={"age": np.nan, "sex": "f"}, label="no")
    assert told.endswith(": it counts as unknown")
    with pytest.raises(InvalidData, match="sex"):
        look_over(plan, curve={"age": 5}, label="no")


def test_owners_rows_and_budgets_are_their_own(make_plan: Any, tmp_path: Path) -> None:
    plan = replace(make_plan(10), encoder=RowEncoder(2))
    assert look_over(plan, curve=np.ones((3, 2)), label=["no", "yes", "no"]) == []
    client = RemoteClient(tmp_path / "home", limit_epsilon=1.0)
    with pytest.raises(BudgetExceeded):
        client._afford(plan)
    client._afford(replace(plan, design={"name": "moments", "own_budgets": True}))


def test_another_file_after_the_answer_is_not_said_to_be_sent(
    call: Call, collector: Collector
) -> None:
    joined(call)
    collector.lost = 8
    assert call("submit", "--label", "day").exit_code == 2
    other = {"text": "0.9\n0.9\n0.9\n", "answer": "y\n"}
    again = call("submit", "--label", "night", "--show", **other)
    assert "this study was answered before: its reply is not changed" in again.stderr
    assert "yours" not in again.stderr, "the new file is not what the old bytes hide"
    assert "what the reply shows" in again.stderr
    assert again.stdout == "sent; receipt r\n"
    once_more = call("submit", "--label", "evening", "--show", **other)
    assert "and a.csv is not used" in once_more.stderr
    assert "Send it?" not in once_more.stderr
    assert once_more.stdout == "answered before; receipt r\n"
    assert len(collector.sent) == 9
    assert len(set(collector.sent)) == 1


def test_a_study_that_cannot_be_paid_is_not_joined(
    call: Call, collector: Collector, tmp_path: Path
) -> None:
    done = call("join", "--limit-epsilon", "3.9")
    assert done.exit_code == 2
    assert "ε = 4 does not fit into ε = 3.9" in done.stderr
    assert "enrol" not in collector.asked
    assert not (tmp_path / "home" / "ledger").exists(), "another limit may still be chosen"
    assert call("join", "--limit-epsilon", "4").exit_code == 0
    assert RemoteClient(tmp_path / "home").ledger.limit.epsilon == 4
    refused = call("join", "--limit-epsilon", "5")
    assert "--limit-epsilon must be 4.0, as stored in the ledger" in refused.stderr
    with pytest.raises(InvalidParameter):
        RemoteClient(tmp_path / "new", limit_epsilon=-1.0)


def test_the_budget_is_looked_at_before_a_place_is_taken(
    call: Call, collector: Collector, tmp_path: Path
) -> None:
    first = collector.plan
    for number in range(3):  # 8 is enough for two of them, whichever are answered first
        collector.plan = replace(first, title=f"study {number}")
        joined(call)
    for number in range(2):
        collector.plan = replace(first, title=f"study {number}")
        assert call("submit", "--label", "day").exit_code == 0
    collector.plan = replace(first, title="study 2")
    collector.asked.clear()
    assert "ε = 4 does not fit into ε = 8" in call("submit", "--label", "day").stderr
    assert collector.asked == []
    collector.plan = replace(first, title="study 0")
    (tmp_path / "home" / "studies" / f"{collector.plan.hash}.json").unlink()
    client = RemoteClient(tmp_path / "home")
    with pytest.raises(AlreadySpent, match="paid for before"):
        client.join("http://127.0.0.1", collector.plan.hash, most_epsilon=4.0)
    assert "enrol" not in collector.asked
    with pytest.raises(BudgetExceeded):
        client.prepare(replace(first, title="study 2").hash, curve=[0.1, 0.2], label="day")


def test_who_has_not_joined_is_told_to(call: Call, tmp_path: Path) -> None:
    assert "join the study first" in call("submit", "--label", "day").stderr
    _ = RemoteClient(tmp_path / "home", limit_epsilon=8.0).ledger
    assert "not joined the study: join it first" in call("submit", "--label", "day").stderr
    shown = re.sub(r"\s+", " ", call("submit", "--help").stdout)
    assert "If you then answer no, ε stays spent" in shown


def test_a_second_attempt_is_told_once(call: Call, collector: Collector) -> None:
    joined(call)
    collector.lost = 3
    done = call("submit", "--label", "day")
    assert done.stdout == "sent; receipt r\n"
    told = "the collector did not answer (Test): trying again, up to 7 times\n"
    assert done.stderr.count(told) == done.stderr.count("again") == 1
    said: list[str] = []
    answers = [Answer(200, b"{}"), Answer(503, b""), Answer(500, b"")]
    persistently(answers.pop, sleep=lambda _: None, notify=said.append)
    assert said == ["the collector answered 'HTTP status 500': trying again, up to 7 times"]
    persistently(lambda: Answer(200, b"{}"), notify=said.append)
    assert len(said) == 1


FILES: dict[str, tuple[CurveEncoder, str, str]] = {
    "channels": (
        CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=2)] * 2),
        "t;up;down\n0;0,1;0,2\n0,5;;0,3\n1;0,5;0,4\n",
        "1 of 3 points have no value",
    ),
    "channels at equal distances": (
        CurveEncoder.side_by_side([CurveEncoder("cosine", n_basis=2)] * 2),
        "0.1,0.2\n0.3,0.4\n",
        "",
    ),
    "a row by names": (
        CurveEncoder("identity", feature_ranges={"age": (0, 99), "sex": ["f", "m"]}),
        "sex,name,age\nm,Ann,40\n",
        "",
    ),
    "a row of numbers": (
        CurveEncoder("identity", feature_ranges=[(0, 1)] * 3),
        "0.2,0.1,2\n",
        "nearest bound",
    ),
    "a column of numbers": (
        CurveEncoder("identity", feature_ranges=[(0, 1)] * 2),
        "0.1\n0.2\n",
        "",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_every_kind_of_study(call: Call, collector: Collector, name: str) -> None:
    encoder, text, told = FILES[name]
    design = {"name": "moments", "mechanism": "laplace"}
    collector.plan = replace(collector.plan, encoder=encoder, design=design)
    joined(call)
    done = call("submit", "--label", "day", text=text)
    assert done.exit_code == 0, done.output
    assert told in done.stderr
    assert len(json.loads(collector.sent[0])["values"]) == encoder.n_features


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("channels", "0.1\n0.2\n", "2 columns, or t and 2 of numbers"),
        ("a row by names", "sex,age\nm,40\nf,50\n", "a header and one row"),
        ("a row by names", "sex,age\nx,40\n", "must be one of f, m"),
        ("a row by names", "sex,name\nf,Ann\n", "age"),
        ("a row of numbers", "0.1,0.2\n", "3 numbers, as the study asks for"),
    ],
)
def test_files_of_another_kind_cost_nothing(
    call: Call, collector: Collector, tmp_path: Path, name: str, text: str, words: str
) -> None:
    collector.plan = replace(collector.plan, encoder=FILES[name][0], design={"name": "moments"})
    joined(call)
    done = call("submit", "--label", "day", text=text)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    nothing_happened(collector, tmp_path)
