"""Private linear and logistic regression, pooled or among sites that share only sums.

A method (`methods/`) is a short conversation: it asks for a sum over all rows (a look), is told the
sum with noise, and may ask again. Who answers is not its business: a curator (`estimators.py`), a
stream of chunks (`passes.py`), or sites under a secure sum (`decentralized.py`).
"""

from dpfda.regression import methods

__all__ = ["methods"]
