"""A person's side of a study over HTTP: standard library and the core package only.

`RemoteClient` takes part; `protocol.wire` says what travels.
"""

from dpfda.client.remote import RemoteClient

__all__ = ["RemoteClient"]
