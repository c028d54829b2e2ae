"""A coordinator that breaks the rules of a secure sum learns nothing, and is named."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.protocol.secure_sum import (
    Aggregator,
    Cheated,
    Identity,
    Member,
    RoundFailed,
    Terms,
    add_up,
)
from dpfda.protocol.secure_sum.crypto import seal
from dpfda.protocol.secure_sum.messages import (
    OfferList,
    RoundId,
    Survivors,
    list_digest,
    pair_seed,
    share_context,
    survivors_content,
)

SIZE = 3
FIRST = RoundId(stage=0, attempt=1)


class HostileCoordinator:
    """Holds the coordinator's key and signs whatever suits it."""

    def __init__(self, count=5, *, colluders=0, dropouts=1, vectors=True):
        self.identity = Identity()
        self.keys = {f"site{i}": Identity() for i in range(count)}
        self.terms = Terms(
            study="hostile",
            coordinator=self.identity.public,
            roster=tuple((name, key.public) for name, key in self.keys.items()),
            colluders=colluders,
            dropouts=dropouts,
        )
        self.members = [Member(name, key, self.terms) for name, key in self.keys.items()]
        if vectors:
            for number, member in enumerate(self.members):
                member.contribute(0, np.full(SIZE, number))

    def listed(self, offers, round_id=FIRST):
        """A signed list of any offers."""
        digest = list_digest(self.terms, round_id, offers)
        return OfferList(round=round_id, offers=tuple(offers), signature=self.identity.sign(digest))

    def told(self, offers, names, round_id=FIRST):
        """A signed set of any survivors."""
        digest = list_digest(self.terms, round_id, offers)
        content = survivors_content("told", self.terms, round_id, digest, names)
        return Survivors(round=round_id, sites=tuple(names), signature=self.identity.sign(content))

    def advertised(self, round_id=FIRST):
        return [member.advertise(round_id) for member in self.members]

    def masked(self, round_id=FIRST):
        """An honest round up to the masked vectors."""
        offers = self.advertised(round_id)
        shared = [member.share(self.listed(offers, round_id)) for member in self.members]
        for member in self.members:
            member.mask(
                {one.site: one.sealed[member.name] for one in shared if one.site != member.name}
            )
        return offers

    @property
    def names(self):
        return self.terms.names


def test_shares_are_sealed_once_a_round():
    # Two messages under one key and nonce give away the difference of their contents.
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    member = hostile.members[0]
    member.share(hostile.listed(offers[:4]))
    for again in (offers[:4], offers, offers[4:]):
        with pytest.raises(ProtocolError):
            member.share(hostile.listed(again))


def test_every_step_comes_once_and_in_its_turn():
    hostile = HostileCoordinator(3, dropouts=0)
    first = hostile.members[0]
    everybody = hostile.names
    with pytest.raises(ProtocolError, match="no round"):
        first.mask({})
    offers = hostile.advertised()
    told = hostile.told(offers, everybody)
    for early in (lambda: first.mask({}), lambda: first.confirm(told), lambda: first.unmask([])):
        with pytest.raises(ProtocolError, match="in its turn"):
            early()
    shared = [member.share(hostile.listed(offers)) for member in hostile.members]
    routed = {
        member.name: {m.site: m.sealed[member.name] for m in shared if m.site != member.name}
        for member in hostile.members
    }
    for member in hostile.members:
        member.mask(routed[member.name])
    with pytest.raises(ProtocolError, match="in its turn"):
        first.mask(routed[first.name])
    confirmed = [member.confirm(told) for member in hostile.members]
    with pytest.raises(ProtocolError, match="once in a round"):
        first.confirm(told)
    first.unmask(confirmed)
    with pytest.raises(ProtocolError, match="no round"):
        first.unmask(confirmed)
    with pytest.raises(ProtocolError, match="opened already"):
        first.advertise(RoundId(stage=0, attempt=2))


