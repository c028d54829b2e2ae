"""Model reversal and model averaging: one server, several servers, a stream (000 and 001).

The designs register here; the scikit-learn faces are in `classifier`, `multi_server` and `online`.
"""

from dpfda.mrma.design import MRMADesign
from dpfda.mrma.exchange import ExchangeDesign
from dpfda.mrma.stream import StreamDesign

__all__ = ["ExchangeDesign", "MRMADesign", "StreamDesign"]
