"""Run a whole study in one process; each line leads to one file.

The collector uses the same `Server`, tasks and mechanisms over HTTP. Here the people are simulated
in batches of thousands.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpfda._validate import ArrayLike, FloatArray, IntArray
from dpfda.curves.observations import Curves, GridPoints
from dpfda.errors import InvalidData
from dpfda.noise import Source
from dpfda.privacy import tally
from dpfda.privacy.ledger import BaseLedger
from dpfda.protocol.person import Crowd, Entries, People, encode_people
from dpfda.protocol.plan import StudyPlan
from dpfda.protocol.server import BLOCK, Server
from dpfda.report.progress import progress


def simulate(
    plan: StudyPlan,
    people: People | Crowd,
    *,
    source: Source,
    ledger: BaseLedger | None = None,
    label: str = "study",
    at_once: int = BLOCK,
    answers: Callable[[IntArray], ArrayLike] | None = None,
    tell: Callable[[float], None] | None = None,
) -> Server:
    """Charge all people, then run a study from the first person to the last.

    Args:
        plan: the public contract.
        people: the simulated people, in the order in which they take part.
        source: the source of their randomness.
        ledger: the budget of the people over all studies; by default the budget of an enclosing
            `dpfda.budget`, if any. `dpfda.spent()` lists releases with real noise in any case.
        label: public description for the ledger.
        at_once: as in `ask_everybody`.
        answers: as in `ask_everybody`.
        tell: called with the share of people done; by default a progress bar shows it.

    Returns:
        The server at the end: its `model`, and what its design estimated in `findings`.
    """
    tally.pay(plan.guarantee, label=label, source=source, ledger=ledger)
    with progress(label, tell) as done:
        return ask_everybody(
            plan, people, source=source, at_once=at_once, answers=answers, tell=done
        )


def ask_everybody(
    plan: StudyPlan,
    people: People | Crowd,
    *,
    source: Source,
    at_once: int = BLOCK,
    answers: Callable[[IntArray], ArrayLike] | None = None,
    tell: Callable[[float], None] | None = None,
) -> Server:
    """Run a study whose people were charged.

    Args:
        plan: the public contract.
        people: as in `simulate`.
        source: the source of their randomness.
        at_once: number of people in one batch. Another number gives other results for the same
            seed.
        answers: maps positions of people to whether each of them answers; by default all do.
        tell: called with the share of people done.
    """
    crowd = people if isinstance(people, Crowd) else Crowd(plan, people, source=source)
    server = Server(plan, source=crowd.source if crowd.draws_here else None)
    while not server.finished:
        start = server.issued
        task = server.issue(min(server.wanted, at_once))
        everybody = np.arange(crowd.asked, crowd.asked + task.people)
        reply = crowd.answer(task)
        missing = None if answers is None else ~np.asarray(answers(everybody), dtype=bool)
        phase = server.phase
        server.receive(reply.values, start=start, missing=missing)
        if missing is not None and server.phase == phase and server.wanted == 0:
            server.close_phase()  # the deadline: replies after it are not accepted
        if tell is not None:
            tell(crowd.asked / plan.n_people)
    return server


def people_from(
    plan: StudyPlan, X: Curves, y: Entries, *, grid_points: GridPoints = None
) -> People:
    """People who hold the given rows and labels, in a public random order."""
    plan.encoder.check_grid(X, grid_points)
    features, numbers = encode_people(plan, X, y, grid_points=grid_points)
    if len(features) != plan.n_people or len(numbers) != plan.n_people:
        raise InvalidData("X", f"{plan.n_people} rows with a label each")
    order = np.random.default_rng(plan.seed).permutation(plan.n_people)

    def people(start: int, stop: int) -> tuple[FloatArray, IntArray]:
        who = order[start:stop]
        return features[who], numbers[who]

    return people
