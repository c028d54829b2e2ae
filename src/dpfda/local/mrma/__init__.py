"""Model reversal and model averaging (000 and 001): one server, several servers, or a stream.

A person's device checks tasks against the designs, so the modules of designs import little. The
module `study` contains the computations of a server, from the first person to the last. The
scikit-learn classes are in `dpfda.estimators`.
"""

from dpfda.local.mrma.designs import ExchangeDesign, MRMADesign, StreamDesign, VoteDesign
from dpfda.local.mrma.rules import RuleTask

__all__ = ["ExchangeDesign", "MRMADesign", "RuleTask", "StreamDesign", "VoteDesign"]
