"""People answer for themselves: studies by one posterior, MRMA, and boosting with data owners."""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily

if TYPE_CHECKING:
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
    from dpfda.local.recipe import plan_study as plan_study
    from dpfda.protocol.person import Person as Person
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "LocalAdaBoostClassifier": "dpfda.estimators.local_ada_boost_classifier",
            "LocalCurveClassifier": "dpfda.estimators.local_curve_classifier",
            "LocalCurveRegressor": "dpfda.estimators.local_curve_regressor",
            "LocalGradientBoostingClassifier": (
                "dpfda.estimators.local_gradient_boosting_classifier"
            ),
            "MRMAClassifier": "dpfda.estimators.mrma_classifier",
            "MomentClassifier": "dpfda.estimators.moment_classifier",
            "MultiServerMRMA": "dpfda.estimators.multi_server_mrma",
            "OnlineMRMA": "dpfda.estimators.online_mrma",
            "Person": "dpfda.protocol.person",
            "plan_study": "dpfda.local.recipe",
        },
    )
