"""Plans are checked to the last field before they are stored: what is stored can be concluded."""

from __future__ import annotations

import copy
import json
import math
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import sqlalchemy as sa
from forked_collector import QuickCollector
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from organizer import VISITOR

from dpfda._registry import Registered, _plain, require_types
from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.conclude import Conclusion, begin, conclude
from dpfda.collector.pages import views
from dpfda.collector.pages.templating import text as shown
from dpfda.collector.phases import OpenPhase, opened
from dpfda.collector.plans import check_shape, strict_json
from dpfda.collector.refusal import Refused
from dpfda.collector.storage.base import ModelRecord, StudyLine, StudyRecord
from dpfda.curves import CurveEncoder
from dpfda.errors import InvalidParameter
from dpfda.local.boosting.gradient_requests import FeatureMap
from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.samme_study import SammeDesign
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import Reply

TABLE = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)
NAMED = CurveEncoder("identity", feature_ranges={"a": (0, 1), "b": ["x", "y"]})
CURVES = CurveEncoder("cosine", n_basis=3, scale=2.0)
SPLINES = CurveEncoder("bspline", n_basis=4, scale=2.0)
ROWS = np.random.default_rng(0).normal(size=(20, 2))
OWNERS: dict[str, Any] = {"epsilon": 4.0, "owners": 60, "classes": ("a", "b")}


def plan(encoder: CurveEncoder = TABLE, classes: Any = ("no", "yes"), **more: Any) -> Any:
    parts: dict[str, Any] = {"epsilon": 4.0, "n_people": 40, "title": "a study"}
    whole = ("target_range", "protects")
    design = {name: more.pop(name) for name in list(more) if name not in whole}
    return StudyPlan(encoder=encoder, classes=classes, design=design, **parts, **more).to_dict()


GOOD = [
    plan(name="moments"),
    plan(NAMED, ("a", "b", "c"), name="moments"),
    plan(CURVES, name="answers", evaluation_share=0.2),
    plan(name="answers", ordered=True, n_features=2, class_share=0.3),
    plan(
        name="mrma", n_classifiers=4, member_size=5, evaluation_share=0.2, cutoff=0.5,
        label_share=0.3, boundary_spread=0.5, learner_parameters={},
    ),
    plan(SPLINES, (1, 2, 3), name="mrma", n_classifiers=4, member_size=5),
    plan(name="mrma_stream", n_classifiers=4, new_classifiers=2, member_size=5, carried=None),
    plan(name="exchange", intercepts=[0.0, 0.1], coefficients=[[1.0, 0.0], [0.0, 1.0]]),
    plan(name="vectors", evaluation_share=0.2, class_share=0.4),
    plan(CURVES, (), name="vector_numbers", target_range=(0, 1), evaluation_share=0.2),
    plan(name="noisy_labels", protects="labels"),
    SammeDesign(
        rule="classifier", feature_ranges=[[0, 1]] * 2, owners_per_round=9, judges=9, n_rounds=2,
    ).plan(**OWNERS).to_dict(),
    GradientDesign(
        features=FeatureMap.learnt(ROWS, products=1), reference=ROWS, n_rows=4, n_rounds=2
    ).plan(**OWNERS).to_dict(),
]  # fmt: skip
"""One of every design, and of every kind of encoder."""

