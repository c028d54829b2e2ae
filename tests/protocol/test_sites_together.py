"""What a site agrees to, how much noise it draws, and conversations among sites."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from site_studies import (
    DELTA,
    EPSILON,
    MOST,
    WHOLE,
    Agreed,
    Assuming,
    BoxSum,
    Laplacian,
    Means,
    Squares,
    Study,
    half,
    kept,
)

from dpfda.curate import curate
from dpfda.errors import (
    AlreadySpent,
    BudgetExceeded,
    InvalidData,
    ProtocolError,
)
from dpfda.noise import SecureSource, SimulationSource
from dpfda.privacy.cost import Cost
from dpfda.privacy.guarantee import SITES_DRAW_THEIR_NOISE
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.consortium import convene, decentralized
from dpfda.protocol.holder import Curator
from dpfda.protocol.query import AdditiveQuery, WholeQuery
from dpfda.protocol.secure_sum import RoundFailed, add_up
from dpfda.protocol.site import site_sigma

# -- what a site agrees to -------------------------------------------------------------------------


def test_a_conversation_gets_what_it_announced_and_no_more(tmp_path):
    study = Study(tmp_path)
    study.site().answer(half(), number=0)
    study.site().answer(half(), number=1)
    tiny = BoxSum(cost=WHOLE.part(Fraction(1, 10**6)), dimension=2)
    for site in (study.site(), study.site(seed=4)):
        with pytest.raises(BudgetExceeded, match="more than it announced"):
            site.answer(tiny, number=2)
    assert sorted(study.account("site0").stages) == [0, 1]


def test_a_ledger_is_spent_once_a_stage(tmp_path):
    study = Study(tmp_path)
    ledger = Ledger(2.0, limit_delta=1e-4)
    study.site(ledger=ledger).answer(half(), number=0)
    study.site(ledger=ledger).answer(half(), number=0)
    (entry,) = ledger.entries
    assert entry.event == half().event
    assert set(study.terms.assumptions) <= set(entry.assumptions)
    # A site whose account is lost cannot answer again while its ledger is there; it goes on with
    # the next question, and what was paid for counts.
    lost = study.site(ledger=ledger, stored=False)
    with pytest.raises(AlreadySpent):
        lost.answer(half(), number=0)
    with pytest.raises(ProtocolError, match="stopped while it answered"):
        lost.answer(half(), number=0)
    with pytest.raises(BudgetExceeded, match="more than it announced"):
        lost.answer(BoxSum(cost=WHOLE, dimension=2), number=1)
    lost.answer(half(), number=1)
    assert len(ledger.entries) == 2


def test_a_short_ledger_refuses_at_the_opening(tmp_path):
    study = Study(tmp_path)
    with pytest.raises(BudgetExceeded, match="nothing was spent"):
        study.site(ledger=Ledger(0.5, limit_delta=1e-5))
    ledger = Ledger(EPSILON, limit_delta=DELTA)
    study.site(ledger=ledger).answer(half(), number=0)
    study.site(ledger=ledger).answer(half(), number=1)  # what is left is enough for the rest
    assert len(ledger.entries) == 2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (Squares(cost=WHOLE, dimension=2), "sums with Gaussian"),
        (Laplacian(cost=WHOLE, dimension=2), "sums with Gaussian"),
        (BoxSum(cost=Cost(epsilon=0.1), dimension=2), "sums with Gaussian"),
        (Assuming(cost=WHOLE, dimension=2), "not agreed to"),
        (BoxSum(cost=WHOLE, dimension=2, unit="household"), "about a household"),
        (BoxSum(cost=WHOLE, dimension=5), "columns"),
    ],
)
def test_other_questions_are_refused_with_nothing_spent(tmp_path, query, words):
    ledger = Ledger(2.0, limit_delta=1e-4)
    site = Study(tmp_path).site(ledger=ledger)
    with pytest.raises((ProtocolError, InvalidData), match=words):
        site.answer(query, number=0)
    assert not ledger.entries
    assert not site.member.account.stages
    assert not issubclass(WholeQuery, AdditiveQuery)


def test_a_site_shows_nothing(tmp_path):
    site = Study(tmp_path).site()
    answer = site.answer(half(), number=0)
    assert answer.values.size == 0
    assert repr(site) == "Site('site0', 10 records)"
    assert "0.5" not in repr(site.__dict__["member"])
    with pytest.raises(TypeError):
        pickle.dumps(site)
    assert not any(isinstance(v, np.ndarray) for v in vars(site).values())


# -- how much noise --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "colluders", "dropouts", "alone"),
    [(4, 0, 0, False), (7, 2, 1, False), (3, 0, 0, True)],
)
def test_each_site_draws_its_share(tmp_path, count, colluders, dropouts, alone):
    # 20 000 numbers: their variance is known to √(2/20 000) = 1 %; four of those.
    study = Study(tmp_path, count=count, colluders=colluders, dropouts=dropouts)
    site = study.site(rows=np.zeros((1, 20_000)), stored=False, alone=alone)
    look = BoxSum(cost=WHOLE, dimension=20_000)
    answer = site.answer(look, number=0)
    share = np.mean((kept(site) / look.mechanism.steps) ** 2)
    stated = 1 if alone else 1 / (count - colluders - dropouts)
    assert share == pytest.approx(stated, rel=0.04)
    assert (answer.sigma / look.mechanism.scales[0]) ** 2 == pytest.approx(stated, rel=1e-6)


@pytest.mark.parametrize("sharing", [1, 2, 3, 7, 255, 256])
def test_shares_add_up_to_all_the_noise(sharing):
    steps = 1 << 24
    sigma = site_sigma(steps, sharing)
    assert sharing * sigma**2 >= steps**2 > sharing * (sigma - 1) ** 2
    assert sigma >= 1 << 20


def records(count, n=500, dimension=3, seed=0):
    rng = np.random.default_rng(seed)
    return {f"site{i}": (rng.uniform(-1, 1, (n + i, dimension)),) for i in range(count)}


def test_any_conversation_of_sums_runs_among_sites():
    held = records(5)
    pooled = (np.concatenate([columns[0] for columns in held.values()]),)
    conversation = Means(epsilon=EPSILON, delta=DELTA)
    means, consortium = convene(conversation, held, source=SimulationSource(0))
    central, curator = curate(conversation, pooled, source=SimulationSource(0))
    for (mean, sigma), (other, central_sigma) in zip(means, central, strict=True):
        assert sigma == pytest.approx(central_sigma, rel=1e-6)  # no site colludes or falls silent
        assert np.abs(mean - other).max() < 8 * sigma
        assert np.abs(mean - pooled[0].mean(0)).max() < 6 * sigma
    assert consortium.noise_ratio == pytest.approx((1, 1), rel=1e-6)
    for site in consortium.sites.values():
        assert site.events == curator.events


def test_the_law_that_is_stated_is_the_law_of_the_sum():
    held = {f"site{i}": (np.zeros((2, 20_000)),) for i in range(6)}
    conversation = Means(epsilon=EPSILON, delta=DELTA, dimension=20_000, looks=1)
    settings = {"colluders": 1, "dropouts": 1, "source": SimulationSource(3)}

    def silent(step, attempt):
        return {"site3"} if step == "mask" else set()

    ((mean, sigma),), consortium = convene(conversation, held, silent=silent, **settings)
    assert np.mean((mean / sigma) ** 2) == pytest.approx(1, abs=0.04)
    assert consortium.noise_ratio[0] == pytest.approx(5 / 4, rel=1e-6)
    assert consortium.survivors == (("site0", "site1", "site2", "site4", "site5"),)
    assert consortium.transcript[0].answer.n == 10  # of those who took part


def test_sites_agree_to_what_the_conversation_says():
    source = SimulationSource(0)
    greedy = Means(epsilon=EPSILON, delta=DELTA, greed=2)
    with pytest.raises(BudgetExceeded, match="more than it announced"):
        convene(greedy, records(3), source=source)
    convene(
        Means(epsilon=EPSILON, delta=DELTA, unit="household", look=Agreed),
        records(3),
        source=source,
    )
    with pytest.raises(ProtocolError, match="not agreed to"):
        convene(Means(epsilon=EPSILON, delta=DELTA, look=Assuming), records(3), source=source)


@pytest.mark.parametrize("source", [SimulationSource(0), SecureSource()])
def test_every_site_has_a_source_of_its_own(source):
    _, consortium = convene(Means(epsilon=1.0, delta=1e-5), records(4), source=source)
    sources = [site.source for site in consortium.sites.values()]
    assert len({id(one) for one in [source, *sources]}) == 5
    assert {one.sampler for one in sources} == {source.sampler}


def test_same_seed_same_bits():
    runs = [
        convene(Means(epsilon=1.0, delta=1e-5), records(3), source=SimulationSource(5))[0]
        for _ in range(2)
    ]
    for (first, _), (second, _) in zip(*runs, strict=True):
        assert (first == second).all()


def test_one_site_that_refuses_stops_the_stage_before_any_sum():
    conversation = Means(epsilon=EPSILON, delta=DELTA)
    ledgers = {"site1": Ledger(0.1, limit_delta=1e-6)}
    with pytest.raises(BudgetExceeded):
        convene(conversation, records(3), source=SimulationSource(0), ledgers=ledgers)
    with pytest.raises(RoundFailed):
        convene(
            conversation,
            records(3),
            source=SimulationSource(0),
            silent=lambda step, _: {"site1"} if step == "share" else set(),
        )


def test_a_site_that_never_answers_again_counts_as_silent(tmp_path):
    study = Study(tmp_path, count=4, dropouts=1)
    study.account("site1").begin(0, half().digest, half().event)  # and then its machine stopped
    consortium = study.consortium()
    assert consortium.ask(half(), 0).n == 30
    assert consortium.survivors == (("site0", "site2", "site3"),)
    assert consortium.noise_ratio == pytest.approx((1,), rel=1e-6)
    assert consortium.ask(half(), 1).n == 40  # with the next question it is back
    stuck = Study(tmp_path / "other", count=4)
    stuck.account("site1").begin(0, half().digest, half().event)
    with pytest.raises(ProtocolError, match="stopped while it answered"):
        stuck.consortium().ask(half(), 0)


def test_the_coordinator_claims_what_it_knows(tmp_path):
    conversation = Means(epsilon=EPSILON, delta=DELTA)
    _, seeded = convene(conversation, records(3), source=SimulationSource(0), colluders=1)
    _, exact = convene(conversation, records(3), source=SecureSource())
    promise = seeded.guarantee(conversation.guarantee)
    assert promise.model == "decentralized"
    assert promise.sampler == "simulation"
    assert "at most 1 of 3 sites collude with the coordinator" in promise.assumptions
    assert "each site's number of records is public" in promise.assumptions
    assert "the number of records is public" in promise.assumptions
    assert SITES_DRAW_THEIR_NOISE not in promise.assumptions
    assert exact.guarantee(conversation.guarantee).sampler == "exact"
    one = next(iter(exact.sites.values()))
    one.source = SimulationSource(0)  # a single seeded site is enough to say so
    assert exact.guarantee(conversation.guarantee).sampler == "simulation"
    far = decentralized(conversation.guarantee, exact.terms)  # sites of other processes
    assert SITES_DRAW_THEIR_NOISE in far.assumptions
    alone = decentralized(conversation.guarantee, exact.terms, alone=True)
    assert not any("collude" in text for text in alone.assumptions)


def test_sites_and_curators_round_alike(tmp_path):
    """Without noise the sum of sites is the curator's sum, to a step a site."""
    look = half()
    study = Study(tmp_path)
    sites = [study.site(name, stored=False) for name in study.keys]
    for site in sites:
        site.answer(look, number=0)
    total = add_up(
        [site.member for site in sites], study.terms, study.coordinator,
        stage=0, question=look.digest, size=2,
    ).total  # fmt: skip
    step, sigma = look.mechanism.lattice_step, look.mechanism.scales[0]
    assert np.abs(total * step - 15).max() < 6 * sigma
    curator = Curator((np.full((30, 2), 0.5),), most=MOST, source=SimulationSource(0))
    assert np.abs(curator.answer(look, number=0).values - 15).max() < 6 * sigma