def test_different_lists_of_keys_name_the_coordinator():
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    shared = {}
    for number, member in enumerate(hostile.members[:4]):
        shown = offers if number < 2 else offers[:4]
        shared[member.name] = member.share(hostile.listed(shown))
    for name, liar in (("site0", "site2"), ("site2", "site0")):
        member = hostile.members[hostile.terms.number(name)]
        sealed = {one: shared[one].sealed[name] for one in shared if one != name}
        with pytest.raises(Cheated, match=f"showed site '{liar}' another list") as caught:
            member.mask(sealed)
        assert caught.value.culprit == "the coordinator"
        with pytest.raises(ProtocolError, match="no round"):  # it leaves the round
            member.mask({})


def test_masks_under_different_lists_never_cancel():
    """Were the check of lists to fail, the masks would still not come off."""
    hostile = HostileCoordinator(3, dropouts=0)
    offers = hostile.advertised()
    other = [offers[0], offers[1], msgspec.structs.replace(offers[2], signature=bytes(64))]
    seeds = []
    for shown in (offers, other):
        key = hostile.members[0]._round.mask
        digest = list_digest(hostile.terms, FIRST, shown)
        seeds.append(pair_seed(hostile.terms, FIRST, digest, key, owner="site0", other=offers[1]))
    assert seeds[0] != seeds[1]
    for purpose in ("told", "confirmed"):  # nor does a signature fit another list
        place = hostile.terms, FIRST
        signed = {survivors_content(purpose, *place, seed, hostile.names) for seed in seeds}
        assert len(signed) == 2
    other = replace(hostile.terms, coordinator=Identity().public)
    assert other.digest != hostile.terms.digest  # nor another coordinator


@pytest.mark.parametrize(
    ("listed", "shares", "deed"), [(b"l" * 96, 132, "did not sign"), (None, 131, "wrong length")]
)
def test_a_site_that_seals_something_else_is_named(listed, shares, deed):
    hostile = HostileCoordinator(3, dropouts=0)
    offers = hostile.advertised()
    liar, victim = hostile.members[:2]
    shared = [member.share(hostile.listed(offers)) for member in hostile.members]
    context = share_context(hostile.terms, FIRST, "site0", "site1")
    key = liar._round.cipher.agree(offers[1].cipher_key, context)
    content = (listed or liar._round.list + liar._round.list_signature) + bytes(shares)
    sealed = {"site0": seal(key, content, context), "site2": shared[2].sealed["site1"]}
    with pytest.raises(Cheated, match=deed) as caught:
        victim.mask(sealed)
    assert caught.value.culprit == "site 'site0'"
    with pytest.raises(ProtocolError, match="no round"):
        victim.mask(sealed)


def test_shares_changed_on_their_way_are_noticed():
    hostile = HostileCoordinator(3, dropouts=0)
    offers = hostile.advertised()
    shared = [member.share(hostile.listed(offers)) for member in hostile.members]
    sealed = {one.site: one.sealed["site0"] for one in shared[1:]}
    changed = sealed["site1"][:-1] + bytes([sealed["site1"][-1] ^ 1])
    for wrong in (changed, sealed["site2"], b""):
        with pytest.raises(ProtocolError, match="changed on its way"):
            hostile.members[0].mask(sealed | {"site1": wrong})
    with pytest.raises(ProtocolError, match="offered no keys"):
        hostile.members[0].mask(sealed | {"site0": sealed["site1"]})


def test_a_list_without_ones_own_keys_or_without_a_signature():
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    with pytest.raises(Cheated, match="this site's own"):
        hostile.members[0].share(hostile.listed(offers[1:]))
    unsigned = msgspec.structs.replace(hostile.listed(offers), signature=bytes(64))
    with pytest.raises(ProtocolError, match="signature"):
        hostile.members[1].share(unsigned)
    with pytest.raises(ProtocolError, match="needed"):
        hostile.members[1].share(hostile.listed(offers[1:4]))
    with pytest.raises(ProtocolError, match="twice"):
        hostile.members[1].share(hostile.listed([*offers, offers[0]]))
    swapped = [msgspec.structs.replace(offers[0], mask_key=offers[1].mask_key), *offers[1:]]
    with pytest.raises(ProtocolError, match="signature"):
        hostile.members[1].share(hostile.listed(swapped))


