"""Boosting with data owners: many owners with a few rows each, one data user, one message each.

Start with `roles.py` (who does what) and `classifier.py` (the scikit-learn face). A round is one
`Request` to a fresh group of owners; each request type is one file in `requests/`.
"""

from dpfda.boosting.requests import Request

__all__ = ["Request"]
