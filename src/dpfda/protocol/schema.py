"""The JSON Schema of all messages between a collector and a person's device.

It is generated from the declared fields of tasks and the annotations of plans, designs, encoders
and messages. A collector serves it with its interface. See docs/reference/wire-format.md.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from dpfda._registry import Registered, plain
from dpfda.curves import CurveEncoder
from dpfda.curves.basis import Basis
from dpfda.curves.encoder import RowEncoder
from dpfda.curves.ranges import Column, PublicColumns
from dpfda.curves.rescale import Rescaler
from dpfda.errors import printable
from dpfda.protocol import fields as declared_fields
from dpfda.protocol.plan import (
    INFORMATION_NEEDED,
    INFORMATION_OPTIONAL,
    MOST_CHARACTERS,
    MOST_WHOLE,
    Design,
    StudyPlan,
)
from dpfda.protocol.task import Task
from dpfda.protocol.wire import Counted, Receipt, ReplyMessage, TaskMessage, Withdrawal, Withdrawn
from dpfda.report.documents import schema as documents_schema

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": -MOST_WHOLE, "maximum": MOST_WHOLE},
    float: {"type": "number"},
    str: {"type": "string"},
    type(None): {"type": "null"},
}
_FAMILIES: dict[str, type[Registered]] = {
    "Design": Design,
    "Basis": Basis,
    "Rescaler": Rescaler,
    "Task": Task,
}
_MESSAGES = (TaskMessage, ReplyMessage, Receipt, Counted, Withdrawal, Withdrawn)
_MODELS = ("CurveModelBody", "CurveRegressionBody", "RowModelBody")


def wire_schema(*, at: str = "#/$defs/") -> Schema:
    """JSON Schema (2020-12) of plans, tasks, replies, receipts and models.

    Args:
        at: the prefix of references, such as the location of the definitions in a document.

    Examples:
        >>> found = wire_schema()["$defs"]
        >>> found["StumpTask"]["properties"]["epsilon"]["maximum"]
        1000000.0
        >>> found["StudyPlan"]["properties"]["design"]
        {'$ref': '#/$defs/Design', 'description': 'what the server does with the replies: a \
registered name and its parameters.'}
    """
    found: dict[str, Schema] = {}
    for family, base in _FAMILIES.items():
        members = [member for member in base.members().values() if _shipped(member)]
        for member in members:
            found[member.__name__] = _portable(member)
        found[family] = {"oneOf": [_ref(member.__name__) for member in members]}
    for kind in (StudyPlan, Column, PublicColumns):
        found[kind.__name__] = _portable(kind)
    found |= _encoders()
    found["StudyPlan"]["properties"]["information"] |= _information()
    found["StudyPlan"]["properties"]["encoder"] |= _ref("Encoder")
    found["StudyPlan"]["properties"]["design"] = _ref("Design") | {
        "description": found["StudyPlan"]["properties"]["design"]["description"]
    }
    for part, kinds in _parts().items():
        found[part] = {"oneOf": [_portable(kind) for kind in kinds]}
    found |= _messages()
    documents = documents_schema()["$defs"]
    reached = _reached(documents, _MODELS)
    found = {name: documents[name] for name in sorted(reached)} | found
    found["Model"] = {"anyOf": [_ref(name) for name in _MODELS]}
    for body in _MODELS:
        found[body]["properties"]["encoder"] = _ref("Encoder")
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": found}
    moved: Schema = _moved(whole, at)
    return moved


def _information() -> Schema:
    text = {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS}
    names = INFORMATION_NEEDED + INFORMATION_OPTIONAL
    return {
        "type": "object",
        "properties": dict.fromkeys(names, text),
        "required": list(INFORMATION_NEEDED),
        "additionalProperties": False,
    }


def _encoders() -> dict[str, Schema]:
    parts: Schema = {"basis": _ref("Basis"), "rescale": _ref("Rescaler")}
    curves = _object("CurveEncoder", _summary(CurveEncoder), parts, list(parts))
    curves["properties"]["table"] = _ref("PublicColumns")
    size = {"columns": {"type": "integer", "minimum": 1, "maximum": 1 << 16}}
    rows = _object("RowEncoder", _summary(RowEncoder), size, ["columns"])
    return {
        "CurveEncoder": curves,
        "RowEncoder": rows,
        "Encoder": {"oneOf": [_ref("CurveEncoder"), _ref("RowEncoder")]},
    }


def _messages() -> dict[str, Schema]:
    _, found = msgspec.json.schema_components(_MESSAGES)
    for kind in _MESSAGES:
        for name, words in _attributes(kind).items():
            found[kind.__name__]["properties"][name]["description"] = words
        found[kind.__name__]["description"] = _summary(kind)
    found["TaskMessage"]["properties"]["task"] = _ref("Task")
    return found


def _portable(kind: type[Any]) -> Schema:
    """The schema of a class with portable public fields."""
    words = _attributes(kind)
    properties: Schema = {}
    needed: list[str] = []
    if issubclass(kind, Registered):
        properties["name"], needed = {"const": kind.name}, ["name"]
    hints = get_type_hints(kind)
    for field in fields(kind):
        if not field.init:
            continue
        rule = field.metadata.get("dpfda")
        schema = _hinted(hints[field.name]) if rule is None else _ruled(rule)
        if field.name in words:
            schema = schema | {"description": words[field.name]}
        if field.default is not MISSING:
            schema = schema | {"default": plain(field.default)}
        elif field.default_factory is MISSING:
            needed.append(field.name)
        properties[field.name] = schema
    return _object(kind.__name__, _summary(kind), properties, needed)


def _object(title: str, words: str, properties: Schema, needed: Sequence[str]) -> Schema:
    return {
        "title": title,
        "description": words,
        "type": "object",
        "properties": properties,
        "required": list(needed),
        "additionalProperties": False,
    }


def _ruled(rule: declared_fields.Rule) -> Schema:
    """The schema of a declared field."""
    match rule:
        case declared_fields.Number():
            least = {"minimum": rule.least} if rule.above is None else {}
            above = {} if rule.above is None else {"exclusiveMinimum": rule.above}
            number = {"type": "number", **least, **above, "maximum": rule.most}
            return _or_null(number) if rule.optional else number
        case declared_fields.Whole():
            whole = {"type": "integer", "minimum": rule.least, "maximum": rule.most}
            return _or_null(whole) if rule.optional else whole
        case declared_fields.Flag():
            return {"type": "boolean"}
        case declared_fields.Choice():
            short = {"type": "string", "minLength": 1, "maxLength": 200}
            return {"enum": list(rule.options)} if rule.options else short
        case declared_fields.Array():
            return _array(rule)
        case declared_fields.Parts():
            return {"type": "array", "items": _ref(rule.kind().__name__)}
        case declared_fields.Part():
            return _ref(rule.kind().__name__)
    raise TypeError(type(rule).__name__)


def _array(rule: declared_fields.Array) -> Schema:
    """The schema of nested lists; a comment names their lengths, which a schema cannot compare."""
    kind = "integer" if rule.kind == "whole" else "number"
    most = MOST_WHOLE if rule.kind == "whole" else rule.most
    schema: Schema = {
        "type": kind,
        "minimum": max(rule.least, -most),
        "maximum": min(rule.most, most),
    }
    for _ in rule.shape:
        schema = {"type": "array", "items": schema}
    return schema | {"$comment": f"shape ({', '.join(map(str, rule.shape))})"}


def _hinted(hint: object) -> Schema:
    """The schema of an annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if origin in (Union, types.UnionType):
        return {"anyOf": [_hinted(part) for part in parts]}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple and parts[-1] is not Ellipsis:
        size = len(parts)
        items = [_hinted(part) for part in parts]
        return {"type": "array", "prefixItems": items, "minItems": size, "maxItems": size}
    if origin in (tuple, Sequence):
        return {"type": "array", "items": _hinted(parts[0])}
    if origin is Mapping:
        return {"type": "object"}
    if isinstance(hint, type) and issubclass(hint, (CurveEncoder, Basis, Column)):
        return _ref("Encoder" if issubclass(hint, CurveEncoder) else hint.__name__)
    return {}


