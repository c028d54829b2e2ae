"""A study of owners over a collector's HTTP gives the bits of the study in process."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

pytest.importorskip("litestar", reason="the service extra is not installed")
pytest.importorskip("sqlalchemy", reason="the service extra is not installed")

from forked_collector import QuickCollector

from dpfda.client import RemoteClient
from dpfda.errors import BudgetExceeded, ProtocolError
from dpfda.local.boosting.model import RowModel
from dpfda.local.boosting.request import Owner, Owners
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import LABELS_ARE_PUBLIC
from dpfda.protocol.server import Server
from dpfda.simulate import simulate

OWNERS = 12


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    place = tmp_path_factory.mktemp("collector") / "study.db"
    with QuickCollector(f"sqlite:///{place}") as running:
        yield running


def in_process(plan, rows, *, epsilons=None):
    crowd = Owners(plan, rows, epsilons=epsilons, source=SimulationSource(7))
    return simulate(plan, crowd, source=crowd.source, at_once=1)


def over_http(plan, rows, collector, folder, *, epsilons=None, accepts=()):
    """Every owner on a device of their own; one seed for all, so that it can be compared."""
    collector.create(plan)
    invitations = collector.invite(plan.hash, OWNERS)
    source, spent = SimulationSource(7), []
    for k in range(OWNERS):
        own = None if epsilons is None else float(epsilons[k])
        holder = partial(Owner, epsilon=own)
        device = RemoteClient(folder / str(k), limit_epsilon=20.0, source=source, holder=holder)
        device.join(
            collector.url,
            plan.hash,
            most_epsilon=20.0,
            accepts=accepts,
            invitation=invitations[k],
        )
        device.submit(plan.hash, curve=rows.features[k], label=rows.labels[k])
        spent.append(device.ledger.spent.epsilon)
    status = collector.wait_until(plan.hash[:16])
    assert status["status"] == "finished"
    model = collector.request("GET", f"/api/studies/{plan.hash[:16]}/model")
    return model, spent


@pytest.mark.parametrize("name", ["gradient", "statistic", "classifier"])
def test_same_bits_over_http(name, plan_of, owners, collector, tmp_path):
    shape = {"n_rounds": 2}
    if name != "gradient":
        shape |= {"owners_per_round": 3, "judges": 3, "retries": 0}
    plan = plan_of(name, owners=OWNERS, epsilon=8.0, **shape)
    rows = owners(OWNERS)
    model, spent = over_http(plan, rows, collector, tmp_path)
    here = in_process(plan, rows)
    assert here.finished
    assert len(here.findings.history) == 2
    assert model == json.loads(here.run.result.model.to_json())
    assert spent == [8.0] * OWNERS
    again = RowModel.from_dict(model)
    assert again.guarantee.unit == "owner"
    assert np.array_equal(again.predict(rows.features[0]), here.model.predict(rows.features[0]))


def test_owners_may_spend_less_and_the_reply_says_so(plan_of, owners, collector, tmp_path):
    plan = plan_of("gradient", owners=OWNERS, epsilon=8.0, n_rounds=2, own_budgets=True)
    epsilons = np.resize([0.5, 2.0, 8.0], OWNERS)
    rows = owners(OWNERS)
    model, spent = over_http(plan, rows, collector, tmp_path, epsilons=epsilons)
    assert spent == epsilons.tolist()
    assert model == json.loads(in_process(plan, rows, epsilons=epsilons).run.result.model.to_json())


def test_labels_in_clear_are_agreed_to_before_joining(plan_of, owners, collector, tmp_path):
    shape = {"owners_per_round": 6, "judges": 6, "n_rounds": 1, "retries": 0}
    plan = plan_of("sample", owners=OWNERS, epsilon=8.0, protects="features", **shape)
    collector.create(plan, open=True)
    device = RemoteClient(tmp_path / "careful", limit_epsilon=20.0, holder=Owner)
    with pytest.raises((ProtocolError, BudgetExceeded), match="labels are public"):
        device.join(collector.url, plan.hash, most_epsilon=20.0)
    assert device.ledger.spent.epsilon == 0
    device.join(collector.url, plan.hash, most_epsilon=20.0, accepts=[LABELS_ARE_PUBLIC])
    rows = owners(1)
    device.submit(plan.hash, curve=rows.features[0], label=rows.labels[0])
    assert LABELS_ARE_PUBLIC in device.ledger.entries[-1].assumptions


@pytest.mark.parametrize("name", ["gradient", "statistic"])
def test_a_study_can_stop_at_any_owner_and_go_on(name, plan_of, owners):
    shape = {"n_rounds": 2}
    if name == "statistic":
        shape |= {"owners_per_round": 3, "judges": 3, "retries": 0}
    plan, rows = plan_of(name, owners=OWNERS, epsilon=8.0, **shape), owners(OWNERS)
    crowd = Owners(plan, rows, source=SimulationSource(7))
    server = Server(plan)
    while not server.finished:
        ticket = server.issued
        server.receive(crowd.answer(server.issue(1)).values, start=ticket)
        server = Server.resume(plan, json.loads(json.dumps(server.state())))
    straight = in_process(plan, rows)
    assert server.model.to_json() == straight.run.result.model.to_json()
    assert server.findings.history == straight.findings.history
