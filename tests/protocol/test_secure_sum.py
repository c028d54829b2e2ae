"""Secure sums: exact, resilient, and closed to everybody who should not see."""

import itertools
import pickle

import msgspec
import numpy as np
import pytest
from scipy import stats

from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.noise import SimulationSource, discrete_gaussian
from dpfda.protocol.secure_sum import (
    Aggregator,
    Identity,
    Member,
    RoundFailed,
    Terms,
    add_up,
    crypto,
)
from dpfda.protocol.secure_sum.crypto import RoundKey, expand, pairwise
from dpfda.protocol.secure_sum.messages import MaskedVector, RoundId, pair_seed, sharers_content

SIZE = 4
STEPS = ("advertise", "share", "mask", "confirm", "unmask")
KEEPER = Identity()  # the coordinator's


def consortium(count, *, colluders=0, dropouts=0, sigma=50, seed=0, study="test"):
    """Members with known contributions."""
    identities = {f"site{i}": Identity() for i in range(count)}
    roster = tuple((name, one.public) for name, one in identities.items())
    terms = Terms(
        study=study,
        coordinator=KEEPER.public,
        roster=roster,
        colluders=colluders,
        dropouts=dropouts,
    )
    sites = [Member(name, one, terms) for name, one in identities.items()]
    exact = np.arange(count * SIZE).reshape(count, SIZE) * 10**6 - 10**7
    sources = SimulationSource(seed).spawn(count)
    noise = [discrete_gaussian(SIZE, sigma=sigma, source=source) for source in sources]
    noisy = exact + np.array(noise)
    for site, values in zip(sites, noisy, strict=True):
        site.contribute(0, values)
    return sites, terms, exact, noisy


@pytest.mark.parametrize("count", [2, 3, 7])
def test_the_sum_is_exact(count):
    sites, terms, exact, noisy = consortium(count)
    result = add_up(sites, terms, KEEPER, stage=0, size=SIZE)
    assert (result.total == noisy.sum(0)).all()
    assert np.abs(noisy - exact).max() > 0  # there is noise
    assert np.abs(noisy - exact).max() < 50 * 8


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("gone", [("site0",), ("site1", "site4")])
def test_sites_may_fall_silent_at_every_step(step, gone):
    sites, terms, _, noisy = consortium(7, dropouts=2)

    result = add_up(
        sites,
        terms,
        KEEPER,
        stage=0,
        size=SIZE,
        silent=lambda at, _: set(gone) if at == step else set(),
    )
    lost = step in ("advertise", "share", "mask")  # later, the vector has arrived already
    left = [site.name for site in sites if not (lost and site.name in gone)]
    assert result.survivors == tuple(left)
    numbers = [int(name[4:]) for name in left]
    assert (result.total == noisy[numbers].sum(0)).all()


@pytest.mark.parametrize(("early", "late"), list(itertools.combinations(STEPS, 2)))
def test_two_sites_falling_silent_at_different_steps(early, late):
    sites, terms, _, noisy = consortium(7, dropouts=2)

    def silent(step, _):
        return {"site2"} if step == early else {"site5"} if step == late else set()

    result = add_up(sites, terms, KEEPER, stage=0, size=SIZE, silent=silent)
    numbers = [int(name[4:]) for name in result.survivors]
    assert len(numbers) >= 5
    assert (result.total == noisy[numbers].sum(0)).all()


def test_too_many_silent_sites_make_the_round_repeat_with_the_same_noise():
    sites, terms, _, noisy = consortium(5, dropouts=1)

    def silent(step, attempt):
        return {"site0", "site1"} if attempt == 1 and step == "mask" else set()

    result = add_up(sites, terms, KEEPER, stage=0, size=SIZE, silent=silent)
    assert result.attempt == 2
    assert (result.total == noisy.sum(0)).all()


