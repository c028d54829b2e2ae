"""Boosting with data owners: many owners with a few rows each send one message to a data user.

Start with `request.py` (owners, and their tasks, called requests) and `design.py` (the plan of a
study). `gradient_study.py` and `samme_study.py` show how the data user computes the ensemble from
the replies. The scikit-learn classes are in `dpfda.estimators`.
"""

from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.request import Owner, Owners, Request
from dpfda.local.boosting.samme_study import SammeDesign

__all__ = ["GradientDesign", "Owner", "Owners", "Request", "SammeDesign"]
