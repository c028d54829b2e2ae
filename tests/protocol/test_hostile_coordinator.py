"""A coordinator that breaks the rules of a secure sum learns nothing, and is named."""

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
    Confirmed,
    OfferList,
    RoundId,
    Sharers,
    Survivors,
    share_context,
    sharers_content,
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
        """Any keys."""
        return OfferList(round=round_id, offers={offer.site: offer.keys for offer in offers})

    def shared(self, name, shares, names=None, round_id=FIRST):
        """Any shares for a site, with a signed set of any sharers."""
        names = tuple(one.site for one in shares) if names is None else names
        signature = self.identity.sign(sharers_content("shared", self.terms, round_id, names))
        sealed = {one.site: one.sealed[name] for one in shares if name in one.sealed}
        return Sharers(round=round_id, sites=names, signature=signature, sealed=sealed)

    def told(self, names, sharers=None, round_id=FIRST):
        """A signed set of any survivors."""
        sharers = self.names if sharers is None else sharers
        content = survivors_content("told", self.terms, round_id, sharers, names)
        return Survivors(round=round_id, sites=tuple(names), signature=self.identity.sign(content))

    def confirmed(self, confirmations, round_id=FIRST):
        """Confirmations of any sites; the signatures of the step before are true."""
        signatures = {one.site: one.signature for one in confirmations}
        return Confirmed(round=round_id, confirmed=signatures, masked=dict(self.signatures))

    def advertised(self, round_id=FIRST):
        return [member.advertise(round_id) for member in self.members]

    def masked(self, round_id=FIRST):
        """An honest round up to the masked vectors."""
        offers = self.advertised(round_id)
        shares = [member.share(self.listed(offers, round_id)) for member in self.members]
        vectors = [
            member.mask(self.shared(member.name, shares, round_id=round_id))
            for member in self.members
        ]
        self.signatures = {one.site: one.signature for one in vectors}

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
    told = hostile.told(hostile.names)
    early = hostile.shared("site0", [], hostile.names)
    with pytest.raises(ProtocolError, match="no round"):
        first.mask(early)
    offers = hostile.advertised()
    none = Confirmed(round=FIRST, confirmed={}, masked={})
    steps = (lambda: first.mask(early), lambda: first.confirm(told), lambda: first.unmask(none))
    for step in steps:
        with pytest.raises(ProtocolError, match="in its turn"):
            step()
    shares = [member.share(hostile.listed(offers)) for member in hostile.members]
    for member in hostile.members:
        member.mask(hostile.shared(member.name, shares))
    with pytest.raises(ProtocolError, match="in its turn"):
        first.mask(hostile.shared("site0", shares))
    hostile = HostileCoordinator(3, dropouts=0)
    first = hostile.members[0]
    hostile.masked()
    told = hostile.told(hostile.names)
    confirmed = hostile.confirmed([member.confirm(told) for member in hostile.members])
    with pytest.raises(ProtocolError, match="once in a round"):
        first.confirm(told)
    first.unmask(confirmed)
    with pytest.raises(ProtocolError, match="no round"):
        first.unmask(confirmed)
    with pytest.raises(ProtocolError, match="opened already"):
        first.advertise(RoundId(stage=0, attempt=2))


def test_keys_that_are_withheld_name_the_coordinator():
    """Masks with fewer neighbors than shared their keys could leave a vector alone."""
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    member = hostile.members[0]
    shares = [member.share(hostile.listed(offers[:4]))]
    shares += [member.share(hostile.listed(offers)) for member in hostile.members[1:]]
    with pytest.raises(Cheated, match="withheld the keys of site 'site4'") as caught:
        member.mask(hostile.shared("site0", shares))
    assert caught.value.culprit == "the coordinator"
    with pytest.raises(ProtocolError, match="no round"):  # it leaves the round
        member.mask(hostile.shared("site0", shares))


@pytest.mark.parametrize("more", [False, True])
def test_shares_that_are_withheld_or_too_many_name_the_coordinator(more):
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    shares = [member.share(hostile.listed(offers)) for member in hostile.members]
    names = hostile.names[:4] if more else hostile.names
    given = hostile.shared("site0", shares if more else shares[:4], names)
    deed = "passed on" if more else "withheld"
    with pytest.raises(Cheated, match=f"{deed} the shares of site 'site4'") as caught:
        hostile.members[0].mask(given)
    assert caught.value.culprit == "the coordinator"