@pytest.mark.parametrize("step", STEPS)
def test_or_fail_saying_why(step):
    sites, terms, _, _ = consortium(5, dropouts=1)
    with pytest.raises(RoundFailed, match="needed"):
        add_up(
            sites, terms, KEEPER, stage=0, size=SIZE,
            silent=lambda at, _: {"site0", "site1", "site2"} if at == step else set(),
        )  # fmt: skip


def test_an_opened_stage_is_never_opened_again():
    # A second sum over other survivors would leave one site's vector under its own noise alone.
    sites, terms, _, _ = consortium(5, dropouts=1)
    add_up(sites, terms, KEEPER, stage=0, size=SIZE)
    with pytest.raises(ProtocolError, match="opened already"):
        sites[0].advertise(RoundId(stage=0, attempt=9))


def test_failing_at_the_last_step_cannot_be_repeated():
    sites, terms, _, _ = consortium(5, dropouts=1)
    gone = {"site0", "site1", "site2"}
    with pytest.raises(RoundFailed) as caught:
        add_up(
            sites,
            terms,
            KEEPER,
            stage=0,
            size=SIZE,
            silent=lambda at, _: gone if at == "unmask" else set(),
        )
    assert not caught.value.repeatable


def test_a_vector_is_fixed_once():
    sites, terms, _, noisy = consortium(3)
    with pytest.raises(ProtocolError, match="fixed already"):
        sites[0].contribute(0, np.zeros(SIZE, dtype=np.int64))
    total = add_up(sites, terms, KEEPER, stage=0, size=SIZE).total
    assert (total == noisy.sum(0)).all()


def transcript(sites, terms):
    """Everything that passes through the aggregator in one round."""
    round_id = RoundId(stage=0, attempt=1)
    aggregator = Aggregator(terms, KEEPER, round_id, size=SIZE)
    offers = aggregator.offers([site.advertise(round_id) for site in sites])
    shared = [site.share(offers[site.name]) for site in sites]
    routed = aggregator.route(shared)
    vectors = [site.mask(routed[site.name]) for site in sites]
    survivors = aggregator.collect(vectors)
    confirmations = aggregator.confirmations([site.confirm(survivors) for site in sites])
    keys = {site.name: site._round.mask for site in sites}  # forgotten once the sum is open
    opened = [site.unmask(confirmations[site.name]) for site in sites]
    return aggregator, offers["site0"], vectors, opened, keys


def residues(message):
    return np.frombuffer(message.residues, dtype="<u8").astype(np.uint64)


def test_single_masked_messages_are_uniform():
    # 4000 residues of one site over 1000 rounds: all 64 bits look fair, top bits fill their bins.
    seen = []
    identities = [Identity() for _ in range(3)]
    roster = tuple((f"site{i}", one.public) for i, one in enumerate(identities))
    terms = Terms(study="uniform", coordinator=KEEPER.public, roster=roster)
    sites = [Member(f"site{i}", one, terms) for i, one in enumerate(identities)]
    for site in sites:
        site.contribute(0, np.zeros(SIZE, dtype=np.int64))
    for attempt in range(1, 301):
        round_id = RoundId(stage=0, attempt=attempt)
        aggregator = Aggregator(terms, KEEPER, round_id, size=SIZE)
        offers = aggregator.offers([site.advertise(round_id) for site in sites])
        routed = aggregator.route([site.share(offers[site.name]) for site in sites])
        seen.append(residues(sites[0].mask(routed["site0"])))
    words = np.concatenate(seen)
    ones = np.array([((words >> np.uint64(bit)) & np.uint64(1)).sum() for bit in range(64)])
    # 64 two-sided binomial tests at 1e-6 together: 6 standard deviations
    assert np.abs(ones - len(words) / 2).max() < 6 * np.sqrt(len(words)) / 2
    top = np.bincount((words >> np.uint64(60)).astype(int), minlength=16)
    assert stats.chisquare(top).pvalue > 1e-6


