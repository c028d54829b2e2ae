"""Servers share models by commands, and what does not fit is no plan and no site."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hospitals import Hospitals, typed
from model_servers import (
    MODELS,
    asked,
    hold,
    line,
    of_sign,
    servers,
    to_hold,
)

from dpfda.cli._group import dpfda as command_line
from dpfda.errors import InvalidData, InvalidParameter, ProtocolError
from dpfda.noise import SimulationSource
from dpfda.protocol.secure_sum import Identity
from dpfda.sites.coordinator import Coordinator, StudyFailed
from dpfda.sites.identity import Card
from dpfda.sites.plan import Plan
from dpfda.sites.site_folder import SiteFolder
from dpfda.sites.study_folder import StudyFolder, read_card


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
    with pytest.raises(ProtocolError, match="the model cost its participants ε = 1"):
        three.folders["h0"].guard(cheaper)
    with pytest.raises(ProtocolError, match="is for sites with a study, but this one has rows"):
        Hospitals(tmp_path / "rows", sites=3, dropouts=0, asked=asked().to_dict())
    with pytest.raises(InvalidData, match="--study must be an exported study"):
        servers(tmp_path / "none", MODELS, data="elsewhere")


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
    with pytest.raises(StudyFailed, match="its participants have not evaluated the models yet"):
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
    "no ranges": ("site init x --name x --epsilon 1 --data t.csv", "--feature-ranges must be like"),
    "no owner": ("site init x --name x --epsilon 1 --data t.csv --feature-ranges age=0:1 --owner b",
        "--owner must be a column"),
    "no recipe": ("consortium plan x --name r --study s --site c.json --ask servers --epsilon 1",
        "--like must be given with --ask servers"),
    "no rows": ("consortium plan x --name r --study s --site c.json --ask gradient-boosting "
        "--epsilon 1 --feature-ranges age=0:1 --target sick",
        "--rows-per-owner must be given with --ask"),
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
