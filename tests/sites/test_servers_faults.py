"""Servers that lie, stop or are missing where models are shared."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from model_servers import (
    MODELS,
    hold,
    judge_all,
    line,
    of_sign,
    servers,
    signed,
    to_hold,
)

from dpfda.noise import SimulationSource
from dpfda.sites.coordinator import StudyFailed
from dpfda.sites.messages import (
    REPLIED,
    Reply,
    StoredReplies,
    Verdicts,
    decode,
)


def spoiled(hospitals, step, change):
    def carrier(messages):
        replies = hospitals.carry(messages)
        if hospitals.step_of(next(iter(messages.values()))) == step and "h1" in replies:
            body = decode(decode(replies["h1"], Reply).body, REPLIED[step])
            replies["h1"] = hospitals.signed("h1", messages["h1"], change(body))
        return replies

    return carrier


SHAPES = {
    "no model": (b"{}", "site 'h1' sent no model: it is not a model"),
    "ragged": (
        MODELS[1].to_json().encode().replace(b"[[-1.0,0.0]]", b"[[1.0],[1.0,2.0]]"),
        "site 'h1' sent no model: it cannot be read",
    ),
    "shape": (line(1.0).to_json().encode(), "'h1' sent no model: the model is not a plain linear"),
    "labels": (line(1.0, 0, classes=("a", "b")).to_json().encode(), "'h1' sent no model: the mod"),
}


@pytest.mark.parametrize("lie", SHAPES)
def test_a_server_that_lies_about_its_models_shape_is_named(three, lie):
    document, said = SHAPES[lie]
    carrier = spoiled(three, "model", lambda m: signed(three, "h1", document))
    with pytest.raises(StudyFailed, match=f"question 0 was not answered: 2 of 3.*{said}"):
        three.coordinator(carrier).run()
    assert three.folder.answer(0, StoredReplies) is None


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
    assert three.folder.answer(1, StoredReplies) is None


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
    with pytest.raises(StudyFailed, match="its participants have not evaluated"):
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


def test_people_may_all_agree(three):
    judge_all(three)
    reply = Verdicts("h1", (40, -40, 40), (40, 40, 40))
    found = three.coordinator(spoiled(three, "judge", lambda _: reply)).run()
    assert np.sign(found["h1"].coefficients[0]).tolist() == [1, 1]