@cache
def _parts() -> Mapping[str, list[type[Any]]]:
    """Classes of public objects in fields of tasks, by the class that the field declares."""
    found: dict[str, list[type[Any]]] = {}
    for task in filter(_shipped, Task.members().values()):
        for field in fields(task):
            rule = field.metadata.get("dpfda")
            if isinstance(rule, declared_fields.Part):
                kind = rule.kind()
                members = kind.members().values() if issubclass(kind, Registered) else [kind]
                found[kind.__name__] = list(members)
    return found


def _shipped(kind: type[Any]) -> bool:
    return kind.__module__.startswith("dpfda.")


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _moved(value: object, at: str) -> Any:
    if isinstance(value, dict):
        found = {name: _moved(one, at) for name, one in value.items()}
        if isinstance(value.get("$ref"), str):
            found["$ref"] = value["$ref"].replace("#/$defs/", at)
        return found
    return [_moved(one, at) for one in value] if isinstance(value, list) else value


def _reached(definitions: Mapping[str, Schema], begin: Sequence[str]) -> set[str]:
    """The given definitions, and all definitions to which they refer."""
    reached, left = set(begin), list(begin)
    while left:
        named = re.findall(r"'#/\$defs/(\w+)'", repr(definitions[left.pop()]))
        left += [name for name in named if name not in reached]
        reached |= set(named)
    return reached


def _summary(kind: type[Any]) -> str:
    return printable((inspect.getdoc(kind) or "").split("\n\n")[0].replace("\n", " "), most=300)


def _attributes(kind: type[Any]) -> dict[str, str]:
    """Descriptions of fields from the docstrings of a class and of its parents."""
    found: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        text = inspect.cleandoc(one.__dict__.get("__doc__") or "")
        for section in re.findall(r"^(?:Attributes|Args):\n((?:[ ]+.*\n?)+)", text, re.MULTILINE):
            for name, words in re.findall(r"^ {4}(\w+): ((?:.|\n {8})+)", section, re.MULTILINE):
                found[name] = re.sub(r"\s+", " ", words).strip()
    return found
