"""Servers that share models over guards: judged by their own people, reversed, averaged."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from hospitals import Hospitals, typed

from dpfda import documents
from dpfda.cli._group import dpfda as command_line
from dpfda.client.exported import replayed
from dpfda.curves import CurveEncoder
from dpfda.datasets.simulated import scores_001
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.federation.card import Card
from dpfda.federation.coordinator import Coordinator, StudyFailed
from dpfda.federation.messages import (
    REPLIED,
    Envelope,
    Heard,
    Model,
    Models,
    Reply,
    Verdicts,
    decode,
    encode,
)
from dpfda.federation.plan import Plan
from dpfda.federation.servers.inquiry import ServersInquiry
from dpfda.federation.site_folder import SiteFolder
from dpfda.federation.study_folder import StudyFolder, read_card
from dpfda.mrma.designs import MRMADesign
from dpfda.mrma.multi_server import MultiServerMRMA
from dpfda.mrma.servers import exchange_plan
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import LABELS_ARE_PUBLIC, Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.protocol.person import Crowd
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.secure_sum import Identity
from dpfda.protocol.wire import Reply as Answered
from dpfda.simulate import ask_everybody, people_from, simulate
from dpfda_bench.reproductions import _p001
from dpfda_bench.reproductions.p001_figure_3 import slopes

ENCODER = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)
CLASSES = ("no", "yes")
PEOPLE = 120


def line(*slope, intercept=0.0, epsilon=1.0, encoder=ENCODER, classes=CLASSES, promise=None):
    return CurveModel.linear(
        encoder=encoder, classes=classes, intercept=[intercept], coefficients=[slope],
        guarantee=promise or Guarantee(epsilon=epsilon, model="local"),
    )  # fmt: skip


def asked(**changes):
    given = {"encoder": ENCODER, "classes": CLASSES, "epsilon": 2.0, "own_epsilon": 1.0}
    return ServersInquiry(**(given | changes))


def servers(place, models, inquiry=None, *, people=PEOPLE, **changes):
    """A site for each model, whose own study left nothing but that."""

    def write(path, number, rows):
        (path.parent / "own").mkdir(exist_ok=True)
        models[number].save(path.parent / "own" / "model.json")

    given = {
        "sites": len(models), "dropouts": 0, "rows": people, "people": people, "data": "own",
        "write": write, "ranges": {}, "epsilon": 2.0, "delta": 0.0,
    }  # fmt: skip
    return Hospitals(place, asked=(inquiry or asked()).to_dict(), **(given | changes))


class Recorded(Crowd):
    """People whose replies are written down as a collector keeps them."""

    def answer(self, query, **more):
        reply = super().answer(query, **more)
        self.said = [*getattr(self, "said", []), *reply.values.tolist()]
        return reply


def hold(folder, study, people, source):
    """The study that a server was told to hold, at a collector of its own: what it exports."""
    crowd = Recorded(study, people, source=source)
    server = ask_everybody(study, crowd, source=source)
    place = folder.path / "exchanges" / study.hash
    place.mkdir()
    told = {"hash": study.hash, "status": "finished"}
    (place / "study.json").write_text(json.dumps(told), encoding="utf-8")
    said = [Answered(study.hash, 0, ticket, row) for ticket, row in enumerate(crowd.said)]
    (place / "replies-0.ndjson").write_bytes(b"\n".join(map(msgspec.json.encode, said)))
    return server


def to_hold(folder):
    """The one study that is written down in a server's folder."""
    (path,) = (one for one in (folder.path / "exchanges").glob("*.json") if "model" not in one.name)
    return StudyPlan.from_dict(json.loads(path.read_text(encoding="utf-8")))


def of_sign(sign, seed, many=PEOPLE):
    """People whose label is the sign of their first feature, or the other way round."""
    features = np.random.default_rng(seed).uniform(-1, 1, (many, 2))
    labels = (sign * features[:, 0] > 0).astype(np.int64)
    return lambda start, stop: (features[start:stop], labels[start:stop])


MODELS = (line(1.0, 0.0), line(-1.0, 0.0), line(0.0, 1.0))
SIGNS = (1, -1, 1)


