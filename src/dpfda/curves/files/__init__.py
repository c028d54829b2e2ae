"""The reader of files for every command; it reports what it detected and where it failed.

    file, bytes ── text.py, stores.py ──> Table: columns of cells ── reading.py ──> Rows: curves …

A refusal names row, column and rule, never a value.
"""

from dpfda.curves.files.cells import File, Handed, Table
from dpfda.curves.files.opening import Opened, open_file
from dpfda.curves.files.reading import OPTIONS, Reading, Rows

__all__ = ["OPTIONS", "File", "Handed", "Opened", "Reading", "Rows", "Table", "open_file"]
