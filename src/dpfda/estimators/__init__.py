"""The scikit-learn face of the studies."""
