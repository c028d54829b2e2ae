"""Servers that share models: the inquiry in a plan, the coordinator's side, the server's side.

All servers agree on the encoder, the classes, the price and the rule of evaluation. A server
contributes its own model, and its people's randomized evaluations of all models.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from dpfda import _validate
from dpfda._registry import plain, revive
from dpfda.client.administrator import replayed
from dpfda.curves import CurveEncoder, read_encoder
from dpfda.errors import AlreadySpent, BudgetExceeded, DpfdaError, InvalidParameter, ProtocolError
from dpfda.local.mrma.averaging import DEFAULT_STRICTNESS
from dpfda.local.mrma.result import concluded, exchange_plan, plain_linear, verdict_sums
from dpfda.noise import Source
from dpfda.privacy import durable
from dpfda.privacy.cost import limit
from dpfda.privacy.guarantee import SITE_SIZES_ARE_PUBLIC, Guarantee
from dpfda.privacy.ledger import BaseLedger
from dpfda.privacy.price import Price, exact, rounded_up
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import Label, StudyPlan
from dpfda.protocol.secure_sum import Identity, Terms
from dpfda.protocol.secure_sum.crypto import signed
from dpfda.report.documents import Documented
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.identity import Card
from dpfda.sites.messages import Model, Models, Verdicts, decode, encode
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Allow, Facts, Holds, Part, SharedInquiry
from dpfda.sites.stored_files import Begun, KeptAnswers

if TYPE_CHECKING:
    from dpfda.sites.site_folder import SiteFolder


def lead_servers(coordinator: Coordinator, inquiry: ServersInquiry) -> dict[str, CurveModel]:
    """Collect models, evaluate all of them at each server, and return what each then uses."""
    plan = coordinator.plan

    def wrong_model(name: str, reply: Model) -> str:
        inquiry.shared(plan, name, reply)
        return ""

    every = dict.fromkeys(plan.terms.names, "model")
    shared = coordinator.each(0, "model", every, question="model", wrong=wrong_model)
    coordinator.say_answered(0, "models", list(shared))
    message = Models(shared)
    models = {name: inquiry.read(reply.document) for name, reply in shared.items()}

    def wrong_verdicts(name: str, reply: Verdicts) -> str:
        totals, people = reply.totals, reply.people
        if not len(totals) == len(people) == len(models):
            return f"sent verdicts on {len(totals)} models where there are {len(models)}"
        possible = all(abs(total) <= n for total, n in zip(totals, people, strict=True))
        if not possible or sum(people) > plan.card(name).rows:
            return "sent sums of more verdicts than its people can give"
        return "" if reply.site == name else "replied in another site's name"

    digest = hashlib.sha256(encode(message)).hexdigest()
    asked = dict.fromkeys(models, message)
    said = coordinator.each(1, "judge", asked, question=digest, wrong=wrong_verdicts)
    coordinator.say_answered(1, "verdicts", list(said))
    return {
        name: concluded(inquiry.exchange_of(plan, name, models), one.totals, one.people)
        for name, one in said.items()
    }


_LONGEST = 1 << 20  # bytes of a model


@dataclass(frozen=True, kw_only=True, eq=False)
class ServersInquiry(SharedInquiry, name="servers"):
    """Servers with their own people, who evaluate the models of all servers (001 §6.2).

    Attributes:
        encoder: the encoder of curves at all servers.
        classes: the two labels.
        epsilon: the price of an evaluation, which each server's ledger pays for each of its people
            who evaluate.
        own_epsilon: upper limit of the ε of each server's own study, which was paid there.
        cutoff: r0 of the exchange; None means ½ plus `strictness` standard errors.
        strictness: the number of these standard errors.
        unit: the unit of protection: what one reply covers, such as a person.

    Examples:
        >>> encoder = CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2)
        >>> inquiry = ServersInquiry(encoder=encoder, classes=("no", "yes"), epsilon=0.5,
        ...                          own_epsilon=1.0)
        >>> inquiry.facts.price
        'ε = 0.5 for each person who judges, after ε = 1 in their own study; local'
    """

    holds: ClassVar[Holds] = "a study"

    encoder: CurveEncoder
    classes: tuple[Label, ...]
    epsilon: float
    own_epsilon: float
    cutoff: float | None = None
    strictness: float = DEFAULT_STRICTNESS
    unit: str = "person"

    def __post_init__(self) -> None:
        revive(self, "encoder", read_encoder)
        object.__setattr__(self, "classes", tuple(self.classes))
        for name in ("epsilon", "own_epsilon"):
            object.__setattr__(self, name, _validate.positive(name, getattr(self, name)))
        if len(self.classes) != 2:
            raise InvalidParameter("classes", "two labels", self.classes)
        width = self.encoder.n_features
        nothing = CurveModel.linear(
            encoder=self.encoder, classes=self.classes, intercept=[0.0],
            coefficients=[[0.0] * width], guarantee=Guarantee(epsilon=self.epsilon),
        )  # fmt: skip
        _ = self.exchange({"": nothing}, people=1, seed=0).asks  # refuses invalid values

    @property
    def facts(self) -> Facts:
        """Title, unit and price; each of a server's people evaluates once."""
        price = (
            f"ε = {self.epsilon:g} for each {self.unit} who judges, after ε = {self.own_epsilon:g} "
            "in their own study; local"
        )
        most = limit(epsilon=self.epsilon, delta=0.0)
        return Facts("models shared and judged", self.unit, most, price)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """No columns, because no server has a table."""
        return {}

    def check(self, cards: Sequence[Card]) -> None:
        """Accept all servers."""

    def guarantee(self, terms: Terms) -> Guarantee:
        """The guarantee of both studies together."""
        both = rounded_up(exact(self.own_epsilon) + exact(self.epsilon))
        promise = Guarantee(epsilon=both, model="local", unit=self.unit, sampler="unknown")
        return promise.assuming(SITE_SIZES_ARE_PUBLIC)

    def read(self, document: bytes) -> CurveModel:
        """Read a model that a server shares; a model that does not fit the plan is refused."""
        if len(document) > _LONGEST:
            raise ProtocolError(f"a model is longer than {_LONGEST} bytes")
        if _recipe(document) != plain({"encoder": self.encoder, "classes": self.classes}):
            raise ProtocolError("the model has another encoder or other classes than the plan")
        model = CurveModel.from_json(document)
        if not plain_linear(model):
            raise ProtocolError("the model is not a plain linear rule of all features")
        paid = model.guarantee
        if paid.model != "local" or paid.delta or paid.unit != self.unit or paid.assumptions:
            raise ProtocolError(
                f"the guarantee of the model is not ε of a local study for each {self.unit}, "
                "without further assumptions"
            )
        if paid.epsilon > self.own_epsilon:
            raise ProtocolError(
                f"the model cost its participants ε = {paid.epsilon:g}, and the plan allows "
                f"{self.own_epsilon:g} at most"
            )
        _ = self.exchange({"": model}, people=1, seed=0).asks  # refuses invalid numbers
        return model

    def shared(self, plan: Plan, name: str, given: Model) -> CurveModel:
        """The model of a server, after a check of the server's signature.

        The coordinator therefore cannot replace a model before it is evaluated.
        """
        content = self.signed_content(plan, given.document)
        known = signed(plan.card(name).public, given.signature, content)
        if given.site != name or not known:
            raise ProtocolError("the model is not signed by the server's key")
        return self.read(given.document)

    @staticmethod
    def signed_content(plan: Plan, document: bytes) -> bytes:
        """The bytes that a server signs when it shares a model."""
        words = f"dpfda: this server shares in the plan {plan.digest} the model "
        return words.encode() + document

    def exchange(
        self, models: Mapping[str, CurveModel], *, people: int, seed: int, title: str = ""
    ) -> StudyPlan:
        """The study in which the participants of one server evaluate all models."""
        return exchange_plan(
            list(models.values()),
            epsilon=self.epsilon,
            people=people,
            cutoff=self.cutoff,
            strictness=self.strictness,
            seed=seed,
            title=title,
            unit=self.unit,
        )

    def exchange_of(self, plan: Plan, name: str, models: Mapping[str, CurveModel]) -> StudyPlan:
        """The exchange plan of one server."""
        people, seed = plan.card(name).rows, plan.terms.number(name)
        return self.exchange(models, people=people, seed=seed, title=plan.body.study)

    def part(self, plan: Plan, folder: SiteFolder, source: Source) -> ServerPart:
        """The part of a server with a finished study, whose participants drew the noise."""
        try:
            own = (folder.data / "model.json").read_bytes()
        except OSError:
            raise InvalidParameter(
                "study", "a folder with model.json", folder.config.data
            ) from None
        return ServerPart(
            self,
            plan,
            own,
            name=folder.config.name,
            people=folder.config.people,
            identity=folder.identity,
            kept=KeptAnswers(folder.account(plan), study=plan.digest),
            ledger=folder.ledger,
            exchanges=folder.path / "exchanges",
        )

    def lead(self, coordinator: Coordinator) -> dict[str, Documented]:
        """The final model of each server."""
        promise = coordinator.plan.guarantee
        found = lead_servers(coordinator, self)
        return {name: replace(model, guarantee=promise) for name, model in found.items()}

    def progress(self, account: Path, study: str) -> list[str]:
        """The progress of the two queries at a site."""
        return KeptAnswers(account, study=study).words


