"""The HTTP interface: each function translates one request into one call of the service."""

from __future__ import annotations

import asyncio
import re
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from litestar import Request, Response, Router, delete, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.di import NamedDependency
from litestar.exceptions import NotFoundException
from litestar.params import HeaderParameter, JSONBody, PathParameter, QueryParameter

from dpfda.collector.limits import AdminAuth
from dpfda.collector.openapi import KEY, TOKEN
from dpfda.collector.organizers import NAME, Account
from dpfda.collector.people import Deliveries, Verdicts, bearer
from dpfda.collector.plans import NewExchange, exchange_plan, strict_json
from dpfda.collector.refusal import Refused, bad_plan, no_study, note_known
from dpfda.collector.service import Collector
from dpfda.collector.settings import Settings, StudySettings
from dpfda.collector.storage.base import ADMINISTRATOR, Act, StudyLine, StudyRecord
from dpfda.collector.summary import link, standing
from dpfda.errors import DpfdaError
from dpfda.local.recipe import plan_from_facts
from dpfda.protocol.wire import (
    RECEIPT,
    Counted,
    Receipt,
    ReplyMessage,
    TaskMessage,
    Withdrawal,
    Withdrawn,
    token_hash,
)
from dpfda.report import Verdict

T = TypeVar("T")
Asked = Request[Any, Any, State]
Service = NamedDependency[Collector]
StudyName = Annotated[
    str, PathParameter(pattern=r"^[0-9a-f]{1,64}$", description="id of the study")
]
OrganizerName = Annotated[str, PathParameter(pattern=NAME, description="name of an organizer")]
PhaseNumber = Annotated[int, PathParameter(ge=0, le=10**6, description="number of the phase")]
ReceiptText = Annotated[str, PathParameter(pattern=RECEIPT, description="a reply's receipt")]
Credential = Annotated[
    str | None,
    HeaderParameter(name="Authorization", description="Bearer, and a token or the key"),
]

After = Annotated[
    str | None,
    QueryParameter(
        pattern=r"^\d{1,15}(\.\d{1,20})?-[0-9a-f]{1,64}$", description="`next` of the page before"
    ),
]
PageSize = Annotated[int, QueryParameter(ge=1, le=200, description="how many on a page")]
BeforeNumber = Annotated[
    int | None, QueryParameter(ge=1, le=2**31 - 1, description="`number` of the last one before")
]

_SMALL = 64 * 1024
_LARGE = 1024 * 1024


