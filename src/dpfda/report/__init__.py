"""One HTML page for whatever was released, learnt or measured; it loads nothing from elsewhere."""

from dpfda.report.contents import Contents, Picture, Table, Verdict, worst_of
from dpfda.report.report import Report

__all__ = ["Contents", "Picture", "Report", "Table", "Verdict", "worst_of"]
