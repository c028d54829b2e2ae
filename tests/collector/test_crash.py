"""kill -9 under load: nothing acknowledged is lost, nothing counts twice, the study goes on."""

from __future__ import annotations

import pytest
from forked_collector import ForkedCollector, QuickCollector

from dpfda_bench.benchmarks import _killed_conclusions, crash, faults, million


class Alone(ForkedCollector):
    """Concludes in the process that is killed."""

    alone = True


@pytest.mark.slow
def test_twenty_kills(database: str) -> None:
    found = crash.crash(ForkedCollector(database), kills=20)
    assert found.kills == 20
    assert len(found.acknowledged) > 20, "there was load"
    assert found.repeated > 0, "kills hit replies under way"
    assert (found.lost, found.counted_twice) == (0, 0)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_kill_on_postgresql(database: str) -> None:
    found = crash.crash(ForkedCollector(database), kills=2, load=2.0)  # on a busy machine too
    assert len(found.acknowledged) > 0
    assert (found.lost, found.counted_twice) == (0, 0)


def test_whoever_concludes_is_killed(database: str) -> None:
    """By turns the process that concludes and the collector, at the end of each phase."""
    found = _killed_conclusions.kill_conclusions(ForkedCollector(database), kills=2)
    assert (found.workers, found.collectors, found.acknowledged) == (1, 1, 16)
    assert (found.lost, found.counted_twice) == (0, 0)


def test_a_restart_goes_on_at_the_same_point(database: str, make_plan) -> None:
    """Killed while a phase is being closed: the conclusions are those of an undisturbed study."""
    plan = make_plan(20, evaluation_share=0.5, name="answers")
    models = []
    for kill in (False, True):
        url = database if kill else database + ".undisturbed"
        collector = Alone(url).start()
        try:
            first = collector.create(plan)["phase"]
            path = f"/api/studies/{plan.hash[:16]}"
            collector.request("POST", f"{path}/phases/{first}/close")
            if kill:  # the phase is closing now, or was just concluded
                collector.kill()
                collector.start()
            status = collector.wait_until(plan.hash[:16], phase=first + 1)
            assert status["issued"] == 0
            history = collector.request("GET", f"{path}/models")
            assert [entry["phase"] for entry in history] == [-1, first], "concluded once"
            models.append(history[-1]["model"])
        finally:
            collector.stop()
    assert models[0] == models[1]


def test_a_fault_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `dpfda bench faults` prints for a kill; its other faults need longer."""
    monkeypatch.setattr(faults, "CollectorProcess", QuickCollector)
    outcome = faults.run(quick=True)
    (row,) = outcome.rows
    assert (row["fault"], row["storage"]) == ("kill", "SQLite")
    assert (row["lost"], row["counted_twice"]) == (0, 0)
    assert row["longest"] > row["p99_before"] > 0
    assert outcome.figures["acknowledged"] == row["acknowledged"] > 8


def test_everybody_of_a_large_study_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dpfda bench million`, with few people."""
    monkeypatch.setattr(million, "_AT_ONCE", 300)
    monkeypatch.setattr(million, "CollectorProcess", QuickCollector)
    figures = million.run(quick=True).figures
    assert (figures["counted"], figures["lost"], figures["counted_twice"]) == (300, 0, 0)
