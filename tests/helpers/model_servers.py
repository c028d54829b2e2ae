"""Servers that share models, in one process: real folders, real guards, no network."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from hospitals import Hospitals

from dpfda.curves import CurveEncoder
from dpfda.noise import SimulationSource
from dpfda.privacy.guarantee import Guarantee
from dpfda.protocol.model import CurveModel
from dpfda.protocol.person import Crowd
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.wire import Reply as Answered
from dpfda.simulate import ask_everybody
from dpfda.sites.coordinator import StudyFailed
from dpfda.sites.messages import (
    Envelope,
    Model,
    Models,
    Reply,
    decode,
    encode,
)
from dpfda.sites.servers import ServersInquiry

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


def judge_all(hospitals):
    """Ask once, so that servers know their studies; then their people judge."""
    with pytest.raises(StudyFailed, match="its participants have not evaluated"):
        hospitals.coordinator().run()
    for number, folder in enumerate(hospitals.folders.values()):
        hold(folder, to_hold(folder), of_sign(SIGNS[number], number), SimulationSource(number))


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