def test_shares_are_opened_only_by_who_was_shown_the_same_keys():
    """A site that started again has other keys: neither old nor new ones are mixed."""
    hostile = HostileCoordinator(3, dropouts=0)
    offers = hostile.advertised()
    twin = Member("site1", hostile.keys["site1"], hostile.terms)
    twin.contribute(0, np.zeros(SIZE, dtype=np.int64))
    other = [offers[0], twin.advertise(FIRST), offers[2]]
    shares = [
        hostile.members[0].share(hostile.listed(other)),
        hostile.members[1].share(hostile.listed(offers)),
        hostile.members[2].share(hostile.listed(offers)),
    ]
    for number in (0, 1):
        with pytest.raises(ProtocolError, match="changed on its way"):
            hostile.members[number].mask(hostile.shared(f"site{number}", shares))


def test_a_site_that_seals_something_else_is_named():
    hostile = HostileCoordinator(3, dropouts=0)
    offers = hostile.advertised()
    liar, victim = hostile.members[:2]
    shares = [member.share(hostile.listed(offers)) for member in hostile.members]
    ends = ("site0", offers[0].keys), ("site1", offers[1].keys)
    context = share_context(hostile.terms, FIRST, *ends)
    key = liar._round.cipher.agree(offers[1].keys.cipher, context)
    forged = {"site1": seal(key, bytes(65), context)}
    shares[0] = msgspec.structs.replace(shares[0], sealed=shares[0].sealed | forged)
    with pytest.raises(Cheated, match="wrong length") as caught:
        victim.mask(hostile.shared("site1", shares))
    assert caught.value.culprit == "site 'site0'"
    with pytest.raises(ProtocolError, match="no round"):
        victim.mask(hostile.shared("site1", shares))


def test_shares_changed_on_their_way_are_noticed():
    hostile = HostileCoordinator(3, dropouts=0)
    offers = hostile.advertised()
    shares = [member.share(hostile.listed(offers)) for member in hostile.members]
    right = hostile.shared("site0", shares)
    text = right.sealed["site1"]
    for wrong in (text[:-1] + bytes([text[-1] ^ 1]), right.sealed["site2"], b""):
        changed = msgspec.structs.replace(right, sealed=right.sealed | {"site1": wrong})
        with pytest.raises(ProtocolError, match="changed on its way"):
            hostile.members[0].mask(changed)


def test_keys_without_ones_own_or_without_a_signature():
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    with pytest.raises(Cheated, match="this site's own"):
        hostile.members[0].share(hostile.listed(offers[1:]))
    with pytest.raises(ProtocolError, match=r"2 sites of this site's choice.*3 are needed"):
        hostile.members[1].share(hostile.listed(offers[:2]))
    for name in ("cipher", "mask", "choice"):
        value = getattr(offers[1].keys, name)[::-1]
        keys = msgspec.structs.replace(offers[0].keys, **{name: value})
        swapped = [msgspec.structs.replace(offers[0], keys=keys), *offers[1:]]
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
    hostile.masked()
    member = hostile.members[4]
    confirmed = [one.confirm(hostile.told(hostile.names)) for one in hostile.members]
    with pytest.raises(Cheated, match="two different sets") as caught:
        member.confirm(hostile.told(hostile.names[1:]))
    assert caught.value.culprit == "the coordinator"
    with pytest.raises(ProtocolError, match="no round"):  # and never unmasks
        member.unmask(hostile.confirmed(confirmed))


def test_different_sets_told_to_different_sites_name_the_coordinator():
    """The attack: some sites open site0's mask key, others its self mask: its vector alone."""
    hostile = HostileCoordinator()
    hostile.masked()
    everybody, rest = hostile.names, hostile.names[1:]
    confirmed = hostile.confirmed(
        [
            member.confirm(hostile.told(everybody if number < 3 else rest))
            for number, member in enumerate(hostile.members)
        ]
    )
    for member in hostile.members:
        with pytest.raises(Cheated, match="another confirmation of site") as caught:
            member.unmask(confirmed)
        assert caught.value.culprit == "the coordinator"


