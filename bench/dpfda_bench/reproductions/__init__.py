"""One module a published table or figure, found by its file name.

``p001_table_1.py`` is ``dpfda reproduce 001-table-1``. A module has a ``TITLE`` and
``run(effort=FULL) -> Outcome``.
"""
