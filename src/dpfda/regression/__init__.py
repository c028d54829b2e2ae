"""Private linear and logistic regression, pooled or among sites that share only sums.

A method (`methods/`; users choose it as `mechanism`) is a short conversation: it asks for a sum
over all rows (a look), is told the sum with noise, and may ask again. Who answers is not its
business: a curator or a stream of chunks (`estimators.py`), or sites under a secure sum
(`decentralized.py`). How rows, tables and curves become features is public (`recipe.py`).
"""

from dpfda.regression import methods

__all__ = ["methods"]
