"""An encoder as a transformer in a scikit-learn pipeline, without importing scikit-learn.

A person's device encodes curves and must not depend on scikit-learn. Therefore this module
implements scikit-learn's interface of a transformer itself.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from dpfda._validate import AnyArray, FloatArray, unquoted
from dpfda.curves.observations import Curves, GridPoints, depth, own_grids, with_own_grids
from dpfda.errors import InvalidParameter

if TYPE_CHECKING:
    from sklearn.utils import Tags
    from sklearn.utils.metadata_routing import MetadataRequest

Encoded: TypeAlias = Any
"""An array (n, d), or a frame of pandas or polars, according to `set_output`."""
_OUTPUTS = ("default", "pandas", "polars")


class Transformer:
    """A transformer that learns nothing: `fit` stores the number and names of the columns."""

    _given: dict[str, Any]
    _output: str | None = None

    def fit(self, X: Curves, y: object = None, *, grid_points: GridPoints = None) -> Self:
        """Check the parameters and the number of columns; nothing is learned from X."""
        self._feature_names()
        self._read(with_own_grids(X, grid_points)[0], reset=True)
        return self

    def transform(self, X: Curves, *, grid_points: GridPoints = None) -> Encoded:
        """Encoded rows (n, d), as an array or in the format of `set_output`.

        Args:
            X: rows, in any form that `encode` reads.
            grid_points: the points of curves given as an array, or a list of grids, one for each.
                A pipeline passes them on if metadata routing is enabled in scikit-learn; otherwise
                its `fit` takes ``curveencoder__grid_points=``, and `predict` takes pairs (t, x).
        """
        curves, points = with_own_grids(X, grid_points)
        read = self._read(curves, reset=False, own_points=points is not None)
        encoded: FloatArray = self.encode(read, points)  # type: ignore[attr-defined]
        output = self._output or _global_output()
        if output == "default":
            return encoded
        frames = __import__(output)
        names = self.get_feature_names_out().tolist()
        if output == "polars":
            return frames.DataFrame(encoded, schema=names, orient="row")
        return frames.DataFrame(encoded, columns=names, index=getattr(X, "index", None))

    def fit_transform(
        self, X: Curves, y: object = None, *, grid_points: GridPoints = None
    ) -> Encoded:
        """`fit`, then `transform`."""
        return self.fit(X, grid_points=grid_points).transform(X, grid_points=grid_points)

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Names of the columns: those of the table, or basis and number."""
        return np.asarray(self._feature_names(), dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Whether `transform` returns arrays (``default``), or frames of pandas or polars."""
        if transform is not None:
            if transform not in _OUTPUTS:
                raise InvalidParameter("transform", f"one of {_OUTPUTS}", transform)
            object.__setattr__(self, "_output", transform)
        return self

    # -- parameters ------------------------------------------------------------------------------

    def _remember(self, **given: object) -> None:
        """Store the parameters as given, for scikit-learn's `clone` and grid search."""
        object.__setattr__(self, "_given", {**self.__dict__.get("_given", {}), **given})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters as they were given."""
        return dict(self._given)

    def set_params(self, **parameters: Any) -> Self:
        """Change the parameters of this encoder; plans and models have separate copies."""
        again = type(self)(**(self._given | parameters))
        self.__dict__.update(again.__dict__)
        return self

    # -- scikit-learn ----------------------------------------------------------------------------

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse assignments, except of attributes that scikit-learn sets."""
        if not name.startswith("_") and not name.endswith("_in_"):
            raise FrozenInstanceError(f"cannot assign to {name!r}: make another encoder")
        object.__setattr__(self, name, value)

    def __sklearn_clone__(self) -> Self:
        again = type(self)(**self._given)
        object.__setattr__(again, "_output", self._output)
        return again

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=True, three_d_array=True),
            requires_fit=False,
        )

    def get_metadata_routing(self) -> MetadataRequest:
        """Request the grid points that are passed to a pipeline."""
        from sklearn.utils.metadata_routing import MetadataRequest

        asks = MetadataRequest(owner=self)
        for method in (asks.fit, asks.transform):
            method.add_request(param="grid_points", alias=True)
        return asks

    def _read(self, X: Curves, *, reset: bool, own_points: bool = False) -> Curves:
        """Check arrays and frames by scikit-learn; other forms of curves are returned unchanged.

        With `own_points`, new curves include their own grid, so their number of points is free. No
        message shows a value.
        """
        from sklearn.utils.validation import check_array, validate_data

        known = reset or (hasattr(self, "n_features_in_") and not own_points)
        if own_grids(X):
            return X
        if self.table is not None:  # type: ignore[attr-defined]
            if known and hasattr(X, "columns"):
                validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        deep = depth(X) == 3
        rules = {"ensure_all_finite": "allow-nan", "allow_nd": deep, "dtype": np.float64}
        with unquoted("X"):
            return (
                validate_data(self, X, reset=reset, **rules) if known else check_array(X, **rules)
            )

    @abstractmethod
    def _feature_names(self) -> list[str]:
        """Names of the numbers that encode a row."""


def _global_output() -> str:
    """The output format in scikit-learn's configuration, if scikit-learn is loaded."""
    scikit_learn = sys.modules.get("sklearn")
    return "default" if scikit_learn is None else str(scikit_learn.get_config()["transform_output"])
