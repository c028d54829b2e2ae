"""Sites: the same noise for ever, on disk before it exists, in the right amount, for any look."""

import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from dpfda.curate import curate
from dpfda.errors import (
    AlreadySpent,
    BudgetExceeded,
    InvalidData,
    LedgerDamaged,
    ProtocolError,
)
from dpfda.mechanisms.budgeted import l1_noise, l2_noise
from dpfda.noise import SecureSource, SimulationSource
from dpfda.privacy.cost import Cost, limit
from dpfda.privacy.guarantee import SITES_DRAW_THEIR_NOISE
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.account import Account, StoredAccount
from dpfda.protocol.consortium import Consortium, convene, decentralized
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.fields import part, whole
from dpfda.protocol.holder import Curator
from dpfda.protocol.query import AdditiveLook, WholeLook
from dpfda.protocol.secure_sum import Identity, Member, RoundFailed, Terms, add_up
from dpfda.protocol.secure_sum.messages import RoundId
from dpfda.protocol.site import Site, site_sigma

EPSILON, DELTA = 1.0, 1e-5
WHOLE = Cost(epsilon=EPSILON, delta=DELTA)
MOST = limit(epsilon=EPSILON, delta=DELTA)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxSum(AdditiveLook):
    """Sums of numbers in [-1, 1]: a small look of its own, no regression."""

    cost: Cost = part(lambda: Cost)
    dimension: int = whole()

    @property
    def columns(self):
        return (self.dimension,)

    @property
    def size(self):
        return self.dimension

    @property
    def mechanism(self):
        ones = np.ones(self.dimension)
        return l2_noise(self.cost, sensitivity=2 * self.dimension**0.5, axes=ones)

    def block(self, records):
        return np.rint(np.clip(records[0], -1, 1) * 2**20).sum(axis=0)

    def statistic(self, totals):
        return np.asarray(totals * 2.0**-20)

    @classmethod
    def examples(cls):
        return [cls(cost=WHOLE, dimension=2)]


class Squares(BoxSum):
    """No sum over sites."""

    linear: ClassVar[bool] = False


class Assuming(BoxSum):
    """Rests on something that nobody agreed to."""

    @property
    def assumptions(self):
        return ("labels are public",)


class Laplacian(BoxSum):
    """Pure noise."""

    @property
    def mechanism(self):
        cost = Cost(epsilon=1e-3)
        return l1_noise(cost, sensitivity=2.0 * self.dimension, axes=np.ones(self.dimension))


class Agreed(BoxSum):
    """Rests on something that its conversation says."""

    @property
    def assumptions(self):
        return ("the earth is round",)


@dataclass(frozen=True, kw_only=True, eq=False)
class Means(Conversation):
    """The mean of a box, asked in several parts."""

    dimension: int = 3
    looks: int = 2
    greed: int = 1  # how many times its share each look asks for
    look: type = BoxSum

    @property
    def assumptions(self):
        return (*super().assumptions, "the earth is round")

    def questions(self):
        means = []
        for _ in range(self.looks):
            cost = self.whole.part(Fraction(self.greed, self.looks))
            answer = yield self.look(cost=cost, dimension=self.dimension, unit=self.unit)
            means.append((answer.values / answer.n, answer.sigma / answer.n))
        return means

    @classmethod
    def examples(cls, *, n, epsilon, delta):
        return [cls(epsilon=epsilon, delta=delta)]

    def neighbors(self, n):
        raise NotImplementedError


class Study:
    """Two sites or more, whose accounts lie in folders."""

    def __init__(self, folder, *, count=3, colluders=0, dropouts=0):
        self.folder = folder
        self.coordinator = Identity()
        self.keys = {f"site{i}": Identity() for i in range(count)}
        self.terms = Terms(
            study="s",
            coordinator=self.coordinator.public,
            roster=tuple((name, key.public) for name, key in self.keys.items()),
            colluders=colluders,
            dropouts=dropouts,
        )

    def account(self, name):
        return StoredAccount(self.folder / name, study=self.terms.digest.hex())

    def site(self, name="site0", *, seed=0, rows=None, stored=True, **facts):
        account = self.account(name) if stored else Account()
        rows = np.full((10, 2), 0.5) if rows is None else rows
        settings = {"most": MOST, "source": SimulationSource(seed)} | facts
        return Site((rows,), member=Member(name, self.keys[name], self.terms, account), **settings)

    def consortium(self, seed=0):
        sites = [self.site(name, seed=seed + k) for k, name in enumerate(self.keys)]
        return Consortium(sites, self.coordinator)


def half(dimension=2):
    return BoxSum(cost=WHOLE.part(Fraction(1, 2)), dimension=dimension)


def kept(site, number=0):
    return site.member.account.stages[number].noisy


# -- once, whatever happens ------------------------------------------------------------------------


def test_a_restarted_site_has_the_same_noise(tmp_path):
    study = Study(tmp_path)
    first = study.site(seed=1)
    first.answer(half(), number=0)
    before = kept(first).copy()
    again = study.site(seed=2)
    again.answer(half(), number=0)
    assert (kept(again) == before).all()
    assert (kept(first) == before).all()
    first.answer(half(), number=0)  # without a restart as well
    assert (kept(first) == before).all()