@pytest.fixture
def three(tmp_path):
    return servers(tmp_path, MODELS)


def judge_all(hospitals):
    """Ask once, so that servers know their studies; then their people judge."""
    with pytest.raises(StudyFailed, match="its people have not judged yet"):
        hospitals.coordinator().run()
    for number, folder in enumerate(hospitals.folders.values()):
        hold(folder, to_hold(folder), of_sign(SIGNS[number], number), SimulationSource(number))


def test_each_server_uses_reverses_and_ignores_what_its_people_say(three):
    with pytest.raises(StudyFailed) as waiting:
        three.coordinator().run()
    assert "question 1 was not answered: 0 of 3 sites answered" in str(waiting.value)
    assert "site 'h2' refused judge: its people have not judged yet" in str(waiting.value)
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


# -- 25 servers of three kinds -----------------------------------------------------------------


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
        with pytest.raises(StudyFailed, match="its people have not judged yet"):
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


# -- what a server lets in and out -------------------------------------------------------------


def send(hospitals, step, message, name="h0"):
    envelope = Envelope(plan=hospitals.plan.digest, step=step, body=encode(message))
    return decode(hospitals.guards[name].handle(encode(envelope)), Reply)


def documents_of(models=MODELS):
    return {f"h{k}": model.to_json(indent=2).encode() for k, model in enumerate(models)}


def shared(hospitals, documents):
    """Models as their servers sign them."""
    return Models({name: signed(hospitals, name, one) for name, one in documents.items()})


def signed(hospitals, name, document):
    identity = hospitals.folders.get(name, hospitals.folders["h1"]).identity
    content = ServersInquiry.signed_content(hospitals.plan, document)
    return Model(name, document, identity.sign(content))


def test_a_model_is_judged_if_its_server_signed_it_for_this_plan(three, tmp_path):
    """A coordinator cannot have people judge, in a server's name, what it never shared."""
    send(three, "model", "x")
    fair = shared(three, documents_of()).models
    made_up = line(-1.0, 0.5).to_json().encode()
    elsewhere = servers(tmp_path / "other", MODELS)
    for name, model in (
        ("h1", Model("h1", made_up, fair["h1"].signature)),
        ("h1", Model("h1", made_up, signed(three, "h2", made_up).signature)),
        ("h1", fair["h2"]),
        ("h2", signed(elsewhere, "h2", made_up)),
        ("h2", Model("h2", made_up, b"")),
        ("h2", Model("h1", fair["h2"].document, fair["h2"].signature)),
    ):
        refused = send(three, "judge", Models(fair | {name: model})).refused
        assert f"model of '{name}': the model is not signed by the server's key" in refused
    assert three.spent("h0") == ()


