"""The reader of files for every command; it reports what it detected and where it failed.

    file, folder, frame ── places.py ──> tables ── text.py, arrow.py ──> Table: columns of cells
    Table ── reading.py ──> Rows: curves …

Errors name row, column and rule, never a value.
"""

from dpfda.curves.files.cells import Table
from dpfda.curves.files.file import File, Handed, Place
from dpfda.curves.files.opening import Opened, open_file
from dpfda.curves.files.places import count_in, is_frame, tables_at
from dpfda.curves.files.reading import OPTIONS, Reading, Rows

__all__ = [
    "OPTIONS",
    "File",
    "Handed",
    "Opened",
    "Place",
    "Reading",
    "Rows",
    "Table",
    "count_in",
    "is_frame",
    "open_file",
    "tables_at",
]
