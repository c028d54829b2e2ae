"""The coordinator's side of servers that share models."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from dpfda.local.mrma.servers import concluded
from dpfda.protocol.model import CurveModel
from dpfda.sites.coordinator import Coordinator
from dpfda.sites.messages import Models, encode

if TYPE_CHECKING:
    from dpfda.sites.servers.inquiry import ServersInquiry


def lead_servers(coordinator: Coordinator, inquiry: ServersInquiry) -> dict[str, CurveModel]:
    """Collect models, have each server's people judge all of them; what each then uses."""
    plan = coordinator.plan

    def wrong_model(name: str, reply: Any) -> str:
        inquiry.shared(plan, name, reply)
        return ""

    every = dict.fromkeys(plan.terms.names, "model")
    shared = coordinator.each(0, "model", every, question="model", wrong=wrong_model)
    coordinator.say_answered(0, "models", list(shared))
    message = Models(shared)
    models = {name: inquiry.read(reply.document) for name, reply in shared.items()}

    def wrong_verdicts(name: str, reply: Any) -> str:
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
