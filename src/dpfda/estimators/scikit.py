"""scikit-learn's base classes, in a form that mypy can read.

scikit-learn has no type hints, so its classes, and the constructors of all estimators, would be
`Any` for mypy, and misspelled parameters would not be found. mypy reads `_scikit.pyi` instead;
Python and other type checkers read scikit-learn. This is a separate module, because a class has an
unknown type in pyright if its base is imported in two ways in the same module.
"""

from typing import Final

MYPY: Final = False  # by convention, only mypy treats this name as True

if MYPY:
    from dpfda.estimators._scikit import BaseEstimator, ClassifierMixin, TransformerMixin
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "TransformerMixin"]
