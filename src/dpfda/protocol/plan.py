"""The public contract of a study, fixed before the first person takes part, and its design.

A design lists the tasks that the study may ask, and participants check every task against it. It
contains only what a person's device needs: frozen public parameters, and `asks`. The computation on
the server is the study of the same name (`protocol.study`), which may need more packages.

The hash of a plan is computed from its canonical JSON, which is the same in every language. The
rules are those of RFC 8785 (JSON Canonicalization Scheme): no spaces, names sorted by their UTF-16
units, text in UTF-8 with the fewest escapes, numbers as ECMAScript writes them. Many languages have
a library for it, and JavaScript needs none. A number has the same form for all types: 1, 1.0 and
1e0 are written ``1``.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import abstractmethod
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

import numpy as np

from dpfda import _validate
from dpfda._registry import Portable, Registered, revive
from dpfda.curves import CurveEncoder, read_encoder
from dpfda.errors import InvalidParameter, ProtocolError
from dpfda.privacy.guarantee import CURVES_ARE_PUBLIC, LABELS_ARE_PUBLIC, Guarantee
from dpfda.protocol.fields import Array, Part, declared
from dpfda.protocol.task import Task

Terms = Mapping[str, Any]
"""Allowed fields of a task and lengths of its arrays, by name: one value, a `range` that contains
all entries, or a tuple of possible values."""


@dataclass(frozen=True, kw_only=True)
class Design(
    Registered,
    family="design",
    homes=(
        "dpfda.local.study.design",
        "dpfda.local.single_reports",
        "dpfda.local.mrma",
        "dpfda.local.boosting",
    ),
):
    """The public parameters of a method: MRMA, moments, answers, ..."""

    predicts_numbers: ClassVar[bool] = False
    """Whether people have a number in the plan's target range instead of a label."""

    @abstractmethod
    def asks(self, plan: StudyPlan) -> Mapping[str, Terms]:
        """Every task that the study may ask under this plan, by name, with the terms of its fields.

        If ``epsilon`` and ``unit`` are omitted, they are those of the plan. Other omitted fields
        have their default values. Arrays of real numbers are free within their declared ranges;
        an omitted length is 0.
        """


def check_shares(design: object) -> None:
    """Refuse invalid shares of participants for evaluation and recalibration."""
    total = 0.0
    for name in ("evaluation_share", "temperature_share"):
        share = getattr(design, name, 0.0)
        total += share
        if not 0 <= share < 1:
            raise InvalidParameter(name, "0, or strictly between 0 and 1", share)
        if total >= 1:
            raise InvalidParameter(name, "below 1 together with evaluation_share", share)


def check_terms(task: Task, terms: Terms) -> None:
    """Refuse a task that the terms of its design do not allow."""
    rules = declared(type(task))
    for name, (rule, default) in rules.items():
        free = isinstance(rule, Part) or (isinstance(rule, Array) and rule.kind == "real")
        if name == "people" or (free and name not in terms):
            continue
        wanted = terms.get(name, default)
        if not _agrees(getattr(task, name), wanted):
            raise ProtocolError(f"{name} of a {task.name} task must be {wanted} here")
    for name, size in task.sizes.items():
        if name not in rules and not _agrees(size, terms.get(name, 0)):
            raise ProtocolError(f"a {task.name} task of {name} = {size} is not asked here")


def _agrees(given: object, wanted: object) -> bool:
    if isinstance(wanted, tuple):
        return any(_agrees(given, one) for one in wanted)
    if isinstance(wanted, range):
        entries = np.asarray(given)
        return bool(np.all((entries >= wanted.start) & (entries < wanted.stop)))
    same = given == wanted
    return same if isinstance(same, bool) else bool(np.all(same))


MOST_WHOLE = 2**53 - 1
"""The largest integer that every JSON parser represents exactly."""

_POINT_UNTIL = 21  # most digits before the point without an exponent
_POINT_FROM = -6  # minus the most zeros after the point without an exponent
_PARTS = re.compile(r"(\d+)(?:\.(\d+))?(?:e([+-]\d+))?")


def canonical(value: object) -> bytes:
    """The canonical JSON of plain values.

    Examples:
        >>> canonical({"seed": 0, "epsilon": 1.0, "classes": ["no", 2.5, True, None]})
        b'{"classes":["no",2.5,true,null],"epsilon":1,"seed":0}'
    """
    return "".join(_pieces(value)).encode()


def _pieces(value: object) -> list[str]:
    if isinstance(value, Mapping):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        inner = [[_text(name), ":", *_pieces(value[name])] for name in names]
        return ["{", *_separated(inner), "}"]
    if isinstance(value, (list, tuple)):
        return ["[", *_separated([_pieces(entry) for entry in value]), "]"]
    if value is None or isinstance(value, bool):
        return [{None: "null", True: "true", False: "false"}[value]]
    return [_text(value) if isinstance(value, str) else number_text(cast("float", value))]


