"""The common JSON form of public documents: models, releases, regressions.

    {"format": 1, "kind": "release", "guarantee": {"epsilon": 1.0, ...},
     "verdict": {"kind": "noise", "sentences": [...]}, ... what the kind holds}

Each class defines the fields of its documents by a `Body`. Errors about invalid documents name the
field. `schema` is the JSON Schema of all kinds.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import msgspec

from dpfda._registry import plain, public_fields
from dpfda.errors import InvalidData
from dpfda.privacy.deployment import Deployment
from dpfda.privacy.guarantee import Guarantee
from dpfda.privacy.ledger import BaseLedger
from dpfda.report import Contents, Report, Verdict
from dpfda.report.report import fragment

HOMES = {
    "curve model": "dpfda.protocol.model:CurveModel",
    "curve regression": "dpfda.protocol.model:CurveRegression",
    "moments": "dpfda.central.moments.curve_moments:CurveMoments",
    "regression": "dpfda.central.regression.model:RegressionModel",
    "release": "dpfda.central.release:Release",
    "row model": "dpfda.local.boosting.model:RowModel",
    "vote model": "dpfda.local.mrma.rules:VoteModel",
}
"""The class of each kind of document."""


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Fields of all documents; the verdict is for readers and is computed from the others."""

    format: Literal[1] = 1
    kind: str
    guarantee: Guarantee
    verdict: Verdict = Verdict(kind="unclear")
    band: dict[str, list[float]] | None = None  # curves with their bands, by name of the column


_HEAD = {"format", "kind", "verdict", "band"}


class Documented(ABC):
    """Base of public results that can be saved and loaded."""

    kind: ClassVar[str]
    body: ClassVar[type[Body]]
    guarantee: Guarantee

    def _fields(self) -> dict[str, Any]:
        """Fields of the body beside kind and guarantee: by default those of the object."""
        return {name: part for name, part in public_fields(self).items() if name != "guarantee"}

    @classmethod
    def _from_body(cls, body: dict[str, Any]) -> Self:
        """The object that the fields of a checked body describe."""
        return cls(**body)

    @abstractmethod
    def _deployment(self) -> Deployment:
        """The public facts about it."""

    def method_paragraph(self) -> str:
        """A paragraph about method and guarantee for a paper, with references."""
        return self._deployment().paragraph()

    def deployment_record(
        self, *, curator: str, data: str, date: str, ledger: BaseLedger | None = None, **more: str
    ) -> dict[str, Any]:
        """An entry for a public registry of deployments, of plain values; see `Deployment.record`.

        Args:
            curator: who holds the data and is responsible for the release.
            data: whose data they are and what they contain.
            date: day of publication, as 2026-01-31.
            ledger: ledger of the data set, which lists other releases.
            more: `purpose`, `contact`.
        """
        return self._deployment().record(
            curator=curator, data=data, date=date, ledger=ledger, **more
        )

    @cached_property
    def verdict(self) -> Verdict:
        """Whether it shows more than noise, as one word and in sentences; costs no budget."""
        return self._judged()

    @abstractmethod
    def _judged(self) -> Verdict:
        """The verdict on this kind of result, from public numbers only."""

    def columns(self) -> dict[str, list[float]]:
        """Released curves with the ends of their 95 % bands, by name; empty for other results."""
        return {}

    @abstractmethod
    def _contents(self) -> Contents:
        """The contents of a report."""

    def report(
        self,
        *,
        contents: Contents | None = None,
        ledger: BaseLedger | None = None,
        **more: str,
    ) -> Report:
        """The report, on one page: ``report().write("report.html")``.

        Args:
            contents: contents instead of the default ones of this document.
            ledger: ledger of the data set, to state how much is spent.
            more: `title`, and facts for the record: see `Report.of`.
        """
        return Report.of(self._deployment(), contents or self._contents(), ledger=ledger, **more)

    def _repr_html_(self) -> str:
        """HTML for notebooks: verdict, tables and pictures; the rest is collapsed."""
        return fragment(self.report())

    def to_dict(self) -> dict[str, Any]:
        """The document as plain values."""
        head = {"format": 1, "kind": self.kind, "guarantee": self.guarantee.to_dict()}
        head["verdict"] = msgspec.to_builtins(self.verdict)
        return head | {name: plain(value) for name, value in self._fields().items()}

    def to_json(self, *, indent: int = 0) -> str:
        """The document as text."""
        text = msgspec.json.encode(self.to_dict())
        return (msgspec.json.format(text, indent=indent) if indent else text).decode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the document atomically; `dpfda.load` reads it."""
        target, text = Path(os.path.realpath(path)), self.to_json(indent=2)
        if target.exists() and not target.is_file():
            # a device or a pipe must not be replaced by a file
            target.write_text(text, encoding="utf-8")
            return
        part = target.with_name(f".{target.name}.part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`."""
        return cls._decoded(lambda: msgspec.convert(data, cls.body))

    @classmethod
    def from_json(cls, document: bytes | str) -> Self:
        """Rebuild from `to_json`."""
        return cls._decoded(lambda: msgspec.json.decode(document, type=cls.body))

    @classmethod
    def _decoded(cls, decode: Callable[[], Any]) -> Self:
        try:
            body = decode()
            if body.kind != cls.kind:
                raise msgspec.ValidationError(f"another kind, {body.kind!r} - at `$.kind`")
            parts = {name: getattr(body, name) for name in body.__struct_fields__}
            return cls._from_body({name: parts[name] for name in parts if name not in _HEAD})
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise InvalidData("document", f"that of a {cls.kind}", str(error)) from None


def load(path: str | os.PathLike[str]) -> Any:
    """Load a saved model, release or regression, with its guarantee.

    Examples:
        >>> from tempfile import mkdtemp
        >>> from dpfda.curves import CurveEncoder
        >>> from dpfda.protocol.model import CurveModel
        >>> model = CurveModel.linear(
        ...     encoder=CurveEncoder("identity", feature_ranges=[(-1, 1)] * 2),
        ...     classes=("low", "high"),
        ...     intercept=[0.0], coefficients=[[1.0, 1.0]], guarantee=Guarantee(epsilon=1.0),
        ... )
        >>> path = Path(mkdtemp()) / "model.json"
        >>> model.save(path)
        >>> load(path).predict([[0.5, 0.2]]).tolist()
        ['high']
    """
    return read(Path(path).read_bytes(), name=Path(path).name)


def read(document: bytes, *, name: str = "document") -> Any:
    """The object that a document describes."""
    try:
        kind = msgspec.json.decode(document, type=_Head).kind
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise InvalidData(name, "JSON that dpfda has written", str(error)) from None
    if kind not in HOMES:
        raise InvalidData(name, f"of a kind among {', '.join(HOMES)}", f"{kind!r}")
    return _home(kind).from_json(document)


def schema() -> dict[str, Any]:
    """The JSON Schema of every kind of document.

    Examples:
        >>> sorted(schema())
        ['$defs', 'anyOf']
    """
    kinds = [_home(kind) for kind in HOMES]
    found, parts = msgspec.json.schema_components([home.body for home in kinds])
    for home in kinds:
        parts[home.body.__name__]["properties"]["kind"] = {"const": home.kind}
    return {"anyOf": list(found), "$defs": parts}


class _Head(msgspec.Struct):
    format: Literal[1]
    kind: str


def _home(kind: str) -> type[Documented]:
    module, _, name = HOMES[kind].partition(":")
    found: type[Documented] = getattr(import_module(module), name)
    return found
