"""What collectors are forked from has loaded this, and looks at none of it again.

Whatever was loaded is taken out of the garbage collector's sight: a collector that starts looks for
cycles, and would otherwise copy all of these pages to find none.
"""

from __future__ import annotations

import gc
import importlib

from dpfda.collector.app import create_app
from dpfda.collector.settings import Settings

for _name in (
    "dpfda.cli.serve",
    "dpfda.local.study.vectors",
    "dpfda.local.boosting",
    "forked_collector",
):
    importlib.import_module(_name)
for _name in ("anyio._backends._asyncio", "psycopg", "scipy.stats", "sqlite3", "uvloop"):
    importlib.import_module(_name)
create_app(Settings(database="memory:", admin_key="x" * 32))  # what all have in common
gc.collect()
gc.freeze()
