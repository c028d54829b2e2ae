"""How many invitations were opened and used: numbers only; and a reminder to everybody."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

from forked_collector import QuickCollector
from organizer import Organizer
from stored_studies import FINISHED, begun, every_storage, model, record, reply, token

from dpfda.client.http import Connection
from dpfda.collector.storage.base import Ended, Invitations, Lapse, Storage
from dpfda.protocol.plan import StudyPlan


def counted(storage: Storage) -> tuple[int, int, int]:
    found = storage.invitations("study")
    return found.made, found.opened, found.used


@every_storage
def test_invitations_are_counted_over_all_phases(storage: Storage) -> None:
    assert storage.invitations("study") == Invitations(made=0, opened=0, used=0)
    begun(storage, people=3, quota=3)
    storage.enrol([("study", token(i)) for i in range(3, 8)])
    storage.create(record("other"), model("other"))
    storage.enrol([("other", token(99))])
    assert counted(storage) == (8, 3, 0)
    storage.add_replies([reply(0), reply(1)])
    assert counted(storage) == (8, 3, 2)
    storage.withdraw(reply(1))
    assert counted(storage) == (8, 3, 2), "a link is used up, whatever became of its reply"
    storage.begin_closing("study", 0)
    following = {"phase": 1, "kind": "check", "quota": 5, "status": "open", "state": "{1}"}
    assert storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    assert counted(storage) == (8, 3, 2), "before the links of the phase are forgotten"
    while storage.forget():
        assert counted(storage) == (8, 3, 2)
    storage.issue([("study", token(4))], now=3.0)
    storage.add_replies([reply(4, phase=1)])
    assert counted(storage)[1] == 4
    storage.begin_closing("study", 1)
    storage.advance("study", 1, Ended(following=FINISHED | {"phase": 2}, model=model(phase=1)))
    storage.purge("study")
    while storage.forget():
        pass
    assert counted(storage)[:2] == (8, 4)
    storage.delete("study")
    while storage.forget():
        pass
    assert storage.invitations("other") == Invitations(made=1, opened=0, used=0)


@every_storage
def test_who_let_a_ticket_lapse_has_opened_their_link(storage: Storage) -> None:
    storage.create(record(quota=1), model())
    storage.enrol([("study", token(i)) for i in range(3)])
    lapse = {"study": Lapse(10.0)}
    for number, now in ((0, 0.0), (1, 100.0)):
        storage.issue([("study", token(number))], now=now, lapse=lapse)
        assert counted(storage) == (3, number + 1, 0)


def shown(collector: Any, path: str) -> str:
    with Connection(collector.url) as connection:
        head = {"Cookie": Organizer(collector).cookie}
        return unescape(connection.ask("GET", path, headers=head).body.decode())


def numbers(page: str) -> dict[str, int]:
    found = re.findall(r"<dt>([^<]+)</dt><dd[^>]*>([\d,]+)</dd>", page)
    return {name: int(number.replace(",", "")) for name, number in found}


def test_the_page_counts_and_does_not_tell_who(tmp_path: Path, make_plan: Any) -> None:
    about = {"version": "1", "institution": "Institute X", "contact": "study@x.example"}
    about["purpose"] = "To learn."
    with QuickCollector(f"sqlite:///{tmp_path}/x.db", options=["--rate", "100"]) as collector:
        plan: StudyPlan = make_plan(20)
        sent = plan.to_dict() | {"information": about}
        study = collector.request("POST", "/api/studies", {"plan": sent})["id"]
        assert numbers(shown(collector, f"/study/{study}/live")) == {}
        tokens = collector.invite(study, 12)
        for one in tokens[:3]:
            collector.read("GET", f"/api/studies/{study}/task", token=one)
        page = shown(collector, f"/study/{study}")
        expected = {"made": 12, "used": 0, "opened, not used": 3, "not opened": 9}
        assert numbers(page) == expected
        assert numbers(shown(collector, f"/study/{study}/live")) == expected
        assert not [one for one in tokens if one in page]
        assert "If you have already taken part, please ignore this message" in page
        assert "Wenn Sie schon teilgenommen haben" in page
        assert page.count("study@x.example") == 2
        opened = collector.create(make_plan(20, seed=1), open=True, deadline=60.0)["id"]
        page = shown(collector, f"/study/{opened}")
        assert numbers(page) == {}
        assert "reminder" not in page
