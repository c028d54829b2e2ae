"""A curator releases: means, covariances, densities, groups, components, regressions."""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily
from dpfda._registry import discover

if TYPE_CHECKING:
    from dpfda.central.release import Release as Release
    from dpfda.central.score import private_score as private_score
    from dpfda.estimators.private_covariance import PrivateCovariance as PrivateCovariance
    from dpfda.estimators.private_curve_classifier import (
        PrivateCurveClassifier as PrivateCurveClassifier,
    )
    from dpfda.estimators.private_curve_regression import (
        PrivateCurveRegression as PrivateCurveRegression,
    )
    from dpfda.estimators.private_density import PrivateDensity as PrivateDensity
    from dpfda.estimators.private_fpca import PrivateFPCA as PrivateFPCA
    from dpfda.estimators.private_function_on_scalar import (
        PrivateFunctionOnScalar as PrivateFunctionOnScalar,
    )
    from dpfda.estimators.private_group_comparison import (
        PrivateGroupComparison as PrivateGroupComparison,
    )
    from dpfda.estimators.private_kernel_machine import PrivateKernelMachine as PrivateKernelMachine
    from dpfda.estimators.private_linear_regression import (
        PrivateLinearRegression as PrivateLinearRegression,
    )
    from dpfda.estimators.private_logistic_regression import (
        PrivateLogisticRegression as PrivateLogisticRegression,
    )
    from dpfda.estimators.private_mean import PrivateMean as PrivateMean
    from dpfda.estimators.private_moments import PrivateMoments as PrivateMoments
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "PrivateCovariance": "dpfda.estimators.private_covariance",
            "PrivateCurveClassifier": "dpfda.estimators.private_curve_classifier",
            "PrivateCurveRegression": "dpfda.estimators.private_curve_regression",
            "PrivateDensity": "dpfda.estimators.private_density",
            "PrivateFPCA": "dpfda.estimators.private_fpca",
            "PrivateFunctionOnScalar": "dpfda.estimators.private_function_on_scalar",
            "PrivateGroupComparison": "dpfda.estimators.private_group_comparison",
            "PrivateKernelMachine": "dpfda.estimators.private_kernel_machine",
            "PrivateLinearRegression": "dpfda.estimators.private_linear_regression",
            "PrivateLogisticRegression": "dpfda.estimators.private_logistic_regression",
            "PrivateMean": "dpfda.estimators.private_mean",
            "PrivateMoments": "dpfda.estimators.private_moments",
            "Release": "dpfda.central.release",
            "private_score": "dpfda.central.score",
        },
    )
discover(__name__, list(__path__))  # mechanisms, kernels and losses register by name
