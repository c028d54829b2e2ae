"""Local studies, whose participants randomize their own data: posterior, MRMA, boosting."""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily

if TYPE_CHECKING:
    from dpfda import LocalAdaBoostClassifier as LocalAdaBoostClassifier
    from dpfda import LocalCurveClassifier as LocalCurveClassifier
    from dpfda import LocalCurveRegressor as LocalCurveRegressor
    from dpfda import LocalGradientBoostingClassifier as LocalGradientBoostingClassifier
    from dpfda import MomentClassifier as MomentClassifier
    from dpfda import MRMAClassifier as MRMAClassifier
    from dpfda import MultiServerMRMA as MultiServerMRMA
    from dpfda import OnlineMRMA as OnlineMRMA
    from dpfda import Person as Person
    from dpfda import plan_study as plan_study
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "dpfda": """
                LocalAdaBoostClassifier LocalCurveClassifier LocalCurveRegressor
                LocalGradientBoostingClassifier MRMAClassifier MomentClassifier
                MultiServerMRMA OnlineMRMA Person plan_study
            """,
        },
    )
