"""A collector with a wrong clock and a slow disk: ``python -m dpfda_bench.faulty serve …``.

The file that `PLACE` names in the environment says how wrong: seconds that the system's clock is
ahead, and seconds that each commit takes longer.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import sqlalchemy as sa

from dpfda.cli._group import dpfda
from dpfda.collector.clock import Clock
from dpfda.collector.collector_process import CollectorProcess

PLACE = "DPFDA_BENCH_FAULTS"


class FaultyCollector(CollectorProcess):
    """One whose clock and disk obey `set_faults`."""

    program = "dpfda_bench.faulty"


def set_faults(place: Path, *, ahead: float = 0.0, slower: float = 0.0) -> None:
    """From now on the clock of a collector is so wrong, and its disk so slow."""
    new = place.with_suffix(".new")
    new.write_text(f"{ahead} {slower}", encoding="ascii")
    new.replace(place)


def main() -> None:
    """Serve as ``dpfda serve`` does."""
    place = Path(os.environ[PLACE])

    def faults() -> tuple[float, float]:
        ahead, slower = map(float, place.read_text(encoding="ascii").split())
        return ahead, slower

    known = Clock.__init__.__kwdefaults__
    assert known is not None
    known["wall"] = lambda: time.time() + faults()[0]
    sa.event.listen(sa.Engine, "commit", lambda _: time.sleep(faults()[1]))
    dpfda()


if __name__ == "__main__":
    main()
