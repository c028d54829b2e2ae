"""Forecasts before a study: its error, or the number of people or the ε that it needs."""

from typing import TYPE_CHECKING

from dpfda._lazy import lazily

if TYPE_CHECKING:
    from dpfda import forecast as forecast
    from dpfda.planning.boosting import plan_boosting as plan_boosting
else:
    __getattr__, __dir__, __all__ = lazily(
        __name__,
        {
            "dpfda": "forecast",
            "dpfda.planning.boosting": "plan_boosting",
        },
    )
