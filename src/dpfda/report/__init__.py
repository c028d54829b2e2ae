"""Reports: one HTML page for each release, model or measurement, without external files."""

from dpfda.report.contents import Contents, Picture, Table, Verdict, worst_of
from dpfda.report.report import Report

__all__ = ["Contents", "Picture", "Report", "Table", "Verdict", "worst_of"]
