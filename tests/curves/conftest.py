"""Every registered basis and rescaler, found through the registry and not through a list."""

import numpy as np
import pytest

from dpfda.curves import Basis, Rescaler

BASES = [basis for member in Basis.members().values() for basis in member.examples()]
BASES = [basis for basis in BASES if len(basis.parts) == 1]  # channels have tests of their own
RESCALERS = [item for member in Rescaler.members().values() for item in member.examples()]
FUNCTIONAL = [basis for basis in BASES if basis.functional]


def pytest_generate_tests(metafunc):
    for name, members in (
        ("basis", BASES),
        ("functional_basis", FUNCTIONAL),
        ("rescaler", RESCALERS),
    ):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, members, ids=[f"{m.name}{i}" for i, m in enumerate(members)])


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)
