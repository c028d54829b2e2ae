"""Private linear and logistic regression of rows that a data holder can add up.

A method (users choose it as `mechanism`) is a short conversation: it asks for a sum over all rows,
receives the sum with noise, and may ask again. Who answers, a curator, chunks, a cluster or sites
under a secure sum, is decided in `estimators/central_base.py`. How rows, tables and curves become
features is public (`recipe.py`).
"""

from dpfda._registry import discover

discover(__name__, list(__path__))  # methods and their queries register by name
