"""The contract of magnitudes: for all accepted values of fields, noise has its stated size.

Four numerical failures are tested for every query:

* a sensitivity, scale, variance or lattice step that is 0, infinite or subnormal;
* an intermediate square or quotient that under- or overflows: if scaling a field by 2^k multiplies
  these numbers by 2^pk for small k, it must do so for every accepted k;
* a sum over records that overflows, or a statistic whose rounding error exceeds its allowance;
* a statistic that is truncated at the end of the lattice of its noise.
"""

from __future__ import annotations

import copy
import math
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np

from dpfda._registry import Registered
from dpfda._validate import FloatArray
from dpfda.checks import expect
from dpfda.checks.fuzz import check_reach, hostile_records, made_from
from dpfda.errors import DpfdaError
from dpfda.mechanisms.additive import LEAST_STEP, MOST_STEP, ROUNDING_STEPS, Additive
from dpfda.noise.discrete import LARGEST_STEPS
from dpfda.protocol.fields import Array, Declared, Number, declared
from dpfda.protocol.query import LARGEST_SUM, AdditiveQuery, Query

FAMILY = Query
Path = tuple[str, ...]
_SIZES = (5e-324, 1e-316, 1e-290, 1e-162, 1e-112, 1e-50, 1e-20, 1.0, 1e20, 1e50, 1e100, 1e308)
_EPSILONS = (1e-300, 1e-6, 1e-3, 1.0, 50.0, 1e6, 1e300)
_RECORDS = (2, 1 << 22, 1 << 27)
_MIXED = 40  # queries with several extreme fields
_NEAR = (-2, -1, 1, 2)  # powers of two that show how a number depends on a field
# squares are subnormal over 23 powers before they are 0, so steps of 16 detect this
_FAR = tuple(range(-640, 641, 16))
_SAME = 1e-11  # relative tolerance; scaling by a power of two is exact
_SEARCHED = 4  # queries with several extreme fields whose neighbors are searched
_SMALL = 0.1  # ε with which the noise is not too fine for many records
_LARGE = 20.0  # ε of the test of rounding errors: noise is small
_TRIED = 12


