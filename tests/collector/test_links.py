"""Links of participants: the address in them is the setting, and the page warns of a local one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from click.testing import CliRunner
from forked_collector import QuickCollector
from organizer import Organizer

from dpfda.cli._group import dpfda as command_line
from dpfda.client.http import Connection
from dpfda.collector.collector_process import CollectorProcess

WARNING = "which only this machine can open"


def study_page(collector: CollectorProcess, plan: Any, host: str) -> str:
    study = collector.create(plan, open=True)["id"]
    headers = {"Cookie": Organizer(collector).cookie, "Host": host}
    with Connection(collector.url) as connection:
        return connection.ask("GET", f"/study/{study}", headers=headers).body.decode()


def invited(collector: CollectorProcess, study: str) -> str:
    """A link from the command line."""
    asked = ["studies", "invite", study, "--people", "1", "--links", "--url", collector.url]
    done = CliRunner().invoke(command_line, asked, env={"DPFDA_ADMIN_KEY": collector.admin_key})
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


def test_links_begin_with_the_public_address(tmp_path: Path, make_plan: Any) -> None:
    options = ["--public-url", "https://studies.example/"]
    with QuickCollector(f"sqlite:///{tmp_path}/x.db", options=options) as collector:
        page = study_page(collector, make_plan(20), "evil.example")
        plan = make_plan(20, seed=1)
        told = collector.create(plan)["page"]
        link = invited(collector, plan.hash)
    assert told == f"https://studies.example/take-part/{plan.hash}"
    assert re.fullmatch(rf"{told}#invitation=\S+", link), "it began with --url, for organizers only"
    assert "evil.example" not in page
    assert re.search(r'"https://studies\.example/take-part/[0-9a-f]{64}"', page)
    assert WARNING not in page


def test_links_lead_to_a_page_elsewhere(tmp_path: Path, make_plan: Any) -> None:
    """`dpfda page` writes it; its host may then ask what participants ask."""
    host = "https://association.example"
    with QuickCollector(f"sqlite:///{tmp_path}/x.db", options=["--page-url", host]) as collector:
        page = study_page(collector, make_plan(20), "127.0.0.1:8000")
        link = rf'href="{host}/take-part/#study=[0-9a-f]{{64}}"'
        assert re.search(link, page)
        assert WARNING not in page
        assert "dpfda join http://127.0.0.1:8000 " in page, "programs ask the collector itself"
        study = collector.create(make_plan(20, seed=1))["id"]
        organizer = Organizer(collector)
        form = {"count": "1", "as": "file", "csrf": organizer.csrf}
        _, lines, _ = organizer.post(f"/study/{study}/invite", form, organizer.cookie)
        assert re.search(rf"1,{host}/take-part/#study=[0-9a-f]{{64}}&invitation=\S+", lines)
        found = invited(collector, study)
        assert re.fullmatch(rf"{host}/take-part/#study=[0-9a-f]{{64}}&invitation=\S+", found)
        asked = Request(f"{collector.url}/api/studies/{study}", headers={"Origin": host})
        with urlopen(asked) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == host


def test_a_local_address_is_warned_of(tmp_path: Path, make_plan: Any) -> None:
    with QuickCollector(f"sqlite:///{tmp_path}/x.db") as collector:
        local = study_page(collector, make_plan(20), "127.0.0.1:8000")
        known = study_page(collector, make_plan(20, seed=1), "studies.example")
        assert collector.create(make_plan(20, seed=2))["page"] is None
    assert WARNING in local
    assert WARNING not in known
