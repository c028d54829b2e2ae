"""Files that watches and apps export, read as the participants' page reads them.

    file ── formats.py (XML, JSON, zip), tables.py (CSV) ──> Series ── series.py ──> curve of a day

`clients/samples` holds a made-up file of each format and what both readers make of it.
"""

from dpfda.client.exports.formats import Export, read_export
from dpfda.client.exports.series import DayCurve, Series, day_curve

__all__ = ["DayCurve", "Export", "Series", "day_curve", "read_export"]
