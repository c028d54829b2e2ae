"""People with the browser's client and people with Python, in one study on one collector."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("litestar", reason="the service extra is not installed")

from forked_collector import ForkedCollector

from dpfda.client import RemoteClient
from dpfda.collector.collector_process import CollectorProcess
from dpfda.curves import CurveEncoder
from dpfda.protocol.plan import StudyPlan
from dpfda.report.documents import read

SCRIPT = Path(__file__).resolve().parents[2] / "clients" / "browser" / "people.mjs"
HALF = 12


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    folder = tmp_path_factory.mktemp("together")
    found = ForkedCollector(f"sqlite:///{folder}/x.db")
    found.alone = True
    with found:
        yield found


def in_browsers(collector: CollectorProcess, plan: StudyPlan, people: list[Any]) -> list[Any]:
    told = {"url": collector.url, "hash": plan.hash, "people": people}
    done = subprocess.run(
        ["node", str(SCRIPT)], input=json.dumps(told), cwd=SCRIPT.parent, timeout=120,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def with_python(
    collector: CollectorProcess, plan: StudyPlan, people: list[Any], folder: Path
) -> None:
    def take_part(number: int) -> None:
        person, one = RemoteClient(folder / str(number), limit_epsilon=100.0), people[number]
        person._sleep = lambda seconds: time.sleep(seconds / 10)
        person.join(collector.url, plan.hash, most_epsilon=100.0, invitation=one["token"])
        person.submit(plan.hash, curve=one["values"], label=one["label"])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(take_part, range(len(people))))


ROWS = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 3)
# Questions: tests/collector/test_browser_people.py, in a real browser.
STUDIES: dict[str, dict[str, Any]] = {
    "vectors": {"encoder": ROWS, "design": {"name": "vectors", "evaluation_share": 0.2}},
    "mrma": {
        "encoder": CurveEncoder("bspline", n_basis=4, scale=1.0),
        "design": {"name": "mrma", "n_classifiers": 4, "member_size": 6, "training_share": 0.4},
    },
}


@pytest.mark.parametrize("name", STUDIES)
def test_browsers_and_python_make_one_model(
    collector: CollectorProcess, tmp_path: Path, name: str
) -> None:
    plan = StudyPlan(epsilon=16.0, n_people=2 * HALF, classes=("well", "ill"), **STUDIES[name])
    study = collector.create(plan)["id"]
    rng, points = np.random.default_rng(0), 3 if name == "vectors" else 20
    tokens = collector.invite(study, plan.n_people)
    people = []
    for number, token in enumerate(tokens):
        level = (0.7 if number % 2 else -0.7) + rng.normal(0, 0.1, points)
        label = plan.classes[number % 2]
        people.append({"values": level.clip(-1, 1).tolist(), "label": label, "token": token})
    with ThreadPoolExecutor(1) as thread:
        browsers = thread.submit(in_browsers, collector, plan, people[:HALF])
        with_python(collector, plan, people[HALF:], tmp_path)
        receipts = browsers.result()
    status = collector.wait_until(study)
    assert status["status"] == "finished"
    model = read(collector.read("GET", f"/api/studies/{study}/model"))
    assert model.guarantee.epsilon == 16.0
    if name != "mrma":  # with so few people MRMA finds nothing; the others see a difference of 14 σ
        seen = np.array([[0.7] * points, [-0.7] * points])
        assert model.predict(seen).tolist() == ["ill", "well"]
    for one in receipts:
        told = collector.request("GET", f"/api/studies/{study}/receipts/{one['receipt']}")
        assert told == {"phase": one["phase"], "counted": True}
