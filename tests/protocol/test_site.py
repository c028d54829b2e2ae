"""A site answers once: the same noise for ever, on disk before it exists."""

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import site_studies
from site_studies import (
    MOST,
    WHOLE,
    BoxSum,
    Study,
    half,
    kept,
)

from dpfda.errors import (
    BudgetExceeded,
    LedgerDamaged,
    ProtocolError,
)
from dpfda.noise import SimulationSource
from dpfda.privacy.ledger import Ledger
from dpfda.protocol.account import Account, StoredAccount
from dpfda.protocol.secure_sum import Member
from dpfda.protocol.secure_sum.messages import RoundId
from dpfda.protocol.site import Site


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
        with pytest.raises(ProtocolError, match="question 0 differs from"):
            site.answer(BoxSum(cost=WHOLE.part(Fraction(1, 4)), dimension=2), number=0)
        with pytest.raises(ProtocolError, match="question 1 is next"):
            site.answer(half(), number=2)
        with pytest.raises(ProtocolError, match="question 1 is next"):
            site.answer(half(), number=-1)


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
import os, sys, pathlib
sys.path.insert(0, {helpers!r})
from site_studies import Study, half
from dpfda.protocol.account import StoredAccount
class Dying:
    sampler = "exact"
    def words(self, count):
        os._exit(9)  # no farewell: like kill -9
study = Study(pathlib.Path({folder!r}))
study.account = lambda name: StoredAccount(study.folder / name, study="s")
study.site(source=Dying()).answer(half(), number=0)
"""


def test_a_site_that_dies_while_drawing_never_answers(tmp_path):
    script = DIES.format(helpers=os.path.dirname(site_studies.__file__), folder=str(tmp_path))
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