def test_a_list_with_the_keys_of_a_twin():
    """Another process of the same site: its keys are not this one's."""
    hostile = HostileCoordinator(3, dropouts=0)
    twin = Member("site0", hostile.keys["site0"], hostile.terms)
    twin.contribute(0, np.zeros(SIZE, dtype=np.int64))
    offers = hostile.advertised()
    with pytest.raises(Cheated, match="this site's own"):
        hostile.members[0].share(hostile.listed([twin.advertise(FIRST), *offers[1:]]))


def test_two_sets_told_to_one_site_name_the_coordinator():
    hostile = HostileCoordinator()
    offers = hostile.masked()
    member = hostile.members[4]
    confirmed = [one.confirm(hostile.told(offers, hostile.names)) for one in hostile.members]
    with pytest.raises(Cheated, match="two different sets") as caught:
        member.confirm(hostile.told(offers, hostile.names[1:]))
    assert caught.value.culprit == "the coordinator"
    with pytest.raises(ProtocolError, match="no round"):  # and never unmasks
        member.unmask(confirmed)


def test_different_sets_told_to_different_sites_name_the_coordinator():
    """The attack: some sites open site0's mask key, others its self mask: its vector alone."""
    hostile = HostileCoordinator()
    offers = hostile.masked()
    everybody, rest = hostile.names, hostile.names[1:]
    confirmed = [
        member.confirm(hostile.told(offers, everybody if number < 3 else rest))
        for number, member in enumerate(hostile.members)
    ]
    opened = []
    for number, member in enumerate(hostile.members):
        with pytest.raises(Cheated, match="another set of survivors") as caught:
            opened.append(member.unmask(confirmed))
        assert caught.value.culprit == "the coordinator"
        assert ("site3" if number < 3 else "site0") in str(caught.value)
    assert not opened


def test_hiding_the_other_set_leaves_too_few_signatures():
    hostile = HostileCoordinator()
    offers = hostile.masked()
    sets = hostile.names, hostile.names[1:]
    told = [0, 0, 0, 1, 1]
    confirmed = [
        member.confirm(hostile.told(offers, sets[told[number]]))
        for number, member in enumerate(hostile.members)
    ]
    for number in (3, 4):
        same = [one for one in confirmed if one.survivors == sets[1]]
        for attempt in (same, same * 2):
            with pytest.raises(ProtocolError, match="2 sites confirmed the same survivors; 3"):
                hostile.members[number].unmask(attempt)
    # Only the set that a threshold confirmed is opened: nobody gives shares of both kinds.
    opened = [member.unmask(confirmed[:3]) for member in hostile.members[:3]]
    assert all(set(one.seeds) == set(sets[0]) and not one.keys for one in opened)


def test_confirmations_that_nobody_told_name_the_site():
    hostile = HostileCoordinator()
    offers = hostile.masked()
    digest = list_digest(hostile.terms, FIRST, offers)
    told = hostile.told(offers, hostile.names)
    honest = [member.confirm(told) for member in hostile.members]
    lie = hostile.names[:4]
    content = survivors_content("confirmed", hostile.terms, FIRST, digest, lie)
    forged = msgspec.structs.replace(
        honest[1], survivors=lie, signature=hostile.keys["site1"].sign(content)
    )
    with pytest.raises(Cheated) as caught:
        hostile.members[0].unmask([honest[0], forged, *honest[2:]])
    assert caught.value.culprit == "site 'site1'"
    unsigned = msgspec.structs.replace(honest[1], signature=bytes(64))
    with pytest.raises(ProtocolError, match="signature"):
        hostile.members[2].unmask([unsigned, *honest[2:]])
    rest = hostile.names[1:]
    outside = HostileCoordinator()
    offers = outside.masked()
    told = outside.told(offers, rest)
    honest = [member.confirm(told) for member in outside.members[1:]]
    content = survivors_content(
        "confirmed", outside.terms, FIRST, list_digest(outside.terms, FIRST, offers), rest
    )
    extra = msgspec.structs.replace(
        honest[0], site="site0", signature=outside.keys["site0"].sign(content)
    )
    with pytest.raises(Cheated, match="not in") as caught:
        outside.members[1].unmask([extra, *honest])
    assert caught.value.culprit == "site 'site0'"


