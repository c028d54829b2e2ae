"""The base of all private estimators: common parameters, checks of input, reports."""

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

_PUBLIC = 0  # stream of a seed for public randomness
_SEED_BITS = 53  # bits of a public seed, which a float of JSON represents exactly
_RESULTS = ("model_", "moments_", "release_")  # possible names of the public result of a fit
_LATER = 2  # first stream for later fits; stream 1 belongs to a class


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):
    """An estimator that spends ε when it is fitted.

    Args:
        epsilon: ε of the whole fit.
        unit: the protected unit to which a row, or all rows of one group, belong.
        ledger: budget of the data over all fits; it is spent before noise is drawn.
        random_state: None for exact noise of the operating system. An integer, a seed sequence or a
            source gives a simulation without protection, and the guarantee says so. With an
            integer, every `fit` and every clone draws the same noise. A source continues its
            stream, so clones differ. A simulation also spends from `ledger`, because its results
            depend on the rows.
    """

    _stream: ClassVar[int | None] = None  # stream of the seed, if the seed has other uses as well

    epsilon: float = 1.0
    _: KW_ONLY
    unit: str = "person"
    ledger: BaseLedger | None = None
    random_state: RandomState = None

    @property
    def _is_simulation(self) -> bool:
        return not (self.random_state is None or isinstance(self.random_state, SecureSource))

    def _source(self, number: int = 0) -> Source:
        """The source of noise; later fits (`number` > 0) use streams of their own."""
        if number == 0:
            return source_for(self.random_state, stream=self._stream)
        return source_for(self.random_state, stream=_LATER + number)

    def _public_seed(self) -> int:
        """Seed of public randomness, which assigns questions to people."""
        if not self._is_simulation:
            return secrets.randbits(_SEED_BITS)
        if isinstance(self.random_state, (int, np.integer)):
            return _validate.whole("random_state", self.random_state, least=0)
        return int(source_for(self.random_state, stream=_PUBLIC).words(1)[0] >> (64 - _SEED_BITS))

    # -- reading --------------------------------------------------------------------------------

    def _numbers(self, X: Any, *, reset: bool, **rules: Any) -> FloatArray:
        """X as an array of numbers; errors are those of scikit-learn, without quoted values."""
        rules = {"dtype": np.float64, **rules}
        with unquoted("X"):
            return np.asarray(validate_data(self, in_memory(X), reset=reset, **rules))

    def _checked_table(self, ranges: Any, X: Any, *, reset: bool, **rules: Any) -> Any:
        """X unchanged if its columns have names or categories, otherwise as an array of numbers."""
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
        """The public columns of `ranges`, and the rows of X, clipped to these ranges."""
        rows = self._checked_table(ranges, X, reset=reset)
        table = PublicColumns.of(
            ranges, width=None if isinstance(ranges, Mapping) else rows.shape[1]
        )
        return table, table.read(rows)

    def _require_raw_rows(self) -> None:
        """Reject a pipeline whose earlier steps learn from the private rows without protection."""
        simulated = self._is_simulation
        require_raw_rows(self, private=PrivateEstimator, simulated=simulated)

    # -- results ------------------------------------------------------------------------------

    def _warn(self, texts: Iterable[str], doubted: Container[str]) -> None:
        """Issue warnings about a result; those in `doubted` have the category `DoubtfulResult`."""
        for text in texts:
            warn(text, DoubtfulResult if text in doubted else UserWarning)

    def report(self, **more: Any) -> Report:
        """All public results of the fit on one page: ``report().write("report.html")``.

        Args:
            more: `title`, and facts for the record of a deployment: see `Report.of`.
        """
        found = next((name for name in _RESULTS if name in vars(self)), _RESULTS[0])
        document: Documented = getattr(self, found)
        known = {"contents": self._contents(), "ledger": self.ledger} | more
        return document.report(**known)

    def _contents(self) -> Contents | None:
        """The contents of the report, if they differ from those of the result."""
        return None

    # -- scikit-learn ------------------------------------------------------------------------------

    if not TYPE_CHECKING:  # type checkers know the fitted attributes

        def __getattr__(self, name: str) -> Any:
            """Raise `NotFittedError` for a fitted attribute before the fit."""
            if name.endswith("_") and not name.startswith("_") and "guarantee_" not in vars(self):
                raise NotFittedError(f"{type(self).__name__} is not fitted: {name} comes with fit")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_clone__(self) -> Self:
        made = super().__sklearn_clone__()
        note_clone(made, self)
        return made

    def __getstate__(self) -> Any:
        """The state with the enclosing fits, so that a copy in another process knows them."""
        state: Any = super().__getstate__()
        return with_surroundings(self, state, private=PrivateEstimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = not self._is_simulation
        return tags
