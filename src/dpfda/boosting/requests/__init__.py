"""What owners are asked, one file each; found by name: ``Request.named("gradient")``."""

from dpfda._registry import discover
from dpfda.boosting.requests.base import Request

discover(__name__, list(__path__))

__all__ = ["Request"]
