"""scikit-learn's base classes, in a form that mypy can read.

scikit-learn has no type hints, so mypy takes its classes for `Any`, and with them the constructors
of all estimators: it would let every misspelt parameter pass. It is shown what `_scikit.pyi` says
instead; everybody else, other type checkers among them, sees scikit-learn itself.
"""

from typing import Final

MYPY: Final = False  # by convention, mypy alone takes this name for true

if MYPY:
    from dpfda.estimators._scikit import BaseEstimator, ClassifierMixin, TransformerMixin
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "TransformerMixin"]
