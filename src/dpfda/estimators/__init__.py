"""The scikit-learn face of the studies."""

from dpfda import questions

__all__ = ["questions"]
