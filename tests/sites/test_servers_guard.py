"""What a server's guard answers where models are shared: the plan's models, once, paid."""

from __future__ import annotations

import json

from model_servers import (
    MODELS,
    documents_of,
    line,
    send,
    servers,
    shared,
    signed,
    to_hold,
)

from dpfda.curves import CurveEncoder
from dpfda.privacy.guarantee import LABELS_ARE_PUBLIC, Guarantee
from dpfda.sites.messages import (
    Model,
    Models,
    decode,
)


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
    assert (
        "the model of this server was not requested yet"
        in send(three, "judge", shared(three, good)).refused
    )
    assert decode(send(three, "model", "x").body, Model).document == good["h0"]
    bent = MODELS[1].to_dict() | {"clipped": True}
    steep = MODELS[1].to_dict() | {"coefficients": [[1e10, 0.0]], "scales": [[1e-300, 1.0]]}
    other = CurveEncoder("identity", feature_ranges=[(-2, 1)] * 2)
    for lies, said in (
        ({"h0": good["h1"]}, "listed for this server is not its own"),
        ({"h1": b"{}"}, "model of 'h1': it is not a model"),
        ({"h1": good["h1"].replace(b'"kind": "curve model"', b'"kind": "release"')}, "'h1': doc"),
        ({"h1": json.dumps(bent).encode()}, "model of 'h1': the model is not a plain linear"),
        ({"h1": line(1.0).to_json().encode()}, "model of 'h1': the model is not a plain linear"),
        ({"h2": line(1.0, 0, encoder=other).to_json().encode()},
            "model of 'h2': the model has another encoder"),
        ({"h2": line(1.0, 0, classes=("a", "b")).to_json().encode()}, "or other classes than"),
        ({"h2": line(1.0, 0, epsilon=1.5).to_json().encode()},
            "the model cost its participants ε = 1.5, and the plan allows 1 at most"),
        *(
            ({"h2": line(1.0, 0, promise=promise).to_json().encode()}, "is not ε of a local study")
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
    assert "models of at least 3 servers" in send(three, "judge", shared(three, fewer)).refused
    assert "no such step" in send(three, "owners", "x").refused
    assert three.spent("h0") == ()
    assert not (three.folders["h0"].path / "exchanges").exists()
    assert "have not evaluated" in send(three, "judge", shared(three, good)).refused
    assert len(three.spent("h0")) == 1
    three.restart("h0")
    second = good | {"h1": line(-1.0, 0.5).to_json().encode()}
    assert (
        "participants of this server evaluate other models"
        in send(three, "judge", shared(three, second)).refused
    )
    to_hold(three.folders["h0"])  # one study, and no other
    assert (three.folders["h0"].path / "exchanges").stat().st_mode & 0o777 == 0o700
    assert "have not evaluated" in send(three, "judge", shared(three, good)).refused
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
    assert "have not evaluated" in send(three, "judge", shared(three, documents_of())).refused
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
    assert "have not evaluated" in send(three, "judge", shared(three, good)).refused
    (three.folders["h0"].account(three.plan) / "0001.begun").unlink()
    three.restart("h0")
    second = good | {"h1": line(-1.0, 0.5).to_json().encode()}
    for models in (good, second):
        said = send(three, "judge", shared(three, models)).refused
        assert "the list of evaluated models is missing" in said
    to_hold(three.folders["h0"])  # one study, and no other
    assert three.folders["h0"].progress(three.plan) == ["answered"]


def test_a_server_that_stopped_before_it_paid_pays_when_it_is_asked_again(three, monkeypatch):
    send(three, "model", "x")
    part = three.guards["h0"].part
    monkeypatch.setattr(part._ledger, "spend", lambda *_, **__: (_ for _ in ()).throw(OSError()))
    assert "this cannot be computed" in send(three, "judge", shared(three, documents_of())).refused
    assert not (three.folders["h0"].path / "exchanges").exists()
    three.restart("h0")
    assert "have not evaluated" in send(three, "judge", shared(three, documents_of())).refused
    assert len(three.spent("h0")) == 1
    written = [one for one in three.guards["h0"].journal.lines if "people judge the models" in one]
    assert len(written) == 1
    assert f'"coefficients": [[{MODELS[0].coefficients[0, 0]}' in written[0]  # what is judged


def test_a_person_is_asked_before_a_model_leaves(three):
    three.guards["h0"] = three.folders["h0"].guard(three.plan, approve=lambda text: False)
    assert "this site did not agree to question 0" in send(three, "model", "x").refused
    assert three.folders["h0"].progress(three.plan) == []
