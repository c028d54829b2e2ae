"""Private linear and logistic regression from noisy sums over rows.

A method (the parameter `mechanism`) is a short conversation: it queries a sum over all rows,
receives the noisy sum, and may query again. The data holder may be a curator, chunks of rows, a
cluster, or sites with a secure sum; `estimators/central_base.py` chooses it. The map from rows,
tables and curves to features is public (`recipe.py`).
"""

from dpfda._registry import discover

discover(__name__, list(__path__))  # methods and their queries register by name
