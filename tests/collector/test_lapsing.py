"""Tickets that nobody answers go to somebody else: never to two people, and no reply is wasted."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import Any

import pytest
from stored_studies import FINISHED, begun, every_storage, model, record, reply, stored, token

from dpfda.collector.storage import open_storage
from dpfda.collector.storage.base import Ended, Lapse, NewReply, Storage, Ticket

INVITED, OPEN = Lapse(100.0), Lapse(100.0, final=True)


def ask(storage: Storage, *people: int, now: float, lapse: Lapse = INVITED) -> list[Any]:
    """Ticket numbers, or why there is none."""
    asked = [("study", token(i)) for i in people]
    found = storage.issue(asked, now=now, lapse={"study": lapse})
    return [one.number if isinstance(one, Ticket) else one for one in found]


def enrolled(storage: Storage, people: int, *, quota: int, **until: float) -> None:
    storage.create(record(quota=quota), model())
    crowd = [("study", token(i)) for i in range(people)]
    storage.enrol(crowd, until={token(int(name[1:])): end for name, end in until.items()})


def answer(storage: Storage, person: int, ticket: int) -> str:
    (said,) = storage.add_replies([by(person, ticket)])
    return said


def by(person: int, ticket: int) -> NewReply:
    sent = reply(ticket, body=b"%d" % person)
    return NewReply(token(person), *[getattr(sent, name) for name in sent.__struct_fields__[1:]])


def test_the_times_of_a_ticket() -> None:
    assert (INVITED.grace, INVITED.until(7.0), INVITED.longest) == (25.0, 107.0, 225.0)
    assert [INVITED.has_ended(until, 10.0) for until in (None, 10.0, 9.9)] == [False, False, True]
    assert [INVITED.is_free(10.0, now) for now in (35.0, 35.1)] == [False, True]
    assert [rule.is_over(9.0, 10.0) for rule in (INVITED, OPEN)] == [False, True]
    assert not OPEN.is_over(None, 10.0)
    assert not OPEN.is_over(10.0, 10.0)
    ever = Lapse()
    assert (ever.grace, ever.until(7.0), ever.longest) == (0.0, None, 0.0)
    assert not ever.is_free(0.0, 9e9)
    assert not ever.has_ended(0.0, 9e9)


@every_storage
@pytest.mark.parametrize("lapse", [INVITED, OPEN])
def test_a_ticket_goes_to_somebody_else(storage: Storage, lapse: Lapse) -> None:
    """It never did: whoever took tickets and sent nothing stopped the study."""
    enrolled(storage, 5, quota=2)
    assert ask(storage, 0, 1, 2, now=0.0, lapse=lapse) == [0, 1, "wait"]
    assert answer(storage, 1, 1) == "stored"
    assert ask(storage, 2, now=125.0, lapse=lapse) == ["wait"]
    assert ask(storage, 2, 3, now=125.1, lapse=lapse) == [0, "wait"]
    assert answer(storage, 0, 0) == "lapsed"
    assert ask(storage, 0, now=126.0, lapse=lapse) == ["lapsed" if lapse.final else "wait"]
    assert answer(storage, 2, 0) == "stored"
    study = storage.study("study")
    assert study is not None
    assert (study.issued, storage.answered("study", 0)) == (2, 2)
    assert ask(storage, 3, now=900.0, lapse=lapse) == ["wait"]
    assert ask(storage, 1, 2, now=900.0, lapse=lapse) == ["answered", "answered"]


@every_storage
def test_who_is_late_is_counted_while_there_is_room(storage: Storage) -> None:
    enrolled(storage, 3, quota=2)
    assert ask(storage, 0, 1, now=0.0, lapse=OPEN) == [0, 1]
    assert ask(storage, 0, now=100.0, lapse=OPEN) == [0]
    assert ask(storage, 0, now=100.1, lapse=OPEN) == ["lapsed"], "and nothing was spent"
    assert answer(storage, 0, 0) == "stored", "but who had spent is counted"
    assert ask(storage, 2, now=130.0, lapse=OPEN) == [1]
    assert [answer(storage, 1, 1), answer(storage, 2, 1)] == ["lapsed", "stored"]


@every_storage
def test_who_was_invited_may_take_their_time(storage: Storage) -> None:
    enrolled(storage, 2, quota=1)
    assert ask(storage, 0, now=0.0) == [0]
    assert ask(storage, 0, now=110.0) == [0], "nobody else wants it: it is theirs again"
    assert ask(storage, 1, now=130.0) == ["wait"]
    assert ask(storage, 1, now=210.0 + 25.1) == [0]
    assert ask(storage, 0, now=240.0) == ["wait"], "and may come in again"
    assert ask(storage, 0, now=900.0) == [0]
    assert [answer(storage, 1, 0), answer(storage, 0, 0)] == ["lapsed", "stored"]


@every_storage
def test_nobody_keeps_a_ticket_that_another_waits_for(storage: Storage) -> None:
    """Whoever asked every now and then had it for ever, and the study stood still."""
    enrolled(storage, 2, quota=1)
    assert ask(storage, 0, now=0.0) == [0]
    assert ask(storage, 1, now=90.0) == ["wait"]
    assert ask(storage, 0, now=100.0) == [0], "its time is not over"
    assert ask(storage, 0, now=101.0) == ["wait"]
    assert ask(storage, 0, now=190.0) == ["wait"]
    assert ask(storage, 1, now=125.1) == [0]
    assert ask(storage, 1, now=225.2) == [0], (
        "who waited has left: 0 was not sent away for a ticket"
    )


@every_storage
def test_who_waits_no_more_is_not_waited_for(storage: Storage) -> None:
    enrolled(storage, 2, quota=1)
    assert ask(storage, 0, now=0.0) == [0]
    assert ask(storage, 1, now=90.0) == ["wait"]
    assert ask(storage, 0, now=190.1) == [0]
    assert ask(storage, 1, now=290.1 + 25.0) == ["wait"], "its time began anew"
    assert ask(storage, 1, now=290.1 + 25.1) == [0]


@every_storage
def test_a_token_that_asked_for_nothing_is_over(storage: Storage) -> None:
    enrolled(storage, 3, quota=3, p0=50.0, p1=50.0)
    assert ask(storage, 0, now=50.0, lapse=OPEN) == [0]
    assert ask(storage, 1, 2, now=50.1, lapse=OPEN) == ["lapsed", 1], "2 was invited"


@every_storage
def test_new_tickets_go_first_and_then_the_oldest(storage: Storage) -> None:
    enrolled(storage, 9, quota=4)
    for person in range(3):
        assert ask(storage, person, now=float(person)) == [person]
    assert ask(storage, 3, 4, 5, now=126.5) == [3, 0, 1]
    assert ask(storage, 6, now=126.9) == ["wait"]
    assert ask(storage, 6, 7, now=127.1) == [2, "wait"]
    assert ask(storage, 7, now=251.4) == ["wait"]
    assert ask(storage, 7, 8, 0, now=251.6) == [0, 1, 3]
    assert answer(storage, 4, 0) == "lapsed"


@every_storage
def test_a_ticket_that_was_given_back_is_found_at_once(storage: Storage) -> None:
    """What is remembered of when to look is about tickets as they were then."""
    enrolled(storage, 4, quota=1)
    assert ask(storage, 0, now=0.0) == [0]
    assert ask(storage, 1, now=1.0) == ["wait"]
    assert ask(storage, 1, now=125.5) == [0]
    assert ask(storage, 2, now=126.0) == ["wait"]
    assert ask(storage, 2, now=250.6) == [0]


@every_storage
def test_no_more_tickets_are_taken_than_are_handed_out(storage: Storage) -> None:
    enrolled(storage, 5, quota=4)
    assert ask(storage, 0, 1, 2, now=0.0) == [0, 1, 2]
    assert ask(storage, 3, 4, now=126.0) == [3, 0]
    assert [answer(storage, person, person) for person in (0, 1, 2)] == ["lapsed"] + ["stored"] * 2


@every_storage
def test_studies_that_are_not_here(storage: Storage) -> None:
    enrolled(storage, 1, quota=1)
    asked = [("other", token(0)), ("other", token(1)), ("study", token(1))]
    assert storage.issue(asked, now=0.0) == ["foreign", "unknown", "unknown"]
    assert storage.delete("study")
    assert storage.issue([("study", token(0)), ("other", token(1))], now=0.0) == ["gone", "unknown"]


@every_storage
def test_phases_do_not_lapse_into_each_other(storage: Storage) -> None:
    enrolled(storage, 5, quota=1)
    assert ask(storage, 0, 1, now=0.0) == [0, "wait"]
    storage.begin_closing("study", 0)
    assert ask(storage, 0, 1, now=500.0) == [0, "wait"], "nothing is handed out while it closes"
    following = FINISHED | {"quota": 1, "status": "open"}
    storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    while storage.forget():
        pass
    assert ask(storage, 1, 2, now=501.0) == [0, "wait"]
    assert ask(storage, 0, now=501.0) == ["late"]
    assert answer(storage, 0, 0) == "late"
    assert ask(storage, 2, now=626.1) == [0]


@every_storage
def test_without_a_rule_nothing_lapses(storage: Storage) -> None:
    begun(storage, people=4, quota=3)
    assert storage.issue([("study", token(3))], now=9e9) == ["wait"]
    assert ask(storage, 3, now=9e9) == ["wait"], "nor what was handed out without one"


@every_storage
def test_others_have_their_own_rule(storage: Storage) -> None:
    enrolled(storage, 2, quota=1)
    storage.create(record("other", quota=1), model("other"))
    storage.enrol([("other", token(20)), ("other", token(21))])
    rules = {"study": INVITED, "other": Lapse(1000.0)}
    first = [("study", token(0)), ("other", token(20))]
    second = [("study", token(1)), ("other", token(21))]
    storage.issue(first, now=0.0, lapse=rules)
    assert storage.issue(second, now=200.0, lapse=rules) == [Ticket("study", 0, 0), "wait"]
    assert storage.issue(second, now=1251.0, lapse=rules)[1] == Ticket("other", 0, 0)


@stored
def test_a_restart_changes_nothing(storage: Storage, database: str) -> None:
    enrolled(storage, 3, quota=1)
    assert ask(storage, 0, now=0.0) == [0]
    assert ask(storage, 1, now=10.0) == ["wait"]
    again = open_storage(database)
    try:
        assert ask(again, 2, now=125.0) == ["wait"]
        assert ask(again, 2, now=125.1) == [0]
        assert answer(again, 0, 0) == "lapsed"
        assert ask(storage, 1, now=126.0) == ["wait"]
        assert answer(storage, 2, 0) == "stored"
    finally:
        again.close()


@stored
def test_two_processes_never_give_one_ticket_to_two(storage: Storage, database: str) -> None:
    """Holders answer late while others ask for their tickets, through two connections at once."""
    quota, people = 12, 48
    enrolled(storage, people, quota=quota)
    ask(storage, *range(quota), now=0.0)
    held = {person: person for person in range(quota)}
    verdicts: Counter[str] = Counter()
    lock, trouble = threading.Lock(), []

    def go_on(own: Storage, seed: int) -> None:
        draw = random.Random(seed)
        try:
            for turn in range(25):
                now = 200.0 * (1 + turn)
                with lock:
                    late = draw.sample(sorted(held.items()), 2)
                asking = draw.sample(range(people), 4)
                said = own.add_replies([by(person, ticket) for person, ticket in late])
                got = ask(own, *asking, now=now)
                with lock:
                    verdicts.update(said)
                    pairs = zip(asking, got, strict=True)
                    held.update((p, t) for p, t in pairs if isinstance(t, int))
        except Exception as error:
            trouble.append(error)

    other = open_storage(database)
    threads = [threading.Thread(target=go_on, args=one) for one in ((storage, 0), (other, 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert trouble == []
    kept = storage.replies("study", 0)
    assert len(kept) == verdicts["stored"] == storage.answered("study", 0) <= quota
    assert set(verdicts) <= {"stored", "same", "lapsed", "foreign"}
    told = ask(storage, *range(people), now=0.0)
    waiting = [one for one in told if isinstance(one, int)]
    assert told.count("answered") == len(kept)
    assert sorted([*waiting, *(number for number, _ in kept)]) == list(range(quota)), "one each"


@every_storage
def test_who_keeps_nothing_from_others(storage: Storage) -> None:
    enrolled(storage, 6, quota=3)
    assert ask(storage, 0, 1, 2, now=0.0) == [0, 1, 2]
    crowd = [token(i) for i in range(7)]
    assert storage.settled("study", crowd) == set(), "nor whom nobody knows"
    assert answer(storage, 0, 0) == "stored"
    assert ask(storage, 3, now=125.1) == [1]
    assert storage.settled("study", crowd) == {token(0), token(1)}
    assert storage.settled("study", []) == set()
    assert storage.settled("study", crowd[1:]) == {token(1)}
    storage.begin_closing("study", 0)
    following = FINISHED | {"quota": 1, "status": "open"}
    storage.advance("study", 0, Ended(following=following, model=model(phase=0)))
    while storage.forget():
        pass
    assert storage.settled("study", crowd) == {token(i) for i in range(4)}
    assert storage.settled("other", crowd) == {token(1)}, "whose ticket is lost holds none"