def test_sets_that_cannot_be():
    hostile = HostileCoordinator()
    offers = hostile.masked()
    names = hostile.names
    member = hostile.members[0]
    for wrong, words in (
        (names[1:], "does not hold this site"),
        (names[:3], "needed"),
        (names[::-1], "roster order"),
        ((*names, names[4]), "roster order"),
    ):
        with pytest.raises(ProtocolError, match=words):
            member.confirm(hostile.told(offers, wrong))
    forged = msgspec.structs.replace(hostile.told(offers, names), signature=bytes(64))
    with pytest.raises(ProtocolError, match="signature"):
        member.confirm(forged)


def test_a_survivor_that_shared_nothing_names_the_coordinator():
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    shared = [member.share(hostile.listed(offers)) for member in hostile.members[:4]]
    member = hostile.members[0]
    member.mask({one.site: one.sealed["site0"] for one in shared[1:]})
    with pytest.raises(Cheated, match="did not share"):
        member.confirm(hostile.told(offers, hostile.names))


def test_too_few_partners_are_refused():
    """A vector under the masks of colluders alone would be naked."""
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    shared = [member.share(hostile.listed(offers)) for member in hostile.members]
    with pytest.raises(ProtocolError, match="3 sites shared their keys; 4 are needed"):
        hostile.members[0].mask({one.site: one.sealed["site0"] for one in shared[1:3]})


def test_a_dropped_site_cannot_be_revived():
    """Once its vector is said to be missing, its self mask stays shut, whatever comes later."""
    hostile = HostileCoordinator()
    offers = hostile.masked()
    rest = hostile.names[1:]
    confirmed = [member.confirm(hostile.told(offers, rest)) for member in hostile.members[1:]]
    opened = [member.unmask(confirmed) for member in hostile.members[1:]]
    assert all("site0" in one.keys and "site0" not in one.seeds for one in opened)
    with pytest.raises(ProtocolError, match="does not hold"):
        hostile.members[0].confirm(hostile.told(offers, rest))
    hostile.members[0].confirm(hostile.told(offers, hostile.names))
    with pytest.raises(Cheated) as caught:
        hostile.members[0].unmask(confirmed)
    assert caught.value.culprit == "the coordinator"
    for member in hostile.members[1:]:
        with pytest.raises(ProtocolError, match="opened already"):
            member.advertise(RoundId(stage=0, attempt=2))


def test_nothing_is_taken_from_another_round():
    hostile = HostileCoordinator(3, dropouts=0)
    for member in hostile.members:
        member.contribute(1, np.full(SIZE, 7), question="other")
    old = hostile.masked()
    old_told = hostile.told(old, hostile.names)
    old_confirmed = [member.confirm(old_told) for member in hostile.members]
    second = RoundId(stage=0, attempt=2)
    new = hostile.masked(second)
    member = hostile.members[0]
    with pytest.raises(ProtocolError, match="used already"):
        member.advertise(FIRST)
    with pytest.raises(ProtocolError, match="another question"):
        member.advertise(RoundId(stage=1, attempt=1))
    with pytest.raises(ProtocolError, match="another round"):
        member.confirm(old_told)
    member.confirm(hostile.told(new, hostile.names, second))
    with pytest.raises(ProtocolError, match="another round"):
        member.unmask(old_confirmed)
    relabeled = [msgspec.structs.replace(one, round=second) for one in old_confirmed]
    with pytest.raises(ProtocolError, match="signature"):
        member.unmask(relabeled)
    third = RoundId(stage=0, attempt=3)
    offers = hostile.advertised(third)
    mixed = [offers[0], msgspec.structs.replace(old[1], round=third), offers[2]]
    with pytest.raises(ProtocolError, match="signature"):
        member.share(hostile.listed(mixed, third))
    with pytest.raises(ProtocolError, match="another round"):
        member.share(hostile.listed(old))


