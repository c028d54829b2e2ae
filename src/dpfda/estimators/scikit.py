"""scikit-learn's base classes, in a form that mypy can read.

scikit-learn has no type hints, so mypy takes its classes for `Any`, and with them the constructors
of all estimators: it would let every misspelt parameter pass. mypy reads `_scikit.pyi`
instead; Python and other type checkers read scikit-learn. These lines are a module of their own,
because pyright takes a class for unknown if its base is imported in two ways in the same module.
"""

from typing import Final

MYPY: Final = False  # by convention, mypy alone takes this name for true

if MYPY:
    from dpfda.estimators._scikit import BaseEstimator, ClassifierMixin, TransformerMixin
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "TransformerMixin"]
