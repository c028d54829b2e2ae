"""Ten thousand studies cost what ten do: the same statements, and the same rows looked at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from organizer import VISITOR
from sqlalchemy import event

from dpfda.collector.api import list_studies, page_of
from dpfda.collector.health import health, show_metrics
from dpfda.collector.metrics import Metrics
from dpfda.collector.organizers import FIRST, Account
from dpfda.collector.pages import routes
from dpfda.collector.pages.templating import text
from dpfda.collector.service import Collector
from dpfda.collector.storage.sql import SqlStorage
from dpfda_bench.many_studies import fill

Ask = Callable[[Collector], Awaitable[Any]]


STRANGER = SimpleNamespace(headers={})


async def listed(collector: Collector, *, key: bool = True, **asked: Any) -> Any:
    """What the interface lists."""

    async def account(*_: str) -> Account:
        return FIRST

    state = SimpleNamespace(keyhole=SimpleNamespace(account=account))
    headers = {"authorization": "Bearer key"} if key else {}
    request = SimpleNamespace(
        headers=headers, client=None, scope={}, app=SimpleNamespace(state=state)
    )
    return await list_studies.fn(request=request, collector=collector, **asked)


ROUTES: dict[str, Ask] = {
    "health": lambda collector: health.fn(request=STRANGER, collector=collector),
    "metrics": lambda collector: show_metrics.fn(
        request=STRANGER, collector=collector, metrics=Metrics()
    ),
    "interface": listed,
    "next page": lambda collector: listed(collector, after="5.0-05", most=5),
    "strangers": lambda collector: listed(collector, key=False),
    "dashboard": lambda collector: routes.list_studies.fn(collector=collector, visitor=VISITOR),
    "watcher": lambda collector: collector.watcher.look(),
}


@contextmanager
def work(storage: SqlStorage) -> Iterator[list[int]]:
    """Two numbers: statements, and steps of SQLite's machine or rows that PostgreSQL looks at."""
    spent = [0, 0]
    sqlite = storage._engine.dialect.name == "sqlite"

    def begins(connection: Any, cursor: Any, text: str, values: Any, *_: Any) -> None:
        spent[0] += 1
        if sqlite:

            def step() -> int:
                spent[1] += 1
                return 0

            connection.connection.set_progress_handler(step, 1)
        else:
            plan = connection.connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {text}", values)
            spent[1] += looked_at(plan.fetchone()[0][0]["Plan"])

    event.listen(storage._engine, "before_cursor_execute", begins)
    yield spent
    event.remove(storage._engine, "before_cursor_execute", begins)


def looked_at(plan: dict[str, Any]) -> int:
    """Rows that the nodes of a PostgreSQL plan read, those passed over too."""
    here = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
    inside = sum(looked_at(part) for part in plan.get("Plans", []))
    return round(here * plan["Actual Loops"]) + inside


def costs(database: str, studies: int) -> dict[str, tuple[int, int]]:
    async def ask() -> dict[str, tuple[int, int]]:
        storage = fill(database, studies)
        collector = Collector(storage)
        try:
            found = {}
            for name, route in ROUTES.items():
                with work(storage) as spent:
                    await route(collector)
                found[name] = (spent[0], spent[1])
            return found
        finally:
            await collector.stop()

    return asyncio.run(ask())


@pytest.mark.parametrize("database", ["sqlite", "postgresql"], indirect=True)
def test_ten_thousand_cost_what_sixty_do(database: str) -> None:
    few = costs(database, 60)  # more than a page
    many = costs(database, 10_000)
    for name, (statements, steps) in many.items():
        assert statements == few[name][0] <= 3, name
        assert steps <= 1.1 * few[name][1] + 20, (name, steps, few[name][1])


def test_pages_of_the_interface_and_the_dashboard(database: str) -> None:
    async def read() -> None:
        collector = Collector(fill(database, 120))
        try:
            seen, after = [], None
            for _ in range(3):
                page = await listed(collector, after=after)
                seen += [study.id for study in page.studies]
                shown_page = await routes.list_studies.fn(
                    collector=collector, visitor=VISITOR, after=after
                )
                shown = text(shown_page)
                assert all(study.id in shown for study in page.studies)
                assert ("Newest studies" in shown) == (after is not None)
                assert ("Older studies" in shown) == (page.next is not None)
                assert page.next is None or f"/?after={page.next}" in shown
                after = page.next
            assert after is None
            assert len(set(seen)) == len(seen) == 120
            assert (await page_of(collector, None, 120))[1] is None
            assert (await page_of(collector, None, 119))[1] is not None
        finally:
            await collector.stop()

    asyncio.run(read())


def test_one_broken_row_does_not_hide_the_others(database: str) -> None:
    """Whatever an older release has stored as a plan."""

    async def read() -> list[str]:
        storage = fill(database, 3)
        with storage._engine.begin() as connection:
            plans = ["{", json.dumps({"title": 17}), "null"]
            for number, plan in enumerate(plans):
                change = sa.text("UPDATE study SET plan = :plan, settings = :plan WHERE id = :id")
                connection.execute(change, {"plan": plan, "id": f"{number:02x}"})
        collector = Collector(storage)
        try:
            page = await listed(collector)
            assert len(page.studies) == 3
            shown = await routes.list_studies.fn(collector=collector, visitor=VISITOR)
            assert shown.status_code == 200
            return [study.title for study in page.studies]
        finally:
            await collector.stop()

    assert asyncio.run(read()) == ["study 2", "study 1", "study 0"]