def test_vectors_that_answer_different_questions_are_never_added():
    hostile = HostileCoordinator(3, dropouts=0, vectors=False)
    for number, member in enumerate(hostile.members):
        member.contribute(0, np.full(SIZE, 1), question="abc"[number])
    with pytest.raises(ProtocolError, match="another question"):
        add_up(hostile.members, hostile.terms, hostile.identity, stage=0, size=SIZE, question="a")
    offers = [
        member.advertise(RoundId(stage=0, attempt=2, question="abc"[number]))
        for number, member in enumerate(hostile.members)
    ]
    with pytest.raises(ProtocolError, match="another round"):
        hostile.members[0].share(hostile.listed(offers, offers[0].round))


def test_nobody_has_two_names():
    key, other = Identity().public, Identity().public
    facts = {"study": "s", "coordinator": Identity().public}
    for roster in ((("a", key), ("b", key)), (("a", key), ("b", facts["coordinator"]))):
        with pytest.raises(InvalidParameter, match="different for everybody"):
            Terms(roster=roster, **facts)
    with pytest.raises(InvalidParameter, match="different names"):
        Terms(roster=(("a", key), ("a", other)), **facts)
    with pytest.raises(InvalidParameter, match="32 bytes"):
        Terms(roster=(("a", key), ("b", other[:31])), **facts)


def test_only_the_coordinator_of_the_terms_adds_up():
    hostile = HostileCoordinator(3, dropouts=0)
    with pytest.raises(ProtocolError, match="another coordinator"):
        Aggregator(hostile.terms, Identity(), FIRST, size=SIZE)


def test_wrong_lengths_are_noticed():
    hostile = HostileCoordinator(3, dropouts=0)
    with pytest.raises(ProtocolError, match="wrong length"):
        add_up(hostile.members, hostile.terms, hostile.identity, stage=0, size=SIZE + 1)
    hostile = HostileCoordinator(3, dropouts=0)
    aggregator = Aggregator(hostile.terms, hostile.identity, FIRST, size=SIZE)
    listed = aggregator.offers(hostile.advertised())
    shared = [member.share(listed) for member in hostile.members]
    short = msgspec.structs.replace(shared[0], sealed={"site1": shared[0].sealed["site1"]})
    with pytest.raises(ProtocolError, match="'site0' sealed no share"):
        aggregator.route([short, *shared[1:]])
    routed = aggregator.route(shared)
    told = aggregator.collect([member.mask(routed[member.name]) for member in hostile.members])
    confirmed = aggregator.confirmations([member.confirm(told) for member in hostile.members])
    opened = [member.unmask(confirmed) for member in hostile.members]
    cut = {name: share[1:] for name, share in opened[0].seeds.items()}
    with pytest.raises(RoundFailed, match="bytes long"):
        aggregator.open([msgspec.structs.replace(opened[0], seeds=cut), *opened[1:]])
    assert (aggregator.open(opened).total == 3).all()


def test_a_lying_site_does_not_stop_an_honest_coordinator():
    hostile = HostileCoordinator()
    aggregator = Aggregator(hostile.terms, hostile.identity, FIRST, size=SIZE)
    listed = aggregator.offers(hostile.advertised())
    routed = aggregator.route([member.share(listed) for member in hostile.members])
    told = aggregator.collect([member.mask(routed[member.name]) for member in hostile.members])
    received = [member.confirm(told) for member in hostile.members]
    received[0] = msgspec.structs.replace(received[0], survivors=hostile.names[:4])
    received[1] = msgspec.structs.replace(received[1], signature=bytes(64))
    kept = aggregator.confirmations(received)
    assert [one.site for one in kept] == ["site2", "site3", "site4"]
    opened = [member.unmask(kept) for member in hostile.members[2:]]
    assert (aggregator.open(opened).total == sum(range(5))).all()
