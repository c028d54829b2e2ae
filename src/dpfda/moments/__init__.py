"""Curves that a curator holds: one joint release of means, sizes and covariances, and its uses."""