def test_only_the_plans_models_are_judged_and_one_set_of_them(three):
    good = documents_of()
    assert "was not asked for its own model" in send(three, "judge", shared(three, good)).refused
    assert decode(send(three, "model", "x").body, Model).document == good["h0"]
    bent = MODELS[1].to_dict() | {"clipped": True}
    steep = MODELS[1].to_dict() | {"coefficients": [[1e10, 0.0]], "scales": [[1e-300, 1.0]]}
    other = CurveEncoder("identity", feature_ranges=[(-2, 1)] * 2)
    for lies, said in (
        ({"h0": good["h1"]}, "said to be this server's is another one"),
        ({"h1": b"{}"}, "model of 'h1': it is no model"),
        ({"h1": good["h1"].replace(b'"kind": "curve model"', b'"kind": "release"')}, "'h1': doc"),
        ({"h1": json.dumps(bent).encode()}, "model of 'h1': the model is no plain linear rule"),
        ({"h1": line(1.0).to_json().encode()}, "model of 'h1': the model is no plain linear rule"),
        ({"h2": line(1.0, 0, encoder=other).to_json().encode()},
            "model of 'h2': the model has another encoder"),
        ({"h2": line(1.0, 0, classes=("a", "b")).to_json().encode()}, "or other classes than"),
        ({"h2": line(1.0, 0, epsilon=1.5).to_json().encode()},
            "model of 'h2': the model cost its people ε = 1.5, and the plan counts on 1 at most"),
        *(
            ({"h2": line(1.0, 0, promise=promise).to_json().encode()}, "another thing than ε of")
            for promise in (
                Guarantee(epsilon=1.0, model="local", unit="visit"),
                Guarantee(epsilon=1.0, model="central"),
                Guarantee(epsilon=1.0, delta=1e-6, model="local"),
                Guarantee(epsilon=1.0, model="local").assuming(LABELS_ARE_PUBLIC),
            )
        ),
        ({"h1": json.dumps(steep).encode()}, "model of 'h1': coefficients must be a finite number"),
        ({"h2": b" " * (1 << 20) + good["h2"]}, "a model is longer than"),
        ({"h9": good["h1"]}, "those of the plan's servers, in its order"),
    ):  # fmt: skip
        assert said in send(three, "judge", shared(three, good | lies)).refused, said
    backwards = dict(reversed(good.items()))
    assert "in its order" in send(three, "judge", shared(three, backwards)).refused
    fewer = {name: good[name] for name in ("h0", "h1")}
    assert "the models of 3 servers at least" in send(three, "judge", shared(three, fewer)).refused
    assert "no such step" in send(three, "owners", "x").refused
    assert three.spent("h0") == ()
    assert not (three.folders["h0"].path / "exchanges").exists()
    assert "have not judged yet" in send(three, "judge", shared(three, good)).refused
    assert len(three.spent("h0")) == 1
    three.restart("h0")
    second = good | {"h1": line(-1.0, 0.5).to_json().encode()}
    assert (
        "people judge other models already" in send(three, "judge", shared(three, second)).refused
    )
    to_hold(three.folders["h0"])  # one study, and no other
    assert (three.folders["h0"].path / "exchanges").stat().st_mode & 0o777 == 0o700
    assert "have not judged yet" in send(three, "judge", shared(three, good)).refused
    assert len(three.spent("h0")) == 1


def test_the_own_model_is_shared_once(three):
    first = send(three, "model", "x").body
    line(0.3, 0.3).save(three.folders["h0"].path / "own" / "model.json")
    three.restart("h0")
    assert send(three, "model", "x").body == first


def test_a_server_that_stopped_goes_on(three, monkeypatch):
    """Nothing is drawn here, so that nothing is lost: not a model, and not a study that is paid."""
    kept = three.guards["h0"].part._kept

    def full(*_):
        raise OSError("full")

    with monkeypatch.context() as broken:
        broken.setattr(kept, "keep", full)
        assert "cannot be computed" in send(three, "model", "x").refused
    three.restart("h0")
    assert not send(three, "model", "x").refused
    with monkeypatch.context() as broken:
        broken.setattr(three.guards["h0"].part._kept, "begin", full)
        assert "cannot be computed" in send(three, "judge", shared(three, documents_of())).refused
    assert not (three.folders["h0"].path / "exchanges").exists()  # nobody could be asked yet
    three.restart("h0")
    assert "have not judged yet" in send(three, "judge", shared(three, documents_of())).refused
    assert len(three.spent("h0")) == 1


def test_a_study_that_cannot_be_paid_is_not_written_down(three):
    send(three, "model", "x")
    three.folders["h0"].ledger.spend(Guarantee(epsilon=1.0, model="local"), label="meanwhile")
    assert "does not fit" in send(three, "judge", shared(three, documents_of())).refused
    assert not (three.folders["h0"].path / "exchanges").exists()
    assert three.folders["h0"].progress(three.plan) == ["answered"]  # nothing is settled by it
    assert "people judge" not in three.guards["h0"].journal.lines[-2]  # nor was anybody asked


def test_what_is_paid_for_and_forgotten_is_not_judged_again(three):
    """An account that was put back: other models would be judged for the price of one."""
    good = documents_of()
    send(three, "model", "x")
    assert "have not judged yet" in send(three, "judge", shared(three, good)).refused
    (three.folders["h0"].account(three.plan) / "0001.begun").unlink()
    three.restart("h0")
    second = good | {"h1": line(-1.0, 0.5).to_json().encode()}
    for models in (good, second):
        said = send(three, "judge", shared(three, models)).refused
        assert "which models it judges is gone from this folder" in said
    to_hold(three.folders["h0"])  # one study, and no other
    assert three.folders["h0"].progress(three.plan) == ["answered"]


