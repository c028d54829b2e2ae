"""Several collectors: pull the others' models and let people here judge them (000 §4)."""

from __future__ import annotations

import json
from typing import Annotated

import msgspec

from dpfda.client.http import Connection
from dpfda.collector.refusal import Refused, bad_plan
from dpfda.collector.settings import StudySettings
from dpfda.errors import DpfdaError
from dpfda.local.mrma.servers import exchange_plan as judging
from dpfda.local.mrma.servers import plain_linear, same_recipe
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan

_MOST_BYTES = 1 << 20


class Peer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study of another collector.

    Attributes:
        url: where that collector is.
        study: id of the study there.
        key: sent as a bearer credential, if that collector asks for one.
        insecure: allow a collector on another machine without encryption.
    """

    url: Annotated[str, msgspec.Meta(pattern="^https?://", max_length=2000)]
    study: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{1,64}$")]
    key: str | None = None
    insecure: bool = False


class NewExchange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Judge peers' models with this collector's people."""

    peers: Annotated[list[Peer], msgspec.Meta(min_length=1, max_length=100)]
    epsilon: Annotated[float, msgspec.Meta(gt=0, le=1000)]
    n_people: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    own: str | None = None
    title: str = ""
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] = 0
    evaluation_share: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    settings: StudySettings = StudySettings()


def exchange_plan(asked: NewExchange, *, own: str | None) -> StudyPlan:
    """The plan of a study that judges peers' models, beside the own one if there is one."""
    models = [] if own is None else [CurveModel.from_dict(json.loads(own))]
    models += [_pull(peer) for peer in asked.peers]
    for model in models:
        if not same_recipe(model, models[0]):
            raise Refused(409, "other_recipe", "all models must share encoder and classes")
        if not plain_linear(model):
            raise Refused(409, "not_linear", "only plain linear models can be exchanged")
    try:
        return judging(
            models,
            epsilon=asked.epsilon,
            people=asked.n_people,
            evaluation_share=asked.evaluation_share,
            seed=asked.seed,
            title=asked.title,
        )
    except DpfdaError as error:
        raise bad_plan(error) from None


def _pull(peer: Peer) -> CurveModel:
    headers = {} if peer.key is None else {"Authorization": f"Bearer {peer.key}"}
    try:
        with Connection(peer.url, timeout=10.0, insecure=peer.insecure) as connection:
            answer = connection.ask("GET", f"/api/studies/{peer.study}/model", headers=headers)
        if answer.status != 200 or len(answer.body) > _MOST_BYTES:
            raise Refused(424, "no_peer", "a peer did not hand out its model")
        return CurveModel.from_json(answer.body)
    except (OSError, KeyError, TypeError, ValueError, DpfdaError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(424, "no_peer", "a peer did not hand out a model") from None
