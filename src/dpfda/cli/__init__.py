"""The command line, with one file per command.

A file ``NAME.py`` of this package defines one click command called ``command``, which becomes
``dpfda NAME`` without further registration. Files that begin with an underscore are helpers. Other
packages add commands through the entry points ``dpfda.commands``, as `dpfda_bench` does.
"""

from __future__ import annotations

import codecs
import os
import sys
from io import TextIOWrapper

from dpfda._version import __version__
from dpfda.errors import MissingExtra

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    """Run ``dpfda``."""
    # Matrices are small here, so several threads would slow down a product. NumPy reads these
    # variables when it is imported, which happens later.
    for name in _THREADS:
        os.environ.setdefault(name, "1")
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError:
        if sys.argv[1:] == ["--version"]:
            print(f"dpfda, version {__version__}")
            return
        print(f"Error: {MissingExtra('click and rich', 'cli')}", file=sys.stderr)
        raise SystemExit(2) from None
    from dpfda.cli._group import dpfda

    codecs.register_error("dpfda", _spelled)
    for stream in (sys.stdout, sys.stderr):
        # a console that cannot print ε must not abort a release
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="dpfda")
    try:
        dpfda(prog_name="dpfda")
    except SystemExit as ended:
        raise SystemExit(ended.code or _unprinted()) from None


def _unprinted() -> int:
    """Exit status 2 if the end of the output cannot be written, instead of a traceback."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # a closed pipe is no error
            print(f"Error: the output could not be printed: {error.strerror}", file=sys.stderr)
            return 2
    return 0


_SPELLED = {"ε": "epsilon", "δ": "delta", "β": "beta", "μ": "mu", "√": "root of ", "≤": "<="}


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """Replace letters that the console cannot print."""
    assert isinstance(error, UnicodeEncodeError)
    letters = error.object[error.start : error.end]
    return "".join(_SPELLED.get(letter, "?") for letter in letters), error.end