def _separated(parts: list[list[str]]) -> list[str]:
    return [piece for k, part in enumerate(parts) for piece in ([","] if k else []) + part]


def _text(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def number_text(value: float) -> str:
    """A finite number as ECMAScript writes it, with the fewest digits that determine it.

    Numbers with up to 21 digits before the point, or up to 6 zeros after it, are written without an
    exponent. Others have one digit before the point, and an exponent.

    Examples:
        >>> [number_text(x) for x in (1.0, -0.0, 0.1, 1e20, 1e21, 1e-6, 1.5e-7)]
        ['1', '0', '0.1', '100000000000000000000', '1e+21', '0.000001', '1.5e-7']
    """
    if isinstance(value, int) and abs(value) > MOST_WHOLE:
        raise InvalidParameter("number", f"an integer up to {MOST_WHOLE} in size", value)
    if not math.isfinite(value):
        raise InvalidParameter("number", "finite", value)
    found = _PARTS.fullmatch(repr(abs(float(value))))
    assert found is not None
    whole, fraction, power = found[1], found[2] or "", int(found[3] or 0)
    digits = (whole + fraction).lstrip("0")
    # The number is 0.DIGITS times 10^place.
    place = len(whole) + power - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    return ("-" if value < 0 else "") + _laid_out(digits, place)


def _laid_out(digits: str, place: int) -> str:
    if len(digits) <= place <= _POINT_UNTIL:
        return digits.ljust(place, "0")
    if 0 < place <= _POINT_UNTIL:
        return f"{digits[:place]}.{digits[place:]}"
    if _POINT_FROM < place <= 0:
        return "0." + "0" * -place + digits
    more = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{more}e{place - 1:+d}"


Protects = Literal["both", "features", "labels"]
Label = str | int | float | bool

MOST_TITLE, MOST_UNIT = 200, 100  # characters
MOST_PEOPLE = 10**9  # limited, because a server stores a mark for every person


@dataclass(frozen=True, kw_only=True)
class StudyPlan(Portable):
    """The public contract of a study, fixed before anybody reports.

    Its hash identifies the study. A person who knows the hash can check that a received plan is the
    one that they agreed to.

    Attributes:
        epsilon: the ε that one person spends in this study, once.
        n_people: the public number of participants.
        encoder: maps a curve to a vector in [-1, 1]^d.
        classes: the label values, in order; label number c means ``classes[c]``. Empty if a number
            is predicted.
        target_range: public (low, high) of a predicted number; values outside are clipped.
        information: text that participants read before they consent: version, institution, contact,
            purpose, and further entries (`check_information`). Empty if there is none.
        design: what the server does with the replies: a registered name and its parameters.
        protects: ``both``; or ``features`` or ``labels`` if the other one is public anyway.
        unit: the unit of protection: what one report covers, such as a person.
        seed: seed of the study's *public* randomness, which assigns questions to people.
        title: title for readers.

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
    information: Mapping[str, str] = field(default_factory=dict)

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
        object.__setattr__(self, "information", check_information(self.information))
        self._check_classes()
        revive(self, "encoder", read_encoder)
        if not isinstance(self.encoder, CurveEncoder):
            raise InvalidParameter("encoder", "an encoder", type(self.encoder).__name__)
        _ = self.encoder.n_features  # refuses an encoder that cannot work
        object.__setattr__(self, "encoder", copy(self.encoder))  # the original is mutable
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "design", dict(self.design))

    def _check_classes(self) -> None:
        if isinstance(self.classes, str) or not isinstance(self.classes, (list, tuple)):
            raise InvalidParameter("classes", "a list of labels", self.classes)
        for label in self.classes:
            # NaN is not equal to itself, so nobody could have such a label.
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

    def to_dict(self) -> dict[str, Any]:
        """Public fields, ready for JSON; empty information is omitted."""
        found = super().to_dict()
        if not self.information:
            del found["information"]
        return found

    @property
    def n_classes(self) -> int:
        """K, the number of labels; 0 if a number is predicted."""
        return len(self.classes)

    @property
    def what_is_learnt(self) -> str:
        """The labels, or the range of the predicted number, as text for readers."""
        if self.target_range is None:
            return f"labels: {', '.join(map(str, self.classes))}"
        return "target: a number from {:g} to {:g}".format(*self.target_range)

    @property
    def n_scores(self) -> int:
        """The number of scores: 1 for two classes, otherwise one for each class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def positives(self) -> int | range:
        """The label numbers that may count as +1: number 1 of two classes; of several, any."""
        return 1 if self.n_classes == 2 else range(self.n_classes)

    @cached_property
    def built_design(self) -> Design:
        """The design as an object; unknown names and parameters are refused."""
        return Design.from_dict(self.design)

    @cached_property
    def asks(self) -> Mapping[str, Terms]:
        """Every task that the study may ask, with its fixed values."""
        design = self.built_design
        if design.predicts_numbers != (self.target_range is not None):
            rule = f"{'given' if design.predicts_numbers else 'None'} with design {design.name}"
            raise InvalidParameter("target_range", rule, self.target_range)
        common = {"epsilon": self.epsilon, "unit": self.unit}
        return {name: common | dict(terms) for name, terms in design.asks(self).items()}

    @cached_property
    def guarantee(self) -> Guarantee:
        """The guarantee of every participant whose device draws noise correctly."""
        promise = Guarantee(epsilon=self.epsilon, model="local", unit=self.unit, sampler="unknown")
        other = {"features": LABELS_ARE_PUBLIC, "labels": CURVES_ARE_PUBLIC}
        return promise if self.protects == "both" else promise.assuming(other[self.protects])

    @property
    def stamp(self) -> dict[str, Any]:
        """The fields of every model of the study: encoder, classes or target range, guarantee."""
        common = {"encoder": self.encoder, "guarantee": self.guarantee}
        if self.target_range is not None:
            return common | {"target_range": self.target_range}
        return common | {"classes": self.classes}

    def check_accepted(self, accepted: Collection[str]) -> None:
        """Refuse the plan for a holder who did not accept all its assumptions."""
        for assumption in self.guarantee.assumptions:
            if assumption not in accepted:
                raise ProtocolError(f"the study assumes that {assumption}: this was not agreed to")

    def ask(self, name: str, people: int, **free: Any) -> Task:
        """A task of this study, with the fields that the design fixes and the other ones.

        Args:
            name: registered name of the task.
            people: the number of people.
            free: the fields that the design does not fix.
        """
        kind, terms = Task.named(name), self.asks[name]
        fixed = {
            field: terms[field]
            for field in declared(kind)
            if field in terms and not isinstance(terms[field], (range, tuple))
        }
        return kind(**(fixed | {"people": people} | free))

    def check(self, task: Task) -> None:
        """Refuse a task that this study may not ask, such as one with another name, ε or size."""
        if task.name not in self.asks:
            raise ProtocolError(f"this study asks no {task.name} task")
        check_terms(task, self.asks[task.name])

    def read_task(self, sent: object) -> Task:
        """Read a received task if this study may ask it; refuse it before any import otherwise."""
        name = sent.get("name") if isinstance(sent, Mapping) else None
        if not isinstance(sent, Mapping) or not isinstance(name, str) or name not in self.asks:
            raise ProtocolError("this study asks no such task")
        try:
            task = Task.from_dict(sent)
        except Exception:  # a hostile sender may cause any error
            raise ProtocolError("the task cannot be understood") from None
        self.check(task)
        return task

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the plan's canonical JSON, which is the same in every language."""
        return hashlib.sha256(canonical(self.to_dict())).hexdigest()


INFORMATION_NEEDED = ("version", "institution", "contact", "purpose")
"""Entries that the information for participants must have."""

INFORMATION_OPTIONAL = ("officer", "approval", "risks", "retention", "results")
"""Further entries: the data protection officer, the approval of an ethics board, and what the
organizer states on risks, on how long replies are stored, and on results."""

MOST_CHARACTERS = 2000


def check_information(given: object) -> dict[str, str]:
    """Check the information that participants read before they consent, and order its entries.

    The information is part of the plan and its hash, so a change of one word makes a different
    study. An empty mapping is allowed and means no information.

    Raises:
        InvalidParameter: an entry is missing, unknown, or not one paragraph of printable text.

    Examples:
        >>> whole = {"version": "1", "institution": "A", "contact": "B", "purpose": "C"}
        >>> list(check_information({"officer": "D"} | whole))
        ['version', 'institution', 'contact', 'purpose', 'officer']
    """
    if not isinstance(given, Mapping):
        raise InvalidParameter("information", "named texts", type(given).__name__)
    for name in given:
        if name not in INFORMATION_NEEDED + INFORMATION_OPTIONAL:
            rule = f"one of {', '.join(INFORMATION_NEEDED + INFORMATION_OPTIONAL)}"
            raise InvalidParameter("information", rule, name)
    for name in INFORMATION_NEEDED if given else ():
        if name not in given:
            others = [one for one in INFORMATION_NEEDED if one != name]
            rule = f"given (with {', '.join(others[:-1])} and {others[-1]})"
            raise InvalidParameter(name, rule, None)
    for name, words in given.items():
        if not isinstance(words, str) or not words.isprintable():
            raise InvalidParameter(name, "one paragraph of printable text", words)
        if not 1 <= len(words) <= MOST_CHARACTERS:
            rule = f"1 to {MOST_CHARACTERS} characters"
            raise InvalidParameter(name, rule, f"{len(words)}")
    return {
        name: given[name] for name in INFORMATION_NEEDED + INFORMATION_OPTIONAL if name in given
    }
