"""Model reversal and model averaging: one server, several servers, a stream (000 and 001).

The designs are light: a person's device checks tasks against them. What servers do with replies is
in `progress`, `exchange` and `stream`; the scikit-learn faces in `classifier`, `multi_server` and
`online`.
"""

from dpfda.mrma.designs import ExchangeDesign, MRMADesign, StreamDesign

__all__ = ["ExchangeDesign", "MRMADesign", "StreamDesign"]
