"""Several organizers: who may do what, whose study it is, and who did what."""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from organizer import Organizer as Signed
from organizer import QuickForecasts
from stored_studies import every_storage, model, record

from dpfda.cli._group import dpfda
from dpfda.client.http import Connection
from dpfda.collector import organizers
from dpfda.collector.collector_process import CollectorProcess
from dpfda.collector.limits import WRONG_KEYS, AdminAuth, RateLimit
from dpfda.collector.organizers import FIRST, Account, account_of, check_name, key_hash, new_key
from dpfda.collector.pages.form import PRESETS
from dpfda.collector.pages.session import new_session
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import Settings
from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import ADMINISTRATOR, Activity, Organizer, Storage

SEEDS = count(1)


def organizer(name: str, role: Any = "owner", key: bytes = b"k" * 32) -> Organizer:
    return Organizer(name=name, role=role, key=key, created=1.0, rotated=1.0)


def act(what: Any, who: str = "anna", study: str | None = None, at: float = 2.0) -> Activity:
    return Activity(at=at, who=who, what=what, study=study)


# -- storage -----------------------------------------------------------------------------------


@every_storage
def test_organizers_are_stored_by_name(storage: Storage) -> None:
    assert storage.organizers() == []
    assert storage.add_organizer(organizer("ben", "viewer"), note=act("added"))
    assert storage.add_organizer(organizer("anna"), note=act("added"))
    assert not storage.add_organizer(organizer("anna", "viewer", b"x" * 32), note=act("added"))
    assert storage.organizers() == [organizer("anna"), organizer("ben", "viewer")]
    assert [one.what for one in storage.activities(most=9)] == ["added", "added"]


@every_storage
def test_a_key_is_replaced_and_a_name_is_never_given_again(storage: Storage) -> None:
    storage.add_organizer(organizer("anna"), note=act("added"))
    assert storage.change_organizer("anna", note=act("rotated", at=5.0), key=b"n" * 32)
    (found,) = storage.organizers()
    assert (found.key, found.role, found.created, found.rotated) == (b"n" * 32, "owner", 1.0, 5.0)
    removed = {"note": act("removed", at=6.0), "key": b"z" * 32, "role": "removed"}
    assert storage.change_organizer("anna", **removed)
    assert not storage.change_organizer("anna", note=act("rotated"), key=b"m" * 32)
    assert not storage.change_organizer("ben", note=act("rotated"), key=b"m" * 32)
    assert not storage.add_organizer(organizer("anna"), note=act("added"))
    (found,) = storage.organizers()
    assert (found.role, found.key) == ("removed", b"z" * 32)
    assert [one.what for one in storage.activities(most=9)] == ["removed", "rotated", "added"]


@every_storage
def test_notes_are_stored_with_what_they_are_about(storage: Storage) -> None:
    """And not if nothing was changed."""
    assert storage.create(record(), model(), note=act("created", study="study"))
    assert not storage.create(record(), model(), note=act("created", study="study"))
    assert storage.give("study", "ben", note=act("gave", study="study"))
    assert not storage.give("other", "ben", note=act("gave"))
    assert storage.study("study").owner == "ben"  # type: ignore[union-attr]
    assert [line.owner for line in storage.page(most=9)] == ["ben"]
    assert storage.begin_closing("study", 0, note=act("ended", study="study"))
    assert not storage.begin_closing("study", 7, note=act("ended", study="study"))
    assert storage.purge("study", note=act("purged", study="study"))
    storage.confirm_clock(now=1.0, note=act("confirmed"))
    storage.note(act("read", study="study"))
    assert storage.delete("study", note=act("deleted", study="study"))
    for wrong in (storage.delete, storage.purge):
        assert not wrong("study", note=act("deleted", study="study"))  # type: ignore[operator]
    while storage.forget():
        pass
    told = ["deleted", "read", "confirmed", "purged", "ended", "gave", "created"]
    found = storage.activities(most=9)
    assert [one.what for one in found] == told
    assert [one.number for one in found] == sorted((one.number for one in found), reverse=True)
    about = storage.activities(most=9, study="study")
    assert [one.what for one in about] == [one for one in told if one != "confirmed"]
    assert storage.activities(most=2) == found[:2]
    assert storage.activities(most=9, before=found[2].number) == found[3:]


