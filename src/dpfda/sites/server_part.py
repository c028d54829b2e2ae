"""A server's part where models are shared: its own model, and its people's verdicts on all."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpfda.client.exported import replayed
from dpfda.errors import AlreadySpent, BudgetExceeded, DpfdaError, ProtocolError
from dpfda.local.mrma.servers import verdict_sums
from dpfda.privacy import durable
from dpfda.privacy.ledger import BaseLedger
from dpfda.privacy.price import Price
from dpfda.protocol.model import CurveModel
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.secure_sum import Identity
from dpfda.sites.messages import Model, Models, Verdicts, decode, encode
from dpfda.sites.plan import Plan
from dpfda.sites.shared import Allow, Part
from dpfda.sites.stored_files import Begun, KeptAnswers

if TYPE_CHECKING:
    from dpfda.sites.servers import ServersInquiry

_SHARE, _JUDGE = 0, 1
"""The two questions."""


class ServerPart(Part):
    """Shares the model of a finished study, and sums of its people's verdicts on everybody's.

    The site holds no curve. It writes down the study that its people are to be asked, which judges
    exactly the models that it was sent first; they take part in it as in any other, at a collector
    of the server's own, and its export is read here.

    Privacy:
        Everything that leaves is computed from replies that people randomized themselves. The
        ledger pays ε for each of them before the study is written down, and no second set of models
        is ever judged under one plan: what is paid for and forgotten is not asked again.

    Args:
        inquiry: what servers agreed on.
        plan: that holds it.
        own: the server's own model.
        name: the server's.
        people: how many of its people judge.
        identity: its lasting key.
        kept: what was answered.
        ledger: its people's budget over all studies.
        exchanges: folder for the study to hold, and for its export.
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

    def answer(self, step: str, message: Any, allow: Allow) -> Model | Verdicts:
        """The own model, or verdicts on all."""
        if step == "model":
            document = self._shared(allow)
            signature = self._identity.sign(self._inquiry.signed_content(self._plan, document))
            return Model(site=self.name, document=document, signature=signature)
        return self._judged(message, allow)

    def described(self, step: str, reply: Any) -> str:
        """What leaves."""
        if step == "model":
            return f"the model of our own study, {len(reply.document)} bytes"
        return f"sums of {sum(reply.people)} noisy verdicts on {len(reply.people)} models"

    def _shared(self, allow: Allow) -> bytes:
        """The model, the same for ever: others' people judge it."""
        if not self._kept.answered(_SHARE):
            allow(f"question {_SHARE}: the model of our own study")
            if _SHARE not in self._kept.begun:  # nothing is drawn: what was stopped goes on
                self._kept.begin(_SHARE, Begun("model"))
            self._kept.keep(_SHARE, self._own)
        found = self._kept.again(_SHARE, "model")
        assert found is not None
        return found

    def _judged(self, message: Models, allow: Allow) -> Verdicts:
        if not self._kept.answered(_SHARE):
            raise ProtocolError("this server was not asked for its own model")
        question = hashlib.sha256(encode(message)).hexdigest()
        known = self._kept.begun.get(_JUDGE)
        if known is not None and known.question != question:
            raise ProtocolError("this server's people judge other models already")
        study = self._inquiry.exchange_of(self._plan, self.name, self._read(message))
        if known is None:
            self._begin(study, question, allow, list(message.models))
        self._pay(study)
        return self._verdicts(study, question)

    def _read(self, message: Models) -> dict[str, CurveModel]:
        """Everybody's models; one that is not as the plan wants it is named with its server."""
        names, needed = self._plan.terms.names, self._plan.terms.needed
        if [one for one in names if one in message.models] != list(message.models):
            raise ProtocolError("models must be those of the plan's servers, in its order")
        if len(message.models) < needed:
            raise ProtocolError(f"there must be the models of {needed} servers at least")
        mine = message.models.get(self.name)
        if mine is None or mine.document != self._kept.again(_SHARE, "model"):
            raise ProtocolError("the model that is said to be this server's is another one")
        found = {}
        for name, given in message.models.items():
            try:
                found[name] = self._inquiry.shared(self._plan, name, given)
            except DpfdaError as error:
                raise ProtocolError(f"model of {name!r}: {error}") from None
        return found

    def _begin(self, study: StudyPlan, question: str, allow: Allow, whose: list[str]) -> None:
        """Settle which models are judged, before anything is paid."""
        if self._ledger.refusal(Price(), key=self._plan.digest):
            raise ProtocolError(
                "the study is paid for, and which models it judges is gone from this folder"
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
        """Before anybody can hold the study; once, also if it stopped here before."""
        label = f"{self._plan.body.study} {self._plan.digest[:12]}"
        with suppress(AlreadySpent):
            self._ledger.spend(study.guarantee, label=label, key=self._plan.digest)

    def _verdicts(self, study: StudyPlan, question: str) -> Verdicts:
        """What its people said, once the study is over and its export is here."""
        if not self._kept.answered(_JUDGE):
            self._kept.keep(_JUDGE, encode(self._read_export(study)))
        answer = self._kept.again(_JUDGE, question)
        assert answer is not None
        verdicts: Verdicts = decode(answer, Verdicts)
        return verdicts

    def _read_export(self, study: StudyPlan) -> Verdicts:
        """Sums of replies; the server's own new classifier is written beside them."""
        folder, written = self._exchanges / study.hash, self._exchanges / f"{study.hash}.json"
        self._exchanges.mkdir(exist_ok=True, mode=0o700)
        if not written.exists():
            plan = json.dumps(study.to_dict(), ensure_ascii=False)
            durable.keep(written, plan.encode())
        if not folder.is_dir():
            raise ProtocolError(
                f"its people have not judged yet: it holds the study exchanges/{study.hash}.json "
                f"and exports it into exchanges/{study.hash}"
            )
        server = replayed(study, folder)
        totals, people = verdict_sums(server.findings)
        promise = self._inquiry.guarantee(self._plan.terms)  # of both studies
        model = replace(server.model, guarantee=promise)
        model.save(self._exchanges / f"{study.hash}.model.json")
        return Verdicts(site=self.name, totals=totals, people=people)
