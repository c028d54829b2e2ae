"""A person's side of a study over HTTP; needs only the standard library and the core package.

`RemoteClient` takes part in studies; `protocol.wire` defines the messages.
"""

from dpfda.client.remote import RemoteClient

__all__ = ["RemoteClient"]
