"""Readers of files that watches and apps export, equivalent to those of the participant page.

    file ── formats.py (XML, JSON, zip), tables.py (CSV) ──> Series ── series.py ──> curve of a day

`clients/samples` holds an invented file of each format and the expected result of both readers.
"""

from dpfda.client.exports.formats import Export, read_export
from dpfda.client.exports.series import DayCurve, Series, day_curve

__all__ = ["DayCurve", "Export", "Series", "day_curve", "read_export"]
