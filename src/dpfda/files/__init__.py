"""One reader of files for every command: what it sniffs it says, what it refuses it places.

    file ── text.py, stores.py ──> Table: columns of cells ── reading.py ──> Rows: curves, labels

A refusal names row, column and rule, never a value.
"""

from dpfda.files.opening import Opened, open_file
from dpfda.files.reading import Reading, Rows
from dpfda.files.table import Table

__all__ = ["Opened", "Reading", "Rows", "Table", "open_file"]