def test_hiding_the_other_set_leaves_too_few_signatures():
    hostile = HostileCoordinator()
    hostile.masked()
    sets = hostile.names, hostile.names[1:]
    told = [0, 0, 0, 1, 1]
    confirmed = [
        member.confirm(hostile.told(sets[told[number]]))
        for number, member in enumerate(hostile.members)
    ]
    for number in (3, 4):
        with pytest.raises(ProtocolError, match=r"2 sites confirmed the survivors.*; 3 are needed"):
            hostile.members[number].unmask(hostile.confirmed(confirmed[3:]))
    # Only the set that a threshold confirmed is opened: nobody gives shares of both kinds.
    opened = [member.unmask(hostile.confirmed(confirmed[:3])) for member in hostile.members[:3]]
    assert all(set(one.seeds) == set(sets[0]) and not one.keys for one in opened)


def test_confirmations_that_nobody_gave_open_nothing():
    hostile = HostileCoordinator()
    hostile.masked()
    told = hostile.told(hostile.names)
    honest = [member.confirm(told) for member in hostile.members]
    unsigned = msgspec.structs.replace(honest[1], signature=bytes(64))
    with pytest.raises(Cheated, match="another confirmation of site 'site1'"):
        hostile.members[2].unmask(hostile.confirmed([unsigned, *honest[2:]]))
    rest = hostile.names[1:]
    outside = HostileCoordinator()
    outside.masked()
    told = outside.told(rest)
    honest = [member.confirm(told) for member in outside.members[1:]]
    content = survivors_content("confirmed", outside.terms, FIRST, outside.names, rest)
    extra = msgspec.structs.replace(
        honest[0], site="site0", signature=outside.keys["site0"].sign(content)
    )
    with pytest.raises(Cheated, match="another confirmation of site 'site0'"):
        outside.members[1].unmask(outside.confirmed([extra, *honest]))


def test_a_site_that_masked_with_fewer_is_not_opened():
    """The attack: site0 is told that only site4 shared besides the needed ones, and is isolated."""
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    shares = [member.share(hostile.listed(offers)) for member in hostile.members]
    sets = [hostile.names[:4], *[hostile.names] * 4]
    hostile.signatures = {}
    for member, names in zip(hostile.members, sets, strict=True):
        known = [one for one in shares if one.site in names]
        vector = member.mask(hostile.shared(member.name, known, names))
        hostile.signatures[member.name] = vector.signature
    told = hostile.told(hostile.names)
    with pytest.raises(ProtocolError, match="signature"):
        hostile.members[0].confirm(told)
    confirmed = [member.confirm(told) for member in hostile.members[1:]]
    for member in hostile.members[1:]:
        with pytest.raises(Cheated, match="told site 'site0' another set of sharers"):
            member.unmask(hostile.confirmed(confirmed))


def test_a_signature_that_is_withheld_opens_nothing():
    hostile = HostileCoordinator()
    hostile.masked()
    confirmed = [member.confirm(hostile.told(hostile.names)) for member in hostile.members]
    del hostile.signatures["site3"]
    with pytest.raises(Cheated, match="told site 'site3' another set of sharers"):
        hostile.members[0].unmask(hostile.confirmed(confirmed))
    assert not hostile.members[0].account.stages[0].opened


def test_sets_that_cannot_be():
    hostile = HostileCoordinator()
    hostile.masked()
    names = hostile.names
    member = hostile.members[0]
    for wrong, words in (
        (names[1:], "does not hold this site"),
        (names[:3], "needed"),
        (names[::-1], "roster order"),
        ((*names, names[4]), "roster order"),
    ):
        with pytest.raises(ProtocolError, match=words):
            member.confirm(hostile.told(wrong))
    forged = msgspec.structs.replace(hostile.told(names), signature=bytes(64))
    with pytest.raises(ProtocolError, match="signature"):
        member.confirm(forged)


def test_sharers_that_cannot_be():
    """A vector under the masks of colluders alone would be naked."""
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    shares = [member.share(hostile.listed(offers)) for member in hostile.members]
    names = hostile.names
    for wrong, words in (
        (names[1:], "does not hold this site"),
        (names[:3], "3 sites shared their keys; 4 are needed"),
        (names[::-1], "roster order"),
        ((*names, names[4]), "roster order"),
    ):
        with pytest.raises(ProtocolError, match=words):
            hostile.members[0].mask(hostile.shared("site0", shares, wrong))
    right = hostile.shared("site0", shares)
    with pytest.raises(ProtocolError, match="signature"):
        hostile.members[0].mask(msgspec.structs.replace(right, signature=bytes(64)))


