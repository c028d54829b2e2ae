"""Who is let through: keys, tokens, sessions, forms, limits and peers, each rule by itself."""

from __future__ import annotations

import asyncio
import json
import random
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda.client.http import Answer
from dpfda.collector import api, conclude, limits, plans
from dpfda.collector.conclude import begin
from dpfda.collector.limits import WRONG_KEYS, AdminAuth, RateLimit, origin
from dpfda.collector.organizers import FIRST
from dpfda.collector.pages import session
from dpfda.collector.people import People, bearer
from dpfda.collector.plans import NewExchange, Peer, exchange_plan
from dpfda.collector.refusal import Refused
from dpfda.collector.settings import Settings
from dpfda.curves import CurveEncoder
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.local.recipe import plan_study
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.protocol.server import Server

SETTINGS = Settings(database="memory:", admin_key="k" * 32)


def status_of(call: Any, *args: Any, **kwargs: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        call(*args, **kwargs)
    return refused.value.status, refused.value.code


async def _at_once(_: float) -> None:
    """No pause."""


async def _is_compared(keyhole: AdminAuth, key: str) -> bool:
    try:
        await keyhole.account(key, "192.0.2.1")
    except Refused:
        return False
    return True


class Sent:
    """A request of which only the body matters."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def body(self) -> bytes:
        return self._body


class TestRequests:
    def test_a_plan_or_facts(self) -> None:
        facts = {"n_people": 50, "epsilon": 1.0, "value_range": [0, 1], "classes": ["no", "yes"]}
        made = plan_study(50, 1.0, value_range=(0, 1), classes=("no", "yes")).to_dict()
        assert api.NewStudy(plan={"a": 1}).contract() == {"a": 1}
        assert api.NewStudy(facts=facts).contract() == made
        assert status_of(api.NewStudy().contract) == (400, "bad_plan")
        assert status_of(api.NewStudy(plan={}, facts=facts).contract) == (400, "bad_plan")

    def test_a_bearer_has_a_credential(self) -> None:
        assert bearer("Bearer abc") == "abc"
        assert bearer("bearer abc") == "abc"
        for wrong in (None, "", "Bearer", "Bearer ", "Basic abc", "abc"):
            assert status_of(bearer, wrong) == (401, "unknown_token")

    def test_a_token_that_asks_too_often_waits(self) -> None:
        limit = RateLimit(rate=1.0, burst=1, clock=lambda: 0.0)
        people = People(None, limit, {})
        assert len(people._token("a")) == 32
        assert status_of(people._token, "a") == (429, "too_fast")
        assert people._token("b") != b""

    @pytest.mark.parametrize("client", [SimpleNamespace(host="192.0.2.1"), None])
    def test_only_the_key_is_the_key(self, client: Any) -> None:
        state = SimpleNamespace(keyhole=AdminAuth(SETTINGS))
        head: dict[str, str] = {}
        request: Any = SimpleNamespace(
            app=SimpleNamespace(state=state), client=client, headers=head, scope={}
        )
        head["authorization"] = "Bearer " + "k" * 32
        asyncio.run(api.require_key(request, None))
        for wrong in ("Bearer " + "k" * 31, "Bearer kk", "Bearer " + "k" * 33, ""):
            head["authorization"] = wrong
            with pytest.raises(Refused) as refused:
                asyncio.run(api.require_key(request, None))
            assert refused.value.status == 401

    def test_replies_come_one_a_line(self) -> None:
        async def all_replies(study: str, phase: int, *, by: str) -> list[tuple[int, bytes]]:
            assert by == "administrator"
            return [(0, b"{}"), (3, b"[]")]

        stored: Any = SimpleNamespace(all_replies=all_replies)
        request: Any = SimpleNamespace(scope={"dpfda_account": FIRST})
        answer = asyncio.run(api.list_replies.fn("0", 0, request, stored))
        assert answer.content == b"{}\n[]\n"

    @pytest.mark.parametrize("own", [None, "ab"])
    def test_an_exchange_may_have_a_model_of_its_own(self, monkeypatch: Any, own: Any) -> None:
        judged: list[Any] = []

        async def models(study: str) -> list[Any]:
            return [SimpleNamespace(document="first"), SimpleNamespace(document=f"last {study}")]

        def stop(asked: NewExchange, *, own: str | None) -> Any:
            judged.append(own)
            raise Refused(418, "enough", "")

        monkeypatch.setattr(api, "exchange_plan", stop)
        asked = msgspec.structs.replace(TestPeers.asked(), own=own)
        stored: Any = SimpleNamespace(models=models)
        with pytest.raises(Refused):
            asyncio.run(api.create_exchange.fn(asked, Sent(b"{}"), stored))
        assert judged == [own and "last ab"]


class TestKeys:
    def test_a_key_has_a_length(self) -> None:
        assert Settings(database="memory:", admin_key="k" * 22).is_admin("k" * 22)
        with pytest.raises(InvalidParameter, match="admin_key must be 22 characters at least"):
            Settings(database="memory:", admin_key="k" * 21)
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(b'{"database": "memory:", "admin_key": ""}', type=Settings)

    def test_wrong_keys_are_counted_and_right_ones_are_not(self) -> None:
        now, paused = [0.0], []

        async def sleep(seconds: float) -> None:
            paused.append(seconds)

        limit = RateLimit(rate=0.1, burst=3, clock=lambda: now[0])
        keyhole = AdminAuth(SETTINGS, limit, sleep)
        right, here = "k" * 32, "2001:db8::1"

        def fits(key: str, host: str = here) -> bool:
            return asyncio.run(keyhole.account(key, host)) is not None

        assert all(fits(right) for _ in range(9))
        assert [fits("guess") for _ in range(3)] == [False] * 3
        assert paused == []
        for key in ("guess", right):  # a guess is not compared, lest the right one be noticed
            assert status_of(fits, key, "2001:db8::2") == (429, "too_fast")
        assert paused == [1.0, 1.0]
        assert fits(right, "2001:db8:0:1::1")
        now[0] = 10.0
        assert fits(right)
        assert not fits("guess")
        with pytest.raises(Refused) as refused:
            fits(right)
        assert refused.value.details == {"retry_after": 1}

    def test_ten_at_once_and_twenty_a_second(self) -> None:
        keyhole = AdminAuth(SETTINGS)
        assert WRONG_KEYS == 10
        assert not any(asyncio.run(keyhole.account("\ud800", "a")) for _ in range(10))
        assert (keyhole._wrong._rate, keyhole._wrong._burst) == (20.0, 10)
        assert keyhole._sleep is asyncio.sleep

    def test_who_shares_an_address_gets_in_however_long_others_guess(self) -> None:
        """After ten wrong keys the right one was refused as long as somebody sent wrong ones."""
        now, line = [0.0], 100
        keyhole = AdminAuth(
            SETTINGS, RateLimit(rate=20.0, burst=10, clock=lambda: now[0]), _at_once
        )
        draw = random.Random(0)

        async def one_second() -> tuple[int, bool]:
            """Everybody on the line tries, in any order."""
            now[0] += 1.0
            turn = draw.randrange(line)
            compared = sum([await _is_compared(keyhole, "guess") for _ in range(turn)])
            let_in = await _is_compared(keyhole, "k" * 32)
            compared += sum([await _is_compared(keyhole, "guess") for _ in range(turn, line)])
            return compared, let_in

        async def course() -> list[tuple[int, bool]]:
            return [await one_second() for _ in range(400)]

        guesses, let_in = zip(*asyncio.run(course()), strict=True)
        assert sum(guesses) <= 10 + 20 * now[0]
        assert sum(let_in) > 400 * 10 / line / 2, "one second in ten, as at most ten are saved up"

    @pytest.mark.parametrize(
        ("host", "place"),
        [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:0:0:ffff:ffff:ffff:ffff", "2001:db8::/64"),
            ("2001:db8:0:1::", "2001:db8:0:1::/64"),
            ("fe80::1%eth0", "fe80::/64"),
            ("::1", "::/64"),
            ("x" * 100, "x" * 64),
        ],
    )
    def test_where_a_request_is_from(self, host: str, place: str) -> None:
        assert origin(host) == place


class TestSessions:
    @staticmethod
    def asked(cookie: str, **headers: str) -> Any:
        return SimpleNamespace(cookies={"dpfda_session": cookie}, headers=headers)

    @pytest.fixture
    def cookie(self) -> str:
        return str(session.new_session(SETTINGS, 1000.0).value)

    def test_a_session_lasts_eight_hours(self, cookie: str) -> None:
        end = 1000 + 8 * 3600
        for now, good in ((1000, True), (end - 1, True), (end, True), (end + 1, False)):
            asking = (self.asked(cookie), SETTINGS, float(now))
            if good:
                assert session.require_session(*asking)
            else:
                refused = status_of(session.require_session, *asking)
                assert refused == (401, "not_signed_in")

    def test_a_session_is_signed(self, cookie: str) -> None:
        content, _, signature = cookie.rpartition(".")
        never = "never." + content.partition(".")[2]
        forged = f"9{content}.{signature}"
        timeless = f"{never}.{session._signature(SETTINGS, never, FIRST)}"
        other = Settings(database="memory:", admin_key="other" * 8)
        for wrong in ("", content, forged, timeless, "." + signature):
            asking = (self.asked(wrong), SETTINGS, 1000.0)
            assert status_of(session.require_session, *asking)[0] == 401
        assert status_of(session.require_session, self.asked(cookie), other, 1000.0)[0] == 401

    def test_a_form_is_from_its_session(self, cookie: str) -> None:
        expected = session.csrf_token(SETTINGS, cookie)
        for site in ({}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}):
            session.check_form(expected, {"csrf": expected}, self.asked(cookie, **site))
            for wrong in ({}, {"csrf": "x"}):
                refused = status_of(session.check_form, expected, wrong, self.asked("", **site))
                assert refused == (403, "foreign_form")
        elsewhere = self.asked(cookie, **{"sec-fetch-site": "cross-site"})
        refused = status_of(session.check_form, expected, {"csrf": expected}, elsewhere)
        assert refused == (403, "foreign_form")


class TestLimits:
    def test_a_bucket_fills_with_time(self) -> None:
        now = [10.0]
        limit = RateLimit(rate=0.5, burst=3, clock=lambda: now[0])
        assert [limit.allows("a") for _ in range(4)] == [True, True, True, False]
        now[0] += 1.9  # not yet a whole request
        assert not limit.allows("a")
        now[0] += 0.1  # 2 seconds for one, counted from the empty bucket
        assert limit.allows("a")
        assert not limit.allows("a")
        now[0] += 1000  # never more than a burst
        assert [limit.allows("a") for _ in range(4)] == [True, True, True, False]

    def test_looking_takes_nothing(self) -> None:
        limit = RateLimit(rate=1.0, burst=1, clock=lambda: 0.0)
        assert [limit.would_allow("a") for _ in range(3)] == [True] * 3
        assert limit.allows("a")
        assert not limit.would_allow("a")
        assert limit.would_allow("b")
        assert list(limit._left) == ["a"]

    def test_the_longest_silent_are_forgotten(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(limits, "_KEPT", 2)
        limit = RateLimit(rate=1.0, burst=1, clock=lambda: 0.0)
        for key in "ab":
            assert limit.allows(key)
        assert not limit.allows("a")  # both are remembered, a spoke last
        assert limit.allows("c")
        assert not limit.allows("a")
        assert list(limit._left) == ["c", "a"]


class TestPeers:
    @staticmethod
    def model(**other: Any) -> CurveModel:
        linear: dict[str, Any] = {
            "intercept": np.array([0.25]),
            "coefficients": np.array([[1.0, -2.0]]),
            "encoder": CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
            "classes": ("no", "yes"),
            "guarantee": Guarantee(epsilon=1.0, model="local"),
        }
        return CurveModel.linear(**(linear | other))

    @staticmethod
    def asked(peers: int = 1) -> NewExchange:
        peer = Peer("http://127.0.0.1:1", "0")
        return NewExchange(peers=[peer] * peers, epsilon=1.0, n_people=20)

    def plan(self, monkeypatch: Any, found: CurveModel, own: CurveModel | None = None) -> Any:
        monkeypatch.setattr(plans, "_pull", lambda peer: found)
        return exchange_plan(self.asked(), own=None if own is None else own.to_json())

    def test_models_are_judged_as_they_decide(self, monkeypatch: Any) -> None:
        own = self.model(intercept=np.array([1.0]))
        assert self.plan(monkeypatch, self.model()).design["intercepts"] == [0.25]
        stretched = self.model()
        stretched.scales[:] = 4.0
        design = self.plan(monkeypatch, stretched, own).design
        assert list(design["intercepts"]) == [1.0, 0.25]
        assert np.allclose(design["coefficients"], [[1.0, -2.0], [0.25, -0.5]])

    def test_models_of_several_classes_are_judged_half_by_half(self, monkeypatch: Any) -> None:
        slopes = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 2.0]])
        three = self.model(
            intercept=np.array([1.0, 2.0, 4.0]), coefficients=slopes, classes=("a", "b", "c")
        )
        plan = self.plan(monkeypatch, three)
        assert plan.design["halves"] == [[0], [1], [2]]
        assert plan.design["intercepts"] == [1 - 2 - 4, 2 - 1 - 4, 4 - 1 - 2]
        assert plan.design["coefficients"][2] == [-1 - 1, 2 - 1]
        assert set(plan.asks) == {"member", "evaluation"}

    def test_other_models_are_refused(self, monkeypatch: Any) -> None:
        own = self.model()
        strange = self.model(classes=("a", "b"))
        assert status_of(self.plan, monkeypatch, strange, own) == (409, "other_recipe")
        for parts in ({"clipped": True}, {"centers": np.ones((1, 2))}):
            bent = CurveModel.from_dict(own.to_dict())
            for name, value in parts.items():
                object.__setattr__(bent, name, value)
            assert status_of(self.plan, monkeypatch, bent) == (409, "not_linear")

    @pytest.mark.parametrize(
        ("status", "spare", "good"),
        [(200, 0, True), (201, 0, False), (404, 0, False), (200, 1 << 20, False)],
    )
    def test_a_peer_hands_out_its_model(
        self, monkeypatch: Any, status: int, spare: int, good: bool
    ) -> None:
        text = self.model().to_json().encode()
        sent = self.answered(monkeypatch, Answer(status, text + b" " * spare))
        if good:
            assert plans._pull(Peer("http://127.0.0.1:1", "0")).intercept == [0.25]
            plans._pull(Peer("http://127.0.0.1:1", "0", key="secret"))
            assert sent == [{}, {"Authorization": "Bearer secret"}]
        else:
            pull = status_of(plans._pull, Peer("http://127.0.0.1:1", "0"))
            assert pull == (424, "no_peer")

    def test_a_model_may_fill_the_limit(self, monkeypatch: Any) -> None:
        text = self.model().to_json().encode()
        monkeypatch.setattr(plans, "_MOST_BYTES", len(text))
        self.answered(monkeypatch, Answer(200, text))
        assert plans._pull(Peer("http://127.0.0.1:1", "0")).classes == ("no", "yes")

    def test_what_is_no_model_is_no_peer(self, monkeypatch: Any) -> None:
        self.answered(monkeypatch, Answer(200, b"{}"))
        with pytest.raises(Refused, match="return a model"):
            plans._pull(Peer("http://127.0.0.1:1", "0"))
        self.answered(monkeypatch, Answer(500, b"{}"))
        with pytest.raises(Refused, match="return its model"):
            plans._pull(Peer("http://127.0.0.1:1", "0"))

    @staticmethod
    def answered(monkeypatch: Any, answer: Answer) -> list[Any]:
        """Let every connection give one answer; returns the headers that were sent."""
        sent: list[Any] = []

        class Connection:
            def __init__(self, url: str, **how: Any) -> None: ...

            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None: ...

            def ask(self, method: str, path: str, *, headers: Any) -> Answer:
                sent.append(headers)
                return answer

        monkeypatch.setattr(plans, "Connection", Connection)
        return sent


class TestBeginnings:
    def test_a_plan_survives_json(self, make_plan: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(conclude, "read_plan", lambda text: make_plan(3, seed=1))
        assert "JSON" in str(begin(make_plan(3).to_dict()))
        assert isinstance(begin(make_plan(3, seed=1).to_dict()), tuple)

    def test_the_next_round_draws_anew(self, make_plan: Any) -> None:
        plan = make_plan(3, seed=7)
        following = SimpleNamespace(to_dict=lambda: {"name": "moments", "mechanism": "laplace"})
        server: Any = SimpleNamespace(plan=plan, findings=SimpleNamespace(following=following))
        carried = json.loads(str(conclude._carried(server)))
        assert carried["seed"] == 8
        assert carried["design"] == following.to_dict()

    def test_a_study_has_a_size(self, make_plan: Any, monkeypatch: Any) -> None:
        monkeypatch.setattr(plans, "MOST_PEOPLE", 3)
        assert isinstance(begin(make_plan(3).to_dict()), tuple)
        assert "at most 3" in str(begin(make_plan(4).to_dict()))

    def test_a_complaint_is_short(self, monkeypatch: Any) -> None:
        def complain(plan: Any) -> Any:
            raise DpfdaError("wrong " * 500)

        monkeypatch.setattr(conclude, "_begin", complain)
        complaint = begin({})
        assert isinstance(complaint, str)
        assert len(complaint) == 500

    def test_blocks_change_nothing(self, make_plan: Any, monkeypatch: Any) -> None:
        plan = make_plan(8)
        numbers = np.array([0, 2, 3, 5, 7])
        values = np.random.default_rng(0).uniform(-1, 1, (5, 2))

        def state(block: int) -> dict[str, Any]:
            monkeypatch.setattr(conclude, "BLOCK", block)
            server = Server(plan)
            server.issued = 8
            conclude._receive(server, numbers, values, 8)
            return json.loads(json.dumps(server.state()))  # type: ignore[no-any-return]

        assert state(3) == state(100)
