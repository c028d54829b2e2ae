"""Checks of received plans: they are parsed strictly, limited in size and rehearsed.

Every stored plan must be possible to show, to run and to conclude, so invalid plans are refused
here. A plan can also evaluate the models of other collectors (000 §4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec

from dpfda.client.http import Connection
from dpfda.collector.refusal import Refused, bad_plan
from dpfda.collector.settings import StudySettings
from dpfda.curves import read_encoder
from dpfda.errors import DpfdaError, InvalidParameter
from dpfda.local.mrma.designs import VoteDesign
from dpfda.local.mrma.result import exchange_plan as judging
from dpfda.local.mrma.result import plain_linear, same_recipe
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import Design, StudyPlan
from dpfda.protocol.server import Server

LEAST_EPSILON, MOST_EPSILON = 1e-4, 1e3  # with less, all people together give no information
MOST_PEOPLE = 10**7
MOST_FEATURES = 1000
MOST_CLASSES = 100
MOST_PRODUCTS = 4 * 10**6  # products of pairs of features, for every score, that a server may store
MOST_STATE = 1 << 26
IN_PROCESS = (VoteDesign.name,)
"""Designs whose tasks the participant page does not know."""
_SMALLEST, _LARGEST = 1e-30, 1e30  # limits that keep products of several numbers of a plan finite
_DEEPEST = 12
_LONGEST = 1000  # characters of a word
_REHEARSED = 64  # phases
_DIVISORS = ("epsilon", "encoder", "target_range")  # parts with numbers that are used as divisors
_SIZES = ("n_basis", "order", "n_points")  # sizes of a basis, also of a nested one


def strict_json(body: bytes) -> None:
    """Refuse JSON with a duplicate name, because parsers differ in the value they use."""
    try:
        json.loads(body, object_pairs_hook=_once)
    except RecursionError:
        raise Refused(400, "malformed", "the body is nested too deep") from None
    except ValueError:  # also raised by numbers with thousands of digits
        raise Refused(400, "malformed", "the body is not JSON") from None


def _once(pairs: list[tuple[str, Any]]) -> None:
    names = set()
    for name, _ in pairs:
        if name in names:
            why = f"{name[:100]!r} must be given once in an object, got it twice"
            raise Refused(400, "malformed", why)
        names.add(name)


def check_shape(plan: object) -> None:
    """Check the size and nesting of the document before it is parsed into a plan."""
    for name, value in _values(plan, "", 0):
        if isinstance(value, str) and len(value) > _LONGEST:
            rule = f"a text of at most {_LONGEST} characters"
            raise InvalidParameter(name, rule, f"{len(value)} characters")
        if isinstance(value, (int, float)):
            _check_number(name, value)


def _check_number(name: str, value: float) -> None:
    part, last = name.partition(".")[0].partition("[")[0], name.rpartition(".")[2]
    if not abs(value) <= _LARGEST:  # nor NaN
        raise InvalidParameter(name, f"in size at most {_LARGEST:g}", value)
    if 0 < abs(value) < _SMALLEST and part in _DIVISORS and not last.startswith("center"):
        raise InvalidParameter(name, f"0, or in size at least {_SMALLEST:g}", value)
    if last in _SIZES and value > MOST_FEATURES:
        raise InvalidParameter(name, f"at most {MOST_FEATURES}", value)


def _values(value: object, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Every value with its path, such as design.scales[3]."""
    if depth > _DEEPEST:
        raise InvalidParameter(name[:_LONGEST], f"nested at most {_DEEPEST} deep", "deeper")
    yield name, value
    if isinstance(value, dict):
        for key, part in value.items():
            if len(key) > _LONGEST:
                rule = f"made of parts whose names have at most {_LONGEST} characters"
                raise InvalidParameter(name or "plan", rule, f"{len(key)} characters")
            yield from _values(part, f"{name}.{key}" if name else key, depth + 1)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _values(part, f"{name}[{place}]", depth + 1)


def check_sizes(plan: StudyPlan) -> None:
    """Refuse a study that is too large for this collector."""
    if not LEAST_EPSILON <= plan.epsilon <= MOST_EPSILON:
        rule = f"from {LEAST_EPSILON:g} to {MOST_EPSILON:g}"
        raise InvalidParameter("epsilon", rule, plan.epsilon)
    if plan.n_people > MOST_PEOPLE:
        raise InvalidParameter("n_people", f"at most {MOST_PEOPLE}", plan.n_people)
    features = plan.encoder.n_features
    if features > MOST_FEATURES:
        raise InvalidParameter("encoder", f"of at most {MOST_FEATURES} features", features)
    if plan.n_classes > MOST_CLASSES:
        raise InvalidParameter("classes", f"at most {MOST_CLASSES} labels", plan.n_classes)
    if plan.design.get("name") in IN_PROCESS:
        rule = (
            "one that every participant's device can check and evaluate, not of members that vote "
            "(MRMAClassifier and dpfda simulate run such studies in one process)"
        )
        raise InvalidParameter("design", rule, plan.design["name"])
    products = max(plan.n_scores, 1) * (features + 1) ** 2
    if products > MOST_PRODUCTS:
        rule = (
            "so few that all products of two features, for every class, are at most "
            f"{MOST_PRODUCTS} numbers"
        )
        raise InvalidParameter("classes", rule, products)


def odd_part(plan: Mapping[str, Any]) -> tuple[str, str, Any]:
    """Name, rule and value of the part of a plan that cannot be read."""
    for name, read in (("encoder", read_encoder), ("design", Design.from_dict)):
        try:
            read(plan[name])
        except Exception:
            return name, "one that dpfda has written", plan.get(name)
    return "plan", "one of a study that can begin", plan


def rehearse(plan: StudyPlan) -> None:
    """Rehearse the study without replies, storing and restoring it between phases."""
    server = Server(plan)
    for _ in range(_REHEARSED):
        if server.finished:
            break
        server.run.tasks(server.quota - 1, 1).to_dict()
        state = msgspec.json.encode(server.state())
        if len(state) > MOST_STATE:
            rule = f"of a study that needs at most {MOST_STATE} bytes between phases"
            raise InvalidParameter("plan", rule, len(state))
        server = Server.resume(plan, msgspec.json.decode(state))
        server.close_phase()
    server.model.to_json()


_MOST_BYTES = 1 << 20


class Peer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A study of another collector.

    Attributes:
        url: address of that collector.
        study: id of the study there.
        key: bearer credential for that collector, if it needs one.
        insecure: allow a collector on another machine without encryption.
    """

    url: Annotated[str, msgspec.Meta(pattern="^https?://", max_length=2000)]
    study: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{1,64}$")]
    key: str | None = None
    insecure: bool = False


class NewExchange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for a study that evaluates the models of peers with this collector's people."""

    peers: Annotated[list[Peer], msgspec.Meta(min_length=1, max_length=100)]
    epsilon: Annotated[float, msgspec.Meta(gt=0, le=1000)]
    n_people: Annotated[int, msgspec.Meta(ge=1, le=10**9)]
    own: str | None = None
    title: str = ""
    seed: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] = 0
    evaluation_share: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    settings: StudySettings = StudySettings()


def exchange_plan(asked: NewExchange, *, own: str | None) -> StudyPlan:
    """The plan of a study that evaluates the models of peers and, if given, its own model."""
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
            raise Refused(424, "no_peer", "a peer did not return its model")
        return CurveModel.from_json(answer.body)
    except (OSError, KeyError, TypeError, ValueError, DpfdaError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(424, "no_peer", "a peer did not return a model") from None