def test_a_server_that_stopped_before_it_paid_pays_when_it_is_asked_again(three, monkeypatch):
    send(three, "model", "x")
    part = three.guards["h0"].part
    monkeypatch.setattr(part._ledger, "spend", lambda *_, **__: (_ for _ in ()).throw(OSError()))
    assert "this cannot be computed" in send(three, "judge", shared(three, documents_of())).refused
    assert not (three.folders["h0"].path / "exchanges").exists()
    three.restart("h0")
    assert "have not judged yet" in send(three, "judge", shared(three, documents_of())).refused
    assert len(three.spent("h0")) == 1
    written = [one for one in three.guards["h0"].journal.lines if "people judge the models" in one]
    assert len(written) == 1
    assert f'"coefficients": [[{MODELS[0].coefficients[0, 0]}' in written[0]  # what is judged


def test_a_person_is_asked_before_a_model_leaves(three):
    three.guards["h0"] = three.folders["h0"].guard(three.plan, approve=lambda text: False)
    assert "nobody at this site agreed to question 0" in send(three, "model", "x").refused
    assert three.folders["h0"].progress(three.plan) == []


# -- faults ------------------------------------------------------------------------------------


def spoiled(hospitals, step, change):
    def carrier(messages):
        replies = hospitals.carry(messages)
        if hospitals.step_of(next(iter(messages.values()))) == step and "h1" in replies:
            body = decode(decode(replies["h1"], Reply).body, REPLIED[step])
            replies["h1"] = hospitals.signed("h1", messages["h1"], change(body))
        return replies

    return carrier


SHAPES = {
    "no model": (b"{}", "site 'h1' sent no model: it is no model"),
    "ragged": (
        MODELS[1].to_json().encode().replace(b"[[-1.0,0.0]]", b"[[1.0],[1.0,2.0]]"),
        "site 'h1' sent no model: it cannot be read",
    ),
    "shape": (line(1.0).to_json().encode(), "'h1' sent no model: the model is no plain linear"),
    "labels": (line(1.0, 0, classes=("a", "b")).to_json().encode(), "'h1' sent no model: the mod"),
}


@pytest.mark.parametrize("lie", SHAPES)
def test_a_server_that_lies_about_its_models_shape_is_named(three, lie):
    document, said = SHAPES[lie]
    carrier = spoiled(three, "model", lambda m: signed(three, "h1", document))
    with pytest.raises(StudyFailed, match=f"question 0 was not answered: 2 of 3.*{said}"):
        three.coordinator(carrier).run()
    assert three.folder.told(0, Heard) is None


def test_a_model_in_another_servers_name_is_not_taken(three):
    for change, said in (
        ({"site": "h2"}, "not signed by the server's key"),
        ({"document": MODELS[0].to_json().encode()}, "not signed by the server's key"),
    ):
        lie = spoiled(three, "model", lambda m, c=change: msgspec.structs.replace(m, **c))
        with pytest.raises(StudyFailed, match=f"2 of 3.*site 'h1' .*{said}"):
            three.coordinator(lie).run()


VERDICTS = {
    "fewer": (Verdicts("h1", (1, 2), (60, 60)), "'h1' sent verdicts on 2 models where there are 3"),
    "counts": (Verdicts("h1", (1, 2, 3), (60, 60)), "verdicts on 3 models where there are 3"),
    "too many": (Verdicts("h1", (1, 2, 3), (60, 60, 1)), "'h1' sent sums of more verdicts than"),
    "too large": (Verdicts("h1", (1, -41, 3), (40, 40, 40)), "'h1' sent sums of more verdicts"),
    "other": (Verdicts("h2", (1, 2, 3), (40, 40, 40)), "'h1' replied in another site's name"),
}


@pytest.mark.parametrize("lie", VERDICTS)
def test_a_server_that_sends_impossible_verdicts_is_named(three, lie):
    reply, said = VERDICTS[lie]
    judge_all(three)
    with pytest.raises(StudyFailed, match=f"question 1 was not answered: 2 of 3.*{said}"):
        three.coordinator(spoiled(three, "judge", lambda _: reply)).run()
    assert three.folder.told(1, Heard) is None