def test_a_repeated_round_masks_the_same_vector_anew():
    sites, terms, _, _ = consortium(3)
    messages = []
    for attempt in (1, 2):
        round_id = RoundId(stage=0, attempt=attempt)
        aggregator = Aggregator(terms, KEEPER, round_id, size=SIZE)
        offers = aggregator.offers([site.advertise(round_id) for site in sites])
        routed = aggregator.route([site.share(offers[site.name]) for site in sites])
        messages.append(residues(sites[0].mask(routed["site0"])))
    assert (messages[0] != messages[1]).all()
    with pytest.raises(ProtocolError, match="fresh"):
        sites[0].advertise(RoundId(stage=0, attempt=2))


def test_coordinator_and_colluders_can_subtract_no_more_than_stated():
    """Full transcript plus the secrets of c sites: the target keeps the honest survivors' noise."""
    count, colluders, sigma = 6, 1, 1000
    spare = []
    masked_left = []
    for seed in range(60):
        sites, terms, exact, noisy = consortium(count, colluders=colluders, sigma=sigma, seed=seed)
        aggregator, listed, vectors, opened, keys = transcript(sites, terms)
        offers = listed.offers
        total = aggregator.open(opened).total
        # The colluder's own noisy vector is known; what is left is the sum of the honest ones.
        known = noisy[0]
        honest_sum = total - known
        spare.append(honest_sum - exact[1:].sum(0))  # even with all honest exact values known
        # A single honest message, with every mask they know taken off: the opened self mask and
        # the pairwise mask with the colluder. The masks among honest sites remain.
        target = 1
        left = residues(vectors[target]).copy()
        left -= expand(aggregator._seed("site1", {one.site: one.seeds for one in opened}), SIZE)
        key = keys["site0"]
        other = "site1", offers["site1"]
        seed_bytes = pair_seed(terms, listed.round, terms.names, key, owner="site0", other=other)
        left -= pairwise(seed_bytes, SIZE, first=False)  # the target comes after the colluder
        masked_left.append(left)
        assert (left.view(np.int64) != noisy[target]).all()
    # The noise left is that of S - c sites: variance (S - c) σ² ≥ the stated (S - c - k) σ².
    left_variance = np.var(np.concatenate(spare))
    stated = (count - colluders) * sigma**2
    # 240 numbers: the variance is known to √(2/240) = 9.1 %; 4 of those.
    assert left_variance == pytest.approx(stated, rel=0.37)
    words = np.concatenate(masked_left)
    assert stats.kstest(words.astype(np.float64) / 2.0**64, "uniform").pvalue > 1e-6


def test_a_late_message_of_a_dropped_site_stays_hidden():
    """Its mask key is opened, its self mask never is."""
    sites, terms, _, noisy = consortium(5, dropouts=1)
    round_id = RoundId(stage=0, attempt=1)
    aggregator = Aggregator(terms, KEEPER, round_id, size=SIZE)
    listed = aggregator.offers([site.advertise(round_id) for site in sites])
    routed = aggregator.route([site.share(listed[site.name]) for site in sites])
    vectors = [site.mask(routed[site.name]) for site in sites]
    late = vectors[0]
    survivors = aggregator.collect(vectors[1:])
    confirmations = aggregator.confirmations([site.confirm(survivors) for site in sites[1:]])
    opened = [site.unmask(confirmations[site.name]) for site in sites[1:]]
    aggregator.open(opened)
    assert all("site0" not in one.seeds and "site0" in one.keys for one in opened)
    by_name = listed["site0"].offers
    shares = {terms.number(one.site) + 1: one.keys["site0"] for one in opened}
    key = RoundKey(crypto.recover(shares, threshold=terms.threshold))
    left = residues(late).copy()
    for name in survivors.sites:
        other = name, by_name[name]
        seed = pair_seed(terms, round_id, terms.names, key, owner="site0", other=other)
        left -= pairwise(seed, SIZE, first=True)
    assert (left.view(np.int64) != noisy[0]).all()  # the self mask is still on
    left -= expand(sites[0]._round.seed, SIZE)
    assert (left.view(np.int64) == noisy[0]).all()  # and is all that is


