"""What the Flower app names as its components: they refuse, wherever an app is run at all.

Sites and coordinators of dpfda do not load them (`node`, `link`). A stock SuperNode or SuperLink
would, and finds out here what to start instead.
"""

from __future__ import annotations

import os
from typing import Any

from dpfda.errors import ProtocolError
from dpfda.sites.app import QUIET


def _client() -> Any:
    """For a node without a guard: refuses every message."""
    from flwr.clientapp import ClientApp

    found = ClientApp()

    @found.query()  # type: ignore[untyped-decorator]
    def refuse(message: Any, context: Any) -> Any:
        raise ProtocolError("this node has no guard: start it with `dpfda site serve`")

    return found


def _server() -> Any:
    """For a network that would run the app by itself: refuses."""
    from flwr.serverapp import ServerApp

    found = ServerApp()

    @found.main()  # type: ignore[untyped-decorator]
    def refuse(grid: Any, context: Any) -> None:
        raise ProtocolError("this study is led by `dpfda consortium run`")

    return found


os.environ.update(QUIET)  # before Flower is imported
try:
    client, server = _client(), _server()
except ModuleNotFoundError:  # the package can be read without Flower
    client = server = None
