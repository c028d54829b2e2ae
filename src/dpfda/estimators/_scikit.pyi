"""What estimators inherit from scikit-learn, for mypy; nothing here ever runs (see `scikit`)."""

from typing import Any, Self

class BaseEstimator:
    """Stands for `sklearn.base.BaseEstimator`."""

    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def set_params(self, **params: Any) -> Self: ...
    def __sklearn_tags__(self) -> Any: ...

class ClassifierMixin:
    """Stands for `sklearn.base.ClassifierMixin`."""

class TransformerMixin:
    def fit_transform(self, X: Any, y: Any = ..., **fit_params: Any) -> Any: ...
    def set_output(self, *, transform: Any = ...) -> Any: ...
