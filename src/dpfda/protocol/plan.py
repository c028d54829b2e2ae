"""The public contract of a study, fixed before the first person takes part."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from dpfda import _validate
from dpfda._registry import Portable
from dpfda.curves import CurveEncoder, read_encoder
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.privacy.guarantee import CURVES_ARE_PUBLIC, LABELS_ARE_PUBLIC, Guarantee
from dpfda.protocol.canonical import MOST_WHOLE, canonical
from dpfda.protocol.design import Design, Terms, check_terms
from dpfda.protocol.fields import declared
from dpfda.protocol.task import Task

Protects = Literal["both", "features", "labels"]
Label = str | int | float | bool

MOST_TITLE, MOST_UNIT = 200, 100  # characters
MOST_PEOPLE = 10**9  # a server keeps a mark for everybody: what a form asks for must fit


@dataclass(frozen=True, kw_only=True)
class StudyPlan(Portable):
    """Everything that people are told before they report, and that nobody may change afterwards.

    Its hash identifies the study: a person who was given the hash can check that the plan they
    fetched is the one they agreed to.

    Attributes:
        epsilon: what one person spends in this study, once.
        n_people: how many people take part; public.
        encoder: how a curve becomes a vector in [-1, 1]^d.
        classes: the label values, in order; label number c means ``classes[c]``. None of them
            where a number is predicted.
        target_range: instead, the public (low, high) of that number; values outside are clipped.
        design: what the server does with the replies: a registered name and its parameters.
        protects: ``both``; or ``features``, ``labels`` if the other one is public anyway.
        unit: whose data one report covers.
        seed: seed of the study's *public* randomness (who is asked what).
        title: for people to read.

    Examples:
        >>> plan = StudyPlan(
        ...     epsilon=1.0, n_people=1000, encoder=CurveEncoder(n_basis=4), classes=(0, 1),
        ...     design={"name": "moments"},
        ... )
        >>> StudyPlan.from_dict(plan.to_dict()).hash == plan.hash
        True
        >>> print(plan.guarantee)
        ε = 1, local, unit = person, sampler = each person's own
    """

    epsilon: float
    n_people: int
    encoder: CurveEncoder
    classes: tuple[Label, ...] = ()
    design: Mapping[str, Any] = field(default_factory=dict)
    protects: Protects = "both"
    unit: str = "person"
    seed: int = 0
    title: str = ""
    target_range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _validate.positive("epsilon", self.epsilon))
        _validate.whole("n_people", self.n_people, most=MOST_PEOPLE)
        _validate.whole("seed", self.seed, least=0, most=MOST_WHOLE)
        _validate.one_of("protects", self.protects, ("both", "features", "labels"))
        for name, least, most in (("unit", 1, MOST_UNIT), ("title", 0, MOST_TITLE)):
            word = getattr(self, name)
            if not isinstance(word, str):
                raise InvalidParameter(name, "a word", word)
            if not least <= len(word) <= most or not word.isprintable():
                raise InvalidParameter(name, f"{least} to {most} printable characters", word)
        if not isinstance(self.design, Mapping):
            raise InvalidParameter("design", "a mapping", self.design)
        self._check_classes()
        self._revive("encoder", read_encoder)
        if not isinstance(self.encoder, CurveEncoder):
            raise InvalidParameter("encoder", "an encoder", type(self.encoder).__name__)
        _ = self.encoder.n_features  # refused here, where it cannot work
        object.__setattr__(self, "encoder", copy(self.encoder))  # its parameters may be set anew
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "design", dict(self.design))

    def _check_classes(self) -> None:
        if isinstance(self.classes, str) or not isinstance(self.classes, (list, tuple)):
            raise InvalidParameter("classes", "a list of labels", self.classes)
        for label in self.classes:
            # NaN equals nothing, itself included: nobody could have such a label.
            odd = isinstance(label, float) and not math.isfinite(label)
            if odd or not isinstance(label, Label):
                raise InvalidParameter("classes", "words, finite numbers, true or false", label)
            if isinstance(label, int) and abs(label) > MOST_WHOLE:
                rule = f"at most {MOST_WHOLE} in size, where they are integers"
                raise InvalidParameter("classes", rule, label)
            if isinstance(label, str) and not (label.isprintable() and len(label) <= MOST_TITLE):
                rule = f"of at most {MOST_TITLE} printable characters each"
                raise InvalidParameter("classes", rule, label)
        if self.target_range is not None:
            target = _validate.interval("target_range", self.target_range)
            object.__setattr__(self, "target_range", target)
            if len(self.classes):
                raise InvalidParameter("classes", "left out with target_range", self.classes)
        elif len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise InvalidParameter("classes", "at least two different labels", self.classes)

    @property
    def n_classes(self) -> int:
        """K, the number of labels; 0 where a number is predicted."""
        return len(self.classes)

    @property
    def what_is_learnt(self) -> str:
        """The labels, or the range of a number, for people to read."""
        if self.target_range is None:
            return f"labels: {', '.join(map(str, self.classes))}"
        return "target: a number from {:g} to {:g}".format(*self.target_range)

    @property
    def n_scores(self) -> int:
        """One for two classes, else one a class against the rest."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def positives(self) -> int | range:
        """The label numbers that may count as +1: number 1 of two classes, else any."""
        return 1 if self.n_classes == 2 else range(self.n_classes)

    @cached_property
    def built_design(self) -> Design:
        """The design as an object; unknown names and parameters are refused."""
        return Design.from_dict(self.design)

    @cached_property
    def asks(self) -> Mapping[str, Terms]:
        """Every task that people may be asked in this study, and what is fixed of each."""
        design = self.built_design
        if design.predicts_numbers != (self.target_range is not None):
            rule = f"{'given' if design.predicts_numbers else 'None'} with design {design.name}"
            raise InvalidParameter("target_range", rule, self.target_range)
        common = {"epsilon": self.epsilon, "unit": self.unit}
        return {name: common | dict(terms) for name, terms in design.asks(self).items()}

    @cached_property
    def guarantee(self) -> Guarantee:
        """What every person is promised, if their own device draws as it should."""
        promise = Guarantee(epsilon=self.epsilon, model="local", unit=self.unit, sampler="unknown")
        other = {"features": LABELS_ARE_PUBLIC, "labels": CURVES_ARE_PUBLIC}
        return promise if self.protects == "both" else promise.assuming(other[self.protects])

    @property
    def stamp(self) -> dict[str, Any]:
        """What every model of the study bears: encoder, classes or target range, and guarantee."""
        common = {"encoder": self.encoder, "guarantee": self.guarantee}
        if self.target_range is not None:
            return common | {"target_range": self.target_range}
        return common | {"classes": self.classes}

    def check_accepted(self, accepted: Collection[str]) -> None:
        """Refuse for a holder who did not agree to all that this plan takes for granted."""
        for assumption in self.guarantee.assumptions:
            if assumption not in accepted:
                raise ProtocolError(f"the study assumes that {assumption}: this was not agreed to")

    def ask(self, name: str, people: int, **free: Any) -> Task:
        """A task as this study asks it: what the design fixes of it, and what it leaves free.

        Args:
            name: registered name of the task.
            people: of how many.
            free: the other fields.
        """
        kind, terms = Task.named(name), self.asks[name]
        fixed = {
            field: terms[field]
            for field in declared(kind)
            if field in terms and not isinstance(terms[field], (range, tuple))
        }
        return kind(**(fixed | {"people": people} | free))

    def check(self, task: Task) -> None:
        """Refuse a task that this study may not ask: another kind, price, size, protection."""
        if task.name not in self.asks:
            raise ProtocolError(f"this study asks no {task.name} task")
        check_terms(task, self.asks[task.name])

    def read_task(self, sent: Any) -> Task:
        """A task that somebody sent, if this study may ask it; nothing is imported for others."""
        name = sent.get("name") if isinstance(sent, Mapping) else None
        if not isinstance(name, str) or name not in self.asks:
            raise ProtocolError("this study asks no such task")
        try:
            task = Task.from_dict(sent)
        except Exception:  # whatever a hostile sender found
            raise ProtocolError("the task cannot be understood") from None
        self.check(task)
        return task

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan's canonical JSON, as any language can compute it."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()