def test_a_sum_goes_on_after_everybody_restarted(tmp_path):
    study = Study(tmp_path)
    before = study.consortium(seed=0)
    for site in before.sites.values():
        site.answer(half(), number=0)
    vectors = sum(kept(site) for site in before.sites.values())
    answer = study.consortium(seed=50).ask(half(), 0)
    assert (answer.values == vectors * half().mechanism.lattice_step).all()
    assert answer.n == 30


def test_another_question_under_the_same_number_is_refused(tmp_path):
    study = Study(tmp_path)
    study.site().answer(half(), number=0)
    for site in (study.site(), study.site(seed=3)):
        with pytest.raises(ProtocolError, match="question 0 was another one"):
            site.answer(BoxSum(cost=WHOLE.part(Fraction(1, 4)), dimension=2), number=0)
        with pytest.raises(ProtocolError, match="question 1 comes first"):
            site.answer(half(), number=2)


def test_an_opened_stage_stays_shut_after_a_restart(tmp_path):
    study = Study(tmp_path)
    first = study.consortium()
    first.ask(half(), 0)
    assert not list(tmp_path.glob("*/*.vector"))
    assert all(kept(site) is None for site in first.sites.values())
    for site in study.consortium(seed=9).sites.values():
        assert kept(site) is None
        site.answer(half(), number=0)  # it took part, and draws nothing
        assert kept(site) is None
        with pytest.raises(ProtocolError, match="opened already"):
            site.member.advertise(RoundId(stage=0, attempt=7, question=half().digest))


def test_of_two_processes_one_answers_and_one_opens(tmp_path):
    study = Study(tmp_path)
    late = study.site(seed=1)  # read the folder before the other one answered
    study.site(seed=2).answer(half(), number=0)
    with pytest.raises(ProtocolError, match="begun already"):
        late.answer(half(), number=0)
    first, second = study.account("site0"), study.account("site0")
    assert (first.stages[0].noisy == second.stages[0].noisy).all()
    first.open(0)
    with pytest.raises(ProtocolError, match="opened already"):
        second.open(0)
    with pytest.raises(ProtocolError, match="opened already"):
        first.open(0)
    with pytest.raises(ProtocolError, match="fixed already"):
        first.fix(0, np.zeros(2, dtype=np.int64))
    for account in (first, Account()):
        account.begin(1, "a")
        with pytest.raises(ProtocolError, match="begun already"):
            account.begin(1, "b")


DIES = """
import sys, pathlib
sys.path.insert(0, {tests!r})
from test_site import *
class Dying:
    sampler = "exact"
    def words(self, count):
        os._exit(9)  # no farewell: like kill -9
study = Study(pathlib.Path({folder!r}))
study.account = lambda name: StoredAccount(study.folder / name, study="s")
study.site(source=Dying()).answer(half(), number=0)
"""


def test_a_site_that_dies_while_drawing_never_answers(tmp_path):
    script = DIES.format(tests=os.path.dirname(__file__), folder=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=120)
    assert done.returncode == 9
    account = StoredAccount(tmp_path / "site0", study="s")  # on disk before the first word
    assert account.stages[0].question == half().digest
    assert account.stages[0].event == half().event
    study = Study(tmp_path)
    member = Member("site0", study.keys["site0"], study.terms, account)
    site = Site((np.full((10, 2), 0.5),), member=member, most=MOST)
    with pytest.raises(ProtocolError, match="stopped while it answered question 0"):
        site.answer(half(), number=0)
    with pytest.raises(ProtocolError, match="nothing to contribute"):
        member.advertise(RoundId(stage=0, attempt=1, question=half().digest))
    # What it paid for is paid for.
    with pytest.raises(BudgetExceeded):
        site.answer(BoxSum(cost=WHOLE, dimension=2), number=1)


def test_everything_is_paid_before_noise_is_drawn(tmp_path):
    ledger = Ledger(2.0, limit_delta=1e-4)
    study = Study(tmp_path)
    seen = []

    class Watching(SimulationSource):
        def words(self, count):
            seen.append((len(ledger.entries), len(list(tmp_path.glob("site0/*.begun")))))
            return super().words(count)

    site = study.site(source=Watching(0), ledger=ledger)
    site.answer(half(), number=0)
    assert set(seen) == {(1, 1)}
    assert (tmp_path / "site0" / "0000.vector").exists()


def test_files_are_their_owners_only(tmp_path):
    study = Study(tmp_path)
    study.site().answer(half(), number=0)
    assert (tmp_path / "site0").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "site0").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path


def test_an_account_that_lost_something_is_refused(tmp_path):
    study = Study(tmp_path)
    site = study.site()
    site.answer(half(), number=0)
    site.answer(half(), number=1)
    with pytest.raises(ProtocolError, match="another study"):
        StoredAccount(tmp_path / "site0", study="other")
    (tmp_path / "site0" / "0000.begun").unlink()
    with pytest.raises(LedgerDamaged, match="lost a stage"):
        study.account("site0")
    (tmp_path / "site0" / "0000.begun").write_text('{"question":')
    with pytest.raises(LedgerDamaged, match="damaged"):
        study.account("site0")


def test_a_vector_left_behind_is_removed(tmp_path):
    study = Study(tmp_path)
    study.site().answer(half(), number=0)
    (tmp_path / "site0" / "0000.opened").touch()  # as if it died between the two
    assert study.account("site0").stages[0].opened
    assert not (tmp_path / "site0" / "0000.vector").exists()


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
    assert not issubclass(WholeLook, AdditiveLook)


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