class _Recipe(msgspec.Struct):
    """The fields of a model's document that define how curves are read."""

    encoder: dict[str, Any]
    classes: list[Any]


def _recipe(document: bytes) -> dict[str, Any]:
    """These fields as plain values, which are compared before an object is built from the model."""
    try:
        found = msgspec.json.decode(document, type=_Recipe)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise ProtocolError("it is not a model") from None
    return {"encoder": found.encoder, "classes": found.classes}


_SHARE, _JUDGE = 0, 1
"""Numbers of the two queries: share a model, evaluate all models."""


class ServerPart(Part):
    """Shares the model of a finished study, and sums of its people's evaluations of all models.

    The site holds no curve. It writes the plan of an evaluation study with the first set of models
    that it receives. Its people take part in this study at a collector of the server, and this part
    reads the export.

    Privacy:
        Everything that leaves is computed from replies that people randomized themselves. The
        ledger pays ε for each person before the plan of the study is written. Only one set of
        models is evaluated under one plan: if its record is lost after the payment, the query is
        refused.

    Args:
        inquiry: the inquiry of the plan.
        plan: the plan of the servers.
        own: the server's own model.
        name: name of the server.
        people: the number of its people who evaluate models.
        identity: its long-term key.
        kept: the stored answers.
        ledger: its people's budget over all studies.
        exchanges: folder of the evaluation study and of its export.
    """

    steps = ("model", "judge")

    def __init__(
        self,
        inquiry: ServersInquiry,
        plan: Plan,
        own: bytes,
        *,
        name: str,
        people: int,
        identity: Identity,
        kept: KeptAnswers,
        ledger: BaseLedger,
        exchanges: Path,
    ) -> None:
        inquiry.read(own)
        self.name, self.rows = name, people
        self._inquiry, self._plan, self._own, self._identity = inquiry, plan, own, identity
        self._kept, self._ledger, self._exchanges = kept, ledger, exchanges

    def answer(self, step: str, message: object, allow: Allow) -> Model | Verdicts:
        """The server's own model, or the evaluations of all models."""
        if step == "model":
            document = self._shared(allow)
            signature = self._identity.sign(self._inquiry.signed_content(self._plan, document))
            return Model(site=self.name, document=document, signature=signature)
        assert isinstance(message, Models)
        return self._judged(message, allow)

    def described(self, step: str, reply: object) -> str:
        """A description of the reply, for the site's journal."""
        if isinstance(reply, Model):
            return f"the model of our own study, {len(reply.document)} bytes"
        assert isinstance(reply, Verdicts)
        return f"sums of {sum(reply.people)} noisy verdicts on {len(reply.people)} models"

    def _shared(self, allow: Allow) -> bytes:
        """The model, which never changes, because the people of other servers evaluate it."""
        if not self._kept.answered(_SHARE):
            allow(f"question {_SHARE}: the model of our own study")
            if _SHARE not in self._kept.begun:  # nothing is drawn: it can be repeated
                self._kept.begin(_SHARE, Begun("model"))
            self._kept.keep(_SHARE, self._own)
        found = self._kept.again(_SHARE, "model")
        assert found is not None
        return found

    def _judged(self, message: Models, allow: Allow) -> Verdicts:
        if not self._kept.answered(_SHARE):
            raise ProtocolError("the model of this server was not requested yet")
        question = hashlib.sha256(encode(message)).hexdigest()
        known = self._kept.begun.get(_JUDGE)
        if known is not None and known.question != question:
            raise ProtocolError("the participants of this server evaluate other models already")
        study = self._inquiry.exchange_of(self._plan, self.name, self._read(message))
        if known is None:
            self._begin(study, question, allow, list(message.models))
        self._pay(study)
        return self._verdicts(study, question)

    def _read(self, message: Models) -> dict[str, CurveModel]:
        """The models of all servers; an invalid one is reported with its server."""
        names, needed = self._plan.terms.names, self._plan.terms.needed
        if [one for one in names if one in message.models] != list(message.models):
            raise ProtocolError("models must be those of the plan's servers, in its order")
        if len(message.models) < needed:
            raise ProtocolError(f"models of at least {needed} servers are needed")
        mine = message.models.get(self.name)
        if mine is None or mine.document != self._kept.again(_SHARE, "model"):
            raise ProtocolError("the model listed for this server is not its own")
        found = {}
        for name, given in message.models.items():
            try:
                found[name] = self._inquiry.shared(self._plan, name, given)
            except DpfdaError as error:
                raise ProtocolError(f"model of {name!r}: {error}") from None
        return found

    def _begin(self, study: StudyPlan, question: str, allow: Allow, whose: list[str]) -> None:
        """Fix the set of models to evaluate, before anything is paid."""
        if self._ledger.refusal(Price(), key=self._plan.digest):
            raise ProtocolError(
                "the study was paid for, but the list of evaluated models is missing from this "
                "folder"
            )
        if reason := self._ledger.refusal(study.guarantee):
            raise BudgetExceeded(reason)
        written = json.dumps(study.to_dict(), ensure_ascii=False)
        allow(
            f"question {_JUDGE}: {study.n_people} people judge the models of {', '.join(whose)}, "
            f"ε = {study.epsilon:g}, study {study.hash}: {written}"
        )
        self._kept.begin(_JUDGE, Begun(question))

    def _pay(self, study: StudyPlan) -> None:
        """Pay once, before the plan of the study is written; also after an interruption."""
        label = f"{self._plan.body.study} {self._plan.digest[:12]}"
        with suppress(AlreadySpent):
            self._ledger.spend(study.guarantee, label=label, key=self._plan.digest)

    def _verdicts(self, study: StudyPlan, question: str) -> Verdicts:
        """The evaluations by its people, from the exported study."""
        if not self._kept.answered(_JUDGE):
            self._kept.keep(_JUDGE, encode(self._read_export(study)))
        answer = self._kept.again(_JUDGE, question)
        assert answer is not None
        verdicts: Verdicts = decode(answer, Verdicts)
        return verdicts

    def _read_export(self, study: StudyPlan) -> Verdicts:
        """Sums of replies; also writes the server's own new classifier."""
        folder, written = self._exchanges / study.hash, self._exchanges / f"{study.hash}.json"
        self._exchanges.mkdir(exist_ok=True, mode=0o700)
        if not written.exists():
            plan = json.dumps(study.to_dict(), ensure_ascii=False)
            durable.keep(written, plan.encode())
        if not folder.is_dir():
            raise ProtocolError(
                "its participants have not evaluated the models yet: run the study "
                f"exchanges/{study.hash}.json and export it into exchanges/{study.hash}"
            )
        server = replayed(study, folder)
        totals, people = verdict_sums(server.findings)
        promise = self._inquiry.guarantee(self._plan.terms)  # of both studies
        model = replace(server.model, guarantee=promise)
        model.save(self._exchanges / f"{study.hash}.model.json")
        return Verdicts(site=self.name, totals=totals, people=people)
