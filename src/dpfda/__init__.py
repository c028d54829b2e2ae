"""Differential privacy for functional data: learn from curves that stay private.

The names below are loaded when they are first used, so that ``import dpfda`` stays light: it needs
numpy, scipy, msgspec and cryptography only.

Examples:
    >>> from dpfda import Guarantee
    >>> print(Guarantee(epsilon=0.5, model="local"))
    ε = 0.5, local, unit = person, sampler = exact
"""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily
from dpfda._version import __version__ as __version__

if TYPE_CHECKING:
    from dpfda.central.score import private_score as private_score
    from dpfda.client.remote import RemoteClient as RemoteClient
    from dpfda.curves import CurveEncoder as CurveEncoder
    from dpfda.estimators.local_ada_boost_classifier import (
        LocalAdaBoostClassifier as LocalAdaBoostClassifier,
    )
    from dpfda.estimators.local_curve_classifier import LocalCurveClassifier as LocalCurveClassifier
    from dpfda.estimators.local_curve_regressor import LocalCurveRegressor as LocalCurveRegressor
    from dpfda.estimators.local_gradient_boosting_classifier import (
        LocalGradientBoostingClassifier as LocalGradientBoostingClassifier,
    )
    from dpfda.estimators.moment_classifier import MomentClassifier as MomentClassifier
    from dpfda.estimators.mrma_classifier import MRMAClassifier as MRMAClassifier
    from dpfda.estimators.multi_server_mrma import MultiServerMRMA as MultiServerMRMA
    from dpfda.estimators.online_mrma import OnlineMRMA as OnlineMRMA
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
    from dpfda.estimators.public_transformer import PublicTransformer as PublicTransformer
    from dpfda.local.recipe import plan_study as plan_study
    from dpfda.mechanisms import Mechanism as Mechanism
    from dpfda.noise import SecureSource as SecureSource
    from dpfda.noise import SimulationSource as SimulationSource
    from dpfda.planning.forecast import forecast as forecast
    from dpfda.planning.releases import forecast_release as forecast_release
    from dpfda.privacy.guarantee import Guarantee as Guarantee
    from dpfda.privacy.ledger import Ledger as Ledger
    from dpfda.privacy.tally import budget as budget
    from dpfda.privacy.tally import spent as spent
    from dpfda.protocol.person import Person as Person
    from dpfda.report.documents import load as load
    from dpfda.sites.inquiry import Inquiry as Inquiry
    from dpfda.sites.rehearsal import rehearse as rehearse
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "dpfda.central.score": "private_score",
            "dpfda.client.remote": "RemoteClient",
            "dpfda.curves": "CurveEncoder",
            "dpfda.estimators.local_ada_boost_classifier": "LocalAdaBoostClassifier",
            "dpfda.estimators.local_curve_classifier": "LocalCurveClassifier",
            "dpfda.estimators.local_curve_regressor": "LocalCurveRegressor",
            "dpfda.estimators.local_gradient_boosting_classifier": (
                "LocalGradientBoostingClassifier"
            ),
            "dpfda.estimators.moment_classifier": "MomentClassifier",
            "dpfda.estimators.mrma_classifier": "MRMAClassifier",
            "dpfda.estimators.multi_server_mrma": "MultiServerMRMA",
            "dpfda.estimators.online_mrma": "OnlineMRMA",
            "dpfda.estimators.private_covariance": "PrivateCovariance",
            "dpfda.estimators.private_curve_classifier": "PrivateCurveClassifier",
            "dpfda.estimators.private_curve_regression": "PrivateCurveRegression",
            "dpfda.estimators.private_density": "PrivateDensity",
            "dpfda.estimators.private_fpca": "PrivateFPCA",
            "dpfda.estimators.private_function_on_scalar": "PrivateFunctionOnScalar",
            "dpfda.estimators.private_group_comparison": "PrivateGroupComparison",
            "dpfda.estimators.private_kernel_machine": "PrivateKernelMachine",
            "dpfda.estimators.private_linear_regression": "PrivateLinearRegression",
            "dpfda.estimators.private_logistic_regression": "PrivateLogisticRegression",
            "dpfda.estimators.private_mean": "PrivateMean",
            "dpfda.estimators.private_moments": "PrivateMoments",
            "dpfda.estimators.public_transformer": "PublicTransformer",
            "dpfda.local.recipe": "plan_study",
            "dpfda.mechanisms": "Mechanism",
            "dpfda.noise": "SecureSource SimulationSource",
            "dpfda.planning.forecast": "forecast",
            "dpfda.planning.releases": "forecast_release",
            "dpfda.privacy.guarantee": "Guarantee",
            "dpfda.privacy.ledger": "Ledger",
            "dpfda.privacy.tally": "budget spent",
            "dpfda.protocol.person": "Person",
            "dpfda.report.documents": "load",
            "dpfda.sites.inquiry": "Inquiry",
            "dpfda.sites.rehearsal": "rehearse",
        },
    )
    __all__ += ["__version__"]
