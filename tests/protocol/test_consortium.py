"""Releases and regressions of a curator, asked of sites instead."""

import numpy as np
import pytest

from dpfda.central.functions import as_grid
from dpfda.central.mean import FunctionMechanism, MeanRelease
from dpfda.curate import curate
from dpfda.errors import ProtocolError
from dpfda.noise import SimulationSource
from dpfda.privacy.cost import within
from dpfda.privacy.price import compose
from dpfda.protocol.consortium import convene
from dpfda.protocol.conversation import Conversation
from dpfda.protocol.site import addable


def test_every_registered_conversation_of_sums_runs_among_sites():
    n, ran = 120, set()
    examples = [
        conversation
        for member in Conversation.members().values()
        for conversation in member.examples(n=n, epsilon=1.0, delta=0.05)
    ]
    for conversation in examples:
        if not addable(next(conversation.questions())):
            continue
        columns, _ = conversation.neighbors(n)
        held = {f"site{k}": tuple(column[k::3] for column in columns) for k in range(3)}
        _, consortium = convene(conversation, held, source=SimulationSource(1))
        ran.add(conversation.name)
        assert all(exchange.answer.n == n for exchange in consortium.transcript)
        for site in consortium.sites.values():
            assert within(compose(site.events), conversation.most)
    assert {"mean", "covariance", "regression"} <= ran


@pytest.mark.parametrize("gone", [set(), {"site2"}])
def test_a_mean_curve_among_sites(gone):
    """A curator's release, without a curator; where a site is missing, of those who are there."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, 20)
    curves = np.sin(np.pi * t) * rng.uniform(0.5, 1.0, (6000, 1))
    conversation = MeanRelease(
        epsilon=2.0,
        delta=1e-5,
        n=6000,
        bound=1.0,
        grid=as_grid(t),
        mechanism=FunctionMechanism.named("adaptive")(),
    )
    (rows,) = conversation.records(curves)
    held = {f"site{k}": (part,) for k, part in enumerate(np.array_split(rows, 6))}
    silent = {"silent": lambda step, _: gone if step == "mask" else set(), "dropouts": 1}
    release, consortium = convene(conversation, held, source=SimulationSource(0), **silent)
    pooled, _ = curate(conversation, (rows,), source=SimulationSource(0))
    assert len(consortium.survivors[0]) == 6 - len(gone)
    for exchange, ratio in zip(consortium.transcript, consortium.noise_ratio, strict=True):
        answer = exchange.answer
        stated = exchange.query.mechanism.scales * np.sqrt(ratio) * 6000 / answer.n
        assert answer.noise.scales == pytest.approx(stated)
    true = curves.mean(0)
    assert np.abs(release.values() - true).max() < 0.03
    assert np.abs(pooled.values() - true).max() < 0.03
    with pytest.raises(ProtocolError, match="announces 6000 records"):
        convene(conversation, {"a": (rows[:5],), "b": (rows[:9],)}, source=SimulationSource(0))