ODD = [
    *(0, -1, 1, 2, 7, 1000, 10**7, 10**8, 10**40, 2**63, 0.1, 0.5, 0.999999, 1e-6, 1e-29, 1e-300),
    *(1e6, 1e29, 1e300, -1e29, True, False, None, "", "x", "x" * 5000, "\x00", "\x1b[2J", "tanh"),
    *([], [1], [[]], [0.5, 0.5], [1e-29, 1e-29], [1e29] * 3, [0, 1e29], [True, False], ["a", "b"]),
    *("clip", "labels", "piecewise", {}, {"name": "moments"}, {"name": "x"}, {"a": {"b": 1}}),
]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Of every value inside a plan; of long lists the first ones."""
    parts = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, part in parts:
        yield (*place, key)
        if isinstance(part, (dict, list)):
            yield from places(part, (*place, key))


@st.composite
def nearly_good(draw: Any) -> Any:
    """A plan with one or two values replaced, left out or added."""
    sent = copy.deepcopy(draw(st.sampled_from(GOOD)))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        *way, last = draw(st.sampled_from(list(places(sent))))
        inside = sent
        for key in way:
            inside = inside[key]
        how = draw(st.integers(0, 19))
        if how == 0:
            del inside[last]
        elif how == 1 and isinstance(inside, dict):
            inside["unknown"] = 1
        else:
            inside[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return sent


def answers(contract: StudyPlan, phase: OpenPhase) -> list[tuple[int, bytes]]:
    """What the first people of a phase send; owners, whose rows need more, say nothing."""
    people = min(phase.record.quota, 20)
    task = phase._run.tasks(0, people)
    if type(task).__module__.startswith("dpfda.local.boosting"):
        return []
    rng = np.random.default_rng(0)
    features = rng.uniform(-1, 1, (people, contract.encoder.n_features))
    labels: Any = rng.integers(0, max(contract.n_classes, 2), people)
    if contract.target_range is not None:
        features = np.column_stack([rng.uniform(-1, 1, people), features])
    values = task.answer((features, labels), SimulationSource(0)).values
    known = contract.hash, phase.record.phase
    sent = [Reply(*known, number, row.tolist()) for number, row in enumerate(values)]
    return [(one.ticket, msgspec.json.encode(one)) for one in sent]


def taken_to_its_end(contract: StudyPlan, first: Conclusion) -> None:
    """Show it, ask, answer and conclude every phase, as it is stored between them."""
    text = msgspec.json.encode(contract.to_dict()).decode()
    assert StudyPlan.from_dict(json.loads(text)).hash == contract.hash
    known: dict[str, Any] = {"id": "a", "hash": contract.hash, "seal": "s", "created": 1.0}
    now, history = first, [_entry(first, -1)]
    for _ in range(40):
        stored = {"plan": text, "settings": "{}", "title": contract.title}
        record = StudyRecord(**known, **stored, **now.following)
        shown(views.list_page([_line(record)], visitor=VISITOR))
        shown(views.study_page(record, 0, history, visitor=VISITOR))
        views.report_page(record, 0, history).html()
        if record.status == "finished":
            break
        phase = opened(record)
        phase.message(record.quota - 1)
        now = conclude(text, record.state, answers(contract, phase))
        history.append(_entry(now, record.phase))
    assert record.status == "finished"


def _entry(found: Conclusion, phase: int) -> ModelRecord:
    shown = {"document": found.document, "summary": found.summary, "people": found.people}
    return ModelRecord(study="a", phase=phase, kind="x", created=1.0, **shown)


def _line(record: StudyRecord) -> StudyLine:
    names = [name for name in StudyLine.__struct_fields__ if name not in ("answered", "concluded")]
    return StudyLine(**{name: getattr(record, name) for name in names}, answered=0)


@pytest.mark.parametrize("sent", GOOD, ids=lambda sent: sent["design"]["name"])
def test_good_plans_are_taken(sent: Any) -> None:
    found = begin(sent)
    assert not isinstance(found, str), found
    taken_to_its_end(*found)


@pytest.mark.filterwarnings("ignore")
def test_odd_plans_are_refused_by_name_or_can_be_concluded() -> None:
    seen = {"refused": 0, "taken": 0}

    @settings(
        max_examples=200,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        deadline=None,
        derandomize=True,
    )
    @given(nearly_good())
    def attack(sent: Any) -> None:
        found = begin(sent)
        if isinstance(found, str):
            assert len(found) <= 500
            assert " must be " in found or found.startswith("unknown "), found
            seen["refused"] += 1
        else:
            taken_to_its_end(*found)
            seen["taken"] += 1

    attack()
    assert min(seen.values()) > 20


def changed(**change: Any) -> Any:
    """A good plan with this in it; a name with __ is one inside."""
    sent = copy.deepcopy(GOOD[4])
    for name, value in change.items():
        inside, *way = sent, *name.split("__")
        for key in way[:-1]:
            inside = inside[key]
        inside[way[-1]] = value
    return sent


def nested(depth: int) -> Any:
    found: Any = 1
    for _ in range(depth):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (changed(title=17), "title must be a word, got 17"),
        (changed(title="x" * 201), "title must be 0 to 200 printable characters, got"),
        (changed(title="\x00"), "title must be 0 to 200 printable characters, got"),
        (changed(unit=""), "unit must be 1 to 100 printable characters, got ''"),
        (changed(classes=["a\n", "b"]), "classes must be of at most 200 printable characters each"),
        (changed(classes=["x" * 201, "b"]), "classes must be of at most 200 printable characters"),
        (changed(classes=list(range(101))), "classes must be at most 100 labels, got 101"),
        (changed(epsilon=1e-300), "epsilon must be 0, or in size at least 1e-30, got 1e-300"),
        (changed(epsilon=9e-5), "epsilon must be from 0.0001 to 1000, got 9e-05"),
        (changed(epsilon=1001.0), "epsilon must be from 0.0001 to 1000, got 1001.0"),
        (changed(epsilon=True), "epsilon must be a finite number above 0, got True"),
        (changed(epsilon=float("nan")), "epsilon must be in size at most 1e+30, got nan"),
        (changed(epsilon=float("inf")), "epsilon must be in size at most 1e+30, got inf"),
        (changed(n_people=10**8), "n_people must be at most 10000000, got 100000000"),
        (changed(n_people=40.0), "n_people must be an integer from 1 to 1000000000, got 40.0"),
        (changed(design__n_classifiers=10**8), "n_classifiers must be an integer from 1 to 100000"),
        (
            plan(CurveEncoder("identity", n_basis=900), name="mrma", n_classifiers=10**5)
            | {"n_people": 10**5},
            "n_classifiers must be so few that they are made of at most 100000000 numbers",
        ),
        (changed(design__learner="x"), "unknown learner 'x'"),
        (changed(design__learner_parameters=[1]), "learner_parameters must be a mapping, got [1]"),
        (changed(design__unknown=1), "unknown must be a parameter of mrma, got 1"),
        (changed(design__cutoff="x"), "cutoff must be"),
        (changed(design__n_classifiers=[]), "n_classifiers must be an integer from 1 to 100000"),
        (changed(design__n_people=nested(20)), "nested at most 12 deep, got 'deeper'"),
        (changed(encoder__basis__n_basis=10**8), "encoder.basis.n_basis must be at most 1000, got"),
        (changed(encoder={}), "basis must be given (an encoder needs it)"),
        (
            plan(CurveEncoder("identity", n_basis=800), tuple(range(9)), name="moments"),
            "classes must be so few that all products of two features, for every class, are at "
            "most ",
        ),
        (changed(more=1), "more must be a parameter of StudyPlan, got 1"),
        (changed(seed="x" * 1001), "seed must be a text of at most 1000 characters, got"),
        (changed(seed=10**31), "seed must be in size at most 1e+30, got"),
        (changed(target_range=[0, 1e-31]), "target_range[1] must be 0, or in size at least 1e-30"),
        (GOOD[-2] | {"design": GOOD[-2]["design"] | {"n_rounds": 10**8}}, "n_rounds must be"),
        (
            GOOD[-2] | {"design": GOOD[-2]["design"] | {"n_rounds": 10**4, "retries": 1}},
            "retries must be so few that there are at most 10000 rounds with all retries, got 1",
        ),
        (changed(**{"design__" + "x" * 1001: 1}), "design must be made of parts whose names have"),
        (
            GOOD[3] | {"design": GOOD[3]["design"] | {"center_known": "yes"}},
            "center_known must be true or false, got 'yes'",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(sent: Any, said: str) -> None:
    found = begin(sent)
    assert isinstance(found, str)
    assert said in found


def test_bounds_are_still_good() -> None:
    """What is at a bound is taken: the bound is what is said."""
    assert not isinstance(begin(changed(classes=["x" * 200, "b"])), str)
    many = plan(classes=tuple(range(100)), name="moments")
    assert not isinstance(begin(many), str)
    for change in ({"epsilon": 1e-4}, {"epsilon": 1e3}, {"title": "x" * 200}, {"unit": "x" * 100}):
        assert not isinstance(begin(changed(**change)), str), change
    check_shape({"design": {"ridge": 1e-300}, "encoder": {"center": 1e-300, "n_basis": 1000}})
    check_shape({"encoder": {"scale": 1e-30}, "seed": 10**30, "title": "x" * 1000, "x" * 1000: 0.0})
    check_shape(nested(12))
    with pytest.raises(InvalidParameter):
        check_shape(nested(13))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"plan": {"epsilon": 1, "epsilon": 100}}', "'epsilon' must be given once"),
        (b'{"plan": {}, "plan": {}}', "'plan' must be given once"),
        (b'{"plan": {"design": [{"a": 1, "b": 2, "a": 1}]}}', "'a' must be given once"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"plan": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"\xff", "not JSON"),
    ],
)
def test_strict_json(body: bytes, said: str) -> None:
    with pytest.raises(Refused) as refused:
        strict_json(body)
    assert refused.value.status == 400
    assert said in str(refused.value)


def test_numbers_at_their_bounds() -> None:
    for good in (1e30, -1e30, 1e-30, -1e-30, 0.0):
        check_shape({"epsilon": good})
    for bad in (1.1e30, -1.1e30, math.nan, math.inf, -math.inf, 0.9e-30, -0.9e-30):
        with pytest.raises(InvalidParameter, match="epsilon must be"):
            check_shape({"epsilon": bad})
    check_shape({"design": {"scale": 1e-40}, "encoder": {"centers": [1e-40]}})
    check_shape({"encoder": {"n_basis": 1000}})
    with pytest.raises(InvalidParameter, match=r"encoder.n_basis must be at most 1000"):
        check_shape({"encoder": {"n_basis": 1001}})


def test_json_as_it_should_be() -> None:
    strict_json(b'{"plan": {"a": {"x": 1}, "b": {"x": 1}}, "settings": {}}')


def test_every_registered_class_can_be_checked() -> None:
    """Annotations are found, and what a class writes of itself is of the types it declares."""
    families = list(Registered.__subclasses__())
    checked = 0
    while families:
        kind = families.pop()
        families += kind.__subclasses__()
        if hasattr(kind, "__dataclass_fields__"):
            checked += bool(_plain(kind))
    assert checked > 20
    for sent in GOOD:
        require_types(StudyPlan, sent)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans")


@pytest.fixture(scope="module")
def collector(folder: Path) -> Iterator[CollectorProcess]:
    options = ["--rate", "1000"]
    database = f"sqlite:///{folder / 'study.db'}"
    with QuickCollector(database, log=folder / "log", options=options) as process:
        yield process


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"plan": changed(title=17)}).encode(),
        json.dumps({"plan": changed(epsilon=float("nan"))}).encode(),
        json.dumps({"plan": changed(design__n_classifiers=10**8)}).encode(),
        json.dumps({"plan": GOOD[0]}).replace('"epsilon"', '"epsilon": 1, "epsilon"').encode(),
        json.dumps({"plan": GOOD[0]}).replace("4.0", "1e400").encode(),
        json.dumps({"plan": changed(title=nested(500))}).encode(),
        json.dumps({"plan": GOOD[0], "more": 1}).encode(),
        json.dumps({"plan": changed(title="x" * 500_000)}).encode(),
        json.dumps({"facts": {"n_people": 10**8, "epsilon": 1}}).encode(),
        json.dumps({"plan": GOOD[0], "settings": {"deadline": "soon"}}).encode(),
    ],
)  # fmt: skip
def test_attacks_get_a_400_and_nothing_is_stored(collector: CollectorProcess, body: bytes) -> None:
    with Connection(collector.url, timeout=60) as connection:
        headers = {"Authorization": f"Bearer {collector.admin_key}"}
        answer = connection.ask("POST", "/api/studies", body=body, headers=headers)
    assert answer.status == 400
    assert answer.json()["error"]["message"]
    assert collector.request("GET", "/api/studies")["studies"] == []


@pytest.mark.parametrize("stored", ["{", "17", '{"title": 17}', '{"epsilon": 1e-300}'])
def test_what_old_code_has_stored_stops_nobody(
    collector: CollectorProcess, folder: Path, stored: str, make_plan: Any
) -> None:
    """Lists, pages and requests survive a plan that this release would never have taken."""
    study = collector.create(make_plan(4, seed=len(stored)), open=True)["id"]
    engine = sa.create_engine(f"sqlite:///{folder / 'study.db'}")
    with engine.begin() as connection:
        change = sa.text("UPDATE study SET plan = :plan WHERE id = :id")
        connection.execute(change, {"plan": stored, "id": study})
    engine.dispose()
    assert study in {one["id"] for one in collector.request("GET", "/api/studies")["studies"]}
    statuses = {}
    for method, path in (("GET", ""), ("GET", "/models"), ("POST", "/enrol")):
        try:
            collector.read(method, f"/api/studies/{study}{path}", None if path != "/enrol" else {})
            statuses[path] = 200
        except urllib.error.HTTPError as refused:
            statuses[path] = refused.code
    assert statuses[""] in (200, 409)
    assert statuses["/models"] == 200
    assert statuses["/enrol"] == 503
    with Connection(collector.url, timeout=60) as browser:
        wire = browser._connection
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        wire.request("POST", "/login", f"key={collector.admin_key}".encode(), kind)
        answer = wire.getresponse()
        answer.read()
        cookie = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}
        for page in ("/", f"/study/{study}", f"/study/{study}/live", f"/study/{study}/report"):
            shown = browser.ask("GET", page, headers=cookie)
            assert shown.status == 200
            assert ("cannot be read" in shown.body.decode()) == (page != "/")
    assert json.loads((folder / "log").read_text().splitlines()[-1])["study"] == study
