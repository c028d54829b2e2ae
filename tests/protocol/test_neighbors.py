"""Many sites: each chooses its neighbors, and no coordinator gains by what it tells whom."""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats
from site_studies import DELTA, EPSILON, Means, half

from dpfda.errors import ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.price import compose, exact
from dpfda.protocol.account import Account, StoredAccount
from dpfda.protocol.consortium import decentralized
from dpfda.protocol.secure_sum import (
    Aggregator,
    Cheated,
    Identity,
    Member,
    RoundFailed,
    Terms,
    add_up,
)
from dpfda.protocol.secure_sum import member as member_module
from dpfda.protocol.secure_sum.crypto import expand, pairwise
from dpfda.protocol.secure_sum.messages import (
    Confirmed,
    RoundId,
    Sharers,
    Survivors,
    offer_content,
    pair_seed,
    sharers_content,
    survivors_content,
)
from dpfda.protocol.secure_sum.neighbors import (
    FAILURE,
    drawn,
    group_opens,
    neighbors,
    secret_opens,
)
from dpfda.protocol.site import Site

SIZE, MANY = 3, 64
FIRST = RoundId(stage=0, attempt=1)
STEPS = ("advertise", "share", "mask", "confirm", "unmask")
KEEPER = Identity()


@lru_cache(maxsize=1)
def _keys() -> dict[str, Identity]:
    return {f"site{i}": Identity() for i in range(MANY)}


def sites(*, dropouts: int = 0, colluders: int = 1) -> tuple[dict[str, Member], Terms]:
    """Sixty-four members; number i contributes i everywhere."""
    roster = tuple((name, key.public) for name, key in _keys().items())
    terms = Terms(
        study="many", coordinator=KEEPER.public, roster=roster, dropouts=dropouts,
        colluders=colluders,
    )  # fmt: skip
    members = {name: Member(name, key, terms) for name, key in _keys().items()}
    for number, member in enumerate(members.values()):
        member.contribute(0, np.full(SIZE, number))
    return members, terms


