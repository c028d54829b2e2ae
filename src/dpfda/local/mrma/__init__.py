"""Model reversal and model averaging: one server, several servers, a stream (000 and 001).

The designs are light: a person's device checks tasks against them. What servers do is in `study`,
from the first person to the last; the scikit-learn faces are in `classifier`, `multi_server` and
`online`.
"""

from dpfda.local.mrma.designs import ExchangeDesign, MRMADesign, StreamDesign

__all__ = ["ExchangeDesign", "MRMADesign", "StreamDesign"]
