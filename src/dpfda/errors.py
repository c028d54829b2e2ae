"""Every exception that dpfda raises on purpose.

DpfdaError
├── InvalidParameter (ValueError)   a public argument breaks a rule; the message shows its value
├── InvalidData (ValueError)        private data break a rule; the message never shows a value
├── UnknownName (LookupError)       no class is registered under this name
├── MissingExtra (ImportError)      an optional dependency is not installed
├── BudgetExceeded                  a ledger refused to spend; nothing was spent
│   └── AlreadySpent                the ledger has an entry under this key: one question, one answer
├── LedgerDamaged                   a stored ledger was altered or cut; nothing is spent from it
├── UnknownEvent                    the privacy cost of a release is unknown
└── ProtocolError                   a message arrived that the protocol does not allow here

PrivacyWarning (UserWarning)        the total privacy cost of several releases is easily overlooked
DoubtfulResult (UserWarning)        a result that is mostly noise, or no better than guessing
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from traceback import extract_stack
from typing import Any

_LONGEST = 300  # characters of a value
_MOST = 20  # names
_EXTRAS = {
    "learn": ("sklearn", "array_api_compat", "joblib"),
    "cli": ("click", "rich", "tqdm"),
    "plot": ("matplotlib",),
    "files": ("pandas", "pyarrow", "openpyxl", "fsspec"),
    "fda": ("skfda", "rdata"),
    "images": ("skimage",),
    "gpu": ("torch",),
    "cluster": ("dask", "distributed"),
    "federation": ("flwr",),
    "service": (
        "litestar",
        "multipart",
        "jinja2",
        "uvicorn",
        "httptools",
        "uvloop",
        "sqlalchemy",
        "alembic",
        "psycopg",
    ),
}


def printable(text: object, *, most: int = _LONGEST) -> str:
    r"""Foreign text in printable form: one line, without control characters.

    Examples:
        >>> printable("red \x1b[31m\ntext")
        'red \\x1b[31m\\ntext'
    """
    written = str(text)
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in written[:most]
    )
    return shown if len(written) <= most else f"{shown}…"


class DpfdaError(Exception):
    """Base of every error in this package."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message only: the error may come from another process."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[DpfdaError], args: tuple[Any, ...], parts: dict[str, Any]) -> DpfdaError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(parts)
    return error


class InvalidParameter(DpfdaError, ValueError):
    """A public argument breaks a rule. The message names parameter, rule and value."""

    def __init__(self, name: str, rule: str, value: object) -> None:
        # A missing value has nothing to show.
        missing = value is None and rule.startswith("given")
        super().__init__(f"{name} must be {rule}" + ("" if missing else f", got {_shown(value)}"))
        self.name = name
        self.rule = rule


def _shown(value: object) -> str:
    """The repr of a value, shortened."""
    try:
        written = repr(value)
    except ValueError:  # an integer with more digits than Python converts to text
        return "a very large number"
    return written if len(written) <= _LONGEST else f"{written[:_LONGEST]}…"


class InvalidData(DpfdaError, ValueError):
    """Private data break a rule. The message names argument and rule, never a value."""

    def __init__(self, name: str, rule: str, found: str = "") -> None:
        """`found` describes shape or type only, for example ``"shape (3, 2)"``."""
        super().__init__(f"{name} must be {rule}" + (f", got {found}" if found else ""))
        self.name = name
        self.rule = rule

    @classmethod
    def saying(cls, name: str, text: str) -> InvalidData:
        """An error with a text of its own: what is wrong, and what to do next."""
        error = cls(name, "")
        error.args = (f"{name} {text}",)
        return error


class UnknownName(DpfdaError, LookupError):
    """No class of this family has this name; the message lists the nearest names."""

    def __init__(self, family: str, name: object, known: Iterable[str]) -> None:
        names = sorted(set(known))
        written = _shown(name)  # shortened: strangers may send long names
        near = get_close_matches(written.strip("'"), names)
        text = f"did you mean {' or '.join(map(repr, near))}?" if near else _listed(names)
        super().__init__(f"unknown {family} {written}; {text}")


def _listed(names: list[str]) -> str:
    """The known names as text; a long list is shortened."""
    more = "" if len(names) <= _MOST else f", ... ({len(names)} in all)"
    return f"known: {', '.join(names[:_MOST])}{more}"


class MissingExtra(DpfdaError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"this needs {package}: pip install 'dpfda[{extra}]'")

    @classmethod
    def of(cls, error: ModuleNotFoundError) -> MissingExtra | None:
        """The extra that installs a missing module; None if no extra does."""
        package = (error.name or "").partition(".")[0]
        extra = next((extra for extra, names in _EXTRAS.items() if package in names), None)
        return None if extra is None else cls(package, extra)


class BudgetExceeded(DpfdaError):
    """The ledger refused a release that would exceed the limit. Nothing was spent."""


class AlreadySpent(BudgetExceeded):
    """The ledger has an entry under this key: the question was answered. Nothing was spent."""


class LedgerDamaged(DpfdaError):
    """A stored ledger does not match its checksums, or lost entries. Nothing was spent."""


class UnknownEvent(DpfdaError):
    """The cost of this release is unknown, so it is refused."""


class ProtocolError(DpfdaError):
    """A message that the protocol does not allow at this point."""


class ChangedStudy(ProtocolError):
    """The stored study began with another version or program, so its next query might differ."""


class PrivacyWarning(UserWarning):
    """Several releases cost more together than each of them states."""


class DoubtfulResult(UserWarning):
    """A result that is mostly noise, mostly its public center, or no better than guessing."""


_PACKAGE = str(Path(__file__).parent)


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, and attribute the warning to the caller's line outside this package."""
    files = [call.filename for call in reversed(extract_stack())]
    level = next((k for k, file in enumerate(files) if not file.startswith(_PACKAGE)), 0)
    warnings.warn(text, category, stacklevel=level + 1)
