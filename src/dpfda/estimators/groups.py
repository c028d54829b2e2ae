"""Several rows of one person become one, so that a guarantee is per person."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpfda._validate import FloatArray
from dpfda.errors import InvalidParameter


def averages(rows: FloatArray, groups: Any) -> FloatArray:
    """For each person the average of their rows.

    Examples:
        >>> averages(np.array([[1.0], [5.0], [3.0]]), ["ann", "bob", "ann"]).tolist()
        [[2.0], [5.0]]
    """
    _, person = np.unique(_persons(groups, len(rows)), return_inverse=True)
    count = np.bincount(person)
    sums = np.zeros((len(count), rows.shape[1]))
    np.add.at(sums, person, rows)
    return np.asarray(sums / count[:, None])


def _persons(groups: Any, rows: int) -> npt.NDArray[Any]:
    persons = np.asarray(groups)
    if persons.shape != (rows,):
        raise InvalidParameter("groups", f"one entry for each of {rows} rows", persons.shape)
    if persons.dtype.kind == "O":  # names of several kinds do not sort
        persons = persons.astype(str)
    return persons
