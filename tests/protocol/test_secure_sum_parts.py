"""Parts of a secure sum by themselves: what is hashed and in which order, masks, what is named."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import numpy as np
import pytest

from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.protocol.secure_sum import Aggregator, Identity, Member, RoundFailed, Terms, crypto
from dpfda.protocol.secure_sum.aggregator import one_round
from dpfda.protocol.secure_sum.crypto import expand, pairwise
from dpfda.protocol.secure_sum.messages import Cheated, Keys, RoundId, offer_content, pair_seed
from dpfda.sites.messages import encode

SIZE = 3
FIRST = RoundId(stage=0, attempt=1)
KEEPER = Identity()


def sites(count: int, **facts: Any) -> tuple[list[Member], Terms]:
    """Members; number i contributes 10^i everywhere."""
    keys = [Identity() for _ in range(count)]
    roster = tuple((f"site{i}", key.public) for i, key in enumerate(keys))
    terms = Terms(study="s", coordinator=KEEPER.public, roster=roster, **facts)
    members = [Member(f"site{i}", key, terms) for i, key in enumerate(keys)]
    for power, member in enumerate(members):
        member.contribute(0, np.full(SIZE, 10**power))
    return members, terms


def framed(*pieces: bytes) -> bytes:
    """Each piece behind its length in four bytes: no two lists of pieces look alike."""
    return hashlib.sha256(b"".join(len(p).to_bytes(4, "big") + p for p in pieces)).digest()


def test_terms_are_hashed_piece_by_piece() -> None:
    roster = (("a", b"1" * 32), ("b", b"2" * 32), ("c", b"3" * 32))
    terms = Terms(study="s" * 70_000, coordinator=b"k" * 32, roster=roster, dropouts=1)
    pieces = [piece for name, key in roster for piece in (name.encode(), key)]
    assert terms.digest == framed(b"s" * 70_000, b"(0, 1)", b"k" * 32, *pieces)


def test_rounds_are_hashed_piece_by_piece() -> None:
    found = RoundId(stage=1, attempt=23, question="q" * 70_000).context(b"d", "offer", b"x", b"")
    assert found == framed(b"d", b"1", b"23", b"q" * 70_000, b"offer", b"x", b"")


def test_keys_and_choice_are_signed() -> None:
    _, terms = sites(3)
    keys = Keys(cipher=b"c", mask=b"m", choice=b"x")
    content = offer_content(terms, FIRST, "site0", keys)
    assert content == FIRST.context(terms.digest, "offer", b"site0", b"c", b"m", b"x")
    others = [("cipher", b"d"), ("mask", b"n"), ("choice", b"y")]
    changed = [msgspec.structs.replace(keys, **{name: value}) for name, value in others]
    found = {offer_content(terms, FIRST, "site0", one) for one in changed}
    assert content not in found
    assert len(found) == 3


def test_both_ends_of_a_pair_derive_one_seed_for_one_set_of_sharers() -> None:
    _, terms = sites(3)
    one, other = crypto.RoundKey(), crypto.RoundKey()
    mine = "site0", Keys(cipher=b"", mask=one.public, choice=b"")
    theirs = "site2", Keys(cipher=b"", mask=other.public, choice=b"")
    seed = pair_seed(terms, FIRST, terms.names, one, owner="site0", other=theirs)
    assert seed == pair_seed(terms, FIRST, terms.names, other, owner="site2", other=mine)
    fewer = terms.names[0], terms.names[2]
    assert seed != pair_seed(terms, FIRST, fewer, one, owner="site0", other=theirs)
    again = RoundId(stage=0, attempt=2)
    assert seed != pair_seed(terms, again, terms.names, one, owner="site0", other=theirs)


def test_the_first_site_adds_what_the_second_takes_away() -> None:
    seed = bytes(range(32))
    mask = expand(seed, 5)
    np.testing.assert_array_equal(pairwise(seed, 5, first=True), mask)
    np.testing.assert_array_equal(mask + pairwise(seed, 5, first=False), np.zeros(5, np.uint64))


@pytest.mark.parametrize("gone", [0, 2, 4])
def test_the_masks_of_a_silent_site_are_taken_off(gone: int) -> None:
    """Also where it stands first or last in the roster; and only with its true key."""
    members, terms = sites(5, dropouts=1)
    aggregator = Aggregator(terms, KEEPER, FIRST, size=SIZE)
    listed = aggregator.offers([member.advertise(FIRST) for member in members])
    routed = aggregator.route([member.share(listed[member.name]) for member in members])
    left = [member for member in members if member.name != f"site{gone}"]
    told = aggregator.collect([member.mask(routed[member.name]) for member in left])
    confirmed = aggregator.confirmations([member.confirm(told) for member in left])
    opened = [member.unmask(confirmed[member.name]) for member in left]
    assert aggregator.open(opened).total.tolist() == [11111 - 10**gone] * SIZE
    points = list(range(2, 6))  # of the others; the silent site has the first
    other = crypto.split(bytes(32), threshold=terms.threshold, points=points)
    forged = [
        msgspec.structs.replace(one, keys=one.keys | {f"site{gone}": other[point]})
        for one, point in zip(opened, points, strict=True)
    ]
    with pytest.raises(RoundFailed, match="mask key was not recovered") as caught:
        aggregator.open(forged)
    assert not caught.value.repeatable
    stranger = msgspec.structs.replace(opened[0], site="nobody")
    with pytest.raises(ProtocolError, match="not in the roster"):
        aggregator.open([stranger, *opened[1:]])


def test_a_stage_that_another_process_opened_is_not_masked_again() -> None:
    """Two processes of one site share its account; a second sum would tell too much."""
    members, terms = sites(3)
    aggregator = Aggregator(terms, KEEPER, FIRST, size=SIZE)
    listed = aggregator.offers([member.advertise(FIRST) for member in members])
    routed = aggregator.route([member.share(listed[member.name]) for member in members])
    members[0].account.open(0)
    with pytest.raises(ProtocolError, match="opened already"):
        members[0].mask(routed["site0"])


def test_refusals_say_who_and_why() -> None:
    assert str(Cheated("the coordinator", "told a lie")) == "the coordinator told a lie"
    assert Cheated("site 'a'", "told a lie").culprit == "site 'a'"
    assert str(RoundFailed("too few", repeatable=True)) == "too few"


@pytest.mark.parametrize(
    ("count", "facts"), [(3, {"colluders": -1}), (3, {"dropouts": -1}), (5, {"dropouts": 0.5})]
)
def test_colluders_and_silent_sites_are_counted(count: int, facts: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(facts))):
        sites(count, **facts)


def test_the_noise_counts_on_honest_sites_that_answer() -> None:
    _, terms = sites(9, colluders=2, dropouts=3)
    assert (terms.noisy_sites, terms.needed, terms.threshold) == (4, 6, 6)


@pytest.mark.parametrize(("count", "size"), [(3, 10), (18, 10), (10, 1000)])
def test_a_site_sends_and_receives_the_bytes_that_the_page_states(count: int, size: int) -> None:
    members, terms = sites(count)
    for member in members:
        member.contribute(1, np.zeros(size, dtype=np.int64), question="0" * 64)
    round_id = RoundId(stage=1, attempt=1, question="0" * 64)
    aggregator = Aggregator(terms, KEEPER, round_id, size=size)
    sent = received = 0

    def carry(step: str, messages: Any) -> dict[str, Any]:
        nonlocal sent, received
        replies = {one.name: getattr(one, step)(messages[one.name]) for one in members}
        sent += len(encode(replies["site0"]))
        received += len(encode(messages["site0"]))
        return replies

    one_round(aggregator, [one.name for one in members], carry)
    # docs/methods/secure-sums.md, "Error": for complete graphs
    assert sent == pytest.approx(8 * size + 130 * count + 850, rel=0.05)
    assert received == pytest.approx(375 * count + 550, rel=0.05)
