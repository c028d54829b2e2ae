"""Servers that share models over guards: judged by their own people, reversed, averaged."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from model_servers import (
    PEOPLE,
    SIGNS,
    asked,
    hold,
    judge_all,
    line,
    of_sign,
    servers,
    to_hold,
)

from dpfda.client.administrator import replayed
from dpfda.curves import CurveEncoder
from dpfda.datasets.simulated import scores_001
from dpfda.errors import ProtocolError
from dpfda.estimators.multi_server_mrma import MultiServerMRMA
from dpfda.local.mrma.designs import MRMADesign
from dpfda.local.mrma.result import exchange_plan
from dpfda.noise import SimulationSource
from dpfda.protocol.plan import StudyPlan
from dpfda.report import documents
from dpfda.simulate import people_from, simulate
from dpfda.sites.coordinator import StudyFailed
from dpfda_bench.reproductions import _p001
from dpfda_bench.reproductions.p001_figure_3 import slopes


def test_each_server_uses_reverses_and_ignores_what_its_people_say(three):
    with pytest.raises(StudyFailed) as waiting:
        three.coordinator().run()
    assert "question 1 was not answered: 0 of 3 sites answered" in str(waiting.value)
    assert "site 'h2' refused judge: its participants have not evaluated the models yet" in str(
        waiting.value
    )
    assert three.folder.attempts == [1, 1]  # whoever refuses is not asked again at once
    used = {}
    for number, (name, folder) in enumerate(three.folders.items()):
        study = to_hold(folder)
        assert (study.n_people, study.epsilon, study.title) == (PEOPLE, 2.0, "doses")
        used[name] = hold(
            folder, study, of_sign(SIGNS[number], number), SimulationSource(number)
        ).model
    leader, said = three.coordinator(), []
    leader.say = said.append
    found = leader.run()
    assert said == ["question 0: models: 3 sites", "question 1: verdicts: 3 sites"]
    for (name, folder), sign in zip(three.folders.items(), SIGNS, strict=True):
        model = found[name]
        np.testing.assert_array_equal(model.coefficients, used[name].coefficients)
        np.testing.assert_array_equal(model.intercept, used[name].intercept)
        assert np.sign(model.coefficients[0, 0]) == sign
        assert model.guarantee == three.plan.guarantee
        (path,) = (folder.path / "exchanges").glob("*.model.json")
        own = documents.load(path)  # each server has its own, whatever the coordinator does
        assert own.to_dict() == model.to_dict()
        (entry,) = three.spent(name)
        assert (entry.event.epsilon, entry.key) == (2.0, three.plan.digest)
        assert path.parent.stat().st_mode & 0o077 == 0
    assert three.plan.guarantee.epsilon == 3.0
    third = asked(epsilon=0.1, own_epsilon=0.2).guarantee(three.plan.terms).epsilon
    assert (third, type(third)) == (0.3, float)  # neither less nor more than both
    paths = three.folder.keep_results(found)
    assert three.folder.finished
    assert [path.name for path in paths.values()] == ["h0.json", "h1.json", "h2.json"]
    words = three.guards["h0"].journal.lines
    kinds = [one[21:].split()[0] for one in words]
    assert kinds == [
        *("signed", "leaves", "asked", "leaves", "asked", "refused", "leaves", "leaves")
    ]
    assert "leaves    judge: sums of 120 noisy verdicts on 3 models" in words[-1]
    assert "question 1: 120 people judge the models of h0, h1, h2, ε = 2, study " in words[4]
    assert three.folders["h0"].progress(three.plan) == ["answered", "answered"]


class OverNodes(MultiServerMRMA):
    """The same estimator, its servers sites behind guards: models and verdicts are messages."""

    def _judged(self, plans, crowds, source):
        names = [f"h{number}" for number in range(len(plans))]
        design = plans[0].built_design
        models = [
            line(*slope, intercept=intercept, epsilon=self.epsilon, encoder=plans[0].encoder,
                classes=plans[0].classes)
            for intercept, slope in zip(design.intercepts, design.coefficients, strict=True)
        ]  # fmt: skip
        inquiry = asked(
            encoder=plans[0].encoder, classes=plans[0].classes, epsilon=plans[0].epsilon,
            own_epsilon=self.epsilon,
        )  # fmt: skip
        hospitals = servers(self.place, models, inquiry, people=plans[0].n_people)
        with pytest.raises(StudyFailed, match="its participants have not evaluated the models yet"):
            hospitals.coordinator().run()
        for folder, crowd in zip(hospitals.folders.values(), crowds, strict=True):
            hold(folder, to_hold(folder), crowd, source)
        found = hospitals.coordinator().run()
        return [SimpleNamespace(model=found[name], findings=None) for name in names]


def single(X, y, *, seed):
    """A server that shares nothing: everybody's whole ε is for its own study."""
    encoder = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 4)
    plan = StudyPlan(
        epsilon=2.0, n_people=len(y), encoder=encoder, classes=(-1, 1),
        design=MRMADesign().to_dict(), seed=seed,
    )  # fmt: skip
    return simulate(plan, people_from(plan, X, y), source=SimulationSource(seed)).model


