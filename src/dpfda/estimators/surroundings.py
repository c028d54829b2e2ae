"""Fits of scikit-learn that enclose a private estimator, and whether its guarantee covers them.

A step of a pipeline has no access to the other steps. This module therefore records every running
fit of a pipeline, and of estimators that fit others and learn something of their own. `note_fits`
extends these classes of scikit-learn, and their subclasses, when this module is imported. If an
estimator is fitted in another thread or process (`n_jobs`), the fits are found by its copies, which
carry descriptions of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from inspect import getattr_static
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from dpfda.errors import InvalidParameter, warn
from dpfda.estimators.public_transformer import instead_of

_LEARNERS: dict[type, str] = {
    CalibratedClassifierCV: "its calibration",
    TunedThresholdClassifierCV: "its threshold",
    StackingClassifier: "its final estimator",
    StackingRegressor: "its final estimator",
    AdaBoostClassifier: "the weights of its members",
    AdaBoostRegressor: "the weights of its members",
    RFE: "which features it keeps",
    RFECV: "which features it keeps",
    SelectFromModel: "which features it keeps",
    SequentialFeatureSelector: "which features it keeps",
}
"""Estimators of scikit-learn that fit others several times, and what they learn themselves."""
_UNSOUND: dict[type, str] = {
    AdaBoostClassifier: "computes weights of rows from errors on all rows",
    AdaBoostRegressor: "computes weights of rows from errors on all rows",
    BaggingClassifier: "draws rows several times",
    BaggingRegressor: "draws rows several times",
    RANSACRegressor: "keeps rows by their errors in fits of others",
}
"""Estimators of scikit-learn that choose or weigh rows and set seeds, with the reasons."""
_ENSEMBLES = BaggingClassifier, BaggingRegressor, VotingClassifier, VotingRegressor
"""Ensembles of scikit-learn that fit others several times and learn nothing else."""

_running: ContextVar[tuple[Any, ...]] = ContextVar("fits that are running", default=())
_everywhere: dict[object, Any] = {}  # the running fits of all threads
_inside: WeakKeyDictionary[Any, tuple[ref[Any], ...]] = WeakKeyDictionary()
"""The enclosing fits of each estimator, which may be fitted in another thread."""
_originals: WeakKeyDictionary[Any, ref[Any]] = WeakKeyDictionary()  # the originals of clones
_judged: WeakKeyDictionary[Any, ref[Any]] = WeakKeyDictionary()
"""The outermost fit in which each estimator was checked."""
_TAKEN_ALONG = "_surroundings"  # attribute of copies in other processes


class _Noted:
    """A method of scikit-learn that is recorded while it runs; not all instances may have it."""

    def __init__(self, method: Any) -> None:
        self.method = method

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        bound = self.method.__get__(instance, owner)
        return bound if instance is None else wraps(bound)(partial(_noted, instance, bound))


def _noted(instance: Any, method: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    if any(one is instance for one in _running.get()):  # a subclass calls its base class
        return method(*args, **kwargs)
    with _note(instance):
        return method(*args, **kwargs)


@contextmanager
def _note(instance: Any) -> Iterator[None]:
    token, place = _running.set((*_running.get(), instance)), object()
    _everywhere[place] = instance
    for part in _parts(instance):
        if hasattr(type(part), "_require_raw_rows"):
            _inside[part] = tuple(map(ref, _running.get()))
    try:
        yield
    finally:
        del _everywhere[place]
        _running.reset(token)


def _parts(instance: Any) -> list[Any]:
    """The values of all parameters of an estimator, including nested ones."""
    return list(instance.get_params(deep=True).values()) if hasattr(instance, "get_params") else []


def _fits_around(estimator: Any) -> tuple[Any, ...]:
    """The running fits, outermost first: those of this thread, and those that enclose it."""
    here, everywhere = _running.get(), list(_everywhere.values())
    known = [fit() for fit in _inside.get(estimator, ())]
    others = [one for one in known if any(one is fit for fit in everywhere)]
    return (*(one for one in others if not any(one is fit for fit in here)), *here)


def note_fits(kind: Any, *methods: str) -> None:
    """Record the running calls of these methods of a class and of all its subclasses."""
    for name in methods:
        _replace(kind, name)
    for derived in kind.__subclasses__():
        note_fits(derived, *methods)
    made = kind.__init_subclass__.__func__

    def note_derived(derived: Any, /, **given: Any) -> None:
        made(derived, **given)
        for name in methods:
            _replace(derived, name)

    kind.__init_subclass__ = classmethod(note_derived)


def _replace(kind: type, name: str) -> None:
    plain = getattr_static(kind, name)
    if not isinstance(plain, _Noted):
        setattr(kind, name, _Noted(plain))


note_fits(Pipeline, "fit", "fit_transform", "fit_predict")
for _kind in {*_LEARNERS, *_ENSEMBLES, *_UNSOUND, TransformedTargetRegressor}:
    note_fits(_kind, "fit")
note_fits(SelectFromModel, "partial_fit")


def note_clone(made: Any, original: Any) -> None:
    """Record the original of a clone, because a pipeline with a cache fits clones of its steps."""
    _originals[made] = ref(original)
    _inside[made] = tuple(map(ref, _fits_around(original)))
    if _TAKEN_ALONG in vars(original):
        vars(made)[_TAKEN_ALONG] = vars(original)[_TAKEN_ALONG]


class Surroundings(NamedTuple):
    """Descriptions of the fits that enclose an estimator.

    Attributes:
        unprotected: names of earlier steps that learn from the private rows, each with a sentence.
        unsound: names of ensembles that void the guarantee, each with a sentence.
        warnings: warnings about other learning that no guarantee covers.
    """

    unprotected: tuple[tuple[str, str], ...] = ()
    unsound: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()


def with_surroundings(
    estimator: Any, state: Mapping[str, Any], *, private: type
) -> Mapping[str, Any]:
    """The pickled state of an estimator, with its surroundings if the copy may be fitted."""
    running = _fits_around(estimator)
    if not running or (estimator in _judged and _judged[estimator]() is running[0]):
        return state
    return {**state, _TAKEN_ALONG: _surroundings(estimator, running, private)}


def require_raw_rows(estimator: Any, *, private: type, simulated: bool) -> None:
    """Raise an error if an earlier step of a pipeline learns from the private rows unprotected.

    Later steps without protection, and meta-estimators that learn something themselves, cause
    warnings: the guarantee of the estimator holds, but does not cover them.

    Args:
        estimator: the estimator that is about to read the rows.
        private: the base class of estimators that protect the rows of their fit.
        simulated: whether the fit is a simulation, which only warns.
    """
    running = _fits_around(estimator)
    found = _surroundings(estimator, running, private)
    vars(estimator).pop(_TAKEN_ALONG, None)
    for outermost in running[:1]:
        _judged[estimator] = ref(outermost)
    for name, sentence in found.unprotected:
        if not simulated:
            raise InvalidParameter("pipeline", f"without unprotected steps. {sentence}", name)
        warn(sentence)
    for name, sentence in found.unsound:
        raise InvalidParameter(
            "ensemble", f"one that leaves rows and noise as they are. {sentence}", name
        )
    for sentence in found.warnings:
        warn(sentence)


def _surroundings(estimator: Any, running: Sequence[Any], private: type) -> Surroundings:
    """The surroundings in this process, and those that a copied estimator carries."""
    name = type(estimator).__name__
    before, behind = _steps_around(estimator, running)
    unprotected, unsound, warnings = vars(estimator).get(_TAKEN_ALONG, Surroundings())
    for step in (*before, *_transformers_of_targets(running)):
        if get_tags(step).requires_fit and not isinstance(step, private):
            kind = type(step).__name__
            told = (
                f"{kind} learns from the private rows, and the guarantee of {name} "
                f"does not cover it: {instead_of(step)}"
            )
            unprotected += ((kind, told),)
    for step in behind:
        if get_tags(step).requires_fit and not isinstance(step, private):
            warnings += (
                f"{type(step).__name__} learns from the output of {name}, which is as private as "
                "the rows: no guarantee covers it",
            )
    for kind, what in _learners(running).items():
        warnings += (
            f"{kind} learns {what} from the private rows, and no guarantee covers it: do not "
            f"publish it. {_separate(name)}",
        )
    ensembles = {type(one).__name__: one for one in running if isinstance(one, _ENSEMBLES)}
    warnings += tuple(f"{kind} fits several copies. {_separate(name)}" for kind in ensembles)
    for kind, told, seeded in _inside_ensembles(estimator, running):
        if seeded:
            warnings += (told,)
        else:
            unsound += ((kind, told),)
    return Surroundings(unprotected, unsound, warnings)


def _separate(name: str) -> str:
    adds = "(dpfda.spent() adds them up)"
    return f"Each fit of {name} is a separate release with its own guarantee {adds}"


def _inside_ensembles(estimator: Any, running: Sequence[Any]) -> Iterator[tuple[str, str, bool]]:
    """Ensembles under which the guarantee does not hold, why, and whether it is a simulation."""
    for one in running:
        reasons = [_UNSOUND[kind] for kind in type(one).__mro__ if kind in _UNSOUND]
        if reasons:
            kind, name = type(one).__name__, type(estimator).__name__
            told = f"{kind} {reasons[0]} and seeds the noise of its members, so the guarantee of "
            told += f"{name} does not hold there: fit each member by itself"
            given = [part for part in _parts(one) if type(part) is type(estimator)]
            seeded = bool(given) and all(part.random_state is not None for part in given)
            yield kind, told, seeded


def _learners(running: Sequence[Any]) -> dict[str, str]:
    """The names of running meta-estimators, with what they learn themselves."""
    found = {}
    for one in running:
        known = [_LEARNERS[kind] for kind in type(one).__mro__ if kind in _LEARNERS]
        found.update({type(one).__name__: what for what in known[:1]})
    return found


def _transformers_of_targets(running: Sequence[Any]) -> list[Any]:
    """The transformers of targets in the running fits."""
    fits = (one for one in running if isinstance(one, TransformedTargetRegressor))
    return [one.transformer for one in fits if hasattr(one.transformer, "fit")]


def _steps_around(estimator: Any, running: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The steps before and after the estimator in the pipelines that are fitting it."""
    before: list[Any] = []
    behind: list[Any] = []
    inner = (estimator, _originals.get(estimator, ref(estimator))())
    for pipeline in (one for one in reversed(running) if isinstance(one, Pipeline)):
        steps = [step for _, step in pipeline.steps]
        places = [k for k, step in enumerate(steps) if any(step is one for one in inner)]
        places += [k for k, step in enumerate(steps) if _fits_such(step, inner[0])]
        if places:
            before = steps[: places[0]] + before
            behind += steps[places[0] + 1 :]
            inner = (pipeline, pipeline)
    fitted = ([step for step in part if hasattr(step, "fit")] for part in (before, behind))
    return next(fitted), next(fitted)


def _fits_such(step: Any, inner: Any) -> bool:
    """Whether a step, such as a search over a grid, has an estimator of this class inside.

    Such a step fits copies of this estimator.
    """
    return any(type(part) is type(inner) for part in _parts(step))