def check_magnitudes(query: Query) -> None:
    """Test all magnitudes on one query.

    Examples:
        >>> from dpfda.central.queries import BallMean
        >>> check_magnitudes(BallMean.examples()[0])
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        check_extremes(query)
        check_powers(query)
        if isinstance(query, AdditiveQuery):
            check_room(query)
            check_rounding(query)
            check_cut(query)


check = check_magnitudes


def check_extremes(query: Query) -> None:
    """With extreme fields, alone or together, a query is refused or has noise of normal size.

    Invalid fields are refused when the query is built, before any record is read.
    """
    good, paths = query.to_dict(), list(real_fields(query))
    rng, tried = np.random.default_rng(0), list[dict[Path, float]]()
    for path, rule in paths:
        tried += [{path: size} for size in (*_SIZES, rule.least, rule.most)]
    for _ in range(_MIXED * (len(paths) > 1)):
        chosen = rng.random(len(paths)) < 0.7
        tried.append(
            {
                path: float(rng.choice([*_SIZES, rule.least, rule.most]))
                for (path, rule), some in zip(paths, chosen, strict=True)
                if some
            }
        )
    if "cost" in good:
        tried += [{("cost", "epsilon"): size} for size in _EPSILONS]
    searched = 0
    for sizes in tried:
        data = copy.deepcopy(good)
        for path, size in sizes.items():
            _put(data, path, _sized(_at(data, path), size))
        made = made_from(data)
        if made is not None:
            text = ", ".join(f"{'.'.join(path)} of {size:g}" for path, size in sizes.items())
            expect_normal(made, text)
            if len(sizes) > 1 and searched < _SEARCHED:
                searched += 1
                check_reach(made, text)


def expect_normal(query: Query, context: str) -> None:
    """All parameters of the noise are normal floats, and lattice steps are within their limits."""
    mechanism = query.mechanism
    expect(math.isfinite(mechanism.epsilon), f"{context}: ε must be finite")
    if not isinstance(mechanism, Additive):
        return
    steps = mechanism.lattice_step
    inside = bool((steps >= LEAST_STEP).all() and (steps <= MOST_STEP).all())
    expect(inside, f"{context}: a lattice step is {steps.min():g}")
    for numbers in (mechanism.sensitivity, mechanism.scales, mechanism.law.variance):
        sizes = np.abs(np.ravel(numbers))
        normal = bool(np.isfinite(sizes).all() and (sizes >= sys.float_info.min).all())
        expect(normal, f"{context}: noise must be of a normal size")


@dataclass(frozen=True)
class Law:
    """If some fields are multiplied by 2^k, sensitivity and scales are multiplied by 2^pk."""

    paths: tuple[Path, ...]
    powers: FloatArray


def check_powers(query: Query) -> None:
    """Scales that follow a power of a field do so over the accepted range."""
    if not isinstance(query.mechanism, Additive):
        return
    good, here = query.to_dict(), _numbers(query)
    rng, laws = np.random.default_rng(1), _laws(query)
    for law in laws:
        for k in _FAR:
            _expect_law(good, here, [(law, k)])
    near = [(law, int(k)) for law, k in zip(laws, rng.integers(-2, 1, len(laws)), strict=True)]
    if len(laws) > 1 and _follows(good, here, near):
        for _ in range(_MIXED):
            far = rng.integers(-600, 601, len(laws)).tolist()
            _expect_law(good, here, list(zip(laws, far, strict=True)))


def _laws(query: Query) -> list[Law]:
    """The laws of each field, or of two together if neither has one."""
    single = {path: _law(query, (path,)) for path, _ in real_fields(query)}
    found = [law for law in single.values() if law is not None]
    alone = [path for path, law in single.items() if law is None]
    pairs = (_law(query, pair) for pair in combinations(alone, 2))
    return found + [law for law in pairs if law is not None]


def _law(query: Query, paths: tuple[Path, ...]) -> Law | None:
    """The law by which the numbers of a query follow some fields; None if there is none."""
    good, here = query.to_dict(), _numbers(query)
    half = _scaled(good, [(Law(paths, here), -1)])
    if half is None or _numbers(half).shape != here.shape:
        return None
    law = Law(paths, np.rint(np.log2(here / _numbers(half))))
    return law if all(_follows(good, here, [(law, k)]) is not False for k in _NEAR) else None


def _follows(good: dict[str, Any], here: FloatArray, shifts: list[tuple[Law, int]]) -> bool | None:
    """Whether a scaled query follows the laws; None if it is refused."""
    made = _scaled(good, shifts)
    if made is None:
        return None
    exponent = np.sum([law.powers * k for law, k in shifts], axis=0)
    # In logarithms, because 2^pk itself may overflow.
    found = np.log2(_numbers(made)) - np.log2(here) - exponent
    return bool((np.abs(found) <= _SAME / math.log(2) + 2**-52 * np.abs(exponent)).all())


def _expect_law(good: dict[str, Any], here: FloatArray, shifts: list[tuple[Law, int]]) -> None:
    scaled = ((".".join(path), k) for law, k in shifts for path in law.paths)
    text = ", ".join(f"{name} times 2^{k}" for name, k in scaled)
    kept = _follows(good, here, shifts) is not False
    expect(kept, f"{text}: sensitivity and scales must go with it")


def _scaled(good: dict[str, Any], shifts: list[tuple[Law, int]]) -> Query | None:
    """The query with fields multiplied by powers of two; None if it is refused."""
    data = copy.deepcopy(good)
    for law, k in shifts:
        for path in law.paths:
            scaled = np.ldexp(np.array(_at(data, path), dtype=np.float64), k)
            _put(data, path, scaled.tolist())
    return made_from(data)


def _numbers(query: Query) -> FloatArray:
    """Sensitivity and scales."""
    mechanism = query.mechanism
    assert isinstance(mechanism, Additive)
    return np.append(mechanism.scales, mechanism.sensitivity)


def check_room(query: AdditiveQuery) -> None:
    """A record adds at most its stated amount to a sum, and sums stay below 2^63."""
    records = query.trial(np.random.default_rng(2), size=1e3)
    for held, hostile in (("large numbers", records), *hostile_records(records)):
        most = int(np.abs(query.sums(query.fitting(hostile))).max(initial=0))
        fine = most <= len(hostile[0]) * query.largest
        expect(fine, f"records of {held} add more than {query.largest} each")
    for n in _RECORDS:
        about = _about(query, n, epsilon=_SMALL)
        for other in (n, n + 1, LARGEST_SUM // about.largest + 1):
            for part in (False, True):
                if _counts(about, other, part=part):
                    expect(other * about.largest < 1 << 63, f"{other} records may wrap around")
        known = n if _places_of_n(about.to_dict()) else None
        expect(about.announced == known, "a query announces the number of records that it states")
        if about.announced is not None:
            expect(_counts(about, n), "as many records as announced must be asked")
            expect(not _counts(about, n + 1, part=True), "a part must not be more than all")


def _about(query: AdditiveQuery, n: int, *, epsilon: float | None = None) -> AdditiveQuery:
    """The same query about another number of records, if it states one, or with another ε."""
    data = query.to_dict()
    if epsilon is not None and "cost" in data:
        _put(data, ("cost", "epsilon"), epsilon)
    for path in _places_of_n(data):
        _put(data, path, n)
    made = made_from(data)
    assert isinstance(made, AdditiveQuery)
    return made


def _places_of_n(data: dict[str, Any]) -> list[Path]:
    """Paths at which a query states a number of records."""
    places: tuple[Path, ...] = (("n",), ("query", "n"))
    return [path for path in places if path[0] in data and path[-1] in _at(data, path[:-1])]


def _counts(query: AdditiveQuery, n: int, *, part: bool = False) -> bool:
    try:
        query.count(n, part=part)
    except DpfdaError:
        return False
    return True


def check_rounding(query: AdditiveQuery) -> None:
    """Rounding errors of large sums stay within their allowance, also with little noise."""
    data = _about(query, _RECORDS[-1]).to_dict()
    if "cost" in data:
        _put(data, ("cost", "epsilon"), _LARGE)
    large = made_from(data)
    if not isinstance(large, AdditiveQuery) or not isinstance(large.mechanism, Additive):
        return
    n = _RECORDS[-1] - 1 if large.announced is None else large.announced
    rng, mechanism = np.random.default_rng(3), large.mechanism
    with_rounding = mechanism.reach(ROUNDING_STEPS * mechanism.lattice_step)
    most = mechanism.sensitivity * (1 + _SAME) + with_rounding
    for _ in range(_TRIED):
        records = large.fitting(query.trial(rng, size=float(rng.choice([1.0, 1e3]))))
        rows = [tuple(column[i : i + 1] for column in records) for i in range(len(records[0]))]
        each = [large.sums(row) for row in rows]
        often = rng.multinomial(n - 1, rng.dirichlet(np.ones(len(each))))
        others = sum(int(count) * one for count, one in zip(often, each, strict=True))
        here, there = (large.statistic(others + each[i]) for i in (0, 1))
        apart = (mechanism.lattice(here) - mechanism.lattice(there)) * mechanism.lattice_step
        expect(mechanism.reach(apart) <= most, "rounding errors of large sums pass the noise")


def check_cut(query: AdditiveQuery) -> None:
    """For every accepted ε and number of equal records, no exact answer is truncated."""
    for n, epsilon in product(_RECORDS, _EPSILONS):
        data = _about(query, n).to_dict()
        if "cost" in data:
            _put(data, ("cost", "epsilon"), epsilon)
        made = made_from(data)
        if not isinstance(made, AdditiveQuery) or not isinstance(made.mechanism, Additive):
            continue
        many = n if made.announced is None else made.announced
        if not _counts(made, many):
            continue
        records = made.fitting(query.trial(np.random.default_rng(4), size=1e3))
        exact = made.statistic(many * made.sums(tuple(column[:1] for column in records)))
        steps = float(np.abs(exact / made.mechanism.lattice_step).max(initial=0.0))
        text = f"{many} records alike with ε = {epsilon:g}: the answer is cut off"
        expect(steps <= LARGEST_STEPS * (1 + _SAME), text)


def real_fields(query: object, above: Path = ()) -> Iterator[tuple[Path, Number | Array]]:
    """Every real number and array among the fields of a query and of its parts."""
    for name, (rule, _) in declared(type(query)).items():
        value = getattr(query, name)
        if isinstance(value, (Declared, Registered)):
            yield from real_fields(value, (*above, name))
        elif value is not None and (
            isinstance(rule, Number) or (isinstance(rule, Array) and rule.kind == "real")
        ):
            yield (*above, name), rule


def _sized(value: object, size: float) -> object:
    """A field scaled to this size; an array keeps its shape and zeros."""
    array = np.array(value, dtype=np.float64)
    largest = float(np.abs(array).max(initial=0.0))
    sized = array / largest * size if largest else np.full(array.shape, size)
    return sized.tolist()


def _at(data: dict[str, Any], path: Path) -> Any:
    for key in path:
        data = data[key]
    return data


def _put(data: dict[str, Any], path: Path, value: object) -> None:
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value
