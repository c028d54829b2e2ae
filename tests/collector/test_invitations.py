"""Who may take part: whom the organizer invited, or anybody, if that is what was chosen."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from organizer import Organizer

from dpfda import plan_study
from dpfda.cli._group import dpfda as command_line
from dpfda.client import RemoteClient
from dpfda.client.http import Connection
from dpfda.client.remote import NotGranted
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.pages import views
from dpfda.collector.pages.form import PRESETS
from dpfda.collector.settings import StudySettings


def page_of(organizer: Organizer, path: str) -> str:
    with Connection(organizer.url) as connection:
        answer = connection.ask("GET", path, headers={"Cookie": organizer.cookie})
    assert answer.status == 200
    return answer.body.decode()


def test_nobody_takes_part_uninvited(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path
) -> None:
    """Anybody could, unless the organizer had thought of it."""
    plan = make_plan(4)
    study = collector.create(plan)
    assert (study["open"], study["warnings"]) == (False, [])
    device = RemoteClient(tmp_path / "home", limit_epsilon=9.0)
    with pytest.raises(NotGranted, match="needs an invitation, which its organizer hands out"):
        device.join(collector.url, plan.hash, most_epsilon=9.0)
    assert device.studies() == []
    device.join(
        collector.url,
        plan.hash,
        most_epsilon=9.0,
        invitation=collector.invite(study["id"], 1)[0],
    )
    assert device.submit(plan.hash, curve=[0.1, 0.2], label="yes")


@pytest.mark.parametrize(
    "chosen", [{"open": True}, {"open": False}, {"open": True, "protects": "labels"}]
)
def test_the_command_on_the_page_works_for_newcomers(
    collector: CollectorProcess, chosen: dict[str, Any], tmp_path: Path
) -> None:
    """It named a ceiling as if it were a limit, and failed without one."""
    facts = {name: value for name, value in chosen.items() if name != "open"}
    title = f"With Python {chosen}"
    plan = plan_study(60, 2.0, value_range=(0, 1), classes=("no", "yes"), title=title, **facts)
    study = collector.create(plan, open=chosen["open"])
    page = page_of(Organizer(collector), f"/study/{study['id']}")
    words = shlex.split(unescape(re.search("<code>(dpfda join .*?)</code>", page)[1]))  # type: ignore[index]
    file = tmp_path / "invitation"
    file.write_text(collector.invite(study["id"], 1)[0])
    words = [str(file) if word == "FILE" else word for word in words]
    home = ["--home", str(tmp_path / "home")]
    told = CliRunner().invoke(command_line, [*words[1:], *home])
    assert told.exit_code == 0, told.output
    assert "left in your budget: ε = 5" in told.output
    for option in ("--most-epsilon", "--limit-epsilon"):
        assert f"<code>{option}</code>" in page, "explained"


def test_an_invitation_is_for_one_person(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path
) -> None:
    plan = make_plan(4, seed=1)
    collector.create(plan)
    token, link = collector.invite(plan.hash, 1)[0], f"{collector.url}/take-part/{plan.hash}"
    asked = ["join", collector.url, plan.hash, "--most-epsilon", "9", "--limit-epsilon", "9"]
    for name, line in (("first", token), ("second", f"{link}#invitation={token}")):
        (tmp_path / "invitation.txt").write_text(f"{line}\n")
        done = CliRunner().invoke(
            command_line,
            [
                *asked,
                "--home",
                str(tmp_path / name),
                "--invitation",
                str(tmp_path / "invitation.txt"),
            ],
        )
        assert done.exit_code == 0, done.output
    first, second = (RemoteClient(tmp_path / name) for name in ("first", "second"))
    assert first.submit(plan.hash, curve=[0.1, 0.2], label="yes")
    with pytest.raises(NotGranted, match="was used already"):
        second.submit(plan.hash, curve=[0.5, 0.2], label="no")
    shown = collector.request("GET", f"/api/studies/{plan.hash[:16]}")
    assert (shown["answered"], shown["issued"]) == (1, 1)


def test_many_are_invited_at_once(collector: CollectorProcess, make_plan: Any) -> None:
    plan = make_plan(4, seed=2)
    study = collector.create(plan)["id"]
    assert len(set(collector.invite(study, 2500))) == 2500
    assert collector.request("GET", f"/api/studies/{study}")["wanted"] == 4


def test_an_open_study_without_a_deadline_warns(
    collector: CollectorProcess, make_plan: Any
) -> None:
    """It did not, and whoever took tasks without answering held it up for ever."""
    organizer = Organizer(collector)
    told = {}
    for number, how in enumerate(({}, {"open": True}, {"open": True, "deadline": 9.0})):
        study = collector.create(make_plan(4, seed=3 + number), **how)
        assert study["open"] == how.get("open", False)
        assert study["warnings"] == StudySettings(**how).warnings(4)
        shown = "never answer delay the study" in page_of(organizer, f"/study/{study['id']}")
        told[number] = (len(study["warnings"]), shown)
    assert told == {0: (0, False), 1: (2, True), 2: (1, False)}


def test_the_share_of_one_party_is_stated() -> None:
    home, clinic = StudySettings(open=True), StudySettings(open=True, address_share=1.0)
    assert "can send 200 of the 2000 replies (10 %)" in home.warnings(2000)[0]
    assert "its network 400 (20 %)" in home.warnings(2000)[0]
    assert "can send 20 of the 60 replies (33 %), its network 40 (67 %)" in home.one_party(60)
    assert "can send 2000 of the 2000 replies (100 %)" in clinic.one_party(2000)
    assert StudySettings().warnings(2000) == []


def test_the_form_invites_unless_it_is_told(collector: CollectorProcess) -> None:
    organizer = Organizer(collector)
    form = PRESETS | {"csrf": organizer.csrf, "title-0": "Gait"}
    for number, (chosen, is_open) in enumerate((({}, False), ({"open": "yes"}, True))):
        sent = form | chosen | {"seed-0": str(number)}
        status, _, headers = organizer.post("/new", sent, organizer.cookie)
        assert status == 303
        study = headers["Location"].rpartition("/")[2]
        assert collector.request("GET", f"/api/studies/{study}")["open"] == is_open
        shown = page_of(organizer, f"/study/{study}")
        joining = re.search(r"<code>dpfda join ([^ ]*) [^<]*</code>", shown)
        assert joining is not None
        assert joining[1] == collector.url  # it said URL
        assert ("--invitation" in joining[0]) != is_open
        assert ('class="qr"' in shown) == is_open
        page = organizer.post("/forecast", form | chosen, organizer.cookie)[1]
        assert ('name="open" value="yes" checked>' in page) == is_open


def test_a_page_makes_invitations(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path
) -> None:
    organizer = Organizer(collector)
    plan = make_plan(4, seed=9)
    study = collector.create(plan)["id"]
    path, form = f"/study/{study}/invite", {"csrf": organizer.csrf}
    status, page, _ = organizer.post(path, form | {"count": "3"}, organizer.cookie)
    assert status == 200
    links = page.partition('aria-label="Invitations">')[2].partition("</textarea>")[0].split()
    place = f"{collector.url}/take-part/{plan.hash}#invitation="
    assert all(one.startswith(place) for one in links)
    tokens = [one.removeprefix(place) for one in links]
    assert [len(token) for token in tokens] == [43] * 3
    asked = form | {"count": "2", "as": "file"}
    status, listed, headers = organizer.post(path, asked, organizer.cookie)
    assert headers["Content-Disposition"] == f'attachment; filename="invitations-{study}.csv"'
    head, *rows = listed.split()
    assert head == "number,link"
    assert [row.partition(",")[0] for row in rows] == ["1", "2"]
    assert all(place in row for row in rows)
    device = RemoteClient(tmp_path / "home", limit_epsilon=9.0)
    device.join(collector.url, plan.hash, most_epsilon=9.0, invitation=tokens[2])
    assert device.submit(plan.hash, curve=[0.1, 0.2], label="yes")
    assert organizer.post(path, {"count": "3", "csrf": "forged"}, organizer.cookie)[0] == 403
    assert organizer.post(path, form | {"count": "3"})[0] == 303, "signed out"
    most = views.MOST_INVITED
    for count in ("0", "-1", "x", "", str(most + 1), "9" * 400):
        status, said, _ = organizer.post(path, form | {"count": count}, organizer.cookie)
        assert status == 422
        assert f"between 1 and {most} people" in json.loads(said)["error"]["message"]


def test_the_command_line_creates_and_invites(
    collector: CollectorProcess, make_plan: Any, tmp_path: Path
) -> None:
    plan = make_plan(4, seed=20)
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    (tmp_path / "no.json").write_text("{")
    known = {"DPFDA_ADMIN_KEY": collector.admin_key}

    def studies(*asked: str) -> Any:
        return CliRunner().invoke(
            command_line, ["studies", *asked, "--url", collector.url], env=known
        )

    done = studies("create", str(tmp_path / "plan.json"), "--open", "--lapse", "60")
    assert done.exit_code == 0, done.stderr
    assert f"hash: {plan.hash}" in done.stdout
    assert "open to anybody: True" in done.stdout
    page = f"{collector.url}/take-part/{plan.hash}"
    assert done.stdout.endswith(f"people's page: {page}\n")
    first, second = re.findall(r"Anybody may take part.*?(?=Anybody|$)", done.stderr, re.DOTALL)
    assert "One internet address can send 4 of the 4 replies" in first
    assert "no deadline ends a phase" in second
    again = studies("create", str(tmp_path / "plan.json"), "--deadline", "9")
    assert "exists" in again.stderr
    (tmp_path / "plan.json").write_text(json.dumps(make_plan(4, seed=21).to_dict()))
    quiet = studies("create", str(tmp_path / "plan.json"), "--deadline", "9", "--json")
    assert quiet.stderr == ""
    assert json.loads(quiet.stdout)["open"] is False
    assert (
        "PLAN must be a file that dpfda plan wrote"
        in studies("create", str(tmp_path / "no.json")).stderr
    )
    invited = studies("invite", plan.hash, "--people", "3").stdout.split()
    assert [len(token) for token in invited] == [43] * 3
    assert len(json.loads(studies("invite", plan.hash, "--people", "2", "--json").stdout)) == 2
    (link,) = studies("invite", plan.hash[:16], "--people", "1", "--links").stdout.split()
    assert re.fullmatch(rf"{re.escape(page)}#invitation=[\w-]{{43}}", link)
