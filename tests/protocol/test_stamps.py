"""A model's guarantee says where its noise came from, as far as whoever made it knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_studies import small_studies

from dpfda.noise import SecureSource, SimulationSource, Source
from dpfda.protocol.person import Crowd, Scattered
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import Server
from dpfda.simulate import ask_everybody


class Nobodys(Crowd):
    """People about whom nothing is known, of a study's shapes."""

    def _answers(self, query: Any, records: Any, number: int) -> Any:
        return query.answer(query.trial(np.random.default_rng(number)), self.source)


def crowd(plan: StudyPlan, source: Source) -> Crowd:
    return Nobodys(plan, lambda start, stop: (), source=source)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("name", small_studies())
def test_a_simulated_study_says_that_it_is_one(name: str) -> None:
    plan = small_studies()[name]
    for source, sampler in ((SimulationSource(0), "simulation"), (SecureSource(), "exact")):
        server = ask_everybody(plan, crowd(plan, source), source=source)
        assert server.model.guarantee == plan.guarantee.drawn_from(source)
        assert server.model.guarantee.sampler == sampler
    assert "sampler = exact" in str(server.model.guarantee)


def test_a_server_of_people_elsewhere_does_not_know() -> None:
    plan = small_studies()["moments"]
    assert Server(plan).model.guarantee.sampler == "unknown"
    here = crowd(plan, SimulationSource(0))

    def ask(tasks: Any, start: int, stop: int) -> Any:
        return {place: here.answer(task).values for place, task in tasks.items()}

    places = np.zeros(plan.n_people, dtype=np.int64)
    server = ask_everybody(plan, Scattered(plan, places, ask), source=SimulationSource(0))
    assert server.model.guarantee.sampler == "unknown"
