"""Storage of studies: one interface, and a file for each backend, chosen by the URL."""

from __future__ import annotations

from dpfda._registry import discover
from dpfda.collector.storage.base import Storage
from dpfda.errors import UnknownName

discover(__name__, list(__path__))


def open_storage(url: str) -> Storage:
    """The storage behind a URL: ``sqlite:///study.db``, ``postgresql://...``, ``memory:``.

    Examples:
        >>> open_storage("memory:").page(most=10)
        []
    """
    scheme = url.partition(":")[0].partition("+")[0]
    known = Storage.members()
    if scheme not in known:
        # The rest of the URL may hold a password.
        raise UnknownName("storage", scheme, sorted(known))
    return known[scheme].open(url)
