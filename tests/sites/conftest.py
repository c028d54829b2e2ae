"""Processes die in these tests, machines do not: what was written need not reach the disk."""

from __future__ import annotations

import os

import pytest
from model_servers import MODELS, servers


@pytest.fixture(autouse=True)
def no_fsync(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def three(tmp_path):
    """Servers with a model each."""
    return servers(tmp_path, MODELS)
