"""A study is a generator: it yields phases, receives their summaries, and returns a result.

The generator is public and deterministic. A server therefore stores only the summaries of finished
phases, and replays the generator over them after a restart. A study needs no code to store or
restore its state.

A study registers under its design's name:

    @study("mean")
    def mean(design: MeanDesign, plan: StudyPlan) -> Study:
        summary = yield Phase("moment", plan.n_people, tasks=..., count=..., so_far=...)
        return Result(model=..., findings=Findings(classes=plan.classes))
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dpfda import _validate
from dpfda._registry import import_if_possible
from dpfda._validate import FloatArray
from dpfda.errors import ChangedStudy, InvalidParameter, ProtocolError, UnknownName
from dpfda.protocol.findings import Findings, Step
from dpfda.protocol.plan import Design, StudyPlan
from dpfda.protocol.task import Task

_HOMES = (
    "dpfda.local.single_reports",
    "dpfda.local.study.study",
    "dpfda.local.study.vectors",
    "dpfda.local.mrma.study",
    "dpfda.local.boosting",
)
"""Modules that register studies; they are imported when an unknown study is requested."""
_HASHED = 4  # first tickets of a phase that its hash covers, in addition to the last one
_HASHED_BITS = 30  # bits of hashed numbers; machines may differ in the last bits of a product

Summary = Mapping[str, FloatArray]
"""Named arrays of finite numbers."""


class Result(NamedTuple):
    """The final or the current result of a study.

    Attributes:
        model: predictions for new data.
        findings: estimates with their uncertainty.
    """

    model: Any
    findings: Findings


@dataclass(frozen=True, eq=False)
class Phase:
    """A batch of people with tasks; the study continues with the summary of their replies.

    Attributes:
        kind: one word for the kind of question.
        people: the number of people; a phase without people is skipped, and its summary is that of
            no replies.
        tasks: returns the tasks of tickets start, ..., start + n - 1 from (start, n). They depend
            only on what was known when the phase began.
        count: returns the summary of some replies, from their tasks and one row per reply; there
            may be no reply.
        so_far: returns the current result; called only if it is needed.
        at_once: whether all replies of the phase are counted together at its end. Otherwise `count`
            is called with blocks of replies, and summaries are added up.
        averaged: whether the summary is a mean of replies, so that a median of means may replace
            it.
        then: the following phases, as far as they are known.
    """

    kind: str
    people: int
    tasks: Callable[[int, int], Task]
    count: Callable[[Any, FloatArray], Summary]
    so_far: Callable[[], Result]
    at_once: bool = False
    averaged: bool = False
    then: Sequence[Step] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "people", _validate.whole("people", self.people, least=0))

    @property
    def nobody(self) -> Summary:
        """The summary of no replies."""
        task = self.tasks(0, 0)
        return self.count(task, np.zeros((0, task.width)))

    @property
    def hash(self) -> str:
        """SHA-256 of kind, number of people, and the tasks of the first tickets and the last.

        Numbers are rounded to 30 bits relative to the largest one in their array, because machines
        may differ in the last bits. Code that issues different tasks changes earlier bits.
        """
        asked = [self.tasks(0, min(_HASHED, self.people))]
        if asked[0].own_fields():  # otherwise all tickets have equal tasks
            asked.append(self.tasks(self.people - 1, 1))
        text = json.dumps([self.kind, self.people, _rounded(asked)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


Study = Generator[Phase, Summary, Result]
"""A generator that yields phases, receives their summaries, and returns the result. It can delegate
to other generators by ``yield from``."""

D = TypeVar("D", bound=Design)
_studies: dict[str, Callable[[Any, StudyPlan], Study]] = {}


def study(
    name: str,
) -> Callable[[Callable[[D, StudyPlan], Study]], Callable[[D, StudyPlan], Study]]:
    """Register a study for the designs of this name.

    The generator refuses invalid plans before its first phase.
    """

    def register(make: Callable[[D, StudyPlan], Study]) -> Callable[[D, StudyPlan], Study]:
        if name in _studies:
            raise InvalidParameter("name", "unused by another study", name)
        _studies[name] = make
        return make

    return register


def studies() -> dict[str, Callable[[Any, StudyPlan], Study]]:
    """Every registered study, by the name of its design."""
    for home in _HOMES:
        import_if_possible(home)
    return dict(sorted(_studies.items()))


def _named(name: str) -> Callable[[Any, StudyPlan], Study]:
    for home in _HOMES:  # in this order, because the last one may be slow to import
        if name in _studies:
            break
        import_if_possible(home)
    if name not in _studies:
        raise UnknownName("study", name, sorted(_studies))
    return _studies[name]


class Run:
    """A running study: its generator, and the summaries that it received.

    Args:
        plan: the public contract.
        make: the study; by default the one registered for the plan's design.

    Attributes:
        phase: number of the current phase, from 0.
    """

    _present: Phase | None
    _hash: str | None  # of the current phase
    _sums: Summary | None  # of its replies so far
    _result: Result | None

    def __init__(
        self, plan: StudyPlan, make: Callable[[Any, StudyPlan], Study] | None = None
    ) -> None:
        _ = plan.asks  # refuses a plan that does not fit its design, also under python -O
        design = plan.built_design
        self.plan, self.phase = plan, 0
        self._steps: list[Step] = []
        self._passed: list[dict[str, Any]] = []
        self._make, self._study = make, (make or _named(design.name))(design, plan)
        self._go_on(None)

    def __getstate__(self) -> dict[str, Any]:
        """A generator cannot be copied: an unfinished study is replayed from its summaries."""
        if self.finished:
            return {**self.__dict__, "_study": None}
        return {"plan": self.plan, "make": self._make, "state": self.state()}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Replay the study from its summaries."""
        if "state" not in kept:
            self.__dict__.update(kept)
            return
        Run.__init__(self, kept["plan"], kept["make"])
        self.restore(kept["state"])

    @property
    def finished(self) -> bool:
        """Whether every phase is over."""
        return self._present is None

    @property
    def present(self) -> Phase:
        """The current phase."""
        if self._present is None:
            raise ProtocolError("the study is finished")
        return self._present

    @property
    def quota(self) -> int:
        """Number of people of the current phase; 0 when the study is finished."""
        return 0 if self._present is None else self._present.people

    @property
    def kind(self) -> str:
        """The kind of the current phase; ``finished`` at the end."""
        return "finished" if self._present is None else self._present.kind

    @property
    def at_once(self) -> bool:
        """Whether the current phase counts all its replies together."""
        return self._present is not None and self._present.at_once

    @property
    def averaged(self) -> bool:
        """Whether the summary of the current phase is the mean of its replies."""
        return self._present is not None and self._present.averaged

    @property
    def steps(self) -> list[Step]:
        """The finished phases, the current one, and the following ones as far as they are known."""
        if self._present is None:
            return list(self._steps)
        return [*self._steps, Step(self.kind, self.quota), *self._present.then]

    def tasks(self, start: int, people: int) -> Task:
        """The tasks of tickets start, ..., start + people - 1 of the current phase."""
        return self.present.tasks(start, people)

    def absorb(self, task: Task, reply: FloatArray) -> None:
        """Count checked replies to some tickets of the current phase, in any order."""
        if self._sums is not None and self.at_once:
            raise ProtocolError("the replies of this phase are counted all at once")
        self._sums = _added(self._sums, self.present.count(task, reply))

    def close(self) -> None:
        """End the current phase with the replies received so far, and begin the next one."""
        found = self.present.nobody if self._sums is None else self._sums
        self._pass({name: np.asarray(found[name]).tolist() for name in sorted(found)})

    @property
    def result(self) -> Result:
        """The current result; during a phase, the result before it."""
        if self._result is None:
            found = self.present.so_far()
            self._result = found._replace(findings=replace(found.findings, phases=self.steps))
        return self._result

    def state(self) -> dict[str, Any]:
        """Summaries of all finished phases and of the current one, as exact plain values."""
        sums = self._sums
        return {
            "passed": list(self._passed),
            "asked": self._hash,
            "sums": None if sums is None else {name: sums[name].tolist() for name in sums},
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Replay a study up to the given state; this run must be at its beginning."""
        for passed in state["passed"]:
            self._require(passed["asked"])
            self._pass(passed["summary"])
        self._require(state["asked"])
        self._sums = None if state["sums"] is None else _arrays(state["sums"])

    @property
    def summaries(self) -> list[Summary]:
        """Summaries of the finished phases, in order."""
        return [_arrays(passed["summary"]) for passed in self._passed]

    def joined_by(self, others: Sequence[Summary]) -> Run:
        """The same study, replayed with the sums of its summaries and others.

        It is refused if a later phase would then have issued different tasks.

        Args:
            others: one summary for each finished phase.
        """
        sums = [_added(own, more) for own, more in zip(self.summaries, others, strict=True)]
        passed = [
            kept | {"summary": {name: found[name].tolist() for name in found}}
            for kept, found in zip(self._passed, sums, strict=True)
        ]
        run = Run(self.plan, self._make)
        run.restore(self.state() | {"passed": passed})
        return run

    def _require(self, asked: str | None) -> None:
        """Refuse to continue a study whose phase differs from the stored one."""
        if asked != self._hash:
            raise ChangedStudy(
                f"phase {self.phase} of the stored study asked something else than this program "
                f"would ({self.kind}): go on with the program that began the study"
            )

    def _pass(self, summary: dict[str, Any]) -> None:
        if self.quota:
            self._passed.append({"asked": self._hash, "summary": summary})
        self._steps.append(Step(self.kind, self.quota))
        self.phase += 1
        self._go_on(_arrays(summary))

    def _go_on(self, summary: Summary | None) -> None:
        self._present = self._hash = self._sums = self._result = None
        try:
            self._present = self._study.send(summary)  # type: ignore[arg-type]  # None at first
        except StopIteration as end:
            found: Result = end.value
            self._result = found._replace(findings=replace(found.findings, phases=self.steps))
            return
        if self.quota:
            self._hash = self._present.hash
        else:
            self.close()


def _added(sums: Summary | None, more: Summary) -> Summary:
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in more.items()}
    return arrays if sums is None else {name: sums[name] + arrays[name] for name in sums}


def _arrays(stored: Mapping[str, Any]) -> Summary:
    """A summary in the form in which it is read from storage, so that stored and new ones agree.

    An array without rows loses the number of its columns.
    """
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in stored.items()}
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ProtocolError("the summary of a phase must be made of finite numbers")
    return arrays


def _rounded(value: object) -> object:
    """A public value as JSON for a hash; the numbers of an array are rounded together."""
    if is_dataclass(value):
        named = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        return [type(value).__name__, _rounded(named)]
    if isinstance(value, Mapping):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(part) for part in value]
    if isinstance(value, (float, np.ndarray)):
        return _whole(np.asarray(value))
    return value


def _whole(array: npt.NDArray[Any]) -> list[Any]:
    """Shape and entries of an array, as integer multiples of a step.

    The step is 2^-30 times a power of 2 above the largest entry. If that entry is a power of 2 up
    to rounding, the next power is used. Integers are not changed.
    """
    scale = _HASHED_BITS
    if array.dtype.kind == "f":
        scale = math.frexp(float(np.abs(array).max(initial=0.0)) * (1 + 2.0**-40))[1]
        array = np.rint(np.ldexp(array, _HASHED_BITS - scale))
    return [list(array.shape), scale, array.astype("<i8").tobytes().hex()]
