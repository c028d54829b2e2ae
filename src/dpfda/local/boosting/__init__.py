"""Boosting with data owners: many owners with a few rows each, one data user, one message each.

Start with `owner.py` (who holds rows), `design.py` (the plan of a study) and `classifier.py` (the
scikit-learn face). A round is one `Request` to a fresh group of owners, one file each in
`requests/`; what the data user makes of the replies is in `gradient_study.py` and `samme_study.py`.
"""

from dpfda.local.boosting.gradient_study import GradientDesign
from dpfda.local.boosting.owner import Owner, Owners
from dpfda.local.boosting.requests import Request
from dpfda.local.boosting.samme_study import SammeDesign

__all__ = ["GradientDesign", "Owner", "Owners", "Request", "SammeDesign"]