def test_a_survivor_that_shared_nothing_names_the_coordinator():
    hostile = HostileCoordinator()
    offers = hostile.advertised()
    shares = [member.share(hostile.listed(offers)) for member in hostile.members[:4]]
    member = hostile.members[0]
    member.mask(hostile.shared("site0", shares))
    with pytest.raises(Cheated, match="did not share"):
        member.confirm(hostile.told(hostile.names, hostile.names[:4]))


def test_a_dropped_site_cannot_be_revived():
    """Once its vector is said to be missing, its self mask stays shut, whatever comes later."""
    hostile = HostileCoordinator()
    hostile.masked()
    rest = hostile.names[1:]
    confirmations = [member.confirm(hostile.told(rest)) for member in hostile.members[1:]]
    confirmed = hostile.confirmed(confirmations)
    opened = [member.unmask(confirmed) for member in hostile.members[1:]]
    assert all("site0" in one.keys and "site0" not in one.seeds for one in opened)
    with pytest.raises(ProtocolError, match="does not hold"):
        hostile.members[0].confirm(hostile.told(rest))
    hostile.members[0].confirm(hostile.told(hostile.names))
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
    hostile.masked()
    old_told = hostile.told(hostile.names)
    old = hostile.confirmed([member.confirm(old_told) for member in hostile.members])
    second = RoundId(stage=0, attempt=2)
    hostile.masked(second)
    member = hostile.members[0]
    with pytest.raises(ProtocolError, match="used already"):
        member.advertise(FIRST)
    with pytest.raises(ProtocolError, match="another question"):
        member.advertise(RoundId(stage=1, attempt=1))
    with pytest.raises(ProtocolError, match="another round"):
        member.confirm(old_told)
    member.confirm(hostile.told(hostile.names, round_id=second))
    with pytest.raises(ProtocolError, match="another round"):
        member.unmask(old)
    with pytest.raises(Cheated, match="another confirmation"):
        member.unmask(msgspec.structs.replace(old, round=second))
    third = RoundId(stage=0, attempt=3)
    offers = hostile.advertised(third)
    fourth = RoundId(stage=0, attempt=4)
    again = hostile.advertised(fourth)
    with pytest.raises(ProtocolError, match="signature"):
        member.share(hostile.listed([again[0], offers[1], again[2]], fourth))
    with pytest.raises(ProtocolError, match="another round"):
        member.share(hostile.listed(offers, third))


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
    with pytest.raises(ProtocolError, match="signature"):
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
    shared = [member.share(listed[member.name]) for member in hostile.members]
    short = msgspec.structs.replace(shared[0], sealed={"site1": shared[0].sealed["site1"]})
    with pytest.raises(ProtocolError, match="'site0' sealed no share"):
        aggregator.route([short, *shared[1:]])
    routed = aggregator.route(shared)
    told = aggregator.collect([member.mask(routed[member.name]) for member in hostile.members])
    confirmed = aggregator.confirmations([member.confirm(told) for member in hostile.members])
    opened = [member.unmask(confirmed[member.name]) for member in hostile.members]
    cut = {name: share[1:] for name, share in opened[0].seeds.items()}
    with pytest.raises(RoundFailed, match="bytes long"):
        aggregator.open([msgspec.structs.replace(opened[0], seeds=cut), *opened[1:]])
    assert (aggregator.open(opened).total == 3).all()


def test_a_lying_site_does_not_stop_an_honest_coordinator():
    hostile = HostileCoordinator()
    aggregator = Aggregator(hostile.terms, hostile.identity, FIRST, size=SIZE)
    listed = aggregator.offers(hostile.advertised())
    routed = aggregator.route([member.share(listed[member.name]) for member in hostile.members])
    told = aggregator.collect([member.mask(routed[member.name]) for member in hostile.members])
    received = [member.confirm(told) for member in hostile.members]
    for number in (0, 1):
        received[number] = msgspec.structs.replace(received[number], signature=bytes(64))
    kept = aggregator.confirmations(received)
    assert set(kept["site2"].confirmed) == {"site2", "site3", "site4"}
    opened = [member.unmask(kept[member.name]) for member in hostile.members[2:]]
    assert (aggregator.open(opened).total == sum(range(5))).all()
