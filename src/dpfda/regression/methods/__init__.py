"""Ways to a private linear predictor, one file each, found by name."""

from dpfda._registry import discover
from dpfda.regression.methods.base import Conversation, Fitted, Method

discover(__name__, list(__path__))

__all__ = ["Conversation", "Fitted", "Method"]
