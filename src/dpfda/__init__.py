"""Learning from curves that nobody may see: differential privacy for functional data.

The names below are loaded when they are first used, so that ``import dpfda`` stays light: it needs
numpy, scipy, msgspec and cryptography only.

Examples:
    >>> from dpfda import Guarantee
    >>> print(Guarantee(epsilon=0.5, model="local"))
    ε = 0.5, local, unit = person, sampler = exact
"""

import re
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from dpfda._version import __version__
from dpfda.errors import MissingExtra

_HOMES = {
    name: home
    for home, name in re.findall(
        r"^from (\S+) import ([A-Za-z]\w*)", Path(__file__).with_suffix(".pyi").read_text(), re.M
    )
}
"""Every public name, and the module that it lives in: the stub beside this file lists them once."""

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 (the names are strings)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        near = get_close_matches(name, _HOMES, n=1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        raise AttributeError(f"module 'dpfda' has no attribute {name!r}{meant}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise MissingExtra.of(error) or error from None
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
