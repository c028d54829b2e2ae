"""Bases, rescalers and encoders: from a curve to a short vector in [-1, 1]^d.

Read `encoder.py` first: it follows one curve from top to bottom, and each step opens one file.
"""

from dpfda._registry import discover
from dpfda.curves.bases import (
    BSplineBasis,
    CosineBasis,
    CustomBasis,
    FourierBasis,
    IdentityBasis,
    SmoothBasis,
)
from dpfda.curves.basis import Basis
from dpfda.curves.encoder import CurveEncoder, RowEncoder, read_encoder
from dpfda.curves.rescale import ClipRescaler, MaxAbsRescaler, Rescaler, TanhRescaler

discover(__name__, list(__path__))

__all__ = [
    "BSplineBasis",
    "Basis",
    "ClipRescaler",
    "CosineBasis",
    "CurveEncoder",
    "CustomBasis",
    "FourierBasis",
    "IdentityBasis",
    "MaxAbsRescaler",
    "Rescaler",
    "RowEncoder",
    "SmoothBasis",
    "TanhRescaler",
    "read_encoder",
]