def test_never_both_shares_of_one_site():
    sites, terms, _, _ = consortium(5, dropouts=1)
    _, _, _, opened, _ = transcript(sites, terms)
    for one in opened:
        assert not set(one.seeds) & set(one.keys)


def test_wrong_shares_never_give_a_sum():
    sites, terms, _, _ = consortium(4)
    aggregator, _, _, opened, _ = transcript(sites, terms)
    broken = dict(opened[0].seeds)
    broken["site2"] = bytes(crypto.SHARE_BYTES - 1) + b"\1"
    with pytest.raises(RoundFailed):
        aggregator.open([msgspec.structs.replace(opened[0], seeds=broken), *opened[1:]])


def test_shares_of_another_secret_never_give_a_sum():
    sites, terms, _, _ = consortium(4)
    aggregator, _, _, opened, _ = transcript(sites, terms)
    points = [1 + ["site2", "site0", "site1", "site3"].index(one.site) for one in opened]
    other = crypto.split(bytes(32), threshold=terms.threshold, points=points)
    forged = [
        msgspec.structs.replace(one, seeds=one.seeds | {"site2": other[point]})
        for one, point in zip(opened, points, strict=True)
    ]
    with pytest.raises(RoundFailed, match="not recovered correctly"):
        aggregator.open(forged)


def test_masks_with_another_set_of_sites_never_give_a_sum():
    sites, terms, _, _ = consortium(4, dropouts=1)
    round_id = RoundId(stage=0, attempt=1)
    aggregator = Aggregator(terms, KEEPER, round_id, size=SIZE)
    offers = aggregator.offers([site.advertise(round_id) for site in sites])
    routed = aggregator.route([site.share(offers[site.name]) for site in sites])
    sharers = terms.names[:3]
    content = sharers_content("shared", terms, round_id, sharers)
    fewer = msgspec.structs.replace(
        routed["site0"],
        sites=sharers,
        signature=KEEPER.sign(content),
        sealed={name: routed["site0"].sealed[name] for name in sharers[1:]},
    )
    vectors = [sites[0].mask(fewer), *[site.mask(routed[site.name]) for site in sites[1:]]]
    with pytest.raises(RoundFailed, match="another set"):
        aggregator.collect(vectors)


def test_messages_travel_as_bytes():
    sites, terms, _, _ = consortium(3)
    _, _, vectors, _, _ = transcript(sites, terms)
    text = msgspec.msgpack.encode(vectors[0])
    assert msgspec.msgpack.decode(text, type=MaskedVector) == vectors[0]


def test_sites_show_and_store_nothing():
    sites, terms, exact, _ = consortium(3)
    assert str(exact[0, 0]) not in repr(sites[0])
    with pytest.raises(TypeError):
        pickle.dumps(sites[0])
    with pytest.raises(ProtocolError, match="identity"):
        Member("site0", Identity(), terms)


@pytest.mark.parametrize(
    ("count", "colluders", "dropouts", "fine"),
    [(3, 0, 1, True), (3, 1, 1, False), (5, 1, 1, True), (4, 0, 2, False), (2, 0, 0, True)],
)
def test_terms_that_cannot_be_kept_are_refused(count, colluders, dropouts, fine):
    facts = {"study": "x", "coordinator": b"k" * 32, "colluders": colluders, "dropouts": dropouts}
    roster = tuple((f"s{i}", bytes([i]) * 32) for i in range(count))
    if fine:
        terms = Terms(roster=roster, **facts)
        assert terms.colluders < terms.threshold <= terms.needed
        assert 2 * terms.threshold > terms.sites + terms.colluders
    else:
        with pytest.raises(InvalidParameter):
            Terms(roster=roster, **facts)