def test_25_servers_over_nodes_are_those_of_one_process_and_gain(tmp_path):
    """001 §6.2: groups 1 and 3 (opposite slopes) gain, group 2 (random ones) harms nobody."""
    rng, each = np.random.default_rng(0), 1000
    beta, code = slopes(rng), _p001.encoding(4)
    scores, y = scores_001((25, each), rng, slope=beta)
    tests, truth = scores_001((25, 2000), rng, slope=beta)
    X, new = np.tanh(scores @ code.coefficients), np.tanh(tests @ code.coefficients)
    known = {
        "epsilon": 2.0, "encoder": CurveEncoder("identity", feature_ranges=[(-1, 1)] * 4),
        "classes": [-1, 1], "random_state": 0,
    }  # fmt: skip
    rows, where = (X.reshape(-1, 4), y.ravel()), np.repeat(np.arange(25), each)
    here = MultiServerMRMA(**known).fit(*rows, servers=where)
    nodes = OverNodes(**known)
    nodes.place = tmp_path
    nodes.fit(*rows, servers=where)
    for mine, theirs in zip(here.models_, nodes.models_, strict=True):
        assert mine.to_dict() == theirs.to_dict()

    def errors(models, of):
        said = [model.decide(new[k]) for model, k in zip(models, of, strict=True)]
        return 100 * np.mean(np.array(said) != (truth[of] > 0), axis=1)

    alike, every = np.r_[0:10, 15:25], np.arange(25)
    alone = errors([single(X[k], y[k], seed=k) for k in range(25)], every)
    shared = errors(nodes.models_, every)
    kept = np.isin(where, alike)
    without = MultiServerMRMA(**known).fit(rows[0][kept], rows[1][kept], servers=where[kept])
    # A standard error of these means of ten servers is below half a point.
    assert np.mean(alone[:10] - shared[:10]) > 1
    assert np.mean(alone[15:] - shared[15:]) > 1
    assert np.mean(shared[alike] - errors(without.models_, alike)) < 1
    assert np.mean(shared[10:15] - alone[10:15]) < 1


def test_scaled_models_are_shared_as_they_decide():
    scaled = dataclasses.replace(line(1.0, 3.0), scales=np.array([[2.0, 4.0]]))
    study = exchange_plan([scaled], epsilon=1.0, people=9)
    assert study.built_design.coefficients == ((0.5, 0.75),)


def test_an_export_is_read_as_it_was_and_nothing_else_is(three):
    judge_all(three)
    folder = three.folders["h0"]
    study = to_hold(folder)
    place = folder.path / "exchanges" / study.hash
    whole = (place / "replies-0.ndjson").read_bytes().split(b"\n")
    again = replayed(study, place)
    assert again.finished
    (place / "replies-0.ndjson").write_bytes(b"\n".join(reversed(whole)))  # however they lie there
    assert replayed(study, place).model.to_dict() == again.model.to_dict()
    (place / "replies-0.ndjson").write_bytes(b"\n".join(whole[1:]))
    assert replayed(study, place).findings.candidates.people.sum() == PEOPLE - 1
    for lines, said in (
        ([*whole, whole[0]], "or two to one ticket"),
        ([whole[0].replace(study.hash.encode(), b"0" * 64)], "replies to another study"),
        ([whole[0].replace(b'"ticket":0', b'"ticket":120')], "replies to another study"),
        ([whole[0].replace(b'"phase":0', b'"phase":1')], "replies to another study"),
        ([whole[0].replace(b"[", b"[1.0,")], "length does not fit the task"),
        ([whole[0].replace(b".0]", b".5]")], "a possible output"),
        ([b"{}"], "a line that is not a reply"),
        ([], "holds no replies"),
    ):
        (place / "replies-0.ndjson").write_bytes(b"\n".join(lines))
        with pytest.raises(ProtocolError, match=said):
            replayed(study, place)
    (place / "replies-0.ndjson").unlink()
    with pytest.raises(ProtocolError, match=r"holds no replies-0\.ndjson"):
        replayed(study, place)
    for told in ({"hash": study.hash, "status": "open"}, {"hash": "0", "status": "finished"}):
        (place / "study.json").write_text(json.dumps(told), encoding="utf-8")
        with pytest.raises(ProtocolError, match="of another study, or not finished"):
            replayed(study, place)
    (place / "study.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ProtocolError, match="holds no exported study"):
        replayed(study, place)
    with pytest.raises(StudyFailed, match=r"site 'h0' refused judge: .* holds no exported study"):
        three.coordinator().run()
