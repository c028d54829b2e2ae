"""One module a published table or figure, found by its file name.

``p001_table_1.py`` is ``dpfda reproduce 001-table-1``. A module has

* ``TITLE``, and ``NEEDS``, the data sets of the catalogue that it reads (empty: it simulates);
* ``COVERS``, names of other tables and figures that it holds as well (may be left out);
* ``SECONDS``, about how long the full count takes on one core;
* ``CLAIMED``, the guarantee that the paper states;
* ``GUARANTEES``, what each version shown really guarantees, by the version's name in the rows;
* ``READING``, what the text leaves open and how it was settled;
* ``run(effort=FULL) -> Outcome``, and ``verdict(outcome) -> Verdict`` on what it found.

Tables and figures that are alike share a module with an underscore, whose ``ENTRIES`` hold the same
by name.
"""