@every_storage
def test_studies_belong_to_the_administrator_at_first(storage: Storage) -> None:
    storage.create(record(), model())
    assert storage.study("study").owner == ADMINISTRATOR  # type: ignore[union-attr]
    assert storage.activities(most=9) == []


@every_storage
def test_two_processes_add_one_organizer(storage: Storage, database: str) -> None:
    others = [storage if storage.url is None else open_storage(database) for _ in range(4)]
    added: list[bool] = []

    def add(one: Storage) -> None:
        added.append(one.add_organizer(organizer("anna"), note=act("added")))

    threads = [threading.Thread(target=add, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [False, False, False, True]
    assert len(storage.activities(most=9)) == 1
    for one in others:
        if one is not storage:
            one.close()


# -- keys --------------------------------------------------------------------------------------


def test_names() -> None:
    for good in ("a", "anna", "anna-2", "z" * 32):
        check_name(good)
    odd = ("", "Anna", "2a", "-a", "a b", "a.b", "a/b", "z" * 33, "ä", "a\n", ADMINISTRATOR)
    for wrong in odd:
        with pytest.raises(Refused):
            check_name(wrong)


def test_a_key_is_compared_with_every_stored_one_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many comparisons whichever fits, and whether any does."""
    compared: list[tuple[bytes, bytes]] = []
    compare = hmac.compare_digest

    def note(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return compare(one, other)

    monkeypatch.setattr(organizers.hmac, "compare_digest", note)
    keys = [new_key() for _ in range(5)]
    known = [organizer(f"n{i}", key=key_hash(key)) for i, key in enumerate(keys)]
    assert [account_of(key, known).name for key in keys] == [f"n{i}" for i in range(5)]  # type: ignore[union-attr]
    assert account_of("guess", known) is None
    assert account_of("\ud800", known) is None
    assert len(compared) == 7 * 5
    assert all(len(one) == len(other) == 32 for one, other in compared)


def test_what_is_stored_is_no_key() -> None:
    key = new_key()
    known = [organizer("anna", key=key_hash(key))]
    assert len(key) >= 43
    for stolen in (key_hash(key).hex(), key_hash(key).decode("latin-1")):
        assert account_of(stolen, known) is None


def test_a_removed_organizer_has_no_account() -> None:
    known = [organizer("anna", "removed", key_hash("k"))]
    assert account_of("k", known) is None
    assert organizers.account_named("anna", known) is None


def test_wrong_keys_count_and_the_administrator_needs_no_storage() -> None:
    asked: list[None] = []

    async def stored() -> list[Organizer]:
        asked.append(None)
        return [organizer("anna", key=key_hash("right"))]

    auth = AdminAuth(Settings(database="memory:", admin_key="k" * 32), organizers=stored)

    async def course() -> None:
        assert await auth.account("k" * 32, "192.0.2.1") == FIRST
        assert asked == []
        for _ in range(2 * WRONG_KEYS):
            assert (await auth.account("right", "192.0.2.1")).name == "anna"  # type: ignore[union-attr]
        for _ in range(WRONG_KEYS):
            assert await auth.account("wrong", "192.0.2.1") is None
        assert len(asked) == 3 * WRONG_KEYS
        with pytest.raises(Refused):
            await auth.account("right", "192.0.2.1")
        assert len(asked) == 3 * WRONG_KEYS, "nothing is read for somebody who guesses"

    asyncio.run(course())


def test_keys_that_are_guessed_together_are_counted_one_by_one() -> None:
    """All of them were compared before the first was counted."""
    asked: list[None] = []

    async def stored() -> list[Organizer]:
        asked.append(None)
        await asyncio.sleep(0)
        return []

    now = [0.0]
    limit = RateLimit(rate=20.0, burst=WRONG_KEYS, clock=lambda: now[0])

    async def at_once(seconds: float) -> None:
        await asyncio.sleep(0)

    settings = Settings(database="memory:", admin_key="k" * 32)
    auth = AdminAuth(settings, limit, at_once, organizers=stored)

    async def wave() -> None:
        guesses = [auth.account("wrong", "192.0.2.1") for _ in range(100)]
        await asyncio.gather(*guesses, return_exceptions=True)

    asyncio.run(wave())
    first = len(asked)
    for _ in range(40):  # two seconds: 40 guesses at 20 a second
        now[0] += 0.05
        asyncio.run(wave())
    assert len(asked) == first, "what the first wave took is paid before another is compared"
    now[0] += 100 / 20
    assert asyncio.run(auth.account("wrong", "192.0.2.1")) is None


# -- a real collector --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectorProcess]:
    folder = tmp_path_factory.mktemp("organizers")
    with QuickForecasts(f"sqlite:///{folder}/x.db", log=folder / "log") as found:
        yield found
    assert "Traceback" not in (folder / "log").read_text()


def added(collector: CollectorProcess, name: str, role: str) -> str:
    asked = {"name": name, "role": role}
    return str(collector.request("POST", "/api/organizers", asked)["key"])


@pytest.fixture(scope="module")
def keys(collector: CollectorProcess) -> dict[str, str]:
    """Keys of two owners, and of a viewer."""
    roles = {"anna": "owner", "ben": "owner", "vera": "viewer"}
    return {name: added(collector, name, role) for name, role in roles.items()}


def ask(collector: CollectorProcess, method: str, path: str, key: str, body: Any = None) -> Any:
    """Status and answer of a request with a key."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    sent = None if body is None else json.dumps(body).encode()
    with Connection(collector.url, timeout=60) as connection:
        answer = connection.ask(method, path, body=sent, headers=headers)
    return answer.status, answer.json() if answer.body else None


def begin(collector: CollectorProcess, make_plan: Any, key: str) -> str:
    plan = make_plan(20, seed=next(SEEDS)).to_dict()
    status, found = ask(collector, "POST", "/api/studies", key, {"plan": plan})
    assert status == 201
    return str(found["id"])


READS = ("", "/model", "/models", "/verdict", "/phases/0/replies")
CHANGES = (
    ("POST", "/tokens", {"count": 1}),
    ("POST", "/phases/0/close", None),
    ("DELETE", "/replies", None),
    ("POST", "/owner", {"name": "ben"}),
    ("DELETE", "", None),
)


def test_every_address_that_changes_something_is_tried_below(collector: CollectorProcess) -> None:
    """A new one must be added to these tests."""
    document = collector.request("GET", "/openapi/openapi.json")
    people = {"enrol", "task", "reply", "replies", "withdraw"}
    found = {
        (method.upper(), path.removeprefix("/api"))
        for path, methods in document["paths"].items()
        for method in methods
        if method not in ("get", "head")
        and not (method == "post" and path.rpartition("/")[2] in people)
    }
    study = "/studies/{study}"
    own = {(method, study + path.replace("/0/", "/{phase}/")) for method, path, _ in CHANGES}
    of_all = {("POST", path) for path in ("/studies", "/exchanges", "/clock", "/organizers")}
    named = {("POST", "/organizers/{name}/key"), ("DELETE", "/organizers/{name}")}
    assert found == own | of_all | named


@pytest.mark.parametrize("who", ["ben", "vera"])
def test_others_read_a_study_and_change_nothing(
    collector: CollectorProcess, keys: dict[str, str], make_plan: Any, who: str
) -> None:
    study = begin(collector, make_plan, keys["anna"])
    path = f"/api/studies/{study}"
    for read in READS[:-1]:
        assert ask(collector, "GET", path + read, keys[who])[0] == 200
    assert collector.read("GET", path + READS[-1], token=keys[who]) == b""
    for method, rest, body in CHANGES:
        status, told = ask(collector, method, path + rest, keys[who], body)
        assert (status, told["error"]["code"]) == (403, "not_owner"), rest
        assert told["error"]["message"] == (
            "this study belongs to anna: only anna and the administrator can change it, "
            f"and {who} can read it"
        )
    status = ask(collector, "GET", path, keys["anna"])[1]
    assert (status["status"], status["issued"]) == ("open", 0)


def test_the_owner_changes_their_study(
    collector: CollectorProcess, keys: dict[str, str], make_plan: Any
) -> None:
    study = begin(collector, make_plan, keys["anna"])
    path = f"/api/studies/{study}"
    for method, rest, body in CHANGES:
        sent = {"name": "anna"} if rest == "/owner" else body
        status, _ = ask(collector, method, path + rest, keys["anna"], sent)
        assert status in (200, 201, 202), rest
    assert ask(collector, "GET", path, keys["anna"])[0] == 404
    said = [
        (one["who"], one["what"]) for one in ask(collector, "GET", "/api/activity", keys["vera"])[1]
    ]
    mine = ("deleted", "gave", "purged", "ended", "invited", "created")
    assert said[: len(mine)] == [("anna", what) for what in mine]


def test_a_viewer_creates_nothing_and_nobody_but_the_administrator_manages(
    collector: CollectorProcess, keys: dict[str, str], make_plan: Any
) -> None:
    plan = make_plan(20, seed=next(SEEDS)).to_dict()
    peers = {"peers": [{"url": collector.url, "study": "0"}], "epsilon": 1.0, "n_people": 20}
    status, told = ask(collector, "POST", "/api/studies", keys["vera"], {"plan": plan})
    assert (status, told["error"]["code"]) == (403, "viewer")
    assert "vera is a viewer here" in told["error"]["message"]
    for who in ("anna", "vera"):
        for method, path, body in (
            ("POST", "/api/clock", None),
            ("POST", "/api/exchanges", peers),  # the collector would ask other hosts
            ("POST", "/api/organizers", {"name": "mallory", "role": "owner"}),
            ("DELETE", "/api/organizers/ben", None),
            ("POST", "/api/organizers/ben/key", None),
            ("POST", f"/api/organizers/{ADMINISTRATOR}/key", None),
        ):
            status, told = ask(collector, method, path, keys[who], body)
            assert (status, told["error"]["code"]) == (403, "not_administrator"), path
    assert ask(collector, "GET", "/api/studies", keys["ben"])[0] == 200, "his key is as it was"
    names = {one["name"] for one in ask(collector, "GET", "/api/organizers", keys["vera"])[1]}
    assert "mallory" not in names


def test_roles_names_and_owners_that_there_are_not(
    collector: CollectorProcess, keys: dict[str, str], make_plan: Any
) -> None:
    key, path = collector.admin_key, "/api/organizers"
    for body, expected in (
        ({"name": "anna", "role": "viewer"}, 409),
        ({"name": ADMINISTRATOR, "role": "owner"}, 422),
        ({"name": "Carla", "role": "owner"}, 400),
        ({"name": "carla", "role": "administrator"}, 400),
        ({"name": "carla", "role": "removed"}, 400),
        ({"name": "carla", "role": "owner", "key": "x" * 43}, 400),
    ):
        assert ask(collector, "POST", path, key, body)[0] == expected, body
    assert ask(collector, "POST", f"{path}/nobody/key", key)[0] == 404
    assert ask(collector, "DELETE", f"{path}/nobody", key)[0] == 404
    assert ask(collector, "POST", f"{path}/{ADMINISTRATOR}/key", key)[0] == 409
    study = begin(collector, make_plan, keys["anna"])
    for name, expected in (("vera", 422), ("nobody", 422), ("ben", 200), ("anna", 403)):
        body = {"name": name}
        status, _ = ask(collector, "POST", f"/api/studies/{study}/owner", keys["anna"], body)
        assert status == expected, "and what was given away is somebody else's"
    assert ask(collector, "DELETE", f"/api/studies/{study}", keys["ben"])[0] == 200


def test_strangers_learn_no_owner(
    collector: CollectorProcess, keys: dict[str, str], make_plan: Any
) -> None:
    plan = make_plan(20, seed=next(SEEDS)).to_dict()
    body = {"plan": plan, "settings": {"open": True, "deadline": 60.0}}
    status, found = ask(collector, "POST", "/api/studies", keys["anna"], body)
    assert status == 201
    with Connection(collector.url) as connection:
        listed = connection.ask("GET", "/api/studies").body
        shown = connection.ask("GET", f"/api/studies/{found['id']}").body
        for path in ("/api/organizers", "/api/activity"):
            assert connection.ask("GET", path).status == 401
    assert found["id"].encode() in listed
    assert b"anna" not in listed + shown
    assert b'"owner":"anna"' in collector.read("GET", "/api/studies", token=keys["vera"])


def test_a_key_is_rotated_without_a_restart(collector: CollectorProcess) -> None:
    """The old key and every session that began with it end; the organizer may do it alone."""
    key = added(collector, "rosa", "owner")
    signed = Signed(collector, key)
    page = {"Cookie": signed.cookie}
    with Connection(collector.url) as connection:
        assert connection.ask("GET", "/", headers=page).status == 200
        status, found = ask(collector, "POST", "/api/organizers/rosa/key", key)
        assert status == 201
        assert ask(collector, "GET", "/api/organizers", key)[0] == 401
        assert ask(collector, "GET", "/api/organizers", found["key"])[0] == 200
        assert connection.ask("GET", "/", headers=page).status == 303
        assert signed.post("/login", {"key": key})[0] == 401
    assert Signed(collector, found["key"]).cookie
    newer = ask(collector, "POST", "/api/organizers/rosa/key", collector.admin_key)[1]["key"]
    assert ask(collector, "GET", "/api/organizers", found["key"])[0] == 401
    assert ask(collector, "GET", "/api/organizers", newer)[0] == 200


def test_who_was_removed_is_out_and_their_studies_go_on(
    collector: CollectorProcess, make_plan: Any
) -> None:
    key = added(collector, "otto", "owner")
    study = begin(collector, make_plan, key)
    signed = Signed(collector, key)
    status, _ = ask(collector, "DELETE", "/api/organizers/otto", collector.admin_key)
    assert status == 204
    assert ask(collector, "DELETE", f"/api/studies/{study}", key)[0] == 401
    form = {"csrf": signed.csrf, "sure": "yes"}
    assert signed.post(f"/study/{study}/delete", form, signed.cookie)[0] == 303, "to sign in"
    assert ask(collector, "GET", f"/api/studies/{study}", collector.admin_key)[0] == 200
    assert ask(collector, "POST", "/api/organizers/otto/key", collector.admin_key)[0] == 404
    again = {"name": "otto", "role": "owner"}
    status, told = ask(collector, "POST", "/api/organizers", collector.admin_key, again)
    assert (status, told["error"]["code"]) == (409, "exists"), "else it had otto's studies"
    assert ask(collector, "DELETE", f"/api/studies/{study}", collector.admin_key)[0] == 200


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_other_processes_know_at_once(database: str, make_plan: Any) -> None:
    with QuickForecasts(database) as one, QuickForecasts(database) as other:
        key = added(one, "anna", "owner")
        study = begin(other, make_plan, key)
        assert ask(one, "DELETE", f"/api/studies/{study}/replies", key)[0] == 200
        newer = ask(one, "POST", "/api/organizers/anna/key", key)[1]["key"]
        assert ask(other, "GET", "/api/organizers", key)[0] == 401
        assert ask(other, "GET", "/api/organizers", newer)[0] == 200
        assert ask(one, "DELETE", "/api/organizers/anna", one.admin_key)[0] == 204
        assert ask(other, "GET", "/api/organizers", newer)[0] == 401


# -- pages -------------------------------------------------------------------------------------


def test_pages_refuse_what_the_interface_refuses(
    collector: CollectorProcess, keys: dict[str, str], make_plan: Any
) -> None:
    study = begin(collector, make_plan, keys["anna"])
    for who in ("ben", "vera"):
        signed = Signed(collector, keys[who])
        form = {"csrf": signed.csrf, "sure": "yes", "count": "1", "phase": "0"}
        for action in ("invite", "close", "purge", "delete"):
            status, told, _ = signed.post(f"/study/{study}/{action}", form, signed.cookie)
            assert status == 403
            assert "this study belongs to anna" in told
    assert ask(collector, "GET", f"/api/studies/{study}", keys["anna"])[1]["status"] == "open"
    viewer = Signed(collector, keys["vera"])
    for path in ("/new", "/forecast"):
        status, told, _ = viewer.post(path, PRESETS | {"csrf": viewer.csrf}, viewer.cookie)
        assert (status, "vera is a viewer here" in told) == (403, True)
    head = {"Cookie": viewer.cookie, "Accept": "text/html"}
    with Connection(collector.url) as connection:
        for path in ("/new", "/planned", "/outlook"):
            assert connection.ask("GET", path, headers=head).status == 403
        page = connection.ask("GET", f"/study/{study}", headers=head).body.decode()
        for what in ("plan", "sums", "model", "codebook"):
            path = f"/study/{study}/export/{what}"
            assert connection.ask("GET", path, headers=head).status == 200
    assert "This study belongs to anna. You can read it and download its results." in page
    for button in ("Number of links", "End this phase", "Delete this study", 'href="/new'):
        assert button not in page


def test_forms_and_cookies_of_one_organizer_are_no_good_for_another(
    collector: CollectorProcess, keys: dict[str, str], make_plan: Any
) -> None:
    study = begin(collector, make_plan, keys["anna"])
    anna, vera = (Signed(collector, keys[who]) for who in ("anna", "vera"))
    form = {"sure": "yes", "csrf": vera.csrf}
    path = f"/study/{study}/delete"
    assert anna.post(path, form, anna.cookie)[0] == 403, "a form that vera had made anna send"
    name, _, value = vera.cookie.partition("=")
    content, _, signature = value.rpartition(".")
    for claimed in ("anna", ADMINISTRATOR, "nobody", ""):
        forged = f"{name}={content.rpartition('.')[0]}.{claimed}.{signature}"
        assert anna.post(path, form, forged)[0] == 303, "to sign in"
    settings = Settings(database="", admin_key=collector.admin_key)
    now = int(content.partition(".")[0])
    for stale in (Account("anna", "owner"), Account("anna", "owner", b"old key" * 4)):
        cookie = new_session(settings, float(now) - 8 * 3600, stale)
        assert anna.post(path, form, f"{cookie.key}={cookie.value}")[0] == 303
    assert ask(collector, "GET", f"/api/studies/{study}", keys["anna"])[0] == 200
    assert anna.post(path, form | {"csrf": anna.csrf}, anna.cookie)[0] == 303
    assert ask(collector, "GET", f"/api/studies/{study}", keys["anna"])[0] == 404


def test_a_study_made_with_the_form_belongs_to_its_maker(
    collector: CollectorProcess, keys: dict[str, str]
) -> None:
    anna = Signed(collector, keys["anna"])
    form = PRESETS | {"csrf": anna.csrf, "title-0": "Sleep", "anyway": "yes"}
    status, told, headers = anna.post("/new", form, anna.cookie)
    assert status == 303, told
    study = headers["Location"].rpartition("/")[2]
    form = {"csrf": anna.csrf, "count": "3", "as": "file"}
    assert anna.post(f"/study/{study}/invite", form, anna.cookie)[0] == 201
    with Connection(collector.url) as connection:
        head = {"Cookie": anna.cookie}
        page = connection.ask("GET", f"/study/{study}", headers=head).body.decode()
        activity = connection.ask("GET", "/activity", headers=head).body.decode()
        listed = connection.ask("GET", "/", headers=head).body.decode()
    assert "made links for 3 people" in page
    for shown in (page, listed):
        assert "anna, owner" in shown
    assert f'<a href="/study/{study}">Sleep</a>' in activity
    assert "made links for 3 people" in activity


def test_a_single_organizer_notices_nothing(tmp_path: Path, make_plan: Any) -> None:
    with QuickForecasts(f"sqlite:///{tmp_path}/x.db") as alone:
        study = alone.create(make_plan(20))["id"]
        signed = Signed(alone)
        with Connection(alone.url) as connection:
            head = {"Cookie": signed.cookie}
            listed = connection.ask("GET", "/", headers=head).body.decode()
            page = connection.ask("GET", f"/study/{study}", headers=head).body.decode()
    assert "owner" not in listed
    assert "belongs to" not in page
    assert "administrator, " not in listed + page


# -- commands ----------------------------------------------------------------------------------


def run(collector: CollectorProcess, *words: str, key: str = "", code: int = 0) -> Result:
    environment = {"DPFDA_ADMIN_KEY": key or collector.admin_key}
    done = CliRunner().invoke(dpfda, [*words, "--url", collector.url], env=environment)
    assert done.exit_code == code, done.output
    return done


def test_commands(collector: CollectorProcess, make_plan: Any, tmp_path: Path) -> None:
    key = run(collector, "organizers", "add", "greta", "--role", "owner").stdout.strip()
    study = begin(collector, make_plan, key)
    listed = run(collector, "organizers", "list").stdout
    assert "greta" in listed
    assert "owner" in listed
    file = tmp_path / "greta.key"
    told = run(collector, "organizers", "rotate", "greta", "--save", str(file), key=key).stdout
    assert told == f"the key of greta is in {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    run(collector, "organizers", "list", key=key, code=2)
    again = ["--admin-key-file", str(file)]
    run(collector, "studies", "close", study, *again, key="unused" * 5)
    for taken in (file, tmp_path / "none" / "x"):
        words = ("organizers", "rotate", "greta", "--save", str(taken))
        assert "a file that does not exist yet" in run(collector, *words, *again, code=2).output
    run(collector, "organizers", "list", *again)
    viewer = run(collector, "organizers", "add", "hugo", "--role", "viewer", "--json").stdout
    refused = run(
        collector, "studies", "delete", study, "--yes", key=json.loads(viewer)["key"], code=2
    )
    assert "this study belongs to greta" in refused.output
    run(
        collector,
        "studies",
        "export",
        study,
        "--out",
        str(tmp_path / "out"),
        key=json.loads(viewer)["key"],
    )
    assert run(collector, "organizers", "remove", "greta").stdout == "removed: greta\n"
    run(collector, "organizers", "list", *again, code=2)
    assert run(collector, "studies", "give", study, ADMINISTRATOR).stdout == (
        f"{study} belongs to administrator\n"
    )
    words = run(collector, "organizers", "activity", "--most", "5").stdout.splitlines()
    assert [line.partition(" ")[2].partition(" ")[2] for line in words] == [
        f"administrator gave the study to administrator ({study})",
        "administrator removed the organizer greta",
        f"hugo downloaded the randomized replies of phase 0 ({study})",
        "administrator added the organizer hugo, viewer",
        f"greta ended phase 0 with the answers that had arrived ({study})",
    ]


def test_no_key_is_stored_or_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with QuickForecasts(f"sqlite:///{tmp_path}/x.db", log=log) as one:
        keys = [added(one, "anna", "owner")]
        keys.append(ask(one, "POST", "/api/organizers/anna/key", keys[0])[1]["key"])
        Signed(one, keys[1])
    for file in tmp_path.iterdir():
        assert not [key for key in keys if key.encode() in file.read_bytes()]
