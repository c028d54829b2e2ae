"""A study is changed in its place until somebody has seen a question of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from organizer import Organizer, QuickForecasts
from stored_studies import begun, every_storage, model, record, stored, token

from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages.form import PRESETS, settings_of
from dpfda.collector.service import Collector
from dpfda.collector.settings import StudySettings
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Activity, Storage, Totals
from dpfda.collector.storage.verify import compare

SEEDS = count(1)


def edited(study: str) -> Activity:
    return Activity(at=3.0, who="anna", what="edited", study=study)


@every_storage
def test_another_plan_takes_the_place_of_the_old_one(storage: Storage) -> None:
    created = Activity(at=2.0, who="anna", what="created", study="study")
    storage.create(record(), model(), note=created)
    storage.create(msgspec.structs.replace(record("before"), successor="study"), model("before"))
    storage.enrol([("study", token(0)), ("before", token(9))])
    assert storage.replace("study", record("other"), model("other"), note=edited("other")) == (
        "replaced"
    )
    assert storage.study("study") is None
    assert storage.study("other") == record("other")
    assert storage.models("study") == []
    assert storage.models("other") == [model("other")]
    assert storage.study("before").successor == "other"  # type: ignore[union-attr]
    assert storage.issue([("study", token(0)), ("other", token(0))], now=1.0) == ["unknown"] * 2
    assert storage.totals() == Totals(studies=2, enrolled=1)
    assert [one.what for one in storage.activities(most=9, study="other")] == ["edited", "created"]
    back = storage.replace("other", record(), model(), note=edited("study"))
    assert back == "replaced", "who changes their mind gets the first plan again"
    assert storage.study("study") == record()


@every_storage
def test_the_same_plan_keeps_its_people_and_gets_other_settings(storage: Storage) -> None:
    storage.create(record(), model())
    storage.enrol([("study", token(0))])
    how = {"settings": '{"open":true}', "open": True, "deadline": 60.0}
    again = msgspec.structs.replace(record(created=9.0), seal="other", **how)
    assert storage.replace("study", again, model(), note=edited("study")) == "replaced"
    expected = msgspec.structs.replace(record(), enrolled=1, **how)
    assert storage.study("study") == expected
    assert storage.page(most=9, only_open=True) == storage.page(most=9) != []
    assert storage.issue([("study", token(0))], now=1.0)[0] not in ("unknown", "wait")


@every_storage
def test_what_somebody_has_joined_stays_as_it_is(storage: Storage) -> None:
    begun(storage, people=1)
    storage.create(record("fresh"), model("fresh"))
    storage.create(record("gone"), model("gone"))
    storage.delete("gone")
    other, first = record("other"), model("other")
    for old, expected in (("study", "begun"), ("none", "unknown"), ("gone", "unknown")):
        assert storage.replace(old, other, first, note=edited("other")) == expected
    for taken in ("study", "gone"):
        assert storage.replace("fresh", record(taken), model(taken), note=edited(taken)) == "exists"
    assert storage.study("fresh") == record("fresh")
    storage.begin_closing("fresh", 0)
    assert storage.replace("fresh", other, first, note=edited("other")) == "begun"
    assert storage.study("other") is None
    assert storage.activities(most=9) == []


@stored
def test_a_person_comes_or_the_study_is_edited_first(storage: Storage, database: str) -> None:
    """Whichever is first: nobody gets a ticket of a study that is gone."""
    there = open_storage(database)
    for turn in range(12):
        old, new = record(f"a{turn}"), record(f"b{turn}")
        storage.create(old, model(old.id))
        storage.enrol([(old.id, token(turn))])
        edit = partial(storage.replace, old.id, new, model(new.id), note=edited(new.id))
        join = partial(there.issue, [(old.id, token(turn))], now=1.0)
        with ThreadPoolExecutor(2) as both:
            if turn % 2:
                outcome, (ticket,) = both.submit(edit), both.submit(join).result()
            else:
                joining, outcome = both.submit(join), both.submit(edit)
                (ticket,) = joining.result()
        joined = ticket != "unknown"
        assert outcome.result() == ("begun" if joined else "replaced")
        assert (storage.study(old.id) is None) == (not joined)
    there.close()


def test_a_copy_from_before_the_edit_is_behind(tmp_path: Path) -> None:
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("copy", "original")]
    copy, original = map(open_storage, urls)
    for one in (copy, original):
        one.create(record(), model())
    original.replace("study", record("other"), model("other"), note=edited("other"))
    copy.close()
    original.close()
    assert {one.study: one.outcome for one in compare(*urls)} == {
        "study": "behind", "other": "behind"
    }  # fmt: skip


def test_the_form_keeps_settings_that_it_does_not_have() -> None:
    before = StudySettings(open=True, lapse=60.0, address_share=1.0, deadline=5.0)
    found = settings_of({"deadline": "2", "deadline_unit": "hours", "value_unit": "bpm"}, before)
    expected = {"open": False, "deadline": 7200.0, "value_unit": "bpm"}
    assert found == msgspec.structs.replace(before, **expected)


def test_a_process_that_knows_the_study_learns_of_its_new_settings(
    storage: Storage, make_plan: Any
) -> None:
    async def course() -> None:
        collector = Collector(storage)
        plan = make_plan(4).to_dict()
        study = (await collector.create(plan, StudySettings())).id
        assert not (await collector.phases.get(study)).settings.open
        settings = StudySettings(open=True, lapse=7.0)
        note = edited(study)
        begun_again = await collector._begin(plan, settings, owner="anna")
        assert storage.replace(study, *begun_again, note=note) == "replaced"  # another process
        await asyncio.sleep(0.2)
        found = await collector.phases.get(study)
        while not found.settings.open:
            found = await collector.phases.get(study, at_least=0)
            await asyncio.sleep(0.05)
        assert (found.lapse.seconds, found.lapse.final) == (7.0, True)
        await collector.stop()

    asyncio.run(asyncio.wait_for(course(), 60))


# -- pages -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("edit")
    with QuickForecasts(f"sqlite:///{folder}/x.db", log=folder / "log") as found:
        yield found
    assert "Traceback" not in (folder / "log").read_text()


def shown(signed: Organizer, path: str) -> tuple[int, str]:
    with Connection(signed.url) as connection:
        answer = connection.ask("GET", path, headers={"Cookie": signed.cookie})
    return answer.status, unescape(answer.body.decode())


def made(signed: Organizer, **typed: str) -> str:
    form = PRESETS | {"csrf": signed.csrf, "title-0": "Sleep", "seed-0": str(next(SEEDS))} | typed
    status, told, headers = signed.post("/new", form | {"anyway": "yes"}, signed.cookie)
    assert status == 303, told
    return str(headers["Location"]).rpartition("/")[2]


def fields(page: str) -> dict[str, str]:
    """What a browser would send of the form, as far as it is text."""
    texts = r'<input(?! type="(?:radio|checkbox))[^>]* name="([^"]+)" value="([^"]*)"'
    return dict(re.findall(texts, page))


def test_a_study_is_edited_in_its_place(collector: CollectorProcess, organizer: Organizer) -> None:
    study = made(organizer, **{"classes-0": "well, ill"})
    tokens = collector.invite(study, 2)
    status, page = shown(organizer, f"/study/{study}")
    assert f'href="/study/{study}/edit"' in page
    status, page = shown(organizer, f"/study/{study}/edit")
    assert status == 200
    assert "the 2 links that you made stop working" in page
    assert '<button form="study-form">Save the changes</button>' in page
    found = fields(page)
    assert (found["title-0"], found["classes-0"]) == ("Sleep", "ill, well")
    form = PRESETS | found | {"csrf": organizer.csrf, "title-0": "Sleep well", "anyway": "yes"}
    status, told, headers = organizer.post(f"/study/{study}/edit", form, organizer.cookie)
    assert status == 303, told
    new = headers["Location"].rpartition("/")[2]
    assert new != study
    status, page = shown(organizer, f"/study/{new}")
    assert "<h1>Sleep well</h1>" in page
    assert "changed the study before anybody had joined" in page
    assert "created the study" in page
    assert shown(organizer, f"/study/{study}")[0] == 404
    with Connection(collector.url) as connection:
        head = {"Authorization": f"Bearer {tokens[0]}"}
        for one in (study, new):
            asked = connection.ask("GET", f"/api/studies/{one}/task", headers=head)
            assert asked.status in (401, 404)
    again = fields(shown(organizer, f"/study/{new}/edit")[1])
    form = form | again | {"deadline": "3", "csrf": organizer.csrf, "title-0": "Sleep well"}
    _, _, headers = organizer.post(f"/study/{new}/edit", form, organizer.cookie)
    assert headers["Location"] == f"/study/{new}", "other settings are no other study"


def test_it_stays_as_it_is_once_somebody_has_joined(
    collector: CollectorProcess, organizer: Organizer
) -> None:
    study = made(organizer)
    (one,) = collector.invite(study, 1)
    form = PRESETS | fields(shown(organizer, f"/study/{study}/edit")[1])
    form |= {"csrf": organizer.csrf, "title-0": "Another", "anyway": "yes"}
    collector.read("GET", f"/api/studies/{study}/task", token=one)
    assert "/edit" not in shown(organizer, f"/study/{study}")[1]
    told = "somebody has joined this study, so it cannot be changed: duplicate it instead"
    status, page = shown(organizer, f"/study/{study}/edit")
    assert (status, told in page) == (409, True)
    status, page, _ = organizer.post(f"/study/{study}/edit", form, organizer.cookie)
    assert (status, told in unescape(page)) == (422, True)
    assert json.loads(collector.read("GET", f"/api/studies/{study}"))["title"] == "Sleep"


def test_only_its_owner_edits_it(collector: CollectorProcess, organizer: Organizer) -> None:
    study = made(organizer)
    for name, role in (("edith", "owner"), ("vito", "viewer")):
        asked = {"name": name, "role": role}
        key = collector.request("POST", "/api/organizers", asked)["key"]
        other = Organizer(collector, key)
        assert shown(other, f"/study/{study}/edit")[0] == 403
        form = PRESETS | {"csrf": other.csrf, "title-0": "Mine", "anyway": "yes"}
        assert other.post(f"/study/{study}/edit", form, other.cookie)[0] == 403
        form |= {"edits": study}
        assert other.post("/forecast", form, other.cookie)[0] == 403
    form = PRESETS | {"csrf": "forged", "title-0": "Mine", "anyway": "yes"}
    assert organizer.post(f"/study/{study}/edit", form, organizer.cookie)[0] == 403


def test_what_the_form_does_not_have_is_not_edited(
    collector: CollectorProcess, organizer: Organizer, make_plan: Any
) -> None:
    study = collector.create(make_plan(20))["id"]
    status, page = shown(organizer, f"/study/{study}/edit")
    assert status == 409
    assert "planned elsewhere, with settings that the form does not have" in page
