"""What owners are asked, one file each; found by name: ``Request.named("gradient")``."""

from dpfda._registry import discover
from dpfda.local.boosting.requests.base import Request

discover(__name__, list(__path__))

__all__ = ["Request"]
