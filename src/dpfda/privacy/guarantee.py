"""The guarantee of a release, as a value that is stored with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from html import escape
from typing import Literal

from dpfda import _validate
from dpfda._registry import Portable
from dpfda.noise import Source
from dpfda.noise.source import Sampler

Model = Literal["local", "central", "decentralized"]

NUMBER_IS_PUBLIC = "the number of records is public"
EMPTY_RECORDS_ARE_PUBLIC = "which records have no data is public"
CLASSES_ARE_PUBLIC = "the set of labels is public"
WEIGHTS_ARE_INDIVIDUAL = "no weight depends on other people's records"
LABELS_ARE_PUBLIC = "labels are public"
CURVES_ARE_PUBLIC = "curves are public"
SITE_SIZES_ARE_PUBLIC = "each site's number of records is public"
SITES_DRAW_THEIR_NOISE = "every site draws its own noise from the operating system"
ONE_PROCESS_SEES_ALL = "whoever ran this rehearsal may see every site's rows"
ROWS_ARE_PUBLIC = "the largest and the mean number of rows of an owner are public"
USER_IS_NOT_PROTECTED = "the data user's own rows are not protected"
"""Texts of assumptions; data holders accept or refuse these exact texts."""

_further: ContextVar[tuple[str, ...]] = ContextVar("further assumptions", default=())


@contextmanager
def assuming(*assumptions: str) -> Iterator[None]:
    """Add these assumptions to everything that a curator releases in this block.

    They describe how the records were read, for example that rows were left out. Guarantees and
    ledger entries list them.
    """
    token = _further.set((*_further.get(), *assumptions))
    try:
        yield
    finally:
        _further.reset(token)


def further_assumptions() -> tuple[str, ...]:
    """The assumptions of all `assuming` blocks around the caller."""
    return _further.get()


_SAMPLERS = {
    "exact": "exact",
    "simulation": "simulation (seeded)",
    "unknown": "each person's own",
}


@dataclass(frozen=True, kw_only=True)
class Guarantee(Portable):
    """The differential privacy guarantee of one release.

    For neighboring data, which differ in one unit, P(A) ≤ e^ε P'(A) + δ for every set A of results.

    Attributes:
        epsilon: ε.
        delta: δ; 0 is pure ε-differential privacy.
        model: who adds the noise. ``local``: each person; ``central``: a trusted curator;
            ``decentralized``: sites that share no raw data.
        unit: the protected unit: ``person``, ``owner``, ``sample``, ``scan``, ...
        relation: the neighboring relation; always ``replace one``, so the number of units is
            public.
        sampler: ``exact`` noise from entropy of the operating system; a seeded ``simulation``,
            which protects nobody; or ``unknown`` if the noise was drawn elsewhere, for example on
            people's devices.
        assumptions: further conditions of the guarantee, in words.

    Examples:
        >>> print(Guarantee(epsilon=0.5, model="local"))
        ε = 0.5, local, unit = person, sampler = exact
    """

    epsilon: float = field(kw_only=False)
    delta: float = 0.0
    model: Model = "central"
    unit: str = "person"
    relation: Literal["replace one"] = "replace one"
    sampler: Sampler | Literal["unknown"] = "exact"
    assumptions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _validate.non_negative("epsilon", self.epsilon)
        _validate.delta("delta", self.delta)
        object.__setattr__(self, "assumptions", tuple(self.assumptions))

    def drawn_from(self, source: Source) -> Guarantee:
        """The same guarantee, with the sampler of the source of its noise."""
        return replace(self, sampler=source.sampler)

    def assuming(self, *assumptions: str) -> Guarantee:
        """The same guarantee under further assumptions."""
        return replace(self, assumptions=(*self.assumptions, *assumptions))

    def _repr_html_(self) -> str:
        """HTML for notebooks: a line for each part of the guarantee."""
        facts = [("ε", f"{self.epsilon:g}"), ("δ", f"{self.delta:g}"), ("model", self.model)]
        facts += [("unit", self.unit), ("noise", _SAMPLERS[self.sampler])]
        return as_table([*facts, *(("assuming", one) for one in self.assumptions)])

    def __str__(self) -> str:
        parts = [f"ε = {self.epsilon:g}"]
        if self.delta:
            parts.append(f"δ = {self.delta:g}")
        parts += [self.model, f"unit = {self.unit}"]
        parts.append(f"sampler = {_SAMPLERS[self.sampler]}")
        parts += [f"assuming {assumption}" for assumption in self.assumptions]
        return ", ".join(parts)


def as_table(
    rows: Iterable[Sequence[object]], *, headings: Sequence[str] = (), note: str = ""
) -> str:
    """HTML of a table, all text escaped.

    Examples:
        >>> as_table([("ε", "1 < 2")])
        '<table><tbody><tr><td>ε</td><td>1 &lt; 2</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in headings)
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{head}<tbody>{body}</tbody></table>{below}"
