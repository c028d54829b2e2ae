"""The tasks among the test vectors of the wire format that a person's device must refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from wire_plans import Case, plans

from dpfda import Ledger
from dpfda.errors import DpfdaError
from dpfda.protocol import Server, StudyPlan
from dpfda.protocol.person import Person
from dpfda.protocol.task import Task


def asked(plan: StudyPlan) -> Iterator[Task]:
    """One task of every kind of phase, of a study in which nobody answers."""
    server, seen = Server(plan), set()
    while not server.finished:
        task = server.run.tasks(0, 1)
        fixed = {name for name, value in task.to_dict().items() if isinstance(value, (str, bool))}
        kind = (task.name, *(str(getattr(task, name, "")) for name in sorted(fixed)))
        kind += (str(len(getattr(task, "folds", ()))),)
        if kind not in seen:
            seen.add(kind)
            yield task
        server.close_phase()


def changes(plan: StudyPlan, task: Case) -> Iterator[tuple[str, Any]]:
    """What a collector might ask instead."""
    yield "costs more", task | {"epsilon": 2 * task["epsilon"]}
    yield "costs less", task | {"epsilon": task["epsilon"] / 2}
    yield "about somebody else", task | {"unit": "household"}
    yield "for two people", task | {"people": 2}
    yield "of another kind", task | {"name": "statistic"}
    yield "of no kind", {name: value for name, value in task.items() if name != "name"}
    yield "with a field nobody knows", task | {"backdoor": 1}
    yield "without its price", {name: value for name, value in task.items() if name != "epsilon"}
    yield "with a price in words", task | {"epsilon": str(task["epsilon"])}
    for name, value in task.items():
        if isinstance(value, bool):
            yield f"{name} turned round", task | {name: not value}
            yield f"{name} as a number", task | {name: int(value)}
        elif isinstance(value, list) and value and isinstance(value[0], (list, int, float)):
            yield f"{name} of no length", task | {name: []}
            yield f"{name} of more rows", task | {name: value + value}
            yield f"{name} in words", task | {name: "x"}
            if isinstance(value[0], list):
                yield f"{name} a row longer", task | {name: [value[0] + value[0][:1]]}
                yield f"{name} of nothing", task | {name: [[None] * len(value[0])]}
        elif isinstance(value, int) and name not in ("people",):
            yield f"{name} one more", task | {name: value + 1}
    for both in (("coordinates", "thresholds"), ("dithers",)):
        if all(name in task for name in both):
            more = {name: [task[name][0] + task[name][0][:1]] for name in both}
            yield "one question more", task | more
    if "coordinates" in task:
        shape = np.shape(task["coordinates"])
        for place in (*range(len(task), 0, -1), 1000):  # the first of them that may not be asked
            other = task | {"coordinates": np.full(shape, place).tolist()}
            yield f"about feature {place}", other
    if "folds" in task:
        yield "one fold more", task | {"folds": [*task["folds"], 0.0]}
    if "mechanism_name" in task:
        yield "through another mechanism", task | {"mechanism_name": "duchi"}
    if "protects" in task:
        other = "features" if plan.protects != "features" else "labels"
        yield "protecting something else", task | {"protects": other}
        yield "with another share for the label", task | {"label_share": 0.25}
    if "positive" in task:
        for label in (plan.n_classes, 7):
            many = np.full(np.shape(task["positive"]), label).tolist()
            yield f"about label {label}, which is none", task | {"positive": many}
    if "clip" in task:
        yield "cut elsewhere", task | {"clip": task["clip"] + 1}
    if "scales" in task:
        yield "divided by nothing", task | {"scales": np.zeros(np.shape(task["scales"])).tolist()}


def refusals() -> Case:
    """Tasks that may be asked, and neighbors of them that may not."""
    found = []
    for name, plan in plans().items():
        for task in asked(plan):
            sent = json.loads(json.dumps(task.to_dict()))
            cases = [("as it is", sent), *changes(plan, sent)]
            wrong = []
            for what, other in cases:
                reason = refusal(plan, other)
                if what == "as it is":
                    assert reason is None, (name, reason)
                elif reason is not None or what.startswith(("uses_label turned", "about feature")):
                    changed = _difference(sent, other)
                    wrong.append({"what": what, **changed, "reason": reason})
            found.append({"plan": name, "task": sent, "others": wrong})
    return {"cases": found}


def _difference(sent: Case, other: Case) -> Case:
    """What is set to another value, and what is left out."""
    told: Case = {"set": {k: v for k, v in other.items() if k not in sent or sent[k] is not v}}
    without = [name for name in sent if name not in other]
    return told | ({"without": without} if without else {})


def refusal(plan: StudyPlan, sent: Any) -> str | None:
    """What a person's device says to it."""
    label = 5.0 if plan.target_range else plan.classes[0]
    person = Person(
        plan, curve=[0.0] * plan.encoder.n_features, label=label, ledger=Ledger(1e6),
        accepts=plan.guarantee.assumptions,
    )  # fmt: skip
    try:
        person.answer(plan.read_task(sent))
    except DpfdaError as error:
        return str(error)
    return None
