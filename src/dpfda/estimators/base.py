"""The base of all private estimators: parameters, input, and refusals."""

from __future__ import annotations

import secrets
from collections.abc import Container, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import validate_data

from dpfda import _validate
from dpfda._validate import FloatArray, unquoted
from dpfda.curves.ranges import PublicColumns
from dpfda.errors import DoubtfulResult, InvalidData, warn
from dpfda.estimators.reading import in_memory
from dpfda.estimators.scikit import BaseEstimator
from dpfda.estimators.surroundings import note_clone, require_raw_rows, with_surroundings
from dpfda.noise import RandomState, Source, source_for
from dpfda.noise.source import SecureSource
from dpfda.privacy.ledger import BaseLedger
from dpfda.report import Contents, Report
from dpfda.report.documents import Documented

_PUBLIC = 0  # of a seed, the place that what everybody may know is drawn from
_SEED_BITS = 53  # of a public seed: every reader of a plan holds it exactly
_RESULTS = ("model_", "moments_", "release_")  # what a fit may leave to be shown to anyone
_LATER = 2  # and those from here on: 1 is a class's own


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """An estimator that spends ε when it is fitted.

    Args:
        epsilon: ε of the whole fit.
        unit: whose data a row is, or all rows of one group.
        ledger: budget of the data over all fits: spent before noise is drawn.
        random_state: None for exact noise of the operating system; an integer, a seed sequence or
            a source makes a simulation, which protects nobody and says so. With an integer every
            `fit` and every clone draws the same noise; a source goes on, and its clones differ.
            A simulation spends from `ledger` like any fit: what it shows is about the same rows.
    """

    _stream: ClassVar[int | None] = None  # of a seed, where other things are drawn from it too

    epsilon: float = 1.0
    _: KW_ONLY
    unit: str = "person"
    ledger: BaseLedger | None = None
    random_state: RandomState = None

    @property
    def _is_simulation(self) -> bool:
        return not (self.random_state is None or isinstance(self.random_state, SecureSource))

    def _source(self, number: int = 0) -> Source:
        """Where noise comes from; what is fitted further draws from places of its own."""
        if number == 0:
            return source_for(self.random_state, stream=self._stream)
        return source_for(self.random_state, stream=_LATER + number)

    def _public_seed(self) -> int:
        """Seed of what everybody may know: who is asked what."""
        if not self._is_simulation:
            return secrets.randbits(_SEED_BITS)
        if isinstance(self.random_state, (int, np.integer)):
            return _validate.whole("random_state", self.random_state, least=0)
        return int(source_for(self.random_state, stream=_PUBLIC).words(1)[0] >> (64 - _SEED_BITS))

    # -- reading --------------------------------------------------------------------------------

    def _numbers(self, X: Any, *, reset: bool, **rules: Any) -> FloatArray:
        """X as an array of numbers, in scikit-learn's words unless they would quote a value."""
        rules = {"dtype": np.float64, **rules}
        with unquoted("X"):
            return np.asarray(validate_data(self, in_memory(X), reset=reset, **rules))

    def _checked_table(self, ranges: Any, X: Any, *, reset: bool, **rules: Any) -> Any:
        """X as it is where columns have names or categories, otherwise as an array of numbers."""
        X = in_memory(X)
        named = isinstance(ranges, Mapping) and (
            hasattr(X, "columns")
            or any(column.categories for column in PublicColumns.of(ranges).columns)
        )
        if not named:
            return self._numbers(X, reset=reset, **rules)
        names = [str(name) for name in getattr(X, "columns", ())]
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            raise InvalidData("X", "a table whose columns have different names", ", ".join(twice))
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _table(self, ranges: Any, X: Any, *, reset: bool) -> tuple[PublicColumns, FloatArray]:
        """The public columns that `ranges` name, and the rows of X inside these ranges."""
        rows = self._checked_table(ranges, X, reset=reset)
        table = PublicColumns.of(
            ranges, width=None if isinstance(ranges, Mapping) else rows.shape[1]
        )
        return table, table.read(rows)

    def _require_raw_rows(self) -> None:
        """Refuse a pipeline that has learned from the private rows before they come here."""
        simulated = self._is_simulation
        require_raw_rows(self, private=PrivateEstimator, simulated=simulated)

    # -- what came of it ----------------------------------------------------------------------

    def _warn(self, told: Iterable[str], doubted: Container[str]) -> None:
        """Say what is wrong with a result; doubts about it have a category of their own."""
        for text in told:
            warn(text, DoubtfulResult if text in doubted else UserWarning)

    def report(self, **more: Any) -> Report:
        """Everything public of the fit on one page: ``report().write("report.html")``.

        Args:
            more: `title`, and what the record of a deployment is told: see `Report.of`.
        """
        found = next((name for name in _RESULTS if name in vars(self)), _RESULTS[0])
        document: Documented = getattr(self, found)
        known = {"contents": self._contents(), "ledger": self.ledger} | more
        return document.report(**known)

    def _contents(self) -> Contents | None:
        """What the page shows, where this is more than what the result shows by itself."""
        return None

    # -- scikit-learn ------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # which knows what a fit brings

        def __getattr__(self, name: str) -> Any:
            """What only a fit brings is missing before it, in scikit-learn's own words."""
            if name.endswith("_") and not name.startswith("_") and "guarantee_" not in vars(self):
                raise NotFittedError(f"{type(self).__name__} is not fitted: {name} comes with fit")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_clone__(self) -> Self:
        made = super().__sklearn_clone__()
        note_clone(made, self)
        return made

    def __getstate__(self) -> Any:
        """With what is fitted around it, so that a copy in another process is judged by it."""
        state: Any = super().__getstate__()
        return with_surroundings(self, state, private=PrivateEstimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not self._is_simulation
        return tags
