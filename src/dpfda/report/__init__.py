"""One HTML page for whatever was released, learnt or measured; it loads nothing from elsewhere."""

from dpfda.report.contents import Contents, Picture
from dpfda.report.judgement import Verdict, worst_of
from dpfda.report.report import Report
from dpfda.report.table import Table

__all__ = ["Contents", "Picture", "Report", "Table", "Verdict", "worst_of"]