def test_people_may_all_agree(three):
    judge_all(three)
    reply = Verdicts("h1", (40, -40, 40), (40, 40, 40))
    found = three.coordinator(spoiled(three, "judge", lambda _: reply)).run()
    assert np.sign(found["h1"].coefficients[0]).tolist() == [1, 1]


def test_scaled_models_are_shared_as_they_decide():
    scaled = dataclasses.replace(line(1.0, 3.0), scales=np.array([[2.0, 4.0]]))
    study = exchange_plan([scaled], epsilon=1.0, people=9)
    assert study.built_design.coefficients == ((0.5, 0.75),)


def test_a_missing_server_is_named_and_may_come_back(three):
    three.silent = {("model", "h2")}
    with pytest.raises(StudyFailed, match="2 of 3 sites answered: site 'h2' was silent at model"):
        three.coordinator().run()
    assert three.folder.attempts == [3]
    three.silent = set()
    judge_all(three)
    three.silent = {("judge", "h0")}
    with pytest.raises(StudyFailed, match=r"question 1 was .*: site 'h0' was silent at judge"):
        three.coordinator().run()
    three.silent = set()
    assert list(three.coordinator().run()) == ["h0", "h1", "h2"]


def test_the_others_go_on_without_one_who_may_be_missing(tmp_path):
    hospitals = servers(tmp_path, MODELS, dropouts=1, colluders=0)
    hospitals.silent = {("model", "h2")}
    judge_all_but_h2 = list(hospitals.folders.values())[:2]
    with pytest.raises(StudyFailed, match="its people have not judged yet"):
        hospitals.coordinator().run()
    for number, folder in enumerate(judge_all_but_h2):
        study = to_hold(folder)
        assert len(study.built_design.intercepts) == 2
        hold(folder, study, of_sign(1, number), SimulationSource(number))
    assert list(hospitals.coordinator().run()) == ["h0", "h1"]


def test_asking_again_gets_the_same_verdicts(three):
    judge_all(three)
    asked_again = []

    def twice(messages):
        first = three.carry(messages)
        three.restart("h0")
        asked_again.append(three.carry(messages) == first)
        return first

    three.coordinator(twice).run()
    assert asked_again == [True, True]
    assert len(three.spent("h0")) == 1


# -- exports and plans -------------------------------------------------------------------------


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
    assert replayed(study, place).progress.candidates.people.sum() == PEOPLE - 1
    for lines, said in (
        ([*whole, whole[0]], "or two to one ticket"),
        ([whole[0].replace(study.hash.encode(), b"0" * 64)], "replies to another study"),
        ([whole[0].replace(b'"ticket":0', b'"ticket":120')], "replies to another study"),
        ([whole[0].replace(b'"phase":0', b'"phase":1')], "replies to another study"),
        ([whole[0].replace(b"[", b"[1.0,")], "of another length"),
        ([whole[0].replace(b".0]", b".5]")], "a possible output"),
        ([b"{}"], "something else than replies"),
        ([], "holds nobody's reply"),
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


def test_what_cannot_be_shared_is_no_plan_and_no_site(three, tmp_path):
    for changes, name in (
        ({"classes": ("a", "b", "c")}, "classes"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"own_epsilon": -1.0}, "own_epsilon"),
        ({"cutoff": 2.0}, "cutoff"),
        ({"strictness": -1.0}, "strictness"),
    ):
        with pytest.raises(InvalidParameter, match=name):
            asked(**changes)

    def signed(inquiry):
        body = msgspec.structs.replace(three.plan.body, inquiry=inquiry.to_dict())
        return Plan.signed_by(three.folder.identity, body)

    for inquiry, said in (
        (asked(unit="visit"), "protects each visit"),
        (asked(epsilon=2.5), "cannot pay for the plan"),
    ):
        with pytest.raises(ProtocolError, match=said):
            three.folders["h0"].agree(signed(inquiry))
    cheaper = signed(asked(own_epsilon=0.5))
    three.folders["h0"].agree(cheaper)
    with pytest.raises(ProtocolError, match="the model cost its people ε = 1"):
        three.folders["h0"].guard(cheaper)
    with pytest.raises(ProtocolError, match="asks sites that hold a study, this one rows"):
        Hospitals(tmp_path / "rows", sites=3, dropouts=0, asked=asked().to_dict())
    with pytest.raises(InvalidData, match="--study must be an exported study"):
        servers(tmp_path / "none", MODELS, data="elsewhere")


