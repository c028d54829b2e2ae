"""An extension of Griffe: how to import a name, its guarantee and its example come first."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

import dpfda

FIRST = ("Privacy", "Example", "Examples")
SECTION = re.compile(r"^(\w+):\n(?:(?: .*)?\n)+", re.MULTILINE)


class GuaranteeFirst(Extension):
    """Docstrings are written for those who read code; pages are read from the top."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Put the sections in order before they are parsed."""
        if obj.docstring is None or not obj.path.startswith("dpfda."):
            return
        member = getattr(dpfda, obj.name, None) if obj.name in dpfda.__all__ else None
        public = obj.path == f"{getattr(member, '__module__', None)}.{obj.name}"
        use = f"`from dpfda import {obj.name}`" if public else ""
        obj.docstring.value = in_order(obj.docstring.value, use)


def in_order(text: str, use: str = "") -> str:
    """Summary, guarantee, example, and then everything else."""
    summary, _, rest = text.strip().partition("\n\n")
    rest += "\n"
    found = {part.group(1): part.group() for part in SECTION.finditer(rest)}
    first = [found[name].strip() for name in FIRST if name in found]
    for name in FIRST:
        rest = rest.replace(found.get(name, "\0"), "")
    return "\n\n".join(part for part in (summary, use, *first, rest.strip("\n")) if part)
