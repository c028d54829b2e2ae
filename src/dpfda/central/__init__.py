"""A curator releases: means, covariances, densities, groups, components, regressions."""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily
from dpfda._registry import discover

if TYPE_CHECKING:
    from dpfda import PrivateCovariance as PrivateCovariance
    from dpfda import PrivateCurveClassifier as PrivateCurveClassifier
    from dpfda import PrivateCurveRegression as PrivateCurveRegression
    from dpfda import PrivateDensity as PrivateDensity
    from dpfda import PrivateFPCA as PrivateFPCA
    from dpfda import PrivateFunctionOnScalar as PrivateFunctionOnScalar
    from dpfda import PrivateGroupComparison as PrivateGroupComparison
    from dpfda import PrivateKernelMachine as PrivateKernelMachine
    from dpfda import PrivateLinearRegression as PrivateLinearRegression
    from dpfda import PrivateLogisticRegression as PrivateLogisticRegression
    from dpfda import PrivateMean as PrivateMean
    from dpfda import PrivateMoments as PrivateMoments
    from dpfda import private_score as private_score
    from dpfda.central.release import Release as Release
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "dpfda": """
                PrivateCovariance PrivateCurveClassifier PrivateCurveRegression
                PrivateDensity PrivateFPCA PrivateFunctionOnScalar PrivateGroupComparison
                PrivateKernelMachine PrivateLinearRegression PrivateLogisticRegression
                PrivateMean PrivateMoments private_score
            """,
            "dpfda.central.release": "Release",
        },
    )
discover(__name__, list(__path__))  # mechanisms, kernels and losses register by name