# -- the page ----------------------------------------------------------------------------------


def test_the_page_runs_as_it_is_written(tmp_path, monkeypatch):
    """Commands that need no network as they are typed; what serves and runs, in this process."""
    monkeypatch.chdir(tmp_path)
    for name in ("oslo", "turku"):
        (tmp_path / f"{name}-study").mkdir()
        line(1.0, 0.0).save(tmp_path / f"{name}-study" / "model.json")
    guards = {}

    def carry(messages):
        return {name: guards[name].handle(content) for name, content in messages.items()}

    for _, command in typed("Servers that share models"):
        words = shlex.split(command)[1:]
        if words[:2] == ["site", "serve"]:
            place, plan = SiteFolder(tmp_path / words[2]), Plan.load(Path(words[4]))
            place.pin([read_card(Path(one)) for one in words if one.endswith("card.json")])
            place.agree(plan)
            guards[words[2]] = place.guard(plan)
        elif words[:2] != ["consortium", "run"]:
            done = CliRunner().invoke(command_line, words)
            assert done.exit_code == 0, done.output
    folder = StudyFolder(tmp_path / "models")
    plan = folder.plan()
    assert plan.guarantee.epsilon == 3.0
    given = {"identity": folder.identity, "folder": folder, "carrier": carry}
    with pytest.raises(StudyFailed, match="its people have not judged yet"):
        Coordinator(plan, **given).run()
    for name, people in (("oslo", 400), ("turku", 300)):
        study = to_hold(place := SiteFolder(tmp_path / name))
        assert study.n_people == people
        hold(place, study, of_sign(1, people, many=people), SimulationSource(people))
    folder.keep_results(Coordinator(plan, **given).run())
    assert sorted(one.name for one in (tmp_path / "models" / "results").iterdir()) == [
        *("oslo.json", "turku.json")
    ]
    for words, said in (
        (["site", "status", "oslo"], "question 1: answered"),
        (["site", "status", "oslo"], "400 people"),
        (["consortium", "status", "models"], "), 300 people\n"),
        (["consortium", "status", "models"], "trust        nobody: what leaves a site is noisy"),
        (["consortium", "status", "models"], "question 1: answered by 2 sites, 2 attempts"),
        (["consortium", "status", "models"], "finished"),
        (["show", "models/results/turku.json"], "no, yes"),
    ):
        done = CliRunner().invoke(command_line, words)
        assert said in done.output, done.output


WRONG = {
    "no people": ("site init x --name x --epsilon 1 --study .", "--study must be given with"),
    "both": ("site init x --name x --epsilon 1 --study . --people 2 --owner a", "without --data"),
    "nothing": ("site init x --name x --epsilon 1", "--data must be given, or --study"),
    "no ranges": ("site init x --name x --epsilon 1 --data t.csv", "--ranges must be like"),
    "no owner": ("site init x --name x --epsilon 1 --data t.csv --ranges age=0:1 --owner b",
        "--owner must be a column"),
    "no recipe": ("consortium plan x --name r --study s --site c.json --ask servers --epsilon 1",
        "--like must be given with --ask servers"),
    "no rows": ("consortium plan x --name r --study s --site c.json --ask boosting --epsilon 1 "
        "--feature-ranges age=0:1 --target sick", "--rows-per-owner must be given with --ask"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_together_is_refused_in_one_line(tmp_path, monkeypatch, case):
    command, said = WRONG[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("age\n1\n2\n", encoding="utf-8")
    card = Card.signed_by(Identity(), name="a", rows=3)
    (tmp_path / "c.json").write_bytes(msgspec.json.encode(card))
    done = CliRunner().invoke(command_line, shlex.split(command))
    assert done.exit_code == 2
    assert said in done.output
    assert len(done.output.strip().split("\n")) == 1
    assert not (tmp_path / "x" / "site.toml").exists()