def host_of(request: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The address of the client, as seen here or as stated by a trusted proxy."""
    return request.client.host if request.client else ""


Connected = ASGIConnection[Any, Any, Any, Any]
_ACCOUNT = "dpfda_account"


async def require_key(connection: Connected, _: object) -> None:
    """Require an organizer's key in the header, before the body is read."""
    auth: AdminAuth = connection.app.state.keyhole
    key = bearer(connection.headers.get("authorization"))
    account = await auth.account(key, host_of(connection))
    if account is None:
        raise Refused(401, "not_admin", "this needs an organizer's key")
    note_known(connection.scope)
    cast("dict[str, object]", connection.scope)[_ACCOUNT] = account


def account_in(connection: Connected) -> Account:
    """The organizer whose key the request contains, after `require_key`."""
    return cast("dict[str, Account]", connection.scope)[_ACCOUNT]


async def require_creator(connection: Connected, _: object) -> None:
    """Require an organizer who may create studies."""
    await require_key(connection, None)
    account_in(connection).require_creator()


async def require_owner(connection: Connected, _: object) -> None:
    """Require the owner of the study in the path, or the administrator."""
    await require_key(connection, None)
    study = str(connection.path_params["study"])
    if not re.fullmatch("[0-9a-f]{1,64}", study):
        raise no_study()
    collector: Collector = connection.app.state.collector
    account_in(connection).require_owner((await collector.study(study)).owner)


async def require_administrator(connection: Connected, _: object) -> None:
    """Require the administrator."""
    await require_key(connection, None)
    account_in(connection).require_administrator()


class NewStudy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan, or the facts for `plan_study`, with the settings of the study."""

    plan: dict[str, Any] | None = None
    facts: dict[str, Any] | None = None
    settings: StudySettings = StudySettings()

    def contract(self) -> dict[str, Any]:
        """The given plan, or the plan that follows from the facts."""
        if self.plan is not None and self.facts is None:
            return self.plan
        if self.facts is None or self.plan is not None:
            raise Refused(400, "bad_plan", "give either a plan or facts")
        try:
            return plan_from_facts(self.facts).to_dict()
        except DpfdaError as error:
            raise bad_plan(error) from None


class StudyPage(msgspec.Struct, frozen=True):
    """Some studies, newest first, and the value of ``after`` for the next page."""

    studies: list[StudyLine]
    next: str | None


class TokenRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many people to invite."""

    count: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1


class Tokens(msgspec.Struct, frozen=True):
    """Invitations. The collector cannot show them again."""

    tokens: list[str]


class Token(msgspec.Struct, frozen=True):
    """A token, shown this once."""

    token: str


class NewOrganizer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Name and role of an organizer."""

    name: Annotated[str, msgspec.Meta(pattern=NAME)]
    role: Literal["owner", "viewer"]


class OrganizerKey(msgspec.Struct, frozen=True):
    """The key of an organizer. The collector cannot show it again."""

    name: str
    key: str


class OrganizerLine(msgspec.Struct, frozen=True):
    """An organizer, and when they were added and their key was made, in seconds since 1970."""

    name: str
    role: Literal["owner", "viewer", "removed"]
    created: float
    rotated: float


class NewOwner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new owner of a study."""

    name: Annotated[str, msgspec.Meta(pattern=NAME)]


class ActivityLine(msgspec.Struct, frozen=True):
    """One action of an organizer; `study` and `detail` state its object."""

    number: int
    at: float
    who: str
    what: Act
    study: str | None
    detail: str


class StudyStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The public state of a study."""

    id: str
    hash: str
    title: str
    plan: dict[str, Any]
    status: str
    phase: int
    kind: str
    wanted: int
    issued: int
    answered: int
    open: bool
    domain_unit: str
    value_unit: str
    warnings: list[str]
    page: str | None
    successor: str | None


class Forgotten(msgspec.Struct, frozen=True):
    """The replies that were deleted; if not `done`, deletion continues in the background."""

    study: str
    done: bool


class ClockState(msgspec.Struct, frozen=True):
    """Seconds by which the system clock had jumped when it was confirmed; 0 if it had not."""

    jump_seconds: float


class ModelEntry(msgspec.Struct, frozen=True):
    """One step of a model's history."""

    phase: int
    kind: str
    people: int
    created: float
    model: msgspec.Raw
    summary: msgspec.Raw


@post(
    "/studies",
    status_code=201,
    request_max_body_size=_LARGE,
    security=KEY,
    guards=[require_creator],
)
async def create_study(data: JSONBody[NewStudy], request: Asked, collector: Service) -> StudyStatus:
    """Create a study from its plan, or from public facts. Needs the key of an owner."""
    strict_json(await request.body())
    by = account_in(request).name
    record = await collector.create(data.contract(), data.settings, by=by)
    return await _status(request, record)


@post(
    "/exchanges",
    status_code=201,
    request_max_body_size=_LARGE,
    security=KEY,
    guards=[require_administrator],
)
async def create_exchange(
    data: JSONBody[NewExchange], request: Asked, collector: Service
) -> StudyStatus:
    """Fetch peers' models and create a study that evaluates them. For the administrator.

    The collector fetches them from other hosts, possibly hosts that only its own machine can reach.
    """
    strict_json(await request.body())
    own = None
    if data.own is not None:
        own = (await collector.models(data.own))[-1].document
    plan = await asyncio.to_thread(exchange_plan, data, own=own)
    by = account_in(request).name
    return await _status(request, await collector.create(plan.to_dict(), data.settings, by=by))


@get("/studies")
async def list_studies(
    request: Asked, collector: Service, after: After = None, most: PageSize = 50
) -> StudyPage:
    """The studies, newest first, in pages; without a key, only those open to anybody."""
    only_open = request.headers.get("authorization") is None
    if not only_open:
        await require_key(request, None)
    lines, following = await page_of(collector, after, most, only_open=only_open)
    if only_open:  # the owners of studies are not public
        lines = [msgspec.structs.replace(line, owner="") for line in lines]
    return StudyPage(lines, following)


@get("/studies/{study:str}")
async def show_study(study: StudyName, request: Asked, collector: Service) -> StudyStatus:
    """Plan, hash and progress of a study, and the participant page, if its host is configured."""
    return await _status(request, await collector.study(study))


@post(
    "/studies/{study:str}/tokens",
    status_code=201,
    request_max_body_size=_SMALL,
    security=KEY,
    guards=[require_owner],
)
async def invite(
    study: StudyName, data: JSONBody[TokenRequest], request: Asked, collector: Service
) -> Tokens:
    """Create invitations: tokens, each for one person and one reply. Needs the owner's key."""
    return Tokens(await collector.invite(study, data.count, by=account_in(request).name))


@post("/studies/{study:str}/enrol", status_code=201, request_max_body_size=_SMALL)
async def enrol(study: StudyName, request: Asked) -> Token:
    """Take part in a study that is open to anybody; returns a token for one task and one reply."""
    return Token(await _collector(request).enrol(study, host_of(request)))


# `people.py` serves the following routes; these functions only describe them.


@get("/studies/{study:str}/task", security=TOKEN)
async def get_task(study: StudyName, authorization: Credential = None) -> TaskMessage:
    """The task of this person: always the same one; 409 after the reply."""
    raise NotFoundException


@post("/studies/{study:str}/reply", status_code=200, request_max_body_size=_SMALL, security=TOKEN)
async def send_reply(
    study: StudyName, data: JSONBody[ReplyMessage], authorization: Credential = None
) -> Receipt:
    """Send the reply of this person; the same bytes again get the same answer."""
    raise NotFoundException


@post("/studies/{study:str}/replies", status_code=200, request_max_body_size=_SMALL, security=TOKEN)
async def send_replies(
    study: StudyName, data: JSONBody[Deliveries], authorization: Credential = None
) -> Verdicts:
    """Send replies of up to 1000 people, each with its token; each is checked separately.

    The header contains the token of any of them.
    """
    raise NotFoundException


@post(
    "/studies/{study:str}/withdraw", status_code=200, request_max_body_size=_SMALL, security=TOKEN
)
async def withdraw_reply(
    study: StudyName, data: JSONBody[Withdrawal], authorization: Credential = None
) -> Withdrawn:
    """Withdraw the reply of this person, while its phase accepts replies.

    `reply` is the text that was sent; SHA-256 of the 32 bytes of `secret` begins with its nonce.
    """
    raise NotFoundException


@post(
    "/studies/{study:str}/phases/{phase:int}/close",
    status_code=202,
    security=KEY,
    guards=[require_owner],
)
async def close_phase(
    study: StudyName, phase: PhaseNumber, request: Asked, collector: Service
) -> StudyStatus:
    """End a phase with the replies that have arrived. Needs the owner's key."""
    await collector.close_phase(study, phase, by=account_in(request).name)
    return await _status(request, await collector.study(study))


@get("/studies/{study:str}/phases/{phase:int}/replies", security=KEY, guards=[require_key])
async def list_replies(
    study: StudyName, phase: PhaseNumber, request: Asked, collector: Service
) -> Response[bytes]:
    """The randomized replies of a phase, one JSON object per line. Needs an organizer's key."""
    rows = await collector.all_replies(study, phase, by=account_in(request).name)
    body = b"".join(reply + b"\n" for _, reply in rows)
    return Response(body, media_type="application/x-ndjson")


@get("/studies/{study:str}/receipts/{receipt:str}")
async def check_receipt(study: StudyName, receipt: ReceiptText, collector: Service) -> Counted:
    """Whether the reply of a receipt was counted. The request does not identify the person."""
    return await collector.counted(study, receipt)


@delete("/studies/{study:str}/replies", status_code=200, security=KEY, guards=[require_owner])
async def purge_study(study: StudyName, request: Asked, collector: Service) -> Response[Forgotten]:
    """Delete the replies of finished phases, but not models and receipts. Needs the owner's key."""
    return _forgotten(study, await collector.purge(study, by=account_in(request).name))


@delete("/studies/{study:str}", status_code=200, security=KEY, guards=[require_owner])
async def delete_study(study: StudyName, request: Asked, collector: Service) -> Response[Forgotten]:
    """End a study in any state, and delete all its data. Needs the owner's key."""
    return _forgotten(study, await collector.delete(study, by=account_in(request).name))


def _forgotten(study: str, done: bool) -> Response[Forgotten]:
    return Response(Forgotten(study, done), status_code=200 if done else 202)


@post("/clock", status_code=202, security=KEY, guards=[require_administrator])
async def confirm_clock(request: Asked, collector: Service) -> ClockState:
    """Confirm the system clock, so that deadlines follow it. For the administrator."""
    found = ClockState(jump_seconds=round(collector.clock.jump(), 3))
    await collector.confirm_clock(by=account_in(request).name)
    return found


@post(
    "/studies/{study:str}/owner",
    status_code=200,
    request_max_body_size=_SMALL,
    security=KEY,
    guards=[require_owner],
)
async def give_study(
    study: StudyName, data: JSONBody[NewOwner], request: Asked, collector: Service
) -> NewOwner:
    """Transfer a study to another owner, or to the administrator. Needs the owner's key."""
    await collector.give(study, data.name, by=account_in(request).name)
    return data


@get("/organizers", security=KEY, guards=[require_key])
async def list_organizers(collector: Service) -> list[OrganizerLine]:
    """All organizers besides the administrator. Needs an organizer's key."""
    return [
        OrganizerLine(one.name, one.role, one.created, one.rotated)
        for one in await collector.organizers()
    ]


@post(
    "/organizers",
    status_code=201,
    request_max_body_size=_SMALL,
    security=KEY,
    guards=[require_administrator],
)
async def add_organizer(
    data: JSONBody[NewOrganizer], request: Asked, collector: Service
) -> OrganizerKey:
    """Add an organizer, whose key is shown only now. For the administrator."""
    key = await collector.add_organizer(data.name, data.role, by=account_in(request).name)
    return OrganizerKey(data.name, key)


@post("/organizers/{name:str}/key", status_code=201, security=KEY, guards=[require_key])
async def rotate_key(name: OrganizerName, request: Asked, collector: Service) -> OrganizerKey:
    """Replace the key of an organizer; shown only now. For the administrator and this organizer."""
    account = account_in(request)
    if account.name != name:
        account.require_administrator()
    if name == ADMINISTRATOR:
        told = "the administrator's key is in the file or variable that dpfda serve was given"
        raise Refused(409, "not_here", told)
    return OrganizerKey(name, await collector.rotate_key(name, by=account.name))


@delete("/organizers/{name:str}", status_code=204, security=KEY, guards=[require_administrator])
async def remove_organizer(name: OrganizerName, request: Asked, collector: Service) -> None:
    """Remove an organizer, with key and sessions; the studies continue. For the administrator."""
    await collector.remove_organizer(name, by=account_in(request).name)


@get("/activity", security=KEY, guards=[require_key])
async def list_activity(
    collector: Service, before: BeforeNumber = None, most: PageSize = 50
) -> list[ActivityLine]:
    """The log of organizers' actions, newest first. Needs an organizer's key."""
    found = await collector.activities(most=most, before=before)
    return [ActivityLine(**msgspec.structs.asdict(one)) for one in found]


@get("/studies/{study:str}/model")
async def get_model(study: StudyName, request: Asked, collector: Service) -> Response[bytes]:
    """The current model: basis, rescaling, coefficients, guarantee."""
    await _require_view(study, request, collector)
    newest = (await collector.models(study))[-1]
    return Response(newest.document.encode(), media_type="application/json")


@get("/studies/{study:str}/verdict")
async def get_verdict(study: StudyName, request: Asked, collector: Service) -> Verdict:
    """The evaluation of the model; for a running study, the number of replies behind it."""
    await _require_view(study, request, collector)
    record, history = await collector.study(study), await collector.models(study)
    said = standing(record, await collector.answered(record), history)
    return Verdict(kind=said["kind"], sentences=tuple(said["sentences"]))


@get("/studies/{study:str}/models")
async def list_models(study: StudyName, request: Asked, collector: Service) -> list[ModelEntry]:
    """The model after every phase, oldest first."""
    await _require_view(study, request, collector)
    return [
        ModelEntry(
            *(entry.phase, entry.kind, entry.people, entry.created),
            model=msgspec.Raw(entry.document.encode()),
            summary=msgspec.Raw(entry.summary.encode()),
        )
        for entry in await collector.models(study)
    ]


async def _require_view(study: str, request: Asked, collector: Collector) -> None:
    """Require a participant or an organizer, if the study is not open to anybody."""
    if (await collector.study(study)).open:
        return
    credential = bearer(request.headers.get("authorization"))
    if await collector.knows(study, token_hash(credential)):
        note_known(request.scope)
    else:
        await require_key(request, None)


async def page_of(
    collector: Collector, after: str | None, most: int, *, only_open: bool = False
) -> tuple[list[StudyLine], str | None]:
    """A page of studies, and the cursor of the next one if there is one."""
    place = None
    if after is not None:
        created, _, study = after.partition("-")
        place = float(created), study
    lines = await collector.page(most=most + 1, after=place, only_open=only_open)
    if len(lines) <= most:
        return lines, None
    last = lines[most - 1]
    return lines[:most], f"{last.created!r}-{last.id}"


async def _status(request: Asked, record: StudyRecord) -> StudyStatus:
    configured: Settings = request.app.state.settings
    here, elsewhere = configured.public_url, configured.page_url
    try:
        plan = msgspec.json.decode(record.plan, type=dict[str, Any])
        people = msgspec.convert(plan.get("n_people"), int)
        settings = msgspec.json.decode(record.settings, type=StudySettings)
    except msgspec.MsgspecError:  # written by another release, or changed by somebody
        raise Refused(409, "unreadable", "this collector cannot read this study") from None
    same = ("id", "hash", "title", "status", "phase", "kind", "issued", "successor")
    return StudyStatus(
        **{name: getattr(record, name) for name in same},
        plan=plan,
        wanted=record.quota,
        answered=await _collector(request).answered(record),
        open=settings.open,
        domain_unit=settings.domain_unit,
        value_unit=settings.value_unit,
        warnings=settings.warnings(people),
        page=link(record, here or "", elsewhere=elsewhere) if here or elsewhere else None,
    )


def _collector(request: Asked) -> Collector:
    found: Collector = request.app.state.collector
    return found


def router(path: str) -> Router:
    """A router for all routes above, under `path`."""
    return Router(
        path,
        route_handlers=[
            create_study, create_exchange, list_studies, show_study, invite, enrol, get_task,
            send_reply, send_replies, withdraw_reply, close_phase, list_replies, check_receipt,
            purge_study, delete_study, get_model, get_verdict, list_models, confirm_clock,
            give_study, list_organizers, add_organizer, rotate_key, remove_organizer, list_activity,
        ],
    )  # fmt: skip
