"""Errors that another process raised arrive as they were."""

from __future__ import annotations

import pickle

import pytest

from dpfda.client.http import Unreachable
from dpfda.client.remote import NotGranted
from dpfda.collector.refusal import Refused
from dpfda.errors import (
    AlreadySpent,
    DpfdaError,
    InvalidData,
    InvalidParameter,
    MissingExtra,
    UnknownName,
)

ERRORS = [
    InvalidParameter("epsilon", "positive", -1),
    InvalidData("X", "of numbers", "shape (3, 2)"),
    UnknownName("learner", "logistc", ["logistic"]),
    MissingExtra("skfda", "fda"),
    AlreadySpent("once"),
    Unreachable("gone"),
    NotGranted(403, "no"),
    Refused(429, "busy", "later", retry_after=5),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_between_processes(error: DpfdaError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
