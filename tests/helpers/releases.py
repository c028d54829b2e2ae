"""Releases that tests of ledgers spend."""

from dpfda.privacy.events import PureEvent


def tenth():
    return PureEvent(epsilon=0.1)