def test_shamir_threshold():
    secret = bytes(range(32))
    shares = crypto.split(secret, threshold=3, points=[1, 2, 3, 4, 5])
    for chosen in itertools.combinations(shares, 3):
        assert crypto.recover({p: shares[p] for p in chosen}, threshold=3) == secret
    with pytest.raises(ProtocolError, match="fewer"):
        crypto.recover({1: shares[1], 2: shares[2]}, threshold=3)
    # Two shares fit every secret: for any other secret there is a polynomial through both.
    other = crypto.split(bytes(32), threshold=3, points=[1, 2, 3])
    assert other[1] != shares[1]


def test_the_aggregator_takes_each_step_once_from_sites_of_the_round():
    sites, terms, _, _ = consortium(4, dropouts=1)
    first, other = RoundId(stage=0, attempt=1), RoundId(stage=0, attempt=2)
    aggregator = Aggregator(terms, KEEPER, first, size=SIZE)
    offers = [site.advertise(first) for site in sites]
    stranger = msgspec.structs.replace(offers[0], site="nobody")
    other_key = msgspec.structs.replace(offers[0].keys, mask=offers[1].keys.mask)
    forged = msgspec.structs.replace(offers[0], keys=other_key)
    late = msgspec.structs.replace(offers[0], round=other)
    for wrong in (stranger, forged, late):
        with pytest.raises(ProtocolError):
            Aggregator(terms, KEEPER, first, size=SIZE).offers([wrong, *offers[1:]])
    with pytest.raises(ProtocolError, match="twice"):
        aggregator.offers([*offers, offers[0]])
    listed = aggregator.offers(offers[:0:-1])  # three of them, in another order
    assert set(listed) == set(listed["site1"].offers) == {"site1", "site2", "site3"}
    shares = [site.share(listed[site.name]) for site in sites[1:]]
    with pytest.raises(ProtocolError, match="offered no keys"):
        aggregator.route([msgspec.structs.replace(shares[0], site="site0"), *shares[1:]])
    routed = aggregator.route(shares)
    vectors = [site.mask(routed[site.name]) for site in sites[1:]]
    told = aggregator.collect(vectors[::-1])
    assert told.sites == ("site1", "site2", "site3")
    with pytest.raises(ProtocolError, match="another round"):
        aggregator.collect([msgspec.structs.replace(vectors[0], round=other)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"secret": bytes(31)},
        {"secret": bytes(33)},
        {"threshold": 0},
        {"threshold": 4},
        {"points": [1, 1, 2]},
        {"points": [0, 1, 2]},
    ],
)
def test_secrets_are_split_among_different_points_above_zero(wrong):
    """The share at point 0 is the secret itself."""
    right = {"secret": bytes(32), "threshold": 2, "points": [1, 2, 3]}
    given = right | wrong
    with pytest.raises(InvalidParameter):
        crypto.split(given.pop("secret"), **given)
    assert len(crypto.split(right.pop("secret"), **right)) == 3


@pytest.mark.parametrize("count", [0, 1, 1025])
def test_a_sum_of_one_is_no_sum(count):
    roster = tuple((f"site{i}", i.to_bytes(32, "big")) for i in range(count))
    with pytest.raises(InvalidParameter, match="sites"):
        Terms(study="s", coordinator=b"k" * 32, roster=roster)


@pytest.mark.parametrize("values", [[], [[1, 2]], [1.5, 2.0], np.array([1, 2], dtype=np.uint64)])
def test_only_vectors_of_integers_are_contributed(values):
    identity = Identity()
    roster = (("a", identity.public), ("b", Identity().public))
    member = Member("a", identity, Terms(study="s", coordinator=KEEPER.public, roster=roster))
    with pytest.raises(InvalidData):
        member.contribute(0, np.asarray(values))
    with pytest.raises(ProtocolError, match="nothing to contribute"):
        member.advertise(RoundId(stage=0, attempt=1))
