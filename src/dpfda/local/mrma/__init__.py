"""Model reversal and model averaging: one server, several servers, a stream (000 and 001).

A person's device checks tasks against the designs, so their modules import little. `study` shows
what servers do, from the first person to the last. The scikit-learn classes are in
`dpfda.estimators`.
"""

from dpfda.local.mrma.designs import ExchangeDesign, MRMADesign, StreamDesign, VoteDesign
from dpfda.local.mrma.rules import RuleTask

__all__ = ["ExchangeDesign", "MRMADesign", "RuleTask", "StreamDesign", "VoteDesign"]
