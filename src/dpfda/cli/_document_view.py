"""Whatever was released, printed as its kind is."""

from __future__ import annotations

from typing import Any

from dpfda.central.moments.curve_moments import CurveMoments
from dpfda.central.regression.model import RegressionModel
from dpfda.central.release import Release
from dpfda.cli._model_view import print_regression, print_study_model
from dpfda.cli._moments_view import print_moments
from dpfda.cli._release_view import print_release


def print_document(loaded: Any) -> None:
    """Guarantee, ranges, numbers."""
    if isinstance(loaded, Release):
        print_release(loaded)
    elif isinstance(loaded, CurveMoments):
        print_moments(loaded)
    elif isinstance(loaded, RegressionModel):
        print_regression(loaded)
    else:
        print_study_model(loaded)