# -- how many neighbors ------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 5, 20, 40])
def test_few_sites_share_with_all_others_and_nothing_can_fail(count: int) -> None:
    for colluders in range(count // 3):
        found = neighbors(count, colluders, 0)
        assert (found.degree, found.cut_off, found.failure) == (count - 1, 0, 0.0)
        assert found.threshold == (count + colluders) // 2 + 1


def test_the_degree_grows_much_slower_than_the_number_of_sites() -> None:
    degrees = {count: neighbors(count, count // 10, count // 20).degree for count in (256, 1000)}
    assert degrees[256] < 256 / 6
    assert degrees[1000] < 1000 / 18
    assert degrees[1000] < 1.5 * degrees[256]


@pytest.mark.parametrize(
    ("count", "colluders", "dropouts"),
    [(64, 1, 0), (100, 1, 1), (100, 10, 5), (256, 25, 12), (1000, 1, 0), (1000, 333, 100)],
)
def test_a_choice_keeps_every_line_of_the_argument(
    count: int, colluders: int, dropouts: int
) -> None:
    found = neighbors(count, colluders, dropouts)
    degree, threshold, cut_off = found.degree, found.threshold, found.cut_off
    opens = secret_opens(count, colluders, degree=degree, threshold=threshold)
    group = group_opens(
        count, colluders, dropouts, degree=degree, threshold=threshold, cut_off=cut_off
    )
    assert opens + group <= found.failure == FAILURE
    # One group at most has the noise of all: two would need twice as many honest sites.
    assert 2 * (count - colluders - dropouts - cut_off) > count - colluders
    # A secret opens in one attempt at most: honest neighbors help one attempt of a stage.
    likely = next(
        held
        for held in range(degree + 1)
        if secret_opens(count, colluders, degree=degree, threshold=held + 1) <= FAILURE / 2
    )
    assert 2 * threshold > degree + 1 + likely
    assert cut_off <= 0.01 * (count - colluders - dropouts)


def test_the_page_lists_what_is_computed() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "methods" / "secure-sums.md"
    table = page.read_text("utf-8").partition("| S | c | k | d | u | m |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.split("\n")[1:]]
    assert len(rows) == 8
    for count, colluders, dropouts, *told in rows:
        found = neighbors(int(count), int(colluders), int(dropouts))
        degree = "all" if found.degree == int(count) - 1 else str(found.degree)
        assert told == [degree, str(found.threshold), str(found.cut_off)]


def test_the_tail_of_a_secret_is_the_hypergeometric_one() -> None:
    for count, colluders, degree, threshold in [(50, 10, 12, 9), (300, 90, 60, 40)]:
        tail = stats.hypergeom.sf(threshold - 1, count - 1, colluders, degree)
        found = secret_opens(count, colluders, degree=degree, threshold=threshold)
        assert found == pytest.approx(count * tail, rel=1e-9)
    assert secret_opens(50, 3, degree=12, threshold=4) == 0.0  # there are three colluders


def test_the_bound_of_groups_counts_what_enumeration_counts() -> None:
    """Five honest sites that draw two others each: all draws of all groups, one by one."""
    places = range(5)

    def closed(group: tuple[int, ...]) -> float:
        """Probability that nobody in the group drew a site outside it."""
        drawn_within = comb(len(group) - 1, 2) / comb(4, 2)
        return float(drawn_within ** len(group))

    groups = [group for size in range(1, 5) for group in combinations(places, size)]
    exact = sum(map(closed, groups))
    bound = group_opens(5, 0, 0, degree=2, threshold=3, cut_off=0)
    assert bound == pytest.approx(exact, rel=1e-9)
    # With c = 1, k = 1: a group of one or two that drew none of two (one) of the three others,
    # or drew two within itself and the colluder.
    one = 4 * min(stats.hypergeom.sf(1, 4, 1, 2), 3 * comb(2, 2) / comb(4, 2))
    two = 6 * min(stats.hypergeom.sf(1, 4, 2, 2) ** 2, 2 * (comb(3, 2) / comb(4, 2)) ** 2)
    bound = group_opens(5, 1, 1, degree=2, threshold=3, cut_off=0)
    assert bound == pytest.approx(one + two, rel=1e-9)


def test_no_group_opens_where_everybody_chooses_all() -> None:
    assert group_opens(9, 2, 1, degree=8, threshold=6, cut_off=0) == 0.0
    assert group_opens(3, 1, 1, degree=2, threshold=3, cut_off=0) == 0.0  # no group is too small


def test_choices_are_uniform() -> None:
    rounds, count, degree = 2000, 12, 4
    seeds = [number.to_bytes(8, "big") for number in range(rounds)]
    found = [drawn(5, sites=count, degree=degree, seed=seed) for seed in seeds]
    assert all(len(set(one)) == degree and 5 not in one for one in found)
    counts = np.bincount(np.concatenate(found), minlength=count)
    # 11 counts, each binomial(2000, 4/11), at 1e-6 together: 5.6 standard deviations
    expected = rounds * degree / (count - 1)
    away = np.abs(np.delete(counts, 5) - expected)
    assert away.max() < 5.6 * np.sqrt(expected * (1 - degree / (count - 1)))


# -- who chooses -------------------------------------------------------------------------------


def test_a_site_chooses_alone_and_once_a_study() -> None:
    _, terms = sites()
    key = _keys()["site3"]
    account = Account()
    chosen = Member("site3", key, terms, account)._chosen
    assert Member("site3", key, terms, Account())._chosen == chosen  # also after a restart
    other = Terms(study="another", coordinator=KEEPER.public, roster=terms.roster, colluders=1)
    assert Member("site3", key, other)._chosen != chosen
    stranger = Identity()
    roster = tuple((n, stranger.public if n == "site3" else k) for n, k in terms.roster)
    third = Terms(study="many", coordinator=KEEPER.public, roster=roster, colluders=1)
    assert Member("site3", stranger, third)._chosen != chosen
    assert len(chosen) == terms.neighbors.degree == neighbors(MANY, 1, 0).degree


def test_a_coordinator_cannot_choose_for_a_site() -> None:
    members, terms = sites()
    aggregator = Aggregator(terms, KEEPER, FIRST, size=SIZE)
    listed = aggregator.offers([one.advertise(FIRST) for one in members.values()])
    victim = members["site0"]
    neighbor = victim._chosen[0]
    keys = listed["site0"].offers[neighbor]
    changed = msgspec.structs.replace(keys, choice=bytes(16))
    offers = listed["site0"].offers | {neighbor: changed}
    with pytest.raises(ProtocolError, match="signature"):
        victim.share(msgspec.structs.replace(listed["site0"], offers=offers))
    stranger = next(name for name in members if name not in listed["site0"].offers)
    offers = listed["site0"].offers | {stranger: listed[stranger].offers[stranger]}
    with pytest.raises(Cheated, match=f"keys of site '{stranger}', no neighbor"):
        victim.share(msgspec.structs.replace(listed["site0"], offers=offers))


def test_a_choice_has_sixteen_bytes() -> None:
    members, terms = sites()
    offer = members["site0"].advertise(FIRST)
    keys = msgspec.structs.replace(offer.keys, choice=bytes(15))
    content = offer_content(terms, FIRST, "site0", keys)
    keys = msgspec.structs.replace(keys, signature=_keys()["site0"].sign(content))
    offers = [one.advertise(FIRST) for name, one in members.items() if name != "site0"]
    aggregator = Aggregator(terms, KEEPER, FIRST, size=SIZE)
    with pytest.raises(ProtocolError, match="16 bytes"):
        aggregator.offers([msgspec.structs.replace(offer, keys=keys), *offers])


# -- sums --------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [None, *STEPS])
def test_the_sum_is_exact_whoever_falls_silent(step: str | None) -> None:
    members, terms = sites(dropouts=1)
    assert terms.neighbors.degree < MANY / 2
    result = add_up(
        list(members.values()), terms, KEEPER, stage=0, size=SIZE,
        silent=lambda at, _: {"site5"} if at == step else set(),
    )  # fmt: skip
    lost = step in ("advertise", "share", "mask")
    assert len(result.survivors) == MANY - lost
    assert result.total.tolist() == [MANY * (MANY - 1) // 2 - 5 * lost] * SIZE


def test_a_round_is_repeated_if_a_secret_would_have_too_few_shares() -> None:
    members, terms = sites(dropouts=1)
    holders = {"site0", *members["site0"]._chosen}
    least = terms.neighbors.threshold
    gone = set(sorted(holders)[: len(holders) - least + 1])
    result = add_up(
        list(members.values()), terms, KEEPER, stage=0, size=SIZE,
        silent=lambda at, attempt: gone if (at, attempt) == ("confirm", 1) else set(),
    )  # fmt: skip
    assert result.attempt == 2
    members, terms = sites(dropouts=1)
    with pytest.raises(RoundFailed, match="hold shares of"):
        add_up(
            list(members.values()), terms, KEEPER, stage=0, size=SIZE,
            silent=lambda at, _: gone if at == "confirm" else set(),
        )  # fmt: skip
    assert not any(one.account.stages[0].opened for one in members.values())


def test_the_guarantee_adds_the_failure_to_delta_and_names_it() -> None:
    _, terms = sites()
    promise = Guarantee(epsilon=1.0, delta=1e-6)
    kept = decentralized(promise, terms, sources=[SimulationSource(0)])
    assert kept.delta == 1e-6 + FAILURE
    assert f"{terms.neighbors.degree} others" in kept.assumptions[-1]
    assert decentralized(promise, terms, alone=True).delta == 1e-6
    few = Terms(study="s", coordinator=KEEPER.public, roster=terms.roster[:9], colluders=1)
    assert decentralized(promise, few).delta == 1e-6
    assert few.lapse is None
    assert terms.lapse is not None
    assert terms.lapse.delta == FAILURE


# -- attacks -----------------------------------------------------------------------------------


class Hostile:
    """Holds the coordinator's key, and tells each site what suits it."""

    def __init__(self, **facts: Any) -> None:
        self.members, self.terms = sites(**facts)
        self.names = self.terms.names
        aggregator = Aggregator(self.terms, KEEPER, FIRST, size=SIZE)
        self.offers = {name: one.advertise(FIRST) for name, one in self.members.items()}
        self.listed = aggregator.offers(list(self.offers.values()))
        self.vectors: dict[str, Any] = {}

    def share(self, hidden: dict[str, set[str]] | None = None) -> None:
        """Step 2; `hidden`: site -> whose keys it is not shown."""
        self.shares = {}
        for name, member in self.members.items():
            away = (hidden or {}).get(name, set())
            keys = {one: k for one, k in self.listed[name].offers.items() if one not in away}
            self.shares[name] = member.share(
                msgspec.structs.replace(self.listed[name], offers=keys)
            )

    def mask(self, name: str, sharers: tuple[str, ...]) -> None:
        """Step 3 of one site, which is told that these shared."""
        member = self.members[name]
        signature = KEEPER.sign(sharers_content("shared", self.terms, FIRST, sharers))
        assert member._round is not None
        sealed = {
            one: self.shares[one].sealed[name]
            for one in member._round.choosers
            if one in sharers and name in self.shares[one].sealed
        }
        told = Sharers(round=FIRST, sites=sharers, signature=signature, sealed=sealed)
        self.vectors[name] = member.mask(told)

    def confirm(self, name: str, survivors: tuple[str, ...], sharers: tuple[str, ...]) -> bytes:
        content = survivors_content("told", self.terms, FIRST, sharers, survivors)
        told = Survivors(round=FIRST, sites=survivors, signature=KEEPER.sign(content))
        return self.members[name].confirm(told).signature

    def unmask(self, name: str, confirmed: dict[str, bytes]) -> Any:
        masked = {one: vector.signature for one, vector in self.vectors.items()}
        return self.members[name].unmask(Confirmed(round=FIRST, confirmed=confirmed, masked=masked))


def test_a_partition_of_the_sites_opens_nothing() -> None:
    """Two halves are told that the other half is silent: neither is large enough to be told so."""
    hostile = Hostile(dropouts=3)
    hostile.share()
    half = hostile.names[: MANY // 2]
    with pytest.raises(ProtocolError, match="32 sites shared their keys; 61 are needed"):
        hostile.mask("site0", half)
    for name in hostile.names:
        hostile.mask(name, hostile.names)
    with pytest.raises(ProtocolError, match="32 sites sent their vectors; 61 are needed"):
        hostile.confirm("site0", half, hostile.names)


def test_different_survivors_for_different_sites_open_nothing() -> None:
    """Each half is told another set, so that one opens the mask keys of the other's survivors."""
    hostile = Hostile(dropouts=3)
    hostile.share()
    for name in hostile.names:
        hostile.mask(name, hostile.names)
    first, second = hostile.names[3:], hostile.names[:-3]
    middle = hostile.names[3:-3]
    told = {name: first if place % 2 else second for place, name in enumerate(middle)}
    signed = {name: hostile.confirm(name, told[name], hostile.names) for name in middle}
    for kind in (first, second):
        group = {name: one for name, one in signed.items() if told[name] == kind}
        for name in group:
            with pytest.raises(ProtocolError, match=r"29 sites confirmed .*; 33 are needed"):
                hostile.unmask(name, group)
    with pytest.raises(Cheated, match="the coordinator passed on another confirmation"):
        hostile.unmask(middle[0], signed)
    assert not any(one.account.stages[0].opened for one in hostile.members.values())


def isolate(hostile: Hostile, victim: str) -> list[Any]:
    """Tell the victim that few of its neighbors shared, and the others that all did."""
    chosen = hostile.members[victim]._chosen
    gone = set(chosen[:3])  # as many as may be silent
    hostile.share()
    hostile.mask(victim, tuple(name for name in hostile.names if name not in gone))
    others = [name for name in hostile.names if name != victim]
    for name in others:
        hostile.mask(name, hostile.names)
    signed = {name: hostile.confirm(name, hostile.names, hostile.names) for name in others}
    return [hostile.unmask(name, signed) for name in others]


def test_a_site_that_was_told_other_sharers_is_not_opened() -> None:
    with pytest.raises(Cheated, match="told site 'site7' another set of sharers"):
        isolate(Hostile(dropouts=3), "site7")


def test_without_that_signature_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted flaw: sites that take every signature give away shares of the victim's mask."""
    monkeypatch.setattr(member_module, "signed", lambda *_: True)
    found = isolate(Hostile(dropouts=3), "site7")
    holders = [one for one in found if "site7" in one.seeds]
    assert len(holders) >= neighbors(MANY, 1, 3).threshold


def test_hiding_keys_from_those_who_were_chosen_cuts_off_at_most_a_garbled_vector() -> None:
    """site0 is hidden from all that it chose: its vector keeps their masks, the rest is a sum."""
    hostile = Hostile()
    chosen = hostile.members["site0"]._chosen
    mutual = {one for one in chosen if "site0" in hostile.members[one]._chosen}
    hidden = set(chosen) - mutual  # who chose site0 themselves would notice
    hostile.share({one: {"site0"} for one in hidden})
    for name in hostile.names:
        hostile.mask(name, hostile.names)
    signed = {n: hostile.confirm(n, hostile.names, hostile.names) for n in hostile.names}
    for name in hostile.names:
        hostile.unmask(name, signed)
    total = np.zeros(SIZE, dtype=np.uint64)
    for name in hostile.names:
        total += np.frombuffer(hostile.vectors[name].residues, dtype="<u8")
    assert (total.view(np.int64) != MANY * (MANY - 1) // 2).all()


def test_keys_hidden_from_one_who_chose_them_are_missed() -> None:
    hostile = Hostile()
    chosen = hostile.members["site0"]._chosen[0]
    hostile.share({"site0": {chosen}})
    with pytest.raises(Cheated, match=f"withheld the keys of site '{chosen}'"):
        hostile.mask("site0", hostile.names)


def test_colluding_neighbors_take_off_their_own_masks_only() -> None:
    """The coordinator and every site that site0 did not mask with, and as many as it may."""
    hostile = Hostile(colluders=6)
    assert hostile.terms.neighbors.failure > 0
    hostile.share()
    rounds = {name: one._round for name, one in hostile.members.items()}
    for name in hostile.names:
        hostile.mask(name, hostile.names)
    victim = rounds["site0"]
    assert victim is not None
    chosen = hostile.members["site0"]._chosen
    bad = chosen[:6]
    left = np.frombuffer(hostile.vectors["site0"].residues, dtype="<u8").astype(np.uint64)
    left -= expand(victim.seed, SIZE)  # opened for the sum
    partners = [name for name in hostile.listed["site0"].offers if name != "site0"]
    for name in partners:
        if name in bad or name not in chosen:
            other = rounds[name]
            assert other is not None
            keys = hostile.offers["site0"].keys
            seed = pair_seed(
                hostile.terms, FIRST, hostile.names, other.mask, owner=name, other=("site0", keys)
            )
            left -= pairwise(seed, SIZE, first=True)  # site0 comes first in the roster
    assert (left.view(np.int64) != 0).all()  # masks with its honest choices are still on
    assert len(bad) < hostile.terms.neighbors.threshold  # shares of its mask key


def test_an_attempt_is_begun_once_also_after_a_restart(tmp_path: Path) -> None:
    """Else a site would sign two sets of survivors for one round: one before, one after."""
    _, terms = sites()
    key = _keys()["site0"]

    def started() -> Member:
        return Member("site0", key, terms, StoredAccount(tmp_path, study="many"))

    first, other = started(), started()  # the other process does not know of the attempt
    first.contribute(0, np.zeros(SIZE, dtype=np.int64))
    first.advertise(RoundId(stage=0, attempt=2))
    again = started()
    for attempt in (1, 2):
        with pytest.raises(ProtocolError, match="attempt was used already"):
            again.advertise(RoundId(stage=0, attempt=attempt))
    with pytest.raises(ProtocolError, match="attempt was used already"):
        other.account.attempt(0, 2)
    again.advertise(RoundId(stage=0, attempt=3))


def test_a_site_pays_for_the_choice_once_a_study() -> None:
    _, terms = sites()
    source = SimulationSource(0)
    member = Member("site0", _keys()["site0"], terms)
    agreed: Any = Means(epsilon=EPSILON, delta=DELTA).agreed(source, None)
    site = Site((np.zeros((5, 3)),), member=member, **agreed)
    first = half(3)
    site.answer(first, number=0)
    site.answer(first, number=1)
    paid = compose([one.event for one in member.account.stages.values() if one.event])
    assert paid.delta == exact(FAILURE)
    assert paid.precision == 2 * compose([first.event]).precision
    alone = Member("site0", _keys()["site0"], terms)
    agreed = Means(epsilon=EPSILON, delta=DELTA).agreed(source, None)
    Site((np.zeros((5, 3)),), member=alone, alone=True, **agreed).answer(first, number=0)
    assert alone.account.stages[0].event == first.event
