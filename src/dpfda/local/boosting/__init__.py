"""Boosting with data owners: many owners with a few rows each, one data user, one message each.

Start with `owner.py` (the data holder) and `design.py` (the plan of a study). A round is one
`Request` to a new group of owners; the requests are in `requests/`. `gradient_study.py` and
`samme_study.py` show how the data user computes the ensemble from the replies. The scikit-learn
classes are in `dpfda.estimators`.
"""

from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.owner import Owner, Owners
from dpfda.local.boosting.request import Request
from dpfda.local.boosting.samme_study import SammeDesign

__all__ = ["GradientDesign", "Owner", "Owners", "Request", "SammeDesign"]
